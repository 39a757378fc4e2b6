"""The first contact with new hosts: they run, they answer, and they get a key of their own.

At first they show the key that we gave them in their user data; what stands there is worth
nothing to anybody as soon as the host has made itself another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from paceline.app.renting import Desk, pause
from paceline.app.survey import machines_of
from paceline.errors import CloudError, TransportError
from paceline.model.command import Command, Completed
from paceline.model.ec2 import ClusterKey, Holdings, Machine
from paceline.model.host import Host, SshAccess
from paceline.planning.ec2.hostkeys import HOST_KEY, make_new_key, public_half, take_new_key
from paceline.planning.ec2.identity import USER_TAG
from paceline.planning.ec2.plan import host_name
from paceline.ports import HostPin

USER_KEY, BOOT_KEY = "user", "host"
_AT_ONCE = 48
_PROBE = Command(("true",))
_COMMAND_S = 30.0
_LOOK_AGAIN_S = 2.0


@dataclass(frozen=True)
class Patience:
    """For how long hosts are waited for, in seconds."""

    boot_s: float = 600.0
    new_key_s: float = 30.0


def hosts_of(desk: Desk, key: ClusterKey, machines: Sequence[Machine], user: str) -> list[Host]:
    """Return instances as hosts, named in the order in which they were made."""
    pins = desk.keyring.pins(key)
    return [
        Host(
            name=host_name(number),
            address=one.public_address or one.private_address or "",
            peer_address=one.private_address or "",
            ssh=SshAccess(
                user=one.tags.get(USER_TAG) or user,
                key=str(desk.keyring.path(key, USER_KEY)),
                host_key=pins[one.id].now if one.id in pins else None,
            ),
        )
        for number, one in enumerate(machines)
    ]


@dataclass
class Meeting:
    """Waits until instances run and answer, all at once, and gives each a host key of its own."""

    desk: Desk
    key: ClusterKey
    user: str
    patience: Patience = field(default_factory=Patience)
    host_key: str = HOST_KEY
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def hold(self, ids: Sequence[str]) -> tuple[Machine, ...]:
        """Return the cluster's instances, in their order, when all of these have been met."""
        try:
            return await self._hold(ids)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _hold(self, ids: Sequence[str]) -> tuple[Machine, ...]:
        desk, tries, met = self.desk, 0, -1
        until = desk.clock.monotonic() + self.patience.boot_s
        while True:
            held = await machines_of(desk, self.key)
            _require_alive(ids, held)
            machines = held.living
            self._begin(ids, machines)
            done = [task for task in self._tasks.values() if task.done()]
            for task in done:
                task.result()  # raises what went wrong with one host
            if len(done) != met:
                met = len(done)
                desk.watcher.progress(met, len(ids), "hosts answer")
            if met == len(ids):
                return machines
            if len(self._tasks) == len(ids):
                # All run, and we knock at their doors; now and then we look whether one has ended.
                knocking = self._tasks.values()
                await asyncio.wait(
                    knocking, timeout=_LOOK_AGAIN_S, return_when=asyncio.FIRST_EXCEPTION
                )
                continue
            if desk.clock.monotonic() >= until:
                raise self._never_ran(ids, machines)
            await pause(desk.clock, tries)
            tries = min(tries + 1, 2)

    def _begin(self, ids: Sequence[str], machines: Sequence[Machine]) -> None:
        """Begin to knock at every instance that runs and has an address."""
        hosts = hosts_of(self.desk, self.key, machines, self.user)
        pins = self.desk.keyring.pins(self.key)
        for machine, host in zip(machines, hosts, strict=True):
            if machine.id in ids and machine.id not in self._tasks and _runs(machine):
                pin = pins.get(machine.id)
                self._tasks[machine.id] = asyncio.ensure_future(self._meet(machine.id, host, pin))

    async def _meet(self, instance_id: str, host: Host, pin: HostPin | None) -> None:
        async with self._gate:
            if pin is None:
                pin = HostPin(self.desk.keyring.pair(self.key, BOOT_KEY).public)
                self.desk.keyring.write_pin(self.key, instance_id, pin)
            known, pin = pin, await self._answered(host, pin)
            if not pin.settled:
                await self._renew(instance_id, host, pin)
            elif pin != known:
                self.desk.keyring.write_pin(self.key, instance_id, pin)

    async def _answered(self, host: Host, pin: HostPin) -> HostPin:
        """Wait until a host answers with a key that we know of it; return the pin that fits.

        While a key changes, either may be in use: we may have been ended between the two.
        """
        known = [pin] if pin.coming is None else [_next(pin), pin]
        until, tries = self.desk.clock.monotonic() + self.patience.boot_s, 0
        while True:
            late = self.desk.clock.monotonic() >= until
            for candidate in known:
                if await self._shows(host, candidate.now, late=late and candidate is known[-1]):
                    return candidate
            await pause(self.desk.clock, min(tries, 2))
            tries += 1

    async def _renew(self, instance_id: str, host: Host, pin: HostPin) -> None:
        """Let a host make itself a new key, pin that one, and see that it is in use."""
        told = await self._say(host, pin.now, make_new_key(self.host_key))
        fresh = public_half(told.stdout)
        if not told.ok or fresh is None:
            raise _no_new_key(host, told)
        keyring = self.desk.keyring
        keyring.write_pin(self.key, instance_id, replace(pin, coming=fresh))
        taken = await self._say(host, pin.now, take_new_key(self.host_key))
        if not taken.ok:
            raise _no_new_key(host, taken)
        until, tries = self.desk.clock.monotonic() + self.patience.new_key_s, 0
        while not await self._shows(host, fresh, late=self.desk.clock.monotonic() >= until):
            await pause(self.desk.clock, min(tries, 1))
            tries += 1
        keyring.write_pin(self.key, instance_id, HostPin(fresh, settled=True))

    async def _shows(self, host: Host, host_key: str, *, late: bool) -> bool:
        """Whether a host answers with this key; once it is late, raise why it does not."""
        try:
            await self._say(host, host_key, _PROBE)
        except TransportError:
            if late:
                raise
            return False
        return True

    async def _say(self, host: Host, host_key: str, command: Command) -> Completed:
        """Run a command on a host that shows this key, over a connection of its own."""
        access = replace(host.ssh or SshAccess(), host_key=host_key)
        async with aclosing(_Link(self.desk, replace(host, ssh=access))) as link:
            done: Completed = await link.transport.run(command, timeout_s=_COMMAND_S)
            return done

    def _never_ran(self, ids: Sequence[str], machines: Sequence[Machine]) -> CloudError:
        there: Mapping[str, Machine] = {machine.id: machine for machine in machines}
        late = [one for one in ids if one not in self._tasks]
        states = ", ".join(f"{one} {there[one].state if one in there else 'gone'}" for one in late)
        reasons = {there[one].reason for one in late if one in there and there[one].reason}
        why = f" ({'; '.join(sorted(reasons))})" if reasons else ""
        return CloudError(
            f"{len(late)} of {len(ids)} hosts do not run after {self.patience.boot_s:g} s: "
            f"{states}{why}",
            hint="AWS may have trouble in that zone, or the account may lack the key of its disks",
        )


class _Link:
    """A transport that is let go of whatever happens."""

    def __init__(self, desk: Desk, host: Host) -> None:
        self.transport = desk.reach(host)

    async def aclose(self) -> None:
        """Let go of it."""
        await self.transport.close()


def _require_alive(ids: Sequence[str], held: Holdings) -> None:
    """Give up at once when a host has ended, and say why, as far as AWS does."""
    ended = [machine for machine in held.machines if machine.id in ids and not machine.alive]
    if ended:
        reasons = sorted({machine.reason for machine in ended if machine.reason})
        why = f": {'; '.join(reasons)}" if reasons else ""
        raise CloudError(
            f"{len(ended)} of {len(ids)} hosts ended while they were waited for{why}",
            hint="the same again may do; if it does not, try another zone or type",
        )


def _next(pin: HostPin) -> HostPin:
    return HostPin(pin.coming or pin.now, settled=True)


def _runs(machine: Machine) -> bool:
    return machine.state == "running" and machine.public_address is not None


def _no_new_key(host: Host, said: Completed) -> TransportError:
    words = (said.stderr or said.stdout).strip().splitlines()[-1:] or ["it said nothing"]
    return TransportError(
        f"it could not be given a host key of its own: {words[0]}",
        host=host.name,
        hint="the image needs ssh-keygen and a login user who may use sudo without a password",
    )
