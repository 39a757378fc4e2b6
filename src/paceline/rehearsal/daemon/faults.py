"""Faults on demand, on machines and on the API, and their undoing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

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
    """One kind of fault: its words, and what it does to whatever it concerns."""

    words: str
    act: Callable[[Faults, str, Sequence[str]], Undo | None]
    undoable: bool = True

    @property
    def count(self) -> int:
        """How many words come after its name."""
        return len(self.words.split())

    @property
    def of_a_host(self) -> bool:
        """Whether it concerns one machine."""
        return self.words.startswith("HOST")


@dataclass(frozen=True)
class Force:
    """A fault that is in force: the words that say so, and what undoes it."""

    text: str
    undo: Undo


class Faults:
    """The faults of a rehearsal that are in force, by kind and by what each concerns."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._emulator = rehearsal.emulator
        self._forces: dict[tuple[str, str], Force] = {}

    def in_force(self) -> tuple[str, ...]:
        """Return the faults that can be undone; those of machines that are gone are gone, too."""
        living = self.names()
        for name, target in tuple(self._forces):
            if KINDS[name].of_a_host and target not in living:
                del self._forces[name, target]
        return tuple(force.text for force in self._forces.values())

    def set(self, name: str, words: Sequence[str]) -> str:
        """Let a fault happen, in the place of one of its kind there; say what has happened."""
        kind = _kind(name)
        if len(words) != kind.count:
            raise UsageError(
                f"{name} needs {kind.words}", hint=f"paceline rehearsal fault {name} {kind.words}"
            )
        target, text = self._concerned(name, words)
        known = self._forces.get((name, target))
        if known is not None and known.text == text:
            return f"{text}: is in force already"
        undo = kind.act(self, target, words)
        if undo is None:
            return f"{text}: done"
        self._forces[name, target] = Force(text, undo)
        return f"{text}: in force, until it is undone"

    def undo(self, name: str, words: Sequence[str]) -> str:
        """Undo a fault; without words, all of its kind."""
        if not _kind(name).undoable:
            raise UsageError(f"a {name} cannot be undone")
        self.in_force()
        target = self._concerned(name, words)[0] if words else None
        found = [key for key in self._forces if key[0] == name and target in {None, key[1]}]
        if not found:
            raise NotFound(
                f"there is no fault `{' '.join([name, *words])}` in force",
                hint="`paceline rehearsal status` lists those that are",
            )
        undone = [self._forces.pop(key) for key in found]
        for force in undone:
            force.undo()
        return f"{', '.join(force.text for force in undone)}: undone"

    def _concerned(self, name: str, words: Sequence[str]) -> tuple[str, str]:
        """Return what a fault concerns, and the fault in the words that everybody uses for it."""
        if KINDS[name].of_a_host:
            host = self._host(words[0])
            return host.id, " ".join([name, self.names()[host.id][0], *words[1:]])
        return words[0] if name == "no-capacity" else "", " ".join([name, *words])

    # --- the kinds --------------------------------------------------------------------------------

    def interrupt(self, target: str, words: Sequence[str]) -> Undo | None:
        """Take a spot instance back, with EC2's notice."""
        if self._host(target).order.spot is None:
            raise PlanError(
                f"{words[0]} is not of the spot market", hint="set `cluster.market: spot`"
            )
        self._emulator.interrupt(target)
        return None

    def no_capacity(self, target: str, words: Sequence[str]) -> Undo:
        """Let a zone have no room for more instances."""
        del words
        known = [zone.name for zones in RegionsAndZonesBackend.zones.values() for zone in zones]
        if target not in {"*", *known}:
            there = ", ".join(zone for zone in known if zone[:-1] == target[:-1])
            raise UsageError(
                f"there is no zone {target}", hint=f"there are: {there or 'us-east-1a, …'}, or *"
            )
        self._emulator.limit_capacity(0, zone=target)

        def undo() -> None:
            self._emulator.conditions.capacity.pop((target, "*"), None)

        return undo

    def cut(self, target: str, words: Sequence[str]) -> Undo:
        """Cut a machine off from everybody."""
        del words
        body = self._body(target)
        body.cut()
        return body.mend

    def kill(self, target: str, words: Sequence[str]) -> Undo:
        """Let a machine die without a word."""
        del words
        body = self._body(target)
        body.kill()
        return body.reboot

    def throttle(self, target: str, words: Sequence[str]) -> Undo:
        """Refuse a share of all calls."""
        try:
            share = float(words[0])
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            raise UsageError(f"{words[0]!r} is no share of calls", hint="for example 0.3")
        before = self._forces.get(("throttle", target))
        if before is not None:
            before.undo()
        fault = self._emulator.throttle(share)
        return lambda: self._emulator.faults.remove(fault)

    def slow_link(self, target: str, words: Sequence[str]) -> Undo:
        """Let a machine's link carry less."""
        body = self._body(target)
        body.shape(read_rate_mbit(words[1]))
        return lambda: body.shape(None)

    def _body(self, instance_id: str) -> Body:
        return self._rehearsal.keeper.body(instance_id)

    def _host(self, name: str) -> Instance:
        """Return the machine that has an id, an address or a name."""
        names = self.names()
        named = [item for item in self._emulator.instances() if name in names[item.id]]
        if len(named) != 1:
            known = ", ".join(sorted(words[0] for words in names.values()))
            problem = "several machines are" if named else "no machine is"
            raise NotFound(f"{problem} called {name}", hint=f"there are: {known or 'none'}")
        return named[0]

    def names(self) -> dict[str, list[str]]:
        """Return what each machine is called: in its cluster first, then by tag, id, address.

        Where several clusters are up, the first name says which.
        """
        found: dict[str, list[str]] = {}
        members: Counter[str] = Counter()
        tagged = [(item, self._emulator.tags_of(item.id)) for item in self._emulator.instances()]
        clusters = {tags.get(_CLUSTER_TAG) for _, tags in tagged} - {None}
        for item, tags in tagged:
            cluster = tags.get(_CLUSTER_TAG)
            words = [tags.get("Name"), item.id, item.private_address, item.public_address]
            if cluster is not None:
                number = members[cluster]
                members[cluster] += 1
                short, full = f"node{number}", f"{cluster}/node{number}"
                words = [short, full, *words] if len(clusters) == 1 else [full, short, *words]
            found[item.id] = [word for word in words if word]
        return found


KINDS: dict[str, Kind] = {
    "spot-interruption": Kind("HOST", Faults.interrupt, undoable=False),
    "no-capacity": Kind("ZONE", Faults.no_capacity),
    "cut": Kind("HOST", Faults.cut),
    "kill": Kind("HOST", Faults.kill),
    "throttle": Kind("SHARE", Faults.throttle),
    "slow-link": Kind("HOST RATE", Faults.slow_link),
}


def _kind(name: str) -> Kind:
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"there is no fault {name!r}", hint=f"there are: {', '.join(KINDS)}")
    return kind
