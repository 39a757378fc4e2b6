"""The supervisor's commands: `python -m paceline.supervisor COMMAND …`, JSON on stdout.

    start FOLDER                     start the job that FOLDER/job.json describes
    status FOLDER                    print its state
    stop FOLDER [--grace SECONDS]    stop it and print its last state
    follow FOLDER [--since OFFSETS]  print what it says, line by line, until it ends
    facts [--ports N]                print what this machine is and has

An error is a JSON object with the keys `error` (what happened), `hint`, `type` and `exit_code`,
which is also the exit code of the process; types and codes are those of `paceline.errors`.
"""

from __future__ import annotations

import json
import sys

from paceline.errors import EnvironmentFault, PacelineError, UsageError
from paceline.supervisor.files import JobFolder, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

USAGE = "Say one of: start FOLDER, status FOLDER, stop FOLDER, follow FOLDER, facts."


def main(arguments: list[str]) -> int:
    """Carry out one command and return its exit code."""
    try:
        command = COMMANDS.get(arguments[0]) if arguments else None
        if command is None:
            raise UsageError(f"unknown command: {' '.join(arguments[:1])}", hint=USAGE)
        command(arguments[1:])
    except PacelineError as error:
        return _report(error)
    except BrokenPipeError:
        return 0
    except OSError as error:
        return _report(EnvironmentFault(f"the system refused: {error}"))
    except KeyboardInterrupt:
        return 130
    return 0


# Each command imports what it alone needs: the start of a job is waited for.


def _start(words: list[str]) -> None:
    from paceline.supervisor.daemon import launch  # noqa: PLC0415

    _print(launch(_folder(words)))


def _status(words: list[str]) -> None:
    from paceline.supervisor.ending import current_state  # noqa: PLC0415

    _print(current_state(_folder(words)).to_json())


def _stop(words: list[str]) -> None:
    from paceline.supervisor.ending import stop  # noqa: PLC0415

    grace_s = _number(_option(words, "--grace"), "--grace")
    _print(stop(_folder(words), grace_s).to_json())


def _follow(words: list[str]) -> None:
    from paceline.supervisor.follow import follow  # noqa: PLC0415

    since = _offsets(_option(words, "--since"))
    follow(_folder(words), since, sys.stdout.fileno())


def _facts(words: list[str]) -> None:
    from paceline.supervisor.facts import collect  # noqa: PLC0415

    ports = _number(_option(words, "--ports"), "--ports")
    if words:
        raise UsageError(f"facts does not know what to do with {' '.join(words)}", hint=USAGE)
    _print(json.dumps(collect(ports=1 if ports is None else int(ports))))


COMMANDS: Mapping[str, Callable[[list[str]], None]] = {
    "start": _start,
    "status": _status,
    "stop": _stop,
    "follow": _follow,
    "facts": _facts,
}


def _option(words: list[str], name: str) -> str | None:
    """Take an option and its value out of the words; None where it is absent."""
    if name not in words:
        return None
    place = words.index(name)
    if place + 1 == len(words):
        raise UsageError(f"{name} needs a value")
    value = words[place + 1]
    del words[place : place + 2]
    return value


def _number(text: str | None, name: str) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError as error:
        raise UsageError(f"{name} needs a number, not {text!r}") from error
    if not 0 <= value < float("inf"):
        raise UsageError(f"{name} cannot be {text}")
    return value


def _offsets(text: str | None) -> dict[str, int]:
    """Read the offsets that a reader has reached."""
    try:
        data = json.loads(text) if text else {}
        offsets = {str(name): int(value) for name, value in data.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f'--since needs JSON such as {{"logs/a.log": 0}}, not {text}') from error
    if any(value < 0 for value in offsets.values()):
        raise UsageError("--since cannot hold an offset below 0")
    return offsets


def _folder(words: list[str]) -> JobFolder:
    if len(words) != 1:
        raise UsageError("one folder is needed", hint=USAGE)
    return JobFolder(words[0])


def _report(error: PacelineError) -> int:
    words = {
        "error": error.message,
        "hint": error.hint,
        "type": type(error).__name__,
        "exit_code": error.exit_code,
    }
    _print(json.dumps(words))
    return error.exit_code


def _print(text: str) -> None:
    write_all(sys.stdout.fileno(), f"{text}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
