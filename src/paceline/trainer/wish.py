"""What a rank can be asked for while it trains."""

from __future__ import annotations

from enum import IntEnum


class Wish(IntEnum):
    """Where wishes differ, the greater one is granted."""

    NOTHING = 0
    CHECKPOINT = 1
    ENOUGH = 2  # the time or the steps that were given are used up
    STOP = 3  # somebody wants the machine back
