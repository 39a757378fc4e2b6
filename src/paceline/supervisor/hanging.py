"""A job that hangs, put into words: which rank gets nowhere, since when, and where it is."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.supervisor.excerpt import shorten
from paceline.supervisor.job import FirstFailure
from paceline.supervisor.stacks import Stack


def hang_failure(stacks: Sequence[Stack], names: Sequence[str], silent_s: float) -> FirstFailure:
    """Describe a hang. The rank that does not merely wait for the others is the one to look at.

    `names` are the processes that are silent, the one that has been so for longest first.
    """
    suspects = [item for item in stacks if item.name in names and item.text and not item.waits]
    told = [*suspects, *(stack for stack in stacks if stack not in suspects)]
    duration = f"{silent_s:.0f} s" if silent_s < 120 else f"{silent_s / 60:.0f} min"  # noqa: PLR2004
    words = f"no output, no event for {duration}"
    if not told:
        reason = f"{names[0]} hangs: {words}; none of its ranks is a Python that can be asked"
        return FirstFailure(names[0], None, reason, reason)
    first = told[0]
    only_waits = not suspects and bool(first.text)
    verb = "waits for other ranks" if only_waits else "hangs"
    text = "\n\n".join(_words(stack) for stack in told)
    reason = f"rank {first.rank} {verb}: {words}"
    return FirstFailure(first.name, None, shorten(text), reason, waits=only_waits)


def _words(stack: Stack) -> str:
    where = stack.text or "it did not say where it was (was its Python started with -E or -I?)"
    return f"rank {stack.rank} of {stack.name}:\n{where}"
