"""Hosts on this machine that answer to SSH: a namespace, a home and a real sshd each."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import EnvironmentFault, MissingProgram
from paceline.rehearsal.engine import engine_address
from paceline.rehearsal.network import LabHost, NetworkPlan, network

SSH_PORT = 22
_READY_WITHIN_S = 20.0
_CONFIGURATION = """\
AddressFamily inet
ListenAddress {address}
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
SetEnv HOME={folder}/home RES_OPTIONS="timeout:1 attempts:1" DOCKER_HOST={engine}
"""
# There is no name server in a lab: gloo asks for names, and would wait 20 s for the answer.
# A docker engine that this machine may have is none of its hosts'; theirs answers elsewhere.


@dataclass(frozen=True)
class SshHost:
    """One host that answers to SSH at its address, with a folder of its own here."""

    lab: LabHost
    folder: Path
    user_key: Path

    @property
    def address(self) -> str:
        """Where it is reached, by us and by its peers."""
        return self.lab.address

    @property
    def home(self) -> Path:
        """The home folder of whoever logs in there."""
        return self.folder / "home"

    @property
    def host_key(self) -> str:
        """Its public host key."""
        return (self.folder / "host_key.pub").read_text().strip()

    def configuration(self) -> str:
        """Return what its sshd is told."""
        return _CONFIGURATION.format(
            address=self.address,
            port=SSH_PORT,
            folder=self.folder,
            engine=engine_address(self.lab.namespace),
        )

    def processes(self) -> list[int]:
        """Return the pids of all that runs on it, its sshd included."""
        done = subprocess.run(
            ("ip", "netns", "pids", self.lab.namespace), capture_output=True, text=True, check=False
        )
        return [int(word) for word in done.stdout.split()]

    def unplug(self) -> None:
        """Cut the host off."""
        _check(("ip", "link", "set", self.lab.link, "down"))

    def plug_in(self) -> None:
        """Join the host to the network again."""
        _check(("ip", "link", "set", self.lab.link, "up"))


@contextmanager
def ssh_hosts(plan: NetworkPlan, folder: Path) -> Iterator[tuple[SshHost, ...]]:
    """Make the hosts of a network and start an sshd on each; take all of it away afterwards.

    `folder` keeps their keys and homes, and the record of what was made.
    """
    sshd = find_sshd()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(network(plan, folder / "network.json"))
        user_key = folder / "user_key"
        _make_key(user_key, "user")
        hosts = tuple(_prepare(lab, folder / lab.name, user_key) for lab in plan.hosts)
        servers = {host: stack.enter_context(_serving(host, sshd)) for host in hosts}
        for host, server in servers.items():
            _wait_until_ready(host, server)
        yield hosts


def find_sshd() -> str:
    """Return the path of sshd; it must be started by its whole path."""
    found = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise MissingProgram("there is no sshd", hint="apt-get install openssh-server")
    return found


def _prepare(lab: LabHost, folder: Path, user_key: Path) -> SshHost:
    host = SshHost(lab, folder, user_key)
    host.home.mkdir(parents=True)
    _make_key(folder / "host_key", lab.name)
    shutil.copy(user_key.with_name("user_key.pub"), folder / "authorized_keys")
    (folder / "sshd_config").write_text(host.configuration())
    return host


def _make_key(path: Path, comment: str) -> None:
    _check(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)))


@contextmanager
def _serving(host: SshHost, sshd: str) -> Iterator[subprocess.Popen[bytes]]:
    Path("/run/sshd").mkdir(exist_ok=True)  # sshd refuses to start without it
    with (host.folder / "sshd.log").open("wb") as log:
        server = subprocess.Popen(
            host.lab.inside((sshd, "-D", "-e", "-f", str(host.folder / "sshd_config"))),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield server
    finally:
        server.kill()
        server.wait()
        _end_all(host)


def _end_all(host: SshHost) -> None:
    """End whatever is left in the host's namespace, which is ours alone."""
    while left := host.processes():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _wait_until_ready(host: SshHost, server: subprocess.Popen[bytes]) -> None:
    """Wait for the greeting of an sshd; one that failed to start looks fine from outside."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        if _greets(host):
            return
        if server.poll() is not None or time.monotonic() > deadline:
            said = (host.folder / "sshd.log").read_text().strip().splitlines()[-1:]
            raise EnvironmentFault(f"its sshd did not come up: {said}", host=host.lab.name)
        time.sleep(0.02)


def _greets(host: SshHost) -> bool:
    try:
        with socket.create_connection((host.address, SSH_PORT), timeout=1.0) as probe:
            return probe.recv(8).startswith(b"SSH-2.0")
    except OSError:
        return False


def _check(command: tuple[str, ...]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFault(f"{' '.join(command)}: {done.stderr.strip()}")
