"""Single runs from the command line: what a person types, sees, and finds afterwards."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.fakes.terminal import Terminal, wait_until

pytestmark = pytest.mark.e2e

SLEEPER = "import os,time\nprint('up', os.environ['RANK'], flush=True)\ntime.sleep(60)\n"
SECOND_FAILS = """\
import os, time
print("hello from", os.environ["RANK"], flush=True)
if os.environ["RANK"] == "1":
    raise ValueError("boom on rank 1")
time.sleep(60)
"""


def test_a_command_runs_once_per_rank_with_its_variables(terminal: Terminal) -> None:
    """Every rank of `run -- COMMAND` finds who it is and where to meet in its environment."""
    script = (
        "import os; print('|'.join(os.environ[n] for n in "
        "('RANK','WORLD_SIZE','LOCAL_RANK','MASTER_ADDR','OMP_NUM_THREADS')))"
    )
    done = terminal.paceline(
        "run", "-p", "2", "-s", "job.oversubscribe=true", "-s", "job.threads=3", "--",
        "python3", "-c", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0|2|0|127.0.0.1|3", "1|2|1|127.0.0.1|3"]
    assert "succeeded" in done.stderr


def test_a_failing_rank_ends_all_and_shows_its_own_traceback(terminal: Terminal) -> None:
    """The first rank to fail is named, its traceback shown, and no other is left running."""
    script = terminal.file("train.py", SECOND_FAILS)
    done = terminal.paceline(
        "train", "--script", str(script), "-p", "2", "-s", "job.oversubscribe=true"
    )
    assert done.returncode == 5
    assert "rank-1 ended with exit code 1" in done.stderr
    assert "ValueError: boom on rank 1" in done.stderr
    assert "runpy" not in done.stderr
    assert terminal.jobs() == []
    assert terminal.processes() == []


def test_a_program_that_is_missing_is_named(terminal: Terminal) -> None:
    """A command that does not exist is named, with the exit code for missing things."""
    done = terminal.paceline("run", "--", "no-such-program-here")
    assert done.returncode == 3
    assert "no-such-program-here" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_takes_too_long_is_ended(terminal: Terminal) -> None:
    """`job.timeout` ends a run and says so."""
    done = terminal.paceline("run", "-s", "job.timeout=1s", "--", "sleep", "60")
    assert done.returncode == 5
    assert "time limit" in done.stderr
    assert terminal.processes() == []


def test_more_processes_than_cores_are_refused_before_anything_starts(terminal: Terminal) -> None:
    """A plan larger than the machine is refused with the way to insist on it."""
    done = terminal.paceline("run", "-p", "4096", "--", "true")
    assert done.returncode == 4
    assert "oversubscribe" in done.stderr
    assert terminal.results() == []


def test_a_busy_port_is_named(terminal: Terminal) -> None:
    """A rendezvous port that is taken is said before the ranks start."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = terminal.paceline("run", "-s", f"job.master_port={port}", "--", "true")
    assert done.returncode == 3
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_outlives_its_terminal(terminal: Terminal) -> None:
    """A detached run goes on, can be listed, followed, and stopped without leaving anything."""
    script = terminal.file("sleeper.py", SLEEPER)
    begun = terminal.paceline("train", "--script", str(script), "--detach")
    run_id = begun.stdout.strip()
    assert begun.returncode == 0, begun.stderr
    listed = json.loads(terminal.paceline("ls", "--json").stdout)
    assert [(run["run_id"], run["state"]) for run in listed["runs"]] == [(run_id, "running")]
    wait_until(lambda: "up 0" in terminal.paceline("logs", run_id).stdout)
    stopped = terminal.paceline("stop", run_id, "--json")
    assert json.loads(stopped.stdout)["state"] == "stopped"
    assert terminal.processes() == []
    assert terminal.jobs() == []
    assert "up 0" in terminal.paceline("logs", run_id).stdout
    assert terminal.paceline("wait", run_id).returncode == 130


def test_waiting_returns_how_a_run_ended(terminal: Terminal) -> None:
    """`wait` exits with the outcome of a detached run."""
    run_id = terminal.paceline("run", "--detach", "--", "sleep", "1").stdout.strip()
    assert terminal.paceline("wait", run_id).returncode == 0
    run_id = terminal.paceline("run", "--detach", "--", "sh", "-c", "exit 4").stdout.strip()
    waited = terminal.paceline("wait", run_id)
    assert waited.returncode == 5
    assert "exit code 4" in waited.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_named_state_and_no_process(
    terminal: Terminal, number: signal.Signals
) -> None:
    """Ctrl-C in an attached run ends its ranks, keeps its output, and exits with 130."""
    script = terminal.file("sleeper.py", SLEEPER)
    attached = terminal.start("train", "--script", str(script))
    wait_until(lambda: len(terminal.processes()) >= 2)
    wait_until(lambda: any("up 0" in path.read_text() for path in terminal.home.rglob("*.log")))
    attached.send_signal(number)
    _, stderr = attached.communicate(timeout=60)
    assert attached.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert terminal.processes() == []
    listed = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert [run["state"] for run in listed] == ["stopped"]


def test_a_second_ctrl_c_does_not_cut_the_cleaning_short(terminal: Terminal) -> None:
    """However often Ctrl-C is pressed, no rank is left."""
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    script = terminal.file("stubborn.py", deaf + SLEEPER)
    attached = terminal.start("train", "--script", str(script))
    wait_until(lambda: any("up 0" in path.read_text() for path in terminal.home.rglob("*.log")))
    for _ in range(3):
        attached.send_signal(signal.SIGINT)
        time.sleep(0.3)
    attached.communicate(timeout=60)
    assert attached.returncode == 130
    assert terminal.processes() == []


def test_a_killed_tool_leaves_a_run_that_can_be_found_and_stopped(terminal: Terminal) -> None:
    """When the tool itself is killed, the run goes on, and `stop` ends it later."""
    script = terminal.file("sleeper.py", SLEEPER)
    attached = terminal.start("train", "--script", str(script))
    wait_until(lambda: any("up 0" in path.read_text() for path in terminal.home.rglob("*.log")))
    attached.kill()
    attached.communicate()
    listed = json.loads(terminal.paceline("ls", "--json").stdout)["runs"]
    assert [run["state"] for run in listed] == ["running"]
    stopped = json.loads(terminal.paceline("stop", "--json").stdout)
    assert stopped["state"] == "stopped"
    assert terminal.processes() == []


def test_two_who_look_at_the_same_run_settle_it_once(terminal: Terminal) -> None:
    """`stop` from another terminal ends an attached run, and both say the same of it."""
    script = terminal.file("sleeper.py", SLEEPER)
    attached = terminal.start("train", "--script", str(script))
    wait_until(lambda: any("up 0" in path.read_text() for path in terminal.home.rglob("*.log")))
    stopped = json.loads(terminal.paceline("stop", "--json").stdout)
    attached.communicate(timeout=60)
    assert stopped["state"] == "stopped"
    assert attached.returncode == 130
    assert (Path(stopped["folder"]) / "logs" / "rank-0.log").read_text().startswith("up 0")


def test_secrets_are_nowhere_in_what_is_kept(terminal: Terminal) -> None:
    """A token in the job's environment reaches the rank and no file of the results."""
    terminal.env["PACELINE_TEST"] = "1"
    script = terminal.file(
        "whisper.py", "import os\nassert os.environ['API_TOKEN'] == 'hush-hush'\n"
    )
    done = terminal.paceline("train", "--script", str(script), "-s", "job.env.API_TOKEN=hush-hush")
    assert done.returncode == 0, done.stderr
    kept = [path for path in terminal.folder.rglob("*") if path.is_file() and path != script]
    kept += [path for path in terminal.home.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"hush-hush" in path.read_bytes()]


def test_a_folder_that_cannot_be_written_is_named(terminal: Terminal) -> None:
    """Results that cannot be written are refused with the path, before anything starts."""
    blocked = terminal.file("blocked", "a file, not a folder")
    done = terminal.paceline("run", "--results", str(blocked), "--", "true")
    assert done.returncode == 9
    assert str(blocked) in done.stderr
    assert "Traceback" not in done.stderr
