"""Bake: a builder is rented, made ready, cleaned, imaged and given back, whatever happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from paceline.app.bakery import Bakery, not_yet
from paceline.app.provision import bring_up
from paceline.app.renting import Desk, first_line
from paceline.app.survey import machines_of
from paceline.app.teardown import take_down
from paceline.errors import EnvironmentFault, PacelineError
from paceline.model.baked import BakedImage
from paceline.model.ec2 import Wish
from paceline.model.host import Cluster, Host
from paceline.planning.ec2.baking import builder_key
from paceline.planning.ec2.cleaning import clean

# Makes the builder ready for the jobs of the hosts to come.
PrepareBuilder = Callable[[Cluster], Awaitable[None]]

_CLEAN_WITHIN_S = 300.0


def builder_wish(wish: Wish, name: str) -> Wish:
    """Return what is asked of EC2 for the builder: one host like those to come. Pure."""
    return replace(
        wish,
        key=builder_key(name, wish.key.owner, wish.key.region),
        nodes=1,
        min_nodes=1,
        placement="none",
        # A builder that is taken back half-way would have to begin again.
        market="on-demand",
        open_ports=(),
    )


async def bake(desk: Desk, wish: Wish, name: str, prepare: PrepareBuilder) -> BakedImage:
    """Make an image of this name from what a wish asks for; the builder goes in any case."""
    bakery = Bakery(desk, wish.key.owner)
    asked = builder_wish(wish, name)
    shelf = await bakery.shelf(name)
    for image in shelf:
        if not image.whole:
            # It was ready, and only its builder was still there when somebody killed us.
            await bakery.finish(asked.key, image)
            await take_down(desk, asked.key)
            return replace(image, whole=True)
    taken = not_yet(name, shelf)
    if taken is not None:
        raise taken
    # What an attempt before has left behind may be half cleaned: nobody gets in any more.
    await take_down(desk, asked.key)
    try:
        image = await _bake(desk, bakery, asked, name, prepare)
    except BaseException:
        await _sweep(desk, asked)
        raise
    await take_down(desk, asked.key)
    return image


async def _bake(
    desk: Desk, bakery: Bakery, asked: Wish, name: str, prepare: PrepareBuilder
) -> BakedImage:
    cluster = await bring_up(desk, asked)
    known = desk.ledger.cluster(asked.key)
    host = cluster.master
    desk.watcher.step("making the builder ready")
    await prepare(cluster)
    desk.watcher.step("taking keys, history and the first boot off the builder")
    await _clean(desk, host)
    builder = (await machines_of(desk, asked.key)).living[0]
    return await bakery.image_of(
        asked.key,
        builder.id,
        name,
        user=(host.ssh.user if host.ssh is not None else None) or "",
        expires_at=known.expires_at if known is not None else desk.clock.now(),
    )


async def _clean(desk: Desk, host: Host) -> None:
    link = desk.reach(host)
    try:
        done = await link.run(clean(), timeout_s=_CLEAN_WITHIN_S)
    finally:
        await link.close()
    if not done.ok:
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise EnvironmentFault(f"the builder cannot be cleaned: {said[0]}", host=host.name)


async def _sweep(desk: Desk, asked: Wish) -> None:
    """Give the builder back, and what is half made; the first error counts, not this one's."""
    try:
        await take_down(desk, asked.key)
    except PacelineError as trouble:
        desk.watcher.step(
            f"the builder could not be removed ({first_line(trouble)}): "
            f"`paceline down {asked.key.name}` goes on with it"
        )
