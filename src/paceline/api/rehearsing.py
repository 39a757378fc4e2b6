"""The rehearsed EC2: started, looked at, disturbed, and gone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.api.wiring import REHEARSAL, state_home
from paceline.errors import EnvironmentFault
from paceline.rehearsal.daemon.card import Card
from paceline.rehearsal.daemon.control import ask
from paceline.rehearsal.daemon.folder import Folder
from paceline.rehearsal.daemon.lifecycle import running, start, stop
from paceline.rehearsal.machines.sweeping import Check


@dataclass(frozen=True)
class RehearsalStatus:
    """A rehearsal that is up: its address, its machines, its faults, what the account holds."""

    url: str
    region: str
    caller: str
    bandwidth: str
    started_at: float
    machines: tuple[Mapping[str, Any], ...] = ()
    faults: tuple[str, ...] = ()
    account: Mapping[str, int] = field(default_factory=dict)


def rehearsal_start(bandwidth: str | None = None) -> tuple[RehearsalStatus, bool]:
    """Start a rehearsal; return it, and whether it was started now."""
    card, new = start(_folder(), bandwidth or "")
    return _status(card), new


def rehearsal_status() -> RehearsalStatus | None:
    """Return the rehearsal that is up; None if there is none."""
    card = running(_folder())
    return None if card is None else _status(card)


def rehearsal_stop() -> tuple[Check, ...]:
    """End the rehearsal, and return the proof that nothing of it is left."""
    return stop(_folder())


def rehearsal_fault(name: str, words: Sequence[str], *, undo: bool = False) -> str:
    """Let something go wrong, or let it go well again; say what has happened."""
    what = "undo" if undo else "fault"
    found = ask(_card().control, {"what": what, "name": name, "words": list(words)})
    return str(found["said"])


def rehearsal_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which AWS is the rehearsal that is up."""
    env = os.environ if environ is None else environ
    folder = _folder()
    made = _card().environment(env, folder.home)
    return {**made, REHEARSAL: str(folder.path)}


def rehearsal_settings() -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the settings that lead tools to the rehearsal, and the user's that would not."""
    kept = rehearsal_environment()
    made = {name: kept[name] for name in rehearsal_environment({})}
    return made, tuple(sorted(set(os.environ) - set(kept)))


def rehearse() -> None:
    """Let this process, and those that it starts, speak to the rehearsal instead of to AWS."""
    made = rehearsal_environment()
    for name in set(os.environ) - set(made):
        del os.environ[name]
    os.environ.update(made)


def _folder() -> Folder:
    # Inside of a rehearsed command the state folder is the rehearsal's own.
    from pathlib import Path  # noqa: PLC0415 - used here alone

    told = os.environ.get(REHEARSAL)
    return Folder(Path(told) if told else state_home() / "rehearsal")


def _card() -> Card:
    card = running(_folder())
    if card is None:
        raise EnvironmentFault("no rehearsal is up", hint="paceline rehearsal start")
    return card


def _status(card: Card) -> RehearsalStatus:
    found = ask(card.control, {"what": "status"})
    return RehearsalStatus(
        url=card.url, region=card.region, caller=card.caller, bandwidth=card.bandwidth,
        started_at=card.started_at, machines=tuple(found["machines"]),
        faults=tuple(found["faults"]), account=found["account"],
    )  # fmt: skip
