"""Who this process is, and how it meets the others."""

from __future__ import annotations

import pytest

from paceline.errors import EnvironmentFault, PortBusy, TransportError
from paceline.events import Place
from paceline.trainer.world import World, _explained, joined, place_from, prepare_environment

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("environ", "flag", "expected"),
    [
        ({}, None, Place(0, 0, 1, 1)),
        (
            {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
            None,
            Place(3, 1, 4, 2),
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "2",
                "OMPI_COMM_WORLD_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            },
            None,
            Place(2, 0, 4, 2),
        ),
        (
            {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1"},
            1,
            Place(3, 1, 4, 2),
        ),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
            0,
            Place(1, 1, 2, 2),
        ),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}, None, Place(1, 1, 2, 2)),
    ],
)
def test_every_launcher_is_understood(
    environ: dict[str, str], flag: int | None, expected: Place
) -> None:
    """torchrun, mpirun, torch.distributed.launch's flag, and variables set by hand."""
    assert place_from(environ, flag) == expected


def test_half_an_environment_is_an_error() -> None:
    """A rank outside its world is named, with what to set."""
    with pytest.raises(EnvironmentFault, match="rank 2 in a world of 1"):
        place_from({"RANK": "2"}, None)


def test_the_rendezvous_is_completed() -> None:
    """On one host the address and the port may be left out; what is set is kept."""
    environ = {"MASTER_PORT": "1234"}
    prepare_environment(Place(1, 1, 2, 2), environ)
    assert environ == {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "1234",
    }


def test_several_hosts_need_an_address() -> None:
    """Without MASTER_ADDR, ranks on several hosts are told how to set it."""
    with pytest.raises(EnvironmentFault, match="MASTER_ADDR") as caught:
        prepare_environment(Place(0, 0, 4, 2), {})
    assert caught.value.hint is not None
    assert "-x MASTER_ADDR" in caught.value.hint


def test_a_failed_meeting_is_explained() -> None:
    """A taken port and an absent master are told apart."""
    place = Place(1, 1, 2, 2)
    taken = _explained(RuntimeError("bind: EADDRINUSE, 98"), place, "10.0.0.1:1234")
    assert isinstance(taken, PortBusy)
    assert "10.0.0.1:1234" in str(taken)
    absent = _explained(RuntimeError("client timed out\nstack"), place, "10.0.0.1:1234")
    assert isinstance(absent, TransportError)
    assert "rank 1 of 2 could not meet" in str(absent)
    assert "stack" not in str(absent)


def test_one_process_needs_no_group() -> None:
    """Alone, everything that ranks agree about is one's own word."""
    with joined(Place(), timeout_s=1) as world:
        assert world == World(Place())
        assert (world.rank, world.size, world.leads) == (0, 1, True)
        assert world.largest(-3) == -3
