"""Teardown: end what was recorded or bears our tags, look again, and say so if anything is left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.app.renting import (
    SETTLE_S,
    Desk,
    closed,
    first_line,
    pause,
    require_same_account,
    unbroken,
)
from paceline.app.survey import holdings
from paceline.errors import LeftBehind, NotThere, PacelineError, StillInUse
from paceline.model.ec2 import KINDS, ClusterKey, Holdings, Kind, Machine, Thing
from paceline.model.ledger import Entry, EntryState
from paceline.planning.ec2 import requests

# Large machines take minutes to end, and what they use cannot go before them.
PATIENCE_S = 900.0


@dataclass(frozen=True)
class Removed:
    """What a teardown has removed: all of it by name."""

    key: ClusterKey
    things: tuple[Thing, ...]

    @property
    def nothing(self) -> bool:
        """Whether there was nothing to remove."""
        return not self.things


async def take_down(desk: Desk, key: ClusterKey) -> Removed:
    """Remove everything of a cluster, whatever state it is in; twice is the same as once."""
    with desk.ledger.lock(key):
        await require_same_account(desk, key)
        return await unbroken(remove_all(desk, key))


async def remove_all(desk: Desk, key: ClusterKey) -> Removed:
    """Remove everything of a cluster; LeftBehind if something stays. The caller has the lock."""
    removed = await _Teardown(desk, key).run()
    known = desk.ledger.cluster(key)
    if known is not None:
        desk.ledger.write_cluster(replace(known, gone_at=desk.clock.now()))
    desk.keyring.forget(key)
    return removed


class _Teardown:
    """Rounds of looking and removing, until a look finds nothing."""

    def __init__(self, desk: Desk, key: ClusterKey) -> None:
        self._desk = desk
        self._key = key
        self._met: dict[tuple[Kind, str], Thing] = {}
        self._refused: dict[tuple[Kind, str], PacelineError] = {}

    async def run(self) -> Removed:
        """Go on until nothing is left, or nobody has patience any more."""
        desk, tries = self._desk, 0
        until = desk.clock.monotonic() + PATIENCE_S
        while True:
            held = await holdings(desk, self._key, self._recorded())
            for thing in held.remains:
                self._met.setdefault((thing.kind, thing.id), thing)
            if not held.remains and not self._unsettled():
                break
            if desk.clock.monotonic() >= until:
                raise self._left(held)
            await self._round(held)
            desk.watcher.progress(len(self._met) - len(held.remains), len(self._met), "removed")
            await pause(desk.clock, tries)
            tries = min(tries + 1, 3)  # somebody waits for the end of it
        self._close_book()
        return Removed(self._key, tuple(self._met.values()))

    def _recorded(self) -> Mapping[Kind, Iterable[str]]:
        """Return the ids of what the ledger says is there, so that lost tags hide nothing."""
        # Groups and keys are found by names of ours; instances are known by their ids alone.
        found = [
            entry.resource_id
            for entry in self._desk.ledger.entries(self._key)
            if entry.kind == "instance" and entry.state is EntryState.MADE and entry.resource_id
        ]
        return {"instance": found}

    def _unsettled(self) -> bool:
        """Whether something was meant so lately that it may be there without being seen."""
        now = self._desk.clock.now()
        return any(
            entry.open and now - entry.meant_at < SETTLE_S
            for entry in self._desk.ledger.entries(self._key)
        )

    async def _round(self, held: Holdings) -> None:
        await self._terminate([one for one in held.machines if one.alive])
        waiting = any(not one.ended for one in held.machines)
        for kind in KINDS:
            if waiting and kind not in {"spot request", "key pair"}:
                continue  # the instances hold on to it
            for thing in held.of(kind):
                if _goes_by_itself(thing):
                    continue
                await self._remove(thing)

    async def _terminate(self, machines: Sequence[Machine]) -> None:
        ids = [one.id for one in machines]
        for start in range(0, len(ids), requests.MOST_IDS):
            # What cannot be seen yet, or not any more, the next look tells.
            with contextlib.suppress(NotThere):
                part = ids[start : start + requests.MOST_IDS]
                await self._desk.cloud.call(requests.terminate(part))
        if ids:
            self._desk.watcher.step(f"ending {len(ids)} host{'s' if len(ids) > 1 else ''}")

    async def _remove(self, thing: Thing) -> None:
        try:
            await self._desk.cloud.call(requests.remove(thing))
            self._refused.pop((thing.kind, thing.id), None)
        except NotThere:
            pass
        except StillInUse as error:
            self._refused[thing.kind, thing.id] = error

    def _left(self, held: Holdings) -> LeftBehind:
        lines = []
        for thing in held.remains:
            refusal = self._refused.get((thing.kind, thing.id))
            why = f": {first_line(refusal)}" if refusal is not None else ""
            lines.append(f"  {thing}{why}")
        count = len(held.remains)
        return LeftBehind(
            f"{count} thing{'s' if count > 1 else ''} of the cluster {self._key} could not be "
            "removed and may cost money:\n" + "\n".join(lines),
            hint=f"the same command again goes on: paceline down {self._key.name}; if something "
            "else uses it, end that first",
        )

    def _close_book(self) -> None:
        done: list[Entry] = []
        for entry in self._desk.ledger.entries(self._key):
            if entry.open:
                done.append(closed(self._desk, entry, EntryState.VOID))
            elif entry.state is EntryState.MADE:
                done.append(closed(self._desk, entry, EntryState.GONE))
        self._desk.ledger.write(*done)


def _goes_by_itself(thing: Thing) -> bool:
    """Whether it goes when its instance does."""
    return bool(thing.facts.get("Attachments") or thing.facts.get("Attachment"))
