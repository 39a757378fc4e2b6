"""The entry point: what is imported, what errors become, which exit codes there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.cli import main as entry
from paceline.errors import JobFailed, PacelineError

HEAVY = ("torch", "boto3", "asyncssh", "plotly", "scipy", "numpy", "pydantic", "ruamel", "rich")
VERBS = (
    "demo", "doctor", "plan", "train", "run", "study", "report", "ls", "logs", "wait", "stop",
    "data", "advise", "ssh", "exec", "cp", "bake", "start",
)  # fmt: skip


def run_main(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "paceline", *words], capture_output=True, text=True, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    """`paceline --help` loads none of the libraries that would make it slow."""
    script = (
        "import sys\nfrom paceline.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"sys.stderr.write(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert all(f" {verb} " in done.stdout for verb in VERBS)


def test_no_verbs_sentence_is_cut_off() -> None:
    """In a terminal of eighty letters, the list of verbs says each sentence to its end."""
    done = run_main("--help")
    assert "ls " in done.stdout
    assert "..." not in done.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_helps_with_an_example(verb: str) -> None:
    """Each verb's help shows how it is used."""
    done = run_main(verb, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout


def test_verbs_that_are_not_asked_for_are_still_there() -> None:
    """Their names and sentences are listed, and the nearest one is named for a wrong word."""
    whole, listed = entry.build_app(), entry.build_app(["--help"])
    of = [[command.name or command.callback.__name__ for command in app.registered_commands
           if command.callback is not None] for app in (whole, listed)]  # fmt: skip
    assert of[0] == of[1]
    told = run_main("stduy")
    assert told.returncode == 2
    assert "Did you mean 'study'?" in told.stderr


def test_the_shell_is_told_the_options_of_a_verb() -> None:
    """Completion knows verbs and their options, though most verbs are emptied otherwise."""
    asked = {"COMP_WORDS": "paceline study --sam", "COMP_CWORD": "2"}
    done = subprocess.run(
        [Path(sys.executable).with_name("paceline")],
        env={**os.environ, "_PACELINE_COMPLETE": "complete_bash", **asked},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "--samples" in done.stdout, done.stderr


@pytest.mark.parametrize("words", [("nonsense",), ("train", "--nonsense"), ("data", "fetch")])
def test_wrong_words_exit_with_two(words: tuple[str, ...]) -> None:
    """Words that do not parse are a usage error on stderr."""
    done = run_main(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_spec_is_no_command() -> None:
    """Whoever puts the spec where other verbs have it is told where `run` wants it."""
    done = run_main("run", "spec.yaml", "--", "true")
    assert done.returncode == 2
    assert "paceline run --spec spec.yaml -- COMMAND" in done.stderr


def test_an_error_is_said_with_its_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of ours becomes its message, its hint and its exit code, without a traceback."""

    def fail(**_: object) -> None:
        raise JobFailed("rank-1 failed", host="b", hint="look there")

    monkeypatch.setattr(entry, "build_app", lambda _words: fail)
    with pytest.raises(SystemExit) as end:
        entry.main(["train"])
    assert end.value.code == 5
    assert capsys.readouterr().err == "paceline: b: rank-1 failed\n  hint: look there\n"


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --debug, wherever it stands, the error itself comes through."""

    def fail(**_: object) -> None:
        raise PacelineError("broken")

    monkeypatch.setattr(entry, "build_app", lambda _words: fail)
    with pytest.raises(PacelineError):
        entry.main(["train", "--debug"])


def test_debug_of_others_is_left_alone() -> None:
    """What stands after `--` belongs to the command that is run."""
    assert entry._take_debug(["run", "--", "x", "--debug"]) == (
        ["run", "--", "x", "--debug"],
        False,
    )
    assert entry._take_debug(["--debug", "run", "--", "x"]) == (["run", "--", "x"], True)


def test_a_fault_of_ours_is_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error that nobody foresaw is said as one of Paceline's, with a way to see more."""

    def fail(**_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(entry, "build_app", lambda _words: fail)
    with pytest.raises(SystemExit) as end:
        entry.main([])
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert "a fault of Paceline itself" in said
    assert "--debug" in said
