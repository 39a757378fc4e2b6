"""The entry point: one app of all verbs, and one place where errors become words and codes."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import typer

from paceline.cli import (
    advise,
    bake,
    cp,
    data,
    demo,
    doctor,
    down,
    execute,
    logs,
    ls,
    notebook,
    plan,
    probe,
    reap,
    rehearsal,
    report,
    run,
    show,
    ssh,
    start,
    status,
    stop,
    study,
    train,
    up,
    wait,
    watch,
)
from paceline.cli.spared import spare
from paceline.errors import Interrupted, PacelineError, StorageError

_EPILOG = (
    "Exit codes: 0 done, 1 a fault of Paceline, 2 wrong words or spec, 3 something is missing "
    "here, 4 cannot be done with these hosts, 5 the job failed, 6 a host cannot be reached, "
    "7 somebody else is at work on it, 8 not found, 9 results cannot be written, 10 the cloud "
    "refuses, 11 something is left that costs money, 130 interrupted."
)
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


@runtime_checkable
class _Usage(Protocol):
    """What typer raises for words that do not parse; it does not export the class itself."""

    exit_code: int

    def show(self) -> None: ...


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        show.out(f"paceline {version('paceline')}")
        raise typer.Exit


# In the order in which a newcomer meets them.
_VERBS = (
    demo, doctor, plan,
    up, status, down, start, bake, reap,
    train, run, study, probe, watch, report, advise,
    ls, logs, wait, stop,
    ssh, execute, cp, notebook,
    data, rehearsal,
)  # fmt: skip


def build_app(words: Sequence[str] | None = None) -> typer.Typer:
    """Return the app with every verb.

    With the words of a command line, only the verb that they name has its options.
    """
    app = typer.Typer(
        name="paceline",
        help="Train a PyTorch model on many machines, and measure how the training scales.",
        epilog=_EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for verb in _VERBS:
        verb.register(app)
    if words is not None:
        spare(app, words)
    return app


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show tracebacks; may stand anywhere on the line."
    ),
    rehearse: bool = typer.Option(
        False, "--rehearse", help="Speak to the rehearsal on this machine instead of to AWS."
    ),
) -> None:
    del version, debug
    if rehearse:
        from paceline.api import rehearsing

        rehearsing.rehearse()


def _take_debug(words: Sequence[str]) -> tuple[list[str], bool]:
    """Take `--debug` out of the words, wherever it stands before a `--`."""
    end = words.index("--") if "--" in words else len(words)
    ours = [word for word in words[:end] if word != "--debug"]
    return [*ours, *words[end:]], len(ours) != end


def _say(error: PacelineError) -> None:
    show.say(f"paceline: {error}")
    if error.hint:
        show.say(f"  hint: {error.hint}")


def _run(app: typer.Typer, words: list[str], *, debug: bool) -> int:
    try:
        outcome = app(args=words, standalone_mode=False)
    except show.ReaderGone:
        return 0
    except SystemExit:
        # typer's own answer when nobody reads its help to the end.
        show.let_go(sys.__stdout__)
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        return _explain(error)
    return outcome if isinstance(outcome, int) else 0


def _explain(error: BaseException) -> int:
    """Say what went wrong in plain words, and return the exit code for it."""
    if isinstance(error, PacelineError):
        _say(error)
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        show.say("paceline: interrupted")
        return Interrupted.exit_code
    if isinstance(error, _Usage):
        error.show()
        return error.exit_code
    if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
        show.let_go(sys.stdout)  # it may be the one, and Python would try again at the very end
        _say(StorageError(f"cannot be written: {error}"))
        return StorageError.exit_code
    show.say(
        f"paceline: a fault of Paceline itself: {type(error).__name__}: {error}\n"
        "  hint: the same command with --debug shows where; please report it"
    )
    return PacelineError.exit_code


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    show.ready_streams()
    words, debug = _take_debug(list(sys.argv[1:] if argv is None else argv))
    sys.exit(_run(build_app(words), words, debug=debug))
