"""The command line among other things: pipes, full disks, plain terminals, Ctrl-C, pasted lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e

SLEEPER = "import os,time\nprint('up', os.environ['RANK'], flush=True)\ntime.sleep(60)\n"
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
# Many lines, and a file that only a script that came to its end has written.
TALKER = """\
import os, time
for index in range(100):
    print("line", index, flush=True)
    time.sleep(0.01)
open(os.environ["PACELINE_OUT"] + "/done.txt", "w").write("done")
"""
MEETING = """\
import os, pathlib, sys
folder = pathlib.Path(os.environ["PACELINE_OUT"])
(folder / f"rank-{os.environ['RANK']}").write_text(" ".join(sys.argv[1:]))
line = f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}\\n"
os.write(1, line.encode())
"""


def deserted(
    terminal: Terminal, *words: str, stderr_too: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run a verb whose stdout is a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, "-m", "paceline", *words],
            cwd=terminal.folder, env=terminal.env, stdout=writing,
            stderr=writing if stderr_too else subprocess.PIPE, timeout=120, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)


def states(terminal: Terminal) -> list[str]:
    """Return the states of all runs, newest first."""
    listed = json.loads(terminal.paceline("ls", "--json").stdout)
    return [run["state"] for run in listed["runs"]]


def up(terminal: Terminal) -> bool:
    """Whether the first rank has said its first words."""
    return any("up 0" in path.read_text() for path in terminal.home.rglob("*.log"))


@pytest.mark.parametrize("stderr_too", [False, True])
def test_a_training_outlives_the_reader_of_its_output(
    terminal: Terminal,
    stderr_too: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """`run … | head -1`: the run goes on to its end, and its outcome is the exit code."""
    script = terminal.file("talker.py", TALKER)
    done = deserted(terminal, "train", "--script", str(script), stderr_too=stderr_too)
    assert done.returncode == 0
    assert states(terminal) == ["succeeded"]
    assert [path.read_text() for path in terminal.folder.rglob("done.txt")] == ["done"]
    failed = deserted(terminal, "run", "--", "sh", "-c", "echo one; sleep 0.3; echo two; exit 3")
    assert failed.returncode == 5
    assert b"two" in failed.stderr
    assert b"Traceback" not in failed.stderr


@pytest.mark.parametrize(
    "words", [("ls",), ("ls", "--json"), ("plan",), ("--help",), ("--version",), ("logs",)]
)
def test_nobody_reading_a_result_is_no_fault(terminal: Terminal, words: tuple[str, ...]) -> None:
    """`ls | head -1` and its like are quiet and succeed."""
    terminal.paceline("run", "--", "echo", "hello")
    done = deserted(terminal, *words)
    assert (done.returncode, done.stderr) == (0, b"")


def test_following_ends_with_its_reader(terminal: Terminal) -> None:
    """`logs -f | head -1` returns when nobody reads any more, and the run goes on."""
    noisy = "while true; do echo again; sleep 0.1; done"
    run_id = terminal.paceline("run", "--detach", "--", "sh", "-c", noisy).stdout.strip()
    done = deserted(terminal, "logs", "-f", run_id)
    assert (done.returncode, done.stderr) == (0, b"")
    assert states(terminal) == ["running"]
    terminal.paceline("stop", run_id)


@pytest.mark.parametrize(
    "words", [("ls",), ("plan", "--json"), ("--help",), ("run", "--", "echo", "hello")]
)
def test_a_full_disk_behind_stdout_is_named(terminal: Terminal, words: tuple[str, ...]) -> None:
    """`ls > /dev/full` says what it is, with the exit code of results that cannot be written."""
    terminal.paceline("run", "--", "echo", "hello")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "paceline", *words],
            cwd=terminal.folder, env=terminal.env, stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 9
    assert "No space left on device" in done.stderr
    assert "fault of Paceline" not in done.stderr
    assert "Traceback" not in done.stderr
    assert set(states(terminal)) == {"succeeded"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_a_terminal_lacks_are_no_fault(terminal: Terminal, encoding: str) -> None:
    """What the terminal cannot show is replaced, and nothing fails."""
    terminal.env["PYTHONIOENCODING"] = encoding
    done = subprocess.run(
        [sys.executable, "-m", "paceline", "run", "--", "printf", "snö → 雪\\n"],
        cwd=terminal.folder, env=terminal.env, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode(encoding).startswith("sn")
    assert b"?" in done.stdout


def test_no_json_shows_a_secret(terminal: Terminal) -> None:
    """A token in the job's environment is in the JSON of no verb, nor in its words."""
    token = ("-s", "job.env.HF_TOKEN=hush-hush")
    job = ("-s", 'job.command=["true"]', "-s", "job.oversubscribe=true", *token)
    small = ("-s", "study.grid.procs_per_node=[1,2]", "--samples", "1", "--name", "quiet")
    planned = terminal.paceline("plan", "--json", *job)
    assert planned.returncode == 0, planned.stderr
    assert "[secret]" in planned.stdout
    said = [
        planned,
        terminal.paceline("plan", *job),
        terminal.paceline("train", "--json", *job),
        terminal.paceline("run", "--json", *token, "--", "true"),
        terminal.paceline("study", "--json", *job, *small),
        terminal.paceline("report", "quiet", "--json"),
        terminal.paceline("report", "quiet"),
        terminal.paceline("doctor", "--json", *job),
        terminal.paceline("ls", "--all", "--json"),
        terminal.paceline("stop", "--json", terminal_run(terminal)),
        terminal.paceline("wait", "--json", terminal_run(terminal)),
        terminal.paceline("plan", "--json", "-s", "job.commnd=[]", *token),
    ]
    assert [done.returncode for done in said[:7]] == [0] * 7, [done.stderr for done in said]
    assert not [done.args for done in said if "hush-hush" in done.stdout + done.stderr]


def terminal_run(terminal: Terminal) -> str:
    """Return the id of the newest run."""
    return str(json.loads(terminal.paceline("ls", "--json").stdout)["runs"][0]["run_id"])


@pytest.mark.parametrize("verb", [("wait",), ("logs", "-f")])
def test_ctrl_c_in_waiting_leaves_the_run(terminal: Terminal, verb: tuple[str, ...]) -> None:
    """Whoever only waits says that the run goes on and how it is ended, and it does go on."""
    script = terminal.file("sleeper.py", SLEEPER)
    run_id = terminal.paceline("train", "--script", str(script), "-d").stdout.strip()
    waiting = terminal.start(*verb, run_id)
    wait_until(lambda: up(terminal) and is_following(terminal, waiting.pid))
    waiting.send_signal(signal.SIGINT)
    _, stderr = waiting.communicate(timeout=60)
    assert waiting.returncode == 130
    assert "stopped waiting; the run goes on" in stderr
    assert f"paceline stop {run_id}" in stderr
    assert states(terminal) == ["running"]
    terminal.paceline("stop", run_id)


def is_following(terminal: Terminal, pid: int) -> bool:
    """Whether a process has a child that follows a job."""
    found = subprocess.run(
        ["pgrep", "-P", str(pid), "-f", "paceline.supervisor follow"],
        capture_output=True, check=False, env=terminal.env,
    )  # fmt: skip
    return found.returncode == 0


def test_ctrl_c_is_answered_at_once(terminal: Terminal) -> None:
    """Ctrl-C says that it was heard while a rank that is deaf to it is still given time."""
    script = terminal.file("stubborn.py", DEAF + SLEEPER)
    attached = terminal.start("train", "--script", str(script))
    assert attached.stderr is not None
    wait_until(lambda: up(terminal))
    attached.send_signal(signal.SIGINT)
    assert attached.stderr.readline() == "stopping …; this takes up to 10 s\n"
    assert attached.poll() is None
    assert len(terminal.processes()) >= 2
    _, rest = attached.communicate(timeout=60)
    assert attached.returncode == 130
    assert "interrupted; the run was stopped" in rest
    assert f"its files: {terminal.folder / 'paceline-results'}" in rest
    assert states(terminal) == ["stopped"]


def test_the_lines_of_a_plan_can_be_pasted(terminal: Terminal) -> None:
    """The block that `plan` prints for a host, put into a shell as it stands, is the run."""
    script = terminal.file("it's a script.py", MEETING)
    name = json.dumps(str(script))
    planned = terminal.paceline(
        "plan", "-p", "2", "-s", f"job.script={name}", "-s", "job.oversubscribe=true",
        "-s", "job.args.note=two words",
    )  # fmt: skip
    assert planned.returncode == 0, planned.stderr
    _, _, after = planned.stdout.partition("(127.0.0.1):\n")
    block = after.partition("\n\n")[0].partition("\n  note:")[0]
    assert block.lstrip().startswith("mkdir -p")
    env = {name: value for name, value in terminal.env.items() if name != "PACELINE_HOME"}
    done = subprocess.run(
        ["bash"], input=block, capture_output=True, text=True, env=env, cwd="/", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    made = {path.name: path.read_text() for path in terminal.home.rglob("out/rank-*")}
    assert set(made) == {"rank-0", "rank-1"}
    assert all("two words" in words for words in made.values())


def test_a_process_that_a_running_run_has_not_is_named(terminal: Terminal) -> None:
    """`logs --process` with a wrong name is told which there are, also while the run goes on."""
    script = terminal.file("sleeper.py", SLEEPER)
    run_id = terminal.paceline("train", "--script", str(script), "-d").stdout.strip()
    running = terminal.paceline("logs", run_id, "--process", "nosuch")
    terminal.paceline("stop", run_id)
    ended = terminal.paceline("logs", run_id, "--process", "nosuch")
    for done in (running, ended):
        assert done.returncode == 8
        assert "it has: rank-0" in done.stderr


def test_logs_of_a_run_that_could_not_start_say_why(terminal: Terminal) -> None:
    """Where there is no output, the reason is said, and not on stdout."""
    terminal.paceline("run", "--", "no-such-program-here")
    done = terminal.paceline("logs")
    assert done.returncode == 0
    assert done.stdout == ""
    assert "no-such-program-here" in done.stderr


def test_the_demo_can_be_named(terminal: Terminal) -> None:
    """A name that no folder can have is refused like any other, before anything starts."""
    done = terminal.paceline("demo", "--name", "a/b")
    assert done.returncode == 2
    assert "name" in done.stderr
    assert terminal.results() == []
