"""The keeper that gives instances bodies: it forgets none of a keeper's duties."""

from __future__ import annotations

from paceline.rehearsal.emulator.keeper import Keeper
from paceline.rehearsal.machines.keeper import HostKeeper


def test_no_duty_is_left_to_the_keeper_without_bodies() -> None:
    """Whatever a keeper can be told means something to a machine."""
    duties = {name for name in vars(Keeper) if not name.startswith("_")}
    assert duties
    assert duties <= set(vars(HostKeeper))
