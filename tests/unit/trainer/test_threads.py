"""How many threads a rank takes."""

from __future__ import annotations

import pytest

from paceline.events import Place
from paceline.trainer.threads import choose_threads

pytestmark = pytest.mark.torch
FOUR_HERE = Place(rank=1, local_rank=1, world_size=8, local_world_size=4)


@pytest.mark.parametrize(
    ("place", "environ", "cores", "expected"),
    [
        (FOUR_HERE, {"OMP_NUM_THREADS": "3"}, 16, None),
        (Place(), {}, 16, None),
        (FOUR_HERE, {}, 16, 4),
        (FOUR_HERE, {}, 7, 1),
        (FOUR_HERE, {}, 2, 1),
    ],
)
def test_cores_are_shared_where_nobody_decided(
    place: Place, environ: dict[str, str], cores: int, expected: int | None
) -> None:
    """The launcher's word counts; else the processes of a host share its cores."""
    assert choose_threads(place, environ, cores) == expected
