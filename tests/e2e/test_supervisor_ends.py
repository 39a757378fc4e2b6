"""How jobs end: well, by a crash, by a request, by the clock, or before they have begun."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paceline.supervisor import procfs
from paceline.supervisor.files import read_tail
from paceline.supervisor.job import JobProcess
from tests.fakes.supervised import SupervisedJob, python, shell, until

pytestmark = pytest.mark.e2e

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); "
FOREVER = shell("echo ready; exec sleep 1000")


def test_a_good_job_succeeds(job: SupervisedJob) -> None:
    """All zero is success; the times make sense and nothing is said to have failed."""
    job.write(shell("echo one"), shell("sleep 0.3; echo two"))
    assert job.start().phase in {"running", "ended"}
    state = job.ended()
    assert state.outcome == "succeeded"
    assert state.first_failure is None
    assert [process.exit_code for process in state.processes.values()] == [0, 0]
    assert state.wall_s is not None
    assert state.wall_s >= 0.3
    assert job.log("rank-1") == "two\n"
    assert job.status() == state


def test_a_process_sees_its_job(job: SupervisedJob) -> None:
    """Environment, folder and output are those of the job; the session has no terminal."""
    code = (
        "import os, sys; from paceline.events import Reporter\n"
        "with Reporter(): print(os.getcwd(), os.environ['A'], os.environ['PYTHONUNBUFFERED'])\n"
        "print(os.environ['PACELINE_JOB'], os.environ['PACELINE_OUT'], sys.stdin.read() == '')\n"
        "print(os.getpgid(0) == os.getpid(), os.getsid(0) == os.getppid())\n"
    )
    env = {"A": "b", "RANK": "3", "PACELINE_JOB": "forged"}
    process = JobProcess("rank-3", python(code), env=env, cwd="/usr", ranks=(3,))
    job.write_processes(process)
    job.start()
    assert job.ended().outcome == "succeeded"
    assert job.log("rank-3").splitlines() == [
        "/usr b 1",
        f"{job.job_id} {job.path}/out True",
        "True False",
    ]
    assert (job.path / "events" / "rank-3.jsonl").read_text().count("\n") == 2


def test_one_crash_ends_all(job: SupervisedJob) -> None:
    """When one of three ranks crashes, the others end at once, and its traceback is shown."""
    job.write(FOREVER, python("raise ValueError('no such data')"), FOREVER)
    job.start()
    state = job.ended()
    assert state.outcome == "failed"
    failure = state.first_failure
    assert failure is not None
    assert (failure.process, failure.exit_code) == ("rank-1", 1)
    assert failure.excerpt.startswith("Traceback (most recent call last):")
    assert failure.excerpt.endswith("ValueError: no such data")
    assert state.detail == "rank-1 ended with exit code 1"
    assert state.processes["rank-0"].exit_code == -signal.SIGTERM
    assert job.alive() == []


def test_a_signal_is_a_failure(job: SupervisedJob) -> None:
    """A rank that is killed fails the job, and the signal is named."""
    job.write(FOREVER, FOREVER)
    job.start()
    job.said("rank-0", "ready")
    os.kill(job.state().processes["rank-0"].pid or 0, signal.SIGKILL)
    failure = job.ended().first_failure
    assert failure is not None
    assert (failure.process, failure.exit_code) == ("rank-0", -signal.SIGKILL)
    assert "SIGKILL" in failure.reason
    assert failure.excerpt == "ready"


def test_who_ignores_the_request_is_killed(job: SupervisedJob) -> None:
    """A rank that is deaf to SIGTERM ends with the grace."""
    job.write(python(f"{STUBBORN} time.sleep(1000)"), FOREVER, grace_s=0.5)
    job.start()
    job.said("rank-0", "deaf")
    state = job.stop()
    assert state.outcome == "stopped"
    assert state.processes["rank-0"].exit_code == -signal.SIGKILL
    assert state.processes["rank-1"].exit_code == -signal.SIGTERM
    assert job.alive() == []


def test_a_rank_may_take_its_leave(job: SupervisedJob) -> None:
    """Within the grace a rank can save what it has, with the help of its own children."""
    code = (
        "import signal, subprocess, sys\n"
        "helper = subprocess.Popen(['sh', '-c', 'read line; echo saved $line'],"
        " stdin=subprocess.PIPE)\n"
        "def leave(*_):\n"
        "    helper.communicate(b'42\\n'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, leave); print('ready')\n"
        "while True: signal.pause()\n"
    )
    job.write(python(code))
    job.start()
    job.said("rank-0", "ready")
    state = job.stop()
    assert state.outcome == "stopped"
    assert state.processes["rank-0"].exit_code == 0
    assert "saved 42" in job.log("rank-0")


LISTENING = {
    "handler": "signal.signal(signal.SIGTERM, lambda *_: save())\n{ready}\nsignal.pause()\n",
    "sigwait": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n{ready}\n"
        "signal.sigwait([signal.SIGTERM]); save()\n"
    ),
}
# Longer than a rank that is deaf may take.
SAVES = """\
import os, signal, sys, time
def save():
    time.sleep(2.5)
    open(os.environ['PACELINE_OUT'] + '/saved-' + os.environ[{name!r}], 'w').close()
    sys.exit(143)
{listens}
"""


def ranks_of(*argvs: tuple[str, ...]) -> list[JobProcess]:
    """Return processes that carry the variables of ranks, as all launchers give them."""
    return [
        JobProcess(f"rank-{rank}", argv, env={"RANK": str(rank)}, ranks=(rank,))
        for rank, argv in enumerate(argvs)
    ]


@pytest.mark.parametrize("ending", ["stop", "crash"])
def test_a_deaf_rank_is_not_waited_for(job: SupervisedJob, ending: str) -> None:
    """A rank that ignores SIGTERM is killed soon, however long the grace of the others is."""
    deaf = python(f"{STUBBORN} time.sleep(1000)")
    other = FOREVER if ending == "stop" else shell("sleep 3; exit 1")
    job.write_processes(*ranks_of(deaf, other), grace_s=1000.0)
    job.start()
    job.said("rank-0", "deaf")
    state = job.stop() if ending == "stop" else job.ended()
    assert state.outcome == ("stopped" if ending == "stop" else "failed")
    assert state.processes["rank-0"].exit_code == -signal.SIGKILL
    assert job.alive() == []


@pytest.mark.parametrize("way", LISTENING)
def test_a_rank_that_listens_has_the_whole_grace(job: SupervisedJob, way: str) -> None:
    """Whoever heeds SIGTERM may save for as long as the grace says; a deaf one may not."""
    listens = LISTENING[way].format(ready="print('ready', flush=True)")
    saver = python(SAVES.format(name="RANK", listens=listens))
    deaf = python(f"{STUBBORN} time.sleep(1000)")
    job.write_processes(*ranks_of(saver, deaf), grace_s=50.0)
    job.start()
    job.said("rank-0", "ready")
    job.said("rank-1", "deaf")
    state = job.stop()
    assert (job.path / "out" / "saved-0").exists()
    assert state.processes["rank-0"].exit_code == 143
    assert state.processes["rank-1"].exit_code == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["saving", "deaf"])
def test_ranks_of_open_mpi_have_the_same_grace(job: SupervisedJob, kind: str) -> None:
    """Ranks under mpirun can save what they have, though mpirun itself would kill them sooner."""
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    listens = LISTENING["handler"].format(ready="os.write(1, b'ready\\n')")
    code = SAVES.format(name="OMPI_COMM_WORLD_RANK", listens=listens)
    if kind == "deaf":
        code = f"{STUBBORN} import os; os.write(1, b'ready\\n'); time.sleep(1000)"
    words = ("mpirun", "-np", "2", "--host", "127.0.0.1:2", "--bind-to", "none", *python(code))
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    job.write_processes(JobProcess("mpirun", words, env=env, ranks=(0, 1)), grace_s=50.0)
    job.start()
    until(lambda: job.log("mpirun").count("ready") == 2, "both ranks")
    assert job.stop().outcome == "stopped"
    saved = sorted(path.name for path in (job.path / "out").iterdir())
    assert saved == (["saved-0", "saved-1"] if kind == "saving" else [])
    assert job.alive() == []


def test_an_impatient_stop_overrules_the_job(job: SupervisedJob) -> None:
    """The grace of the request counts, not that of the job."""
    job.write(python(f"{STUBBORN} time.sleep(1000)"), grace_s=1000.0)
    job.start()
    job.said("rank-0", "deaf")
    assert job.stop("--grace", "0.2").outcome == "stopped"
    assert job.alive() == []


def test_stopping_twice_is_harmless(job: SupervisedJob) -> None:
    """What has ended stays as it ended."""
    job.write(shell("exit 3"))
    job.start()
    state = job.ended()
    assert job.stop() == state
    assert state.outcome == "failed"


def test_the_clock_ends_a_job(job: SupervisedJob) -> None:
    """A job that takes too long is ended, and that is not called a failure of a rank."""
    job.write(FOREVER, FOREVER, timeout_s=0.5)
    job.start()
    state = job.ended()
    assert state.outcome == "timeout"
    assert state.first_failure is None
    assert state.detail == "the job was stopped because it took longer than 0.5 s"
    assert job.alive() == []


GRANDCHILD = """
import os, sys, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {prelude}
        os.write(writer, b"x")
        time.sleep(1000)
    os._exit(0)
os.wait()
os.read(reader, 1)
{ending}
"""


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [("sys.exit(0)", "succeeded"), ("sys.exit(1)", "failed"), ("time.sleep(1000)", "stopped")],
)
@pytest.mark.parametrize("prelude", ["pass", STUBBORN])
def test_grandchildren_do_not_stay(
    job: SupervisedJob, ending: str, outcome: str, prelude: str
) -> None:
    """A daemon that a rank has made ends with the job, however the job ends."""
    name = f"daemon-of-{job.job_id}"
    code = GRANDCHILD.format(prelude=prelude, ending=f"print('ready', flush=True); {ending}")
    # Without the job's environment nothing but descent tells whose it is.
    job.write(("env", "-i", *python(code), name), grace_s=0.5)
    job.start()
    job.said("rank-0", "ready")
    if outcome == "stopped":
        assert len(running(name)) == 2
        job.stop()
    assert job.ended().outcome == outcome
    assert running(name) == []


def running(word: str) -> list[int]:
    """Return the processes that have this word among their arguments."""
    return [
        entry.pid
        for entry in procfs.all_entries()
        if entry.alive and f"{word}\0".encode() in read_tail(f"/proc/{entry.pid}/cmdline", 10**6)
    ]


def test_a_missing_program_is_named(job: SupervisedJob) -> None:
    """A program that is not there is the first failure, and what was started ends."""
    job.write(FOREVER, ("no-such-program-here",), FOREVER)
    answer = job.start()
    assert answer.first_failure is not None
    state = job.ended()
    assert state.outcome == "failed"
    failure = state.first_failure
    assert failure is not None
    assert (failure.process, failure.exit_code) == ("rank-1", None)
    assert "there is no program 'no-such-program-here' on PATH" in failure.excerpt
    assert state.processes["rank-2"].pid is None
    assert job.alive() == []


def test_other_reasons_not_to_start_are_named(tmp_path: Path) -> None:
    """A folder that is missing, a file that is no program: each has words of its own."""
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)
    plain = tmp_path / "plain"
    plain.write_text("hello\n")
    plain.chmod(0o700)
    cases = {
        "to run in cannot be entered": JobProcess("a", ("true",), cwd="/no/such/folder"),
        "may not be executed": JobProcess("b", ("/etc/passwd",)),
        "names an interpreter": JobProcess("c", (str(script),)),
        "is not a program": JobProcess("d", (str(plain),)),
        "there is no program ./none": JobProcess("e", ("./none",)),
        "cannot be started: Argument list too long": JobProcess("f", ("true", "x" * 3_000_000)),
        "cannot be started: Invalid argument": JobProcess("g", ("true",), env={"A=B": "x"}),
    }
    for words, process in cases.items():
        one = SupervisedJob(tmp_path / process.name)
        one.write_processes(process)
        failure = one.start().first_failure
        assert failure is not None
        assert words in failure.reason
        assert one.ended().wall_s is None, "nothing ran, so that there is no time to tell"
        one.clear_up()


def test_a_running_job_is_not_started_again(job: SupervisedJob) -> None:
    """A second start is refused, and does the first no harm."""
    job.write(FOREVER)
    first = job.start()
    error = job.call("start")
    assert (error["type"], error["exit_code"]) == ("Conflict", 7)
    assert job.state().supervisor_pid == first.supervisor_pid
    assert job.status().phase == "running"
    job.stop()
    assert job.call("start")["exit_code"] == 7


def test_a_stop_comes_before_a_late_start(job: SupervisedJob) -> None:
    """A start that is still on its way when the job is stopped finds that it is too late."""
    job.write(FOREVER)
    state = job.stop()
    assert (state.outcome, state.detail) == ("stopped", "the job was stopped before its start")
    assert job.call("start")["type"] == "Conflict"
    assert job.alive() == []


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_start_in_progress_is_not_missed(tmp_path: Path, *, cut_off: bool) -> None:
    """Stopped or even cut off at whichever moment of its start, a job does not run on."""
    for turn in range(12):
        one = SupervisedJob(tmp_path / f"turn-{turn}")
        one.write(*[FOREVER] * 5)
        with subprocess.Popen(one.argv("start"), stdout=subprocess.DEVNULL) as start:
            time.sleep(turn * 0.01)
            if cut_off:
                start.kill()
            assert one.stop().outcome == "stopped"
        assert one.alive() == []
        one.clear_up()


def test_of_many_starts_at_once_one_wins(job: SupervisedJob) -> None:
    """Starting is atomic: one supervisor, however many ask."""
    job.write(FOREVER)
    starts = [
        subprocess.Popen(job.argv("start"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    for start in starts:
        assert start.communicate()[1] == b""
    assert sorted(start.returncode for start in starts) == [0, 7, 7, 7, 7, 7]
    assert len(job.alive()) == 1


def test_start_holds_nothing_of_its_caller(job: SupervisedJob) -> None:
    """A caller that waits for the end of its pipes, as ssh does, is not kept waiting."""
    job.write(FOREVER)
    with subprocess.Popen(
        job.argv("start"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as start:
        out, err = start.communicate(timeout=60)
    assert b'"running"' in out
    assert err == b""
    assert job.status().phase == "running"


def test_a_job_outlives_its_terminal(job: SupervisedJob) -> None:
    """The end of the session that started it, with its signals, does not touch a job."""
    job.write(shell("echo ready; sleep 0.5; echo done"))
    starter = subprocess.Popen(
        shell(f"trap '' TERM; {' '.join(job.argv('start'))} >/dev/null; sleep 100"),
        start_new_session=True,
    )
    until((job.path / "state.json").exists, "the start")
    job.said("rank-0", "ready")
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL):
        os.killpg(starter.pid, signum)
    starter.wait()
    assert job.ended().outcome == "succeeded"
    assert job.log("rank-0") == "ready\ndone\n"


FULL_DISK = """
import os, sys
from pathlib import Path
from tests.fakes.supervised import SupervisedJob, shell

job = SupervisedJob(Path(sys.argv[1], "job"))
waits = "until [ -L full ]; do sleep 0.05; done; echo this is lost; exit 4"
job.write(shell(waits), shell("sleep 1000"))
os.chdir(job.path)
job.start()
try:
    with open("filler", "wb", buffering=0) as filler:
        for size in (4096, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                pass
    os.symlink("this needs no room", "full")
    state = job.ended()
    print(state.outcome, state.first_failure.process, state.first_failure.exit_code)
finally:
    job.clear_up()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk of its own needs root")
def test_a_full_disk_does_not_lose_the_outcome(tmp_path: Path) -> None:
    """The supervisor lives on without room for its state, and the last state is written."""
    mount = 'mount -t tmpfs -o size=400k none "$0" && exec "$@" "$0"'
    script = (sys.executable, "-c", FULL_DISK)
    done = subprocess.run(
        ("unshare", "--mount", "sh", "-c", mount, str(tmp_path), *script),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "failed rank-0 4\n"
