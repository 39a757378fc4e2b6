"""A docker engine of its own for a host on this machine, as a rented machine would have one.

The engine lives in the host's network namespace: what it runs with `--network=host` sees the
host's own interface and address. Its images and containers are nobody else's. It has no network
of its own, and takes no image from anywhere: `rehearsal/images.py` makes some.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import EnvironmentFault, MissingProgram
from paceline.rehearsal.network import LabHost
from paceline.supervisor import procfs
from paceline.supervisor.procfs import ProcessEntry

# A socket's path has at most 107 letters, and those of the tests' folders would not fit.
RUN_FOLDER = Path("/run/paceline-lab")
_READY_WITHIN_S = 60.0
_ENDS_WITHIN_S = 20.0
_CALL_WITHIN_S = 300.0


@dataclass(frozen=True)
class Engine:
    """One docker engine: the host's namespace, and the folder of its images and containers."""

    namespace: str
    data: Path

    @property
    def run_folder(self) -> Path:
        """The folder of its sockets, which it has for itself."""
        return RUN_FOLDER / self.namespace

    @property
    def address(self) -> str:
        """Where it answers, as `DOCKER_HOST` names it."""
        return engine_address(self.namespace)

    def command(self) -> tuple[str, ...]:
        """Return the command that starts it.

        `ip netns exec` would not do: it hides the control groups, which the engine needs.
        """
        run = self.run_folder
        return (
            "nsenter", f"--net=/run/netns/{self.namespace}", "dockerd",
            "--data-root", str(self.data), "--exec-root", str(run / "exec"),
            "--pidfile", str(run / "pid"), "--host", self.address,
            "--bridge=none", "--iptables=false", "--ip6tables=false",
        )  # fmt: skip

    def docker(self, *words: str, stdin: bytes | None = None) -> str:
        """Say something to it through docker's own client, and return the answer."""
        done = subprocess.run(
            ("docker", "--host", self.address, *words),
            input=stdin,
            capture_output=True,
            timeout=_CALL_WITHIN_S,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            raise EnvironmentFault(f"docker {' '.join(words)}: {said}", host=self.namespace)
        return done.stdout.decode(errors="replace").strip()

    def containers(self) -> list[str]:
        """Return the names of all its containers, the stopped ones included."""
        return self.docker("ps", "--all", "--format", "{{.Names}}").split()


def engine_address(namespace: str) -> str:
    """Return where the engine of a host answers, if it has one."""
    return f"unix://{RUN_FOLDER}/{namespace}/docker.sock"


@contextmanager
def engine(lab: LabHost, folder: Path) -> Iterator[Engine]:
    """Start an engine on a host; end it and all that it holds afterwards.

    `folder` keeps its images and containers, its log, and the record of what was made.
    """
    for program, package in (("dockerd", "docker.io"), ("nsenter", "util-linux")):
        if shutil.which(program, path="/usr/sbin:/usr/bin:/usr/local/bin:/sbin:/bin") is None:
            raise MissingProgram(f"there is no {program}", hint=f"apt-get install {package}")
    made = Engine(lab.namespace, folder / "engine-data")
    if made.run_folder.exists():
        raise EnvironmentFault(f"{made.run_folder} is there already: is its engine at work?")
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "engine.json"
    with record.open("x") as file:
        json.dump({"namespace": made.namespace, "data": str(made.data)}, file)
    try:
        made.run_folder.mkdir(parents=True)
        with (folder / "dockerd.log").open("wb") as log:
            server = subprocess.Popen(
                made.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            _wait_until_ready(made, server, folder / "dockerd.log")
            yield made
        finally:
            _remove_containers(made)
            server.terminate()
            _wait_for(server)
    finally:
        remove_recorded_engine(record)


def remove_recorded_engine(record: Path) -> None:
    """Take away what an engine's record names, also after its owner was killed."""
    data = json.loads(record.read_text())
    made = Engine(data["namespace"], Path(data["data"]))
    _end_processes(made)
    for folder in (made.run_folder, made.data):
        for point in _mounts_at(folder):
            subprocess.run(("umount", "--lazy", point), capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)
    left = [str(folder) for folder in (made.run_folder, made.data) if folder.exists()]
    if left:
        raise EnvironmentFault(f"could not be removed: {', '.join(left)}", host=made.namespace)
    with contextlib.suppress(OSError):
        RUN_FOLDER.rmdir()  # the last one clears up
    record.unlink()


def _wait_until_ready(made: Engine, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        with contextlib.suppress(EnvironmentFault):
            made.docker("version", "--format", "{{.Server.Version}}")
            return
        if server.poll() is not None or time.monotonic() > deadline:
            said = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise EnvironmentFault(f"its dockerd did not come up: {said}", host=made.namespace)
        time.sleep(0.05)


def _remove_containers(made: Engine) -> None:
    """End its containers, all of which are ours; the engine itself would ask them for long."""
    with contextlib.suppress(EnvironmentFault, subprocess.TimeoutExpired):
        found = made.docker("ps", "--all", "--quiet").split()
        if found:
            made.docker("rm", "--force", *found)


def _wait_for(server: subprocess.Popen[bytes]) -> None:
    try:
        server.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _end_processes(made: Engine) -> None:
    """End what is left of an engine that was killed: its parts, and what they look after."""
    deadline = time.monotonic() + _ENDS_WITHIN_S
    while left := _processes_of(made):
        for entry in left:
            procfs.send(entry, signal.SIGKILL)
        if time.monotonic() > deadline:
            pids = ", ".join(str(entry.pid) for entry in left)
            raise EnvironmentFault(f"could not be ended: {pids}", host=made.namespace)
        time.sleep(0.05)


def _processes_of(made: Engine) -> list[ProcessEntry]:
    """Return the living processes that were started with a path in the engine's own folder."""
    ours = f"{made.run_folder}/".encode()
    found = []
    for entry in procfs.all_entries():
        with contextlib.suppress(OSError):
            if entry.alive and ours in Path(f"/proc/{entry.pid}/cmdline").read_bytes():
                found += [entry, *procfs.descendants(entry.pid)]
    return found


def _mounts_at(folder: Path) -> list[str]:
    """Return the mount points in a folder, the deepest first; it may be one itself.

    An engine mounts the folder of its images upon itself, and leaves it so when it is killed.
    """
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in reversed(points) if f"{point}/".startswith(f"{folder}/")]
