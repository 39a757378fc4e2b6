"""Jobs on several hosts that answer to SSH: what a person types, sees, and finds afterwards."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.rehearsal.hosts import SshHost, find_sshd
from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e

SLEEPER = (
    "import os, time\n"
    "open(os.environ['PACELINE_OUT'] + '/pid-' + os.environ['RANK'], 'w').write(str(os.getpid()))\n"
    "print('up', os.environ['RANK'], flush=True)\n"
    "time.sleep(120)\n"
)
ADD_UP = """\
import torch.distributed as dist, torch, os
dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
where = os.environ["GLOO_SOCKET_IFNAME"], os.environ["HOME"]
# At once: ranks that share a pipe must not fall into each other's words.
os.write(1, f"sum {int(one)} at {where[0]} {where[1]}\\n".encode())
dist.destroy_process_group()
"""


@pytest.fixture
def hosts(lab: tuple[SshHost, ...], terminal: Terminal) -> Iterator[tuple[SshHost, ...]]:
    """Return two hosts that a spec in the terminal's folder names, idle before and after."""
    entries = "".join(
        f"    - {{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}\n"
        for host in lab
    )
    terminal.file(
        "spec.yaml",
        f"cluster:\n  provider: hosts\n  hosts:\n{entries}runtime: {{python: {sys.executable}}}\n",
    )
    yield lab
    for host in lab:
        host.plug_in()
        wait_until(lambda host=host: at_work(host) == [])  # type: ignore[misc]


def at_work(host: SshHost) -> list[str]:
    """Return the command lines of all that runs on a host, but for its sshd."""
    found = []
    for pid in host.processes():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if line and not line.startswith("sshd"):
            found.append(line)
    return found


def followed(host: SshHost) -> bool:
    """Whether somebody follows a job on a host."""
    return any("paceline.supervisor follow" in line for line in at_work(host))


def jobs_on(host: SshHost) -> list[str]:
    """Return the job folders on a host."""
    folder = host.home / ".paceline" / "jobs"
    return sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []


def rank_pid(host: SshHost, rank: int) -> int | None:
    """Return the pid that a sleeping rank has written down."""
    found = list(host.home.glob(f".paceline/jobs/*/out/pid-{rank}"))
    text = found[0].read_text() if found else ""
    return int(text) if text else None


def everything_up(hosts: tuple[SshHost, ...]) -> bool:
    """Whether the sleeping rank of every host is up."""
    return all(rank_pid(host, rank) is not None for rank, host in enumerate(hosts))


@pytest.mark.torch
@pytest.mark.parametrize("launcher", ["direct", "torchrun", "mpirun"])
def test_ranks_on_two_hosts_meet(
    hosts: tuple[SshHost, ...], terminal: Terminal, launcher: str
) -> None:
    """Four ranks on two hosts add up over the interface that joins them; nothing stays behind."""
    if launcher == "mpirun" and shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    script = terminal.file("add_up.py", ADD_UP)
    done = terminal.paceline(
        "train", "spec.yaml", "--script", str(script), "-p", "2", "--launcher", launcher
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("sum")]
    assert sorted(lines) == sorted(f"sum 4 at eth0 {host.home}" for host in hosts for _ in "ab")
    assert [jobs_on(host) for host in hosts] == [[], []]
    assert [at_work(host) for host in hosts] == [[], []]


def test_a_script_at_home_runs_on_hosts_that_never_saw_it(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """The working folder travels without what is ignored; what changes reaches the next run."""
    script = terminal.file(
        "at_home.py",
        "import os, pathlib, beside\n"
        "here = sorted(str(path) for path in pathlib.Path().rglob('*') if path.is_file())\n"
        "print(os.environ['RANK'], beside.WORD, __file__, *here)\n",
    )
    terminal.file("beside.py", "WORD = 'one'\n")
    terminal.file("large.bin", "not sent")
    # More than a stream to each host is worth: this goes from host to host.
    terminal.file("weights.txt", "w" * (5 << 20))
    terminal.file(".gitignore", "*.bin\n__pycache__\n")
    words = ("train", "spec.yaml", "--script", str(script))
    for word in ("one", "two"):
        terminal.file("beside.py", f"WORD = '{word}'\nWHICH = '{word * 9}'\n")
        done = terminal.paceline(*words)
        assert done.returncode == 0, done.stderr
        for rank, host in enumerate(hosts):
            line = next(line for line in done.stdout.splitlines() if line.startswith(str(rank)))
            said, place, *found = line.split()[1:]
            assert said == word
            assert Path(place).is_relative_to(host.home / ".paceline" / "work")
            sent = [name for name in found if "__pycache__" not in name]
            assert sent == [".gitignore", "at_home.py", "beside.py", "spec.yaml", "weights.txt"]


def test_a_folder_of_the_hosts_own(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """With `job.sync: false` ranks start in the hosts' own folder; a missing one is named."""
    own = terminal.folder.parent / "their own"
    words = ("run", "--spec", "spec.yaml", "-s", "job.sync=false", "-s", f"job.workdir={own}")
    refused = terminal.paceline(*words, "--", "pwd")
    assert refused.returncode == 3
    assert f"there is no folder {own}" in refused.stderr
    assert all(host.address in refused.stderr for host in hosts)
    own.mkdir()
    done = terminal.paceline(*words, "--", "pwd")
    assert done.stdout.splitlines() == [str(own)] * 2, done.stderr


@pytest.mark.torch
def test_a_study_over_hosts_has_its_report(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """A built-in trainer is measured on one host and on two; the package was sent once."""
    done = terminal.paceline(
        "study", "spec.yaml", "--name", "two", "--samples", "1", "--iterations", "3", "--json",
        "-s", "job.program=mlp", "-s", "study.grid={nodes: [1, 2]}",
        timeout_s=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = terminal.folder / "paceline-results" / "two"
    assert (folder / "report.html").is_file()
    assert "nnode-2_nproc-1" in (folder / "samples.csv").read_text()
    ranks = sorted(path.name for path in folder.glob("runs/nnode-2*/events/*.jsonl"))
    assert ranks == ["rank-0.jsonl", "rank-1.jsonl"]
    for host in hosts:
        assert len(list(host.home.glob(".paceline/package-*"))) == 1


def test_the_first_failing_rank_ends_all(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """An exception on the second host ends the first one's rank too, and its traceback is shown."""
    script = terminal.file(
        "fails.py",
        "import os, time\nif os.environ['RANK'] == '1':\n    raise ValueError('no luck')\n"
        "time.sleep(120)\n",
    )
    done = terminal.paceline("train", "spec.yaml", "--script", str(script), timeout_s=60)
    assert done.returncode == 5
    assert "ValueError: no luck" in done.stderr
    assert hosts[1].address in done.stderr
    assert [at_work(host) for host in hosts] == [[], []]


def test_a_killed_rank_ends_all(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """`kill -9` of one rank stops the whole job."""
    script = terminal.file("sleeper.py", SLEEPER)
    attached = terminal.start("train", "spec.yaml", "--script", str(script))
    wait_until(lambda: everything_up(hosts))
    victim = rank_pid(hosts[1], 1)
    assert victim is not None
    signal.pidfd_send_signal(_pidfd(victim), signal.SIGKILL)
    _, stderr = attached.communicate(timeout=60)
    assert attached.returncode == 5
    assert "rank-1" in stderr
    assert [at_work(host) for host in hosts] == [[], []]


def _pidfd(pid: int) -> int:
    import os

    return os.pidfd_open(pid)


@pytest.mark.parametrize(
    ("number", "launcher"),
    [(signal.SIGINT, "direct"), (signal.SIGTERM, "direct"), (signal.SIGINT, "mpirun")],
)
def test_ctrl_c_leaves_nothing_on_any_host(
    hosts: tuple[SshHost, ...], terminal: Terminal, number: signal.Signals, launcher: str
) -> None:
    """An interrupted run ends on every host and is recorded as stopped."""
    if shutil.which("mpirun") is None and launcher == "mpirun":
        pytest.skip("Open MPI is not installed")
    script = terminal.file("sleeper.py", SLEEPER)
    words = ("--script", str(script), "--launcher", launcher)
    attached = terminal.start("train", "spec.yaml", *words)
    wait_until(lambda: everything_up(hosts))
    attached.send_signal(number)
    _, stderr = attached.communicate(timeout=60)
    assert attached.returncode == 130, stderr
    assert [at_work(host) for host in hosts] == [[], []]
    listed = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert [run["state"] for run in listed] == ["stopped"]


def test_hosts_that_cannot_reach_each_other_are_named_before_the_start(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """A pair without a way between them is refused, and `doctor` says the same."""
    route = ("ip", "-n", hosts[1].lab.namespace, "route")
    vanish = ("blackhole", f"{hosts[0].address}/32")
    subprocess.run((*route, "add", *vanish), check=True)
    try:
        done = terminal.paceline("run", "--spec", "spec.yaml", "--", "true")
        looked = terminal.paceline("doctor", "spec.yaml")
    finally:
        subprocess.run((*route, "del", *vanish), check=True)
    assert (done.returncode, looked.returncode) == (3, 3)
    for said in (done.stderr, looked.stdout):
        assert f"{hosts[0].address}: " in said
        assert f"cannot reach {hosts[1].address}" in said
    assert terminal.results() == []


@pytest.mark.parametrize("words", [("ls",), ("stop",)])
def test_a_host_that_is_cut_off_is_named_and_the_others_stop(
    hosts: tuple[SshHost, ...], terminal: Terminal, words: tuple[str, ...]
) -> None:
    """A host whose link goes down fails the job by its name; once back, any look clears it up."""
    script = terminal.file("sleeper.py", SLEEPER)
    attached = terminal.start("train", "spec.yaml", "--script", str(script))
    wait_until(lambda: everything_up(hosts) and all(followed(host) for host in hosts))
    hosts[1].unplug()
    unplugged_at = time.monotonic()
    wait_until(lambda: not any("sleeper.py" in line for line in at_work(hosts[0])))
    # Generous, for a busy machine; if nobody noticed, the rank would sleep for two minutes.
    assert time.monotonic() - unplugged_at < 60
    _, stderr = attached.communicate(timeout=90)
    assert attached.returncode == 6, stderr
    assert hosts[1].address in stderr
    assert "lost" in stderr
    assert at_work(hosts[0]) == []
    run = json.loads(terminal.paceline("ls", "--json").stdout)["runs"][0]
    assert (run["state"], run["failure"]["host"]) == ("failed", hosts[1].address)
    assert f"paceline stop {run['run_id']}" in stderr
    hosts[1].plug_in()
    terminal.paceline(*words)
    assert at_work(hosts[1]) == []
    assert jobs_on(hosts[1]) == []
    # What its ranks had said is not lost.
    assert (Path(run["folder"]) / "logs" / "rank-1.log").read_text() == "up 1\n"


def test_a_short_break_goes_unnoticed(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """When the connections to a host break, the output goes on without gap or repeat."""
    script = terminal.file(
        "counter.py",
        "import os, time\nfor i in range(60):\n"
        "    print('rank', os.environ['RANK'], i, flush=True)\n    time.sleep(0.1)\n",
    )
    attached = terminal.start("train", "spec.yaml", "--script", str(script))
    wait_until(lambda: all(followed(host) for host in hosts))
    server = (hosts[1].folder / "sshd.pid").read_text().strip()
    for pid in hosts[1].processes():
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        if line.startswith(b"sshd") and str(pid) != server:
            signal.pidfd_send_signal(_pidfd(pid), signal.SIGKILL)
    stdout, stderr = attached.communicate(timeout=90)
    assert attached.returncode == 0, stderr
    for rank in "01":
        lines = [line for line in stdout.splitlines() if line.startswith(f"rank {rank} ")]
        assert lines == [f"rank {rank} {number}" for number in range(60)]


def test_a_job_outlives_the_ssh_server(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """A host whose sshd is gone for longer than a lost host is waited for is not given up."""
    script = terminal.file(
        "counter.py",
        "import os, time\nfor i in range(160):\n"
        "    print('rank', os.environ['RANK'], i, flush=True)\n    time.sleep(0.1)\n",
    )
    attached = terminal.start("train", "spec.yaml", "--script", str(script))
    wait_until(lambda: all(followed(host) for host in hosts))
    end_sshd(hosts[1])
    time.sleep(12)
    assert attached.poll() is None
    sshd = (find_sshd(), "-E", str(hosts[1].folder / "sshd.log"))
    argv = hosts[1].lab.inside((*sshd, "-f", str(hosts[1].folder / "sshd_config")))
    subprocess.run(argv, check=True)
    stdout, stderr = attached.communicate(timeout=120)
    assert attached.returncode == 0, stderr
    for rank in "01":
        lines = [line for line in stdout.splitlines() if line.startswith(f"rank {rank} ")]
        assert lines == [f"rank {rank} {number}" for number in range(160)]


def end_sshd(host: SshHost) -> None:
    """End the SSH server of a host, and all of its sessions."""
    for pid in host.processes():
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith((b"sshd", b"/usr/sbin/sshd")):
            signal.pidfd_send_signal(_pidfd(pid), signal.SIGKILL)


def test_a_detached_run_is_found_from_another_process(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """Logs and stop of a detached run need nothing but its record."""
    script = terminal.file("sleeper.py", SLEEPER)
    begun = terminal.paceline("train", "spec.yaml", "--script", str(script), "--detach")
    assert begun.returncode == 0, begun.stderr
    run_id = begun.stdout.strip()
    (terminal.folder / "spec.yaml").unlink()
    wait_until(
        lambda: (
            {"up 0", "up 1"}
            <= set(terminal.paceline("logs", "--plain", run_id).stdout.splitlines())
        )
    )
    following = terminal.start("logs", "-f", run_id)
    listed = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert [run["state"] for run in listed] == ["running"]
    stopped = json.loads(terminal.paceline("stop", run_id, "--json").stdout)
    assert stopped["state"] == "stopped"
    stdout, _ = following.communicate(timeout=60)
    said = [f"rank-{rank} {host.address} | up {rank}" for rank, host in enumerate(hosts)]
    assert sorted(stdout.splitlines()) == said
    assert [at_work(host) for host in hosts] == [[], []]
    assert [jobs_on(host) for host in hosts] == [[], []]


def test_a_killed_tool_leaves_a_run_that_can_be_waited_for(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """The job goes on when the tool is killed, and `wait` brings its outcome and files home."""
    script = terminal.file("short.py", SLEEPER.replace("120", "4"))
    attached = terminal.start("train", "spec.yaml", "--script", str(script))
    wait_until(lambda: everything_up(hosts))
    attached.kill()
    attached.communicate()
    waited = terminal.paceline("wait", "--json")
    assert waited.returncode == 0, waited.stderr
    record = json.loads(waited.stdout)
    assert record["state"] == "succeeded"
    assert (Path(record["folder"]) / "logs" / "rank-1.log").read_text() == "up 1\n"


def test_two_jobs_at_once_do_not_mix(hosts: tuple[SshHost, ...], terminal: Terminal) -> None:
    """Two runs on the same hosts at the same time each have their own output and end well."""
    outputs = {}

    def run(word: str) -> None:
        line = f"echo {word} $RANK; sleep 1"
        outputs[word] = terminal.paceline("run", "--spec", "spec.yaml", "--", "sh", "-c", line)

    threads = [threading.Thread(target=run, args=(word,)) for word in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for word, done in outputs.items():
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == [f"{word} 0", f"{word} 1"]
    assert hosts


def test_hosts_on_the_command_line_are_enough(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """`--hosts A,B`: unknown hosts are refused with their keys, accepted on request, then known."""
    names = ",".join(host.address for host in hosts)
    agent = {"HOME": str(terminal.home)}
    (terminal.home / ".ssh").mkdir(parents=True)
    (terminal.home / ".ssh" / "config").write_text(f"Host *\n  IdentityFile {hosts[0].user_key}\n")
    terminal.env.update(agent)
    words = ("--hosts", names, "-s", f"runtime.python={sys.executable}", "--", "printenv", "RANK")
    refused = terminal.paceline("run", *words)
    assert refused.returncode == 6
    assert refused.stderr.count("SHA256:") == 2
    assert "--accept-new-host-keys" in refused.stderr
    accepted = terminal.paceline("run", "--accept-new-host-keys", *words)
    assert (accepted.returncode, sorted(accepted.stdout.split())) == (0, ["0", "1"])
    known = terminal.paceline("run", *words)
    assert known.returncode == 0, known.stderr
    assert [item.name for item in (terminal.home / ".ssh").iterdir()] == ["config"]


def test_every_host_that_cannot_be_reached_is_named(
    hosts: tuple[SshHost, ...], terminal: Terminal
) -> None:
    """Missing hosts are all reported, before anything is started anywhere."""
    spec = (terminal.folder / "spec.yaml").read_text()
    gone = [host.lab.address.replace(".0.1", ".0.20") for host in hosts]
    added = "".join(f"    - {address}\nruntime:"[:-8] for address in gone)
    terminal.file("more.yaml", spec.replace("runtime:", f"{added}\nruntime:", 1))
    done = terminal.paceline("run", "--spec", "more.yaml", "--", "true")
    assert done.returncode == 6
    assert all(address in done.stderr for address in gone)
    assert terminal.results() == []


HANGS = """\
import os, time, torch, torch.distributed as dist
from paceline.events import Reporter

def fetch_from_nowhere():
    time.sleep(600)

dist.init_process_group("gloo")
with Reporter() as progress:
    dist.all_reduce(torch.ones(1))
    progress.iteration(0)
    if os.environ["RANK"] == "1":
        fetch_from_nowhere()
    dist.all_reduce(torch.ones(1))
"""


@pytest.mark.torch
@pytest.mark.parametrize("launcher", ["direct", "torchrun"])
def test_a_rank_that_hangs_is_named_with_its_stack(
    hosts: tuple[SshHost, ...], terminal: Terminal, launcher: str
) -> None:
    """Of two hosts that get nowhere, the one whose rank does not just wait is what people see."""
    script = terminal.file("hangs.py", HANGS)
    words = ("--script", str(script), "--launcher", launcher, "-s", "job.hang_timeout=5s")
    done = terminal.paceline("train", "spec.yaml", *words)
    assert done.returncode == 5, done.stderr
    assert "rank 1 hangs: no output, no event for" in done.stderr
    assert "in fetch_from_nowhere" in done.stderr
    assert f"[{hosts[1].address}]" in done.stderr or hosts[1].address in done.stderr
    assert [at_work(host) for host in hosts] == [[], []]


FAILS_ONCE = """\
import os, time, torch, torch.distributed as dist
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# Whoever comes first finds what the attempt before has left of the other, if anything.
time.sleep(2 if attempt and os.environ["RANK"] == "0" else 0)
dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
if attempt == 0 and os.environ["RANK"] == "1":
    raise SystemExit(3)
dist.all_reduce(one)
os.write(1, f"rank {os.environ['RANK']} attempt {attempt} sum {int(one)}\\n".encode())
dist.destroy_process_group()
"""


@pytest.mark.torch
@pytest.mark.parametrize("where", [("spec.yaml",), ("-p", "2")], ids=["hosts", "here"])
def test_torchrun_starts_the_ranks_of_all_hosts_again(
    hosts: tuple[SshHost, ...], terminal: Terminal, where: tuple[str, ...]
) -> None:
    """A rank that dies is a new attempt for all; a script that only meets again then succeeds."""
    script = terminal.file("once.py", FAILS_ONCE)
    words = ("--script", str(script), "--launcher", "torchrun", "-s", "job.max_restarts=1")
    done = terminal.paceline("train", *where, *words)
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.stdout.splitlines() if " sum " in line]
    assert sorted((line[1], line[-1]) for line in told) == [("0", "4"), ("1", "4")]
    assert all(int(line[3]) > 0 for line in told if line[1] == "1")
    assert [at_work(host) for host in hosts] == [[], []]


@pytest.mark.parametrize("key", ["hostfile", "inventory"])
def test_lists_that_people_have_already_name_the_hosts(
    hosts: tuple[SshHost, ...], terminal: Terminal, key: str
) -> None:
    """An Open MPI hostfile, with keys by the ssh config, and an Ansible inventory, with its own."""
    if key == "hostfile":
        terminal.file("list", "".join(f"{host.address} slots=1\n" for host in hosts))
        (terminal.home / ".ssh").mkdir()
        config = f"Host *\n  IdentityFile {hosts[0].user_key}\n"
        (terminal.home / ".ssh" / "config").write_text(config)
        terminal.env["HOME"] = str(terminal.home)
    else:
        lines = (f"{host.address} ansible_ssh_private_key_file={host.user_key}\n" for host in hosts)
        terminal.file("list", "[ranks]\n" + "".join(lines))
    words = ("-s", "cluster.provider=hosts", "-s", f"cluster.{key}=list")
    python = ("-s", f"runtime.python={sys.executable}", "--accept-new-host-keys")
    done = terminal.paceline("run", *words, *python, "--", "printenv", "RANK", "MASTER_ADDR")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1", *[hosts[0].address] * 2]
