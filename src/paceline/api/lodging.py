"""Where runs take place: on hosts that are there, or on some that are rented while needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from paceline.api.wiring import SystemClock, Wiring, wire
from paceline.app.workplace import Workplace, open_workplace
from paceline.errors import UsageError
from paceline.model.host import Cluster
from paceline.model.spec import Spec
from paceline.ports import RentalObserver, RunStore


@dataclass(frozen=True)
class Lodging:
    """How the hosts of a spec are had: kept afterwards or not, and who watches them come and go."""

    spec: Spec
    store: RunStore
    results: Path | str | None = None
    keep: bool = False
    watcher: RentalObserver | None = None

    def __post_init__(self) -> None:
        """Refuse what would cost more than anybody expects."""
        axes = self.spec.study.grid or {}
        if self.keep and len(axes.get("instance_type", ())) > 1:
            raise UsageError(
                "a study over several instance types keeps no hosts: each type goes "
                "before the next one comes",
                hint="leave --keep out, or bring a cluster up beforehand: it is used and kept",
            )

    @asynccontextmanager
    async def open(self, variant: Spec | None = None) -> AsyncIterator[Workplace]:
        """Open the workplace of the spec, or of a variant of it; give back what was rented."""
        spec = variant or self.spec
        async with AsyncExitStack() as stack:
            wiring = wire(spec, self.results)
            if spec.cluster.provider == "ec2":
                wiring = await stack.enter_async_context(self._rented(spec, wiring))
            opened = open_workplace(
                wiring.provider, wiring.ground, self.store, SystemClock(), wiring.prepare
            )
            yield await stack.enter_async_context(opened)

    @asynccontextmanager
    async def _rented(self, spec: Spec, wiring: Wiring) -> AsyncIterator[Wiring]:
        from paceline.api.desks import open_desk, wish_for  # noqa: PLC0415 - it is heavy
        from paceline.app.lodging import lodged, of_type  # noqa: PLC0415
        from paceline.providers.ec2 import Ec2Provider  # noqa: PLC0415

        wish = wish_for(spec)
        if spec.cluster.instance_type != self.spec.cluster.instance_type:
            wish = replace(wish, key=of_type(wish.key, wish.types[0]))
        desk = open_desk(wish.key.region, self.watcher)
        async with lodged(desk, wish, keep=self.keep) as cluster:

            async def found() -> Cluster:
                return cluster

            yield replace(wiring, provider=Ec2Provider(found, desk.reach))
