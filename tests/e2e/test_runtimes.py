"""Jobs in environments and in containers, on two hosts with an engine each."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paceline.rehearsal.engine import Engine
from paceline.rehearsal.hosts import SshHost
from paceline.rehearsal.images import MACHINE_IMAGE, machine_mounts
from paceline.supervisor import procfs
from tests.fakes.terminal import Terminal, wait_until
from tests.fakes.wheels import tiny_wheel
from tests.lab import cluster_text

pytestmark = pytest.mark.e2e

ADD_UP = """\
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
inside = os.path.exists("/.dockerenv")
os.write(1, f"sum {int(one)} inside {inside} in {os.getcwd()}\\n".encode())
open(os.environ["PACELINE_OUT"] + "/made-" + os.environ["RANK"], "w").write("by a rank")
dist.destroy_process_group()
"""
SLEEPER = """\
import os, time
with open(os.environ["PACELINE_OUT"] + "/up-" + os.environ["RANK"], "w") as file:
    file.write(str(os.getpid()))
print("up", os.environ["RANK"], os.environ.get("HF_TOKEN"), flush=True)
time.sleep(120)
"""


@pytest.fixture
def hosts(
    docker_lab: tuple[SshHost, ...], engines: tuple[Engine, ...]
) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts whose engines have no container, before and after."""
    yield docker_lab
    left = [name for made in engines for name in made.containers()]
    for made in engines:
        if names := made.containers():
            made.docker("rm", "--force", *names)
    assert left == []


def docker_spec(terminal: Terminal, hosts: tuple[SshHost, ...], **runtime: object) -> str:
    """Write a spec whose ranks run in the image of this machine; return its name."""
    options = [word for mount in machine_mounts() for word in ("--volume", mount)]
    words: dict[str, object] = {"kind": "docker", "image": MACHINE_IMAGE, "options": options}
    # A container asks the name servers of its host, and a lab has none that answers.
    words["env"] = {"RES_OPTIONS": "timeout:1 attempts:1"}
    words.update(runtime)
    terminal.file("spec.yaml", f"{cluster_text(hosts)}runtime: {json.dumps(words)}\n")
    return "spec.yaml"


def up(hosts: tuple[SshHost, ...]) -> bool:
    """Whether the sleeping rank of every host is up."""
    return all(
        list(host.home.glob(f".paceline/jobs/*/out/up-{rank}")) for rank, host in enumerate(hosts)
    )


def supervisors(host: SshHost) -> list[int]:
    """Return the pids of the supervisor and the keeper of the only job on a host."""
    (state,) = host.home.glob(".paceline/jobs/*/state.json")
    pid = json.loads(state.read_text())["supervisor_pid"]
    entry = procfs.entry_of(pid)
    assert entry is not None
    return [entry.parent, pid]


@pytest.mark.torch
@pytest.mark.parametrize("launcher", ["direct", "torchrun", "mpirun"])
def test_ranks_in_containers_meet(
    hosts: tuple[SshHost, ...], engines: tuple[Engine, ...], terminal: Terminal, launcher: str
) -> None:
    """Two hosts, two ranks each: they add up, start in the sent folder, and leave their files."""
    if launcher == "mpirun" and shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    spec = docker_spec(terminal, hosts)
    script = terminal.file("add_up.py", ADD_UP)
    done = terminal.paceline(
        "train", spec, "--script", str(script), "-p", "2", "--launcher", launcher, timeout_s=240
    )
    assert done.returncode == 0, done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("sum"))
    assert len(lines) == 4
    for line, host in zip(lines[::2], hosts, strict=True):
        assert line.startswith("sum 4 inside True in")
        assert str(host.home / ".paceline" / "work") in line
    (run,) = (terminal.folder / "paceline-results").iterdir()
    assert sorted(path.name for path in run.glob("out/made-*")) == [f"made-{n}" for n in range(4)]
    assert [made.containers() for made in engines] == [[], []]


@pytest.mark.torch
def test_a_trainer_is_measured_in_containers(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """A study varies the runtime: the same trainer bare and in containers, events and all."""
    spec = docker_spec(terminal, hosts, kind="bare", python=None)
    done = terminal.paceline(
        "study", spec, "--name", "both", "--samples", "1", "--iterations", "3",
        "-s", "job.program=mlp", "-s", "study.grid={runtime: [docker], nodes: [2]}",
        "-s", f"runtime.python={sys.executable}",
        timeout_s=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (terminal.folder / "paceline-results" / "both" / "samples.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["state"] for row in rows} == {"ok"}
    assert "nnode-2_nproc-1_runtime-docker" in text


def test_this_machine_has_containers_too(
    hosts: tuple[SshHost, ...], engines: tuple[Engine, ...], terminal: Terminal
) -> None:
    """With the provider `local`, ranks run in containers of the engine that we have."""
    del hosts
    spec = docker_spec(terminal, ())
    text = (terminal.folder / spec).read_text()
    terminal.file(spec, text[text.index("runtime:") :])
    terminal.env["DOCKER_HOST"] = engines[0].address
    line = 'test -e /.dockerenv && pwd && echo made > "$PACELINE_OUT/file"'
    done = terminal.paceline("run", "--spec", spec, "--", "sh", "-c", line)
    assert (done.returncode, done.stdout) == (0, f"{terminal.folder}\n"), done.stderr
    (run,) = (terminal.folder / "paceline-results").iterdir()
    assert (run / "out" / "file").read_text() == "made\n"


def test_a_killed_rank_ends_all_containers(
    hosts: tuple[SshHost, ...], engines: tuple[Engine, ...], terminal: Terminal
) -> None:
    """`kill -9` of a rank inside its container fails the job, by the rank's name."""
    spec = docker_spec(terminal, hosts)
    script = terminal.file("sleeper.py", SLEEPER)
    attached = terminal.start("train", spec, "--script", str(script))
    wait_until(lambda: up(hosts))
    (name,) = engines[1].containers()
    (note,) = hosts[1].home.glob(".paceline/jobs/*/out/up-1")
    wait_until(lambda: note.read_text() != "")
    engines[1].docker("exec", name, "sh", "-c", f"kill -9 {note.read_text()}")
    _, stderr = attached.communicate(timeout=60)
    assert attached.returncode == 5
    assert "rank-1 ended with exit code 137, as after SIGKILL" in stderr
    assert [made.containers() for made in engines] == [[], []]


def interrupt(terminal: Terminal, hosts: tuple[SshHost, ...]) -> None:
    """Stop the run as people do."""
    del hosts
    assert terminal.paceline("stop").returncode in (0, 5)


def kill_supervisors(terminal: Terminal, hosts: tuple[SshHost, ...]) -> None:
    """Kill one host's supervisor, and the other's with its keeper; then ask for the run."""
    for number, host in enumerate(hosts):
        for pid in supervisors(host)[1 - number :]:
            os.kill(pid, signal.SIGKILL)
    terminal.paceline("wait")


@pytest.mark.parametrize("end", [interrupt, kill_supervisors])
def test_containers_end_with_their_job(
    hosts: tuple[SshHost, ...],
    engines: tuple[Engine, ...],
    terminal: Terminal,
    end: Callable[[Terminal, tuple[SshHost, ...]], None],
) -> None:
    """Stopped, or with its supervisors killed: no container stays; secrets stand on no line."""
    spec = docker_spec(terminal, hosts)
    script = terminal.file("sleeper.py", SLEEPER)
    words = ("--script", str(script), "-s", "job.env.HF_TOKEN=sesame", "--detach")
    assert terminal.paceline("train", spec, *words).returncode == 0
    wait_until(lambda: up(hosts))
    assert [len(made.containers()) for made in engines] == [1, 1]
    assert "up 0 sesame" in terminal.paceline("logs").stdout
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in hosts[0].processes()]
    assert not any(b"sesame" in line for line in lines)
    end(terminal, hosts)
    assert [made.containers() for made in engines] == [[], []]
    listed = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert [run["state"] for run in listed] in (["stopped"], ["lost"])


def test_two_jobs_at_once_in_containers(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """Two runs in the same image on the same hosts have their own names, output and end."""
    spec = docker_spec(terminal, hosts)
    outputs = {}

    def run(word: str) -> None:
        line = f"echo {word} $RANK; sleep 1"
        outputs[word] = terminal.paceline("run", "--spec", spec, "--", "sh", "-c", line)

    threads = [threading.Thread(target=run, args=(word,)) for word in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for word, done in outputs.items():
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == [f"{word} 0", f"{word} 1"]


def test_no_image_and_no_program_are_named(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """An image that nobody has, a program that it lacks, a Dockerfile that fails; `doctor`."""
    looked = terminal.paceline("doctor", docker_spec(terminal, hosts)).stdout
    assert all(f"{host.address}: containers" in looked for host in hosts)
    assert looked.count("`docker` answers") == 2
    spec = docker_spec(terminal, hosts, image="paceline-lab/nowhere")
    done = terminal.paceline("run", "--spec", spec, "--", "true")
    assert done.returncode == 3
    assert "paceline-lab/nowhere:latest is neither here nor on a host" in done.stderr
    spec = docker_spec(terminal, hosts)
    done = terminal.paceline("run", "--spec", spec, "--", "no-such-program")
    assert done.returncode == 5
    assert "exec no-such-program failed: No such file or directory" in done.stderr
    terminal.file("Dockerfile", f"FROM {MACHINE_IMAGE}\nCOPY nothing /\n")
    spec = docker_spec(terminal, hosts, image=None, dockerfile="Dockerfile", build_on="host")
    done = terminal.paceline("run", "--spec", spec, "--", "true")
    assert done.returncode == 3
    assert "Dockerfile could not be built" in done.stderr
    assert hosts[0].address in done.stderr


@pytest.mark.torch
def test_an_environment_is_made_on_every_host(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """A venv from wheels that travel: made once, found again, and torchrun's ranks live in it."""
    packages = sysconfig.get_path("purelib")
    tiny_wheel(terminal.folder / "wheels", "tiny_thing", "1.0", "WORD = 'tiny'\n")
    # What the environment has of torch is this machine's own; no registry is asked.
    tiny_wheel(terminal.folder / "wheels", "lab_torch", "1.0", f"{packages}\n", suffix="pth")
    terminal.file("requirements.txt", "tiny-thing==1.0\nlab-torch\n")
    script = terminal.file("add_up.py", f"import sys, tiny_thing\nprint(sys.prefix)\n{ADD_UP}")
    runtime = "{kind: venv, requirements: requirements.txt, wheels: wheels, python: PYTHON}"
    text = f"{cluster_text(hosts)}runtime: {runtime.replace('PYTHON', sys.executable)}\n"
    terminal.file("spec.yaml", text)
    words = ("train", "spec.yaml", "--script", str(script), "--launcher", "torchrun")
    first = terminal.paceline(*words, timeout_s=240)
    assert first.returncode == 0, first.stderr
    assert "making the environment on 2 hosts" in first.stderr
    assert first.stdout.count("sum 2") == 2
    for host in hosts:
        assert f"{host.home}/.paceline/venvs/" in first.stdout
        assert list(host.home.glob(".paceline/wheels-*")) == []
    again = terminal.paceline(*words, timeout_s=240)
    assert again.returncode == 0, again.stderr
    assert "making" not in again.stderr
    terminal.file("requirements.txt", "no-such-thing\n")
    refused = terminal.paceline(*words, timeout_s=240)
    assert refused.returncode == 3
    assert "No matching distribution found for no-such-thing" in refused.stderr
