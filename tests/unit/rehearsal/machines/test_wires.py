"""Routers and wires: names, addresses, and what EC2's words promise."""

from __future__ import annotations

import pytest

from paceline.rehearsal.machines.wires import SLICES, Router, Wire, network_gbit


@pytest.mark.parametrize(
    ("words", "gbit"),
    [
        ("Up to 10 Gigabit", 10.0),
        ("12.5 Gigabit", 12.5),
        ("4x 100 Gigabit", 400.0),
        ("Up to 500 Megabit", 0.5),
        ("Moderate", 1.0),
        ("Low", 0.3),
        ("as the wind blows", 1.0),
    ],
)
def test_the_words_of_instance_types(words: str, gbit: float) -> None:
    """Numbers are read, words are translated."""
    assert network_gbit(words) == gbit


def test_slices_share_no_address() -> None:
    """Every slice lies in the range for tests, and no two overlap; names fit the kernel."""
    routers = [Router("r", "abc123", number) for number in SLICES]
    addresses = [one for router in routers for one in router.public_addresses]
    assert len(set(addresses)) == len(addresses)
    assert all(one.startswith(("198.18.", "198.19.")) for one in addresses)
    assert max(len(router.link) for router in routers) <= 15
    assert routers[0].caller not in addresses


def test_a_machine_reaches_its_neighbours_through_the_router() -> None:
    """No route leads to the subnet itself: the groups have their say among neighbours too."""
    wire = Wire("m", "r", "m1", "172.31.16.5", "172.31.16.0/20")
    commands = wire.build()
    assert ("ip", "-n", "m", "route", "add", "default", "via", "172.31.16.1") in commands
    assert any("noprefixroute" in command for command in commands)


def test_an_address_may_be_taken_over() -> None:
    """A machine that is still being removed does not keep the next one from its address."""
    first, second = (Wire("m", "r", link, "172.31.16.5", "172.31.16.0/20") for link in ("a", "b"))
    for wire in (first, second):
        routes = [words for words in wire.build() if "route" in words and "172.31.16.5/32" in words]
        assert routes == [("ip", "-n", "r", "route", "replace", "172.31.16.5/32", "dev", wire.link)]
