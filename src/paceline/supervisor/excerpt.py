"""Finds, in the log of a process that failed, the lines that say why."""

from __future__ import annotations

import re
import signal

MAX_CHARS = 8000
_TAIL_LINES = 20
_MAX_MESSAGE_LINES = 20

# Launchers put a prefix before the lines of a rank, such as "[rank1]: " or "[1,0]<stderr>:".
_HEADER = re.compile(r"^(?P<prefix>.*?)Traceback \(most recent call last\):\s*$")
_CHAIN = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
# What the loggers of torch, of glog and of Python itself begin their lines with.
_LOG_LINE = re.compile(r"^(\[?[WEIF]\d{4} |\[[WEIF]\d{3}|\d{4}-\d\d-\d\d|(INFO|WARNING|ERROR)\b)")


def excerpt(log: str) -> str:
    """Return the first Python traceback of a log, else its last lines; never too much."""
    lines = _as_on_a_screen(log)
    for start, line in enumerate(lines):
        header = _HEADER.match(line)
        if header is not None:
            return shorten("\n".join(_traceback(lines[start:], header["prefix"])))
    while lines and not lines[-1].strip():
        lines.pop()
    return shorten("\n".join(lines[-_TAIL_LINES:]))


def _as_on_a_screen(log: str) -> list[str]:
    """Split into lines, where a carriage return has the rest of its line written over."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in log.split("\n")]


def _traceback(lines: list[str], prefix: str) -> list[str]:
    """Cut out one traceback with all that it is chained to; `lines` begin with its header."""
    # Ranks write at the same time: the prefix tells whose line is whose.
    bare = prefix.rstrip()
    own = [line[len(prefix) :] for line in lines if line.startswith(bare)] if bare else lines
    tagged = bare and len(own) > 1 and own[1].startswith(" ")
    if not tagged:
        own = lines
    end = _end_of_one(own, 0)
    while (following := _chained(own, end)) is not None:
        end = _end_of_one(own, following)
    kept = own[:end]
    while kept and not kept[-1].strip():
        kept.pop()
    return [f"{prefix}{line}".rstrip() for line in kept] if tagged else kept


def _end_of_one(lines: list[str], start: int) -> int:
    """Return where the traceback that starts here ends: frames, then the error's own words."""
    end = start + 1
    while end < len(lines) and (lines[end][:1] in {" ", "\t"} or _is_elision(lines[end])):
        end += 1
    end += 1
    last = min(len(lines), end + _MAX_MESSAGE_LINES)
    while end < last and lines[end].strip() and not _begins_something_else(lines[end]):
        end += 1
    return min(end, len(lines))


def _is_elision(line: str) -> bool:
    return line.startswith("[Previous line repeated ")


def _begins_something_else(line: str) -> bool:
    return bool(_LOG_LINE.match(line) or _HEADER.match(line))


def _chained(lines: list[str], end: int) -> int | None:
    """Return where the next traceback of a chain starts, if one does."""
    words = [index for index in range(end, len(lines)) if lines[index].strip()][:2]
    if len(words) < 2 or lines[words[0]].strip() not in _CHAIN:  # noqa: PLR2004 - link and header
        return None
    return words[1] if _HEADER.match(lines[words[1]]) else None


def shorten(text: str) -> str:
    """Leave out the middle of a long text: a traceback says most at its two ends."""
    if len(text) <= MAX_CHARS:
        return text
    mark = "\n[...]\n"
    head = (MAX_CHARS - len(mark)) // 4
    tail = MAX_CHARS - len(mark) - head
    return f"{text[:head]}{mark}{text[-tail:]}"


def _as_after(exit_code: int) -> str:
    """Name the signal where an exit code tells of one, as that of a shell or a container does."""
    struck = (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT)
    names = {128 + number: number.name for number in struck}
    return f", as after {names[exit_code]}" if exit_code in names else ""


def describe_end(exit_code: int) -> str:
    """Say in a few words how a process ended."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}{_as_after(exit_code)}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    if -exit_code == signal.SIGKILL:
        return f"was ended by {name}: unless somebody sent it, the machine ran out of memory"
    return f"was ended by {name}"
