"""The keeper that gives the emulator's instances bodies on this machine."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from paceline.errors import EnvironmentFault, NotFound
from paceline.rehearsal.emulator.keeper import Guard, Keeper, Machine, MetadataAccess
from paceline.rehearsal.machines.base import make_base
from paceline.rehearsal.machines.body import Body
from paceline.rehearsal.machines.commands import run, run_all
from paceline.rehearsal.machines.elsewhere import Service
from paceline.rehearsal.machines.ground import Ground
from paceline.rehearsal.machines.grouping import folders_of
from paceline.rehearsal.machines.journal import Item
from paceline.rehearsal.machines.metadata import MetadataServer, facts_of
from paceline.rehearsal.machines.names import NameServer
from paceline.rehearsal.machines.registry import Registry, Stock
from paceline.rehearsal.machines.rules import rule_set
from paceline.rehearsal.machines.slices import claim_slice
from paceline.rehearsal.machines.sweeping import clear
from paceline.rehearsal.machines.wires import Router

_GONE_WITHIN_S = 60.0


@dataclass
class _Place:
    """A region on this machine: its router, what answers there, the addresses that are free."""

    router: Router
    hold: socket.socket
    servers: tuple[Service, ...]
    free: list[str] = field(default_factory=list)


class HostKeeper(Keeper):
    """Boots machines as hosts in namespaces. Calls of the API return before a machine is up."""

    def __init__(self, ground: Ground, region: str = "us-east-1") -> None:
        self._ground = ground
        self._lock = threading.RLock()
        self._bodies: dict[str, Body] = {}
        self._leaving: list[Body] = []
        self._regions: dict[str, _Place] = {}
        self._numbers = itertools.count(1)
        self._stock = Stock(ground.places.registry)
        self.on_shutdown: Callable[[str], None] = lambda _: None
        # What whoever holds us has made for itself stays until it has ended.
        self._of_others = frozenset(ground.journal.held())
        groups = folders_of(ground.places.control_group, ground.trees)
        ground.journal.add(
            (
                *(Item("control group", str(folder)) for folder in groups),
                *(Item("folder", str(folder)) for folder in ground.places.folders),
            )
        )  # fmt: skip
        try:
            make_base(ground.places.base)
            self._home = self._region(region).router
        except BaseException:
            self.close()
            raise

    # --- what every keeper does -------------------------------------------------------------------

    def public_address(self, region: str) -> str | None:
        """Return a free public address of a region."""
        with self._lock:
            free = self._region(region).free
            if not free:
                raise EnvironmentFault(f"there is no public address left in {region}")
            return free.pop(0)

    def release(self, address: str) -> None:
        """Give a public address back; the others are given first."""
        with self._lock:
            for place in self._regions.values():
                if address in place.router.public_addresses and address not in place.free:
                    place.free.append(address)

    def boot(self, machine: Machine) -> None:
        """Start a machine."""
        with self._lock:
            body = self._bodies.get(machine.instance_id)
            if body is None:
                router = self._region(machine.region).router
                body = Body(
                    machine, next(self._numbers), router.namespace, self._ground,
                    self._shut_down,
                )  # fmt: skip
                self._bodies[machine.instance_id] = body
            body.boot(machine)

    def power_off(self, instance_id: str) -> None:
        """Switch a machine off."""
        if (body := self._bodies.get(instance_id)) is not None:
            body.power_off()

    def reboot(self, instance_id: str) -> None:
        """Switch a machine off and on."""
        if (body := self._bodies.get(instance_id)) is not None:
            body.reboot()

    def remove(self, instance_id: str) -> None:
        """Take a machine away."""
        with self._lock:
            body = self._bodies.pop(instance_id, None)
            if body is not None:
                self._leaving = [one for one in self._leaving if not one.join(0)]
                self._leaving.append(body)
                body.remove()

    def keep_image(self, instance_id: str, image_id: str) -> None:
        """Keep a machine's disk as an image."""
        if (body := self._bodies.get(instance_id)) is not None:
            body.keep(image_id)

    def forget_image(self, image_id: str) -> None:
        """Drop an image."""
        self._ground.images.forget(image_id)

    def console(self, instance_id: str) -> str:
        """Return a machine's console."""
        body = self._bodies.get(instance_id)
        return "" if body is None else body.console()

    def open_metadata(self, instance_id: str, access: MetadataAccess) -> None:
        """Let a machine ask for its metadata in another way."""
        if (body := self._bodies.get(instance_id)) is not None:
            body.machine = replace(body.machine, metadata=access)

    def warn(self, instance_id: str, at: float) -> None:
        """Put the spot notice into a machine's metadata."""
        if (body := self._bodies.get(instance_id)) is not None:
            body.interruption_at = at

    def guard(self, guard: Guard) -> None:
        """Tell a region's router who may speak to whom."""
        with self._lock:
            place = self._regions.get(guard.region)
            if place is not None:
                inside = ("ip", "netns", "exec", place.router.namespace)
                run((*inside, "nft", "-f", "-"), rule_set(guard))

    # --- what this one does more ------------------------------------------------------------------

    def body(self, instance_id: str) -> Body:
        """Return a machine."""
        try:
            return self._bodies[instance_id]
        except KeyError:
            raise NotFound(f"there is no machine {instance_id}") from None

    def bodies(self) -> tuple[Body, ...]:
        """Return the machines, the oldest first."""
        return tuple(self._bodies.values())

    @property
    def caller(self) -> str:
        """The address under which this machine's calls reach the machines."""
        return self._home.caller

    def close(self) -> None:
        """Take everything away."""
        for instance_id in tuple(self._bodies):
            self.remove(instance_id)
        deadline = time.monotonic() + _GONE_WITHIN_S
        for body in self._leaving:
            body.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            for place in self._regions.values():
                for server in place.servers:
                    server.close()
            places = tuple(self._regions.values())
            self._regions.clear()
        journal = self._ground.journal
        clear(journal, [item for item in journal.held() if item not in self._of_others])
        for place in places:
            place.hold.close()

    def _shut_down(self, instance_id: str) -> None:
        self.on_shutdown(instance_id)

    # --- regions ----------------------------------------------------------------------------------

    def _region(self, region: str) -> _Place:
        if region not in self._regions:
            self._regions[region] = self._open_region(region)
        return self._regions[region]

    def _open_region(self, region: str) -> _Place:
        namespace = self._ground.places.router_namespace(region)
        home = next((place.router for place in self._regions.values()), None)
        router, hold = claim_slice(namespace, self._ground.places.letters, home)
        items = (Item("namespace", namespace), Item("link", router.link))
        self._ground.journal.add(items)
        try:
            run_all(router.build())
            servers = (
                MetadataServer(namespace, lambda address: self._facts(region, address)),
                Registry(namespace, self._stock),
                NameServer(namespace, region),
            )
        except BaseException:
            clear(self._ground.journal, items)
            hold.close()
            raise
        return _Place(router, hold, servers, list(router.public_addresses))

    def _facts(self, region: str, address: str) -> tuple[dict[str, str], MetadataAccess] | None:
        for body in self.bodies():
            machine = body.machine
            if machine.region == region and machine.private_address == address:
                return facts_of(machine, body.interruption_at), machine.metadata
        return None
