"""Images of our own: bake, list, remove."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.api.completing import OnInterrupt, complete
from paceline.api.desks import open_desk, owner, region_of, wish_for
from paceline.api.wiring import SpecLike, SystemClock, load, open_store, wire
from paceline.app.bakery import Bakery
from paceline.app.baking import bake as bake_image
from paceline.app.outfitting import ensure_engines, have_data, run_commands
from paceline.app.renting import Desk
from paceline.app.workplace import ends_of, open_workplace
from paceline.errors import Interrupted, UsageError
from paceline.model.baked import BakedImage
from paceline.model.ec2 import Thing
from paceline.model.host import Cluster
from paceline.model.spec import Spec
from paceline.planning.ec2.baking import BUILDER_PREFIX
from paceline.ports import RentalObserver


def bake(
    spec: SpecLike = None,
    *,
    name: str,
    overrides: Sequence[str] = (),
    watcher: RentalObserver | None = None,
    on_interrupt: OnInterrupt | None = None,
) -> BakedImage:
    """Make an image that has all that the spec's runs need; `image: NAME` starts hosts from it.

    The builder that it is made of is removed whatever happens.
    """
    loaded = load(spec, overrides)
    if loaded.cluster.provider != "ec2":
        raise UsageError(
            f"images are baked on EC2, and the provider of {loaded.name} is "
            f"{loaded.cluster.provider}",
            hint="`cluster: {provider: ec2}`",
        )
    wish = wish_for(loaded)
    desk = open_desk(wish.key.region, watcher)
    work = bake_image(desk, wish, name, lambda cluster: _make_ready(desk, loaded, cluster))

    def interrupted() -> Interrupted:
        again = f"`paceline down {BUILDER_PREFIX}{name}` makes sure that nothing is left"
        return Interrupted("interrupted; what had been made has been removed again", hint=again)

    return complete(work, interrupted=interrupted, on_interrupt=on_interrupt)


async def _make_ready(desk: Desk, spec: Spec, cluster: Cluster) -> None:
    """Do on the builder what would otherwise be done on every host of every cluster."""
    from paceline.providers.ec2 import Ec2Provider  # noqa: PLC0415 - it is heavy

    async def found() -> Cluster:
        return cluster

    wiring = wire(spec)
    say = desk.watcher.step
    provider = Ec2Provider(found, desk.reach)
    opened = open_workplace(provider, wiring.ground, open_store(), SystemClock())
    async with opened as place:
        ends = ends_of(place)
        if str(spec.runtime.kind) == "docker":
            await ensure_engines(ends, say)
        await run_commands(ends, spec.bake.commands, say)
        await wiring.prepare(ends, place.grounds)
        await have_data(spec, ends, say)


def baked_images(*, region: str | None = None) -> tuple[BakedImage, ...]:
    """Return the images that we have baked, the newest first."""
    return complete(_bakery(region).shelf())


def remove_image(
    name: str, *, region: str | None = None, watcher: RentalObserver | None = None
) -> tuple[Thing, ...]:
    """Remove an image that we have baked, and its snapshots; return what has gone."""
    return complete(
        _bakery(region, watcher).remove(name),
        interrupted=lambda: Interrupted(
            "interrupted; something may be left", hint=f"`paceline bake rm {name}` again goes on"
        ),
    )


def _bakery(region: str | None, watcher: RentalObserver | None = None) -> Bakery:
    return Bakery(open_desk(region or region_of(), watcher), owner())
