"""Faults on demand, on machines and on the API, and their undoing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.errors import NotFound, PlanError, UsageError
from paceline.rehearsal.emulator.nouns import Instance
from paceline.rehearsal.machines.body import Body
from paceline.rehearsal.machines.rates import read_rate_mbit
from paceline.rehearsal.machines.rehearsal import Rehearsal

Undo = Callable[[], None]
# What Paceline's own clusters are marked with: their hosts are called node0, node1, …
_CLUSTER_TAG = "paceline:cluster"


@dataclass(frozen=True)
class Kind:
    """One kind of fault: its words, and how many it needs."""

    words: str
    act: Callable[[Faults, Sequence[str]], Undo | None]

    @property
    def count(self) -> int:
        """How many words come after its name."""
        return len(self.words.split())


class Faults:
    """The faults of a rehearsal that are in force, each with what undoes it."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._emulator = rehearsal.emulator
        self._undo: dict[str, Undo] = {}

    def in_force(self) -> tuple[str, ...]:
        """Return the faults that can be undone, in the words that set them."""
        return tuple(self._undo)

    def set(self, name: str, words: Sequence[str]) -> str:
        """Let a fault happen; say what has happened."""
        kind = _kind(name, words)
        key = " ".join([name, *words])
        if key in self._undo:
            return f"{key}: is in force already"
        undo = kind.act(self, words)
        if undo is not None:
            self._undo[key] = undo
        return f"{key}: done" if undo is None else f"{key}: in force, until it is undone"

    def undo(self, name: str, words: Sequence[str]) -> str:
        """Undo a fault; one that names its machine alone will do."""
        wanted = " ".join([name, *words])
        found = [key for key in self._undo if key == wanted or key.startswith(f"{wanted} ")]
        if not found:
            raise NotFound(
                f"there is no fault `{wanted}` in force",
                hint="`paceline rehearsal status` lists those that are",
            )
        for key in found:
            self._undo.pop(key)()
        return f"{', '.join(found)}: undone"

    # --- the kinds --------------------------------------------------------------------------------

    def interrupt(self, words: Sequence[str]) -> Undo | None:
        """Take a spot instance back, with EC2's notice."""
        instance, _ = self._host(words[0])
        if instance.order.spot is None:
            raise PlanError(
                f"{words[0]} is not of the spot market", hint="set `cluster.market: spot`"
            )
        self._emulator.interrupt(instance.id)
        return None

    def no_capacity(self, words: Sequence[str]) -> Undo:
        """Let a zone have no room for more instances."""
        zone = words[0]
        self._emulator.limit_capacity(0, zone=zone)

        def undo() -> None:
            self._emulator.conditions.capacity.pop((zone, "*"), None)

        return undo

    def cut(self, words: Sequence[str]) -> Undo:
        """Cut a machine off from everybody."""
        _, body = self._host(words[0])
        body.cut()
        return body.mend

    def kill(self, words: Sequence[str]) -> Undo:
        """Let a machine die without a word."""
        _, body = self._host(words[0])
        body.kill()
        return body.reboot

    def throttle(self, words: Sequence[str]) -> Undo:
        """Refuse a share of all calls."""
        try:
            share = float(words[0])
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            raise UsageError(f"{words[0]!r} is no share of calls", hint="for example 0.3")
        fault = self._emulator.throttle(share)
        return lambda: self._emulator.faults.remove(fault)

    def slow_link(self, words: Sequence[str]) -> Undo:
        """Let a machine's link carry less."""
        _, body = self._host(words[0])
        body.shape(read_rate_mbit(words[1]))
        return lambda: body.shape(None)

    def _host(self, name: str) -> tuple[Instance, Body]:
        """Return the machine that has an id, an address or a name."""
        names = self.names()
        named = [item for item in self._emulator.instances() if name in names[item.id]]
        if len(named) != 1:
            known = ", ".join(sorted(words[0] for words in names.values()))
            problem = "several machines are" if named else "no machine is"
            raise NotFound(f"{problem} called {name}", hint=f"there are: {known or 'none'}")
        return named[0], self._rehearsal.keeper.body(named[0].id)

    def names(self) -> dict[str, list[str]]:
        """Return what each machine is called: in its cluster first, then by tag, id, address."""
        found: dict[str, list[str]] = {}
        members: Counter[str] = Counter()
        for item in self._emulator.instances():
            tags = self._emulator.tags_of(item.id)
            cluster = tags.get(_CLUSTER_TAG)
            words = [tags.get("Name"), item.id, item.private_address, item.public_address]
            if cluster is not None:
                number = members[cluster]
                members[cluster] += 1
                words = [f"node{number}", f"{cluster}/node{number}", *words]
            found[item.id] = [word for word in words if word]
        return found


KINDS: dict[str, Kind] = {
    "spot-interruption": Kind("HOST", Faults.interrupt),
    "no-capacity": Kind("ZONE", Faults.no_capacity),
    "cut": Kind("HOST", Faults.cut),
    "kill": Kind("HOST", Faults.kill),
    "throttle": Kind("SHARE", Faults.throttle),
    "slow-link": Kind("HOST RATE", Faults.slow_link),
}


def _kind(name: str, words: Sequence[str]) -> Kind:
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"there is no fault {name!r}", hint=f"there are: {', '.join(KINDS)}")
    if len(words) != kind.count:
        raise UsageError(f"{name} needs {kind.words}", hint=f"{name} {kind.words}")
    return kind
