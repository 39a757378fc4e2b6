"""What a child does that is killed while it bakes, or while it removes what was baked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from paceline.app.bakery import Bakery
from paceline.app.baking import bake as bake_image
from paceline.app.lodging import lodged
from paceline.model.host import Cluster
from tests.fakes.rented import KEY, desk_at, wish
from tests.fakes.scenes import CLOUD

NAME = "base"


async def nothing(cluster: Cluster) -> None:
    """Make a builder ready that needs nothing."""
    del cluster


def bake(folder: str) -> None:
    """Bake an image."""
    assert CLOUD is not None
    asyncio.run(bake_image(desk_at(CLOUD, Path(folder)), wish(1), NAME, nothing))


def remove(folder: str) -> None:
    """Remove it."""
    assert CLOUD is not None
    asyncio.run(Bakery(desk_at(CLOUD, Path(folder)), KEY.owner).remove(NAME))


def study(folder: str) -> None:
    """Rent hosts for some work, and give them back, as `train` and `study` do."""
    assert CLOUD is not None
    desk = desk_at(CLOUD, Path(folder))

    async def work() -> None:
        async with lodged(desk, wish(1), keep=False):
            pass

    asyncio.run(work())
