"""Pairs of hosts: each kind of fault is named, with the host and the way out."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.app.links import ask_route
from paceline.app.pairs import End, Fault, check_pairs, require_pairs, version_faults
from paceline.errors import EnvironmentFault
from paceline.model.host import Host, HostFacts
from paceline.rehearsal.hosts import SshHost
from paceline.transports.ssh import SshTransport
from tests.lab import host_noun, no_keys

SOURCE = str(Path(__file__).parents[3] / "src")
FACTS = HostFacts("h", cores=2, torch_version="2.13.0+cpu")
PORT = 23456


def found(lab: tuple[SshHost, ...], hosts: tuple[Host, ...], **options: str) -> tuple[Fault, ...]:
    """Return the faults between hosts of the lab."""

    async def look() -> tuple[Fault, ...]:
        async with AsyncExitStack() as stack:
            ends = []
            for host in hosts:
                link = SshTransport(host, no_keys(lab[0].folder))
                stack.push_async_callback(link.close)
                ends.append(End(host, link, FACTS, sys.executable, SOURCE))
            return await check_pairs(ends, PORT, options.get("interface"))

    return asyncio.run(look())


@contextmanager
def blackhole(host: SshHost, address: str) -> Iterator[None]:
    """Let everything that a host sends to an address vanish."""
    words = ("ip", "-n", host.lab.namespace, "route")
    subprocess.run((*words, "add", "blackhole", f"{address}/32"), check=True)
    yield
    subprocess.run((*words, "del", "blackhole", f"{address}/32"), check=True)


def nouns(lab: tuple[SshHost, ...]) -> tuple[Host, ...]:
    """Return the lab's hosts as those of a cluster."""
    return tuple(host_noun(host) for host in lab)


@pytest.mark.e2e
def test_hosts_that_reach_each_other_have_no_fault(lab: tuple[SshHost, ...]) -> None:
    """Nothing is found where nothing is wrong, and nothing keeps the port."""
    assert found(lab, nouns(lab)) == ()
    assert found(lab, nouns(lab)) == ()
    assert found(lab, nouns(lab), interface="eth0") == ()


@pytest.mark.e2e
def test_the_route_names_the_interface_also_on_the_master(lab: tuple[SshHost, ...]) -> None:
    """The way to one's own address leads over the interface that bears it, not the loopback."""

    async def ask() -> list[str | None]:
        routes = []
        for host in nouns(lab):
            link = SshTransport(host, no_keys(lab[0].folder))
            way = await ask_route(link, sys.executable, SOURCE, lab[0].address)
            routes.append(way.interface)
            await link.close()
        return routes

    assert asyncio.run(ask()) == ["eth0", "eth0"]


@pytest.mark.e2e
def test_a_host_without_a_way_to_the_others_is_named(lab: tuple[SshHost, ...]) -> None:
    """Both ends of a broken pair say what they see of it."""
    with blackhole(lab[1], lab[0].address):
        # We ourselves come from the gateway and get through.
        faults = found(lab, nouns(lab))
    assert {fault.host for fault in faults} == {lab[0].address, lab[1].address}
    texts = " ".join(fault.text for fault in faults)
    assert f"no way to {lab[0].address}" in texts
    assert f"cannot reach {lab[1].address}" in texts
    assert "no answer" in texts


@pytest.mark.e2e
def test_a_wrong_private_address_is_told_from_a_closed_port(lab: tuple[SshHost, ...]) -> None:
    """Where an address is not the host's own, the hint says which it has."""
    first, second = nouns(lab)
    gateway = lab[0].address.rpartition(".")[0] + ".1"
    faults = found(lab, (first, replace(second, peer_address=gateway)))
    assert [fault.host for fault in faults] == [first.name]
    assert "refused" in faults[0].text
    assert f"{gateway} is no address of {second.name}" in faults[0].hint
    assert lab[1].address in faults[0].hint


@pytest.mark.e2e
def test_a_wrong_interface_is_named_on_every_host(lab: tuple[SshHost, ...]) -> None:
    """An interface that the user insists on and that is not there is named, with those that are."""
    faults = found(lab, nouns(lab), interface="ens5")
    assert [fault.host for fault in faults] == [host.name for host in nouns(lab)]
    assert all("no interface ens5; there is: lo, eth0" in fault.text for fault in faults)
    over_loopback = found(lab, nouns(lab), interface="lo")
    assert all("over lo" in fault.text for fault in over_loopback)
    assert over_loopback


@pytest.mark.e2e
def test_a_taken_port_is_named(lab: tuple[SshHost, ...]) -> None:
    """The rendezvous port that something else holds on the master is a fault of the master."""
    hold = f"import socket, time; s = socket.create_server(('', {PORT})); print(1, flush=True); "
    argv = lab[0].lab.inside((sys.executable, "-c", hold + "time.sleep(60)"))
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        faults = found(lab, nouns(lab))
        holder.kill()
    assert [fault.host for fault in faults] == [lab[0].address]
    assert f"cannot listen at port {PORT}" in faults[0].text


def test_another_torch_is_a_fault() -> None:
    """Versions must be alike; builds of the same version may differ."""
    facts = {
        "a": FACTS,
        "b": replace(FACTS, torch_version="2.13.0+cu130"),
        "c": replace(FACTS, torch_version="2.9.1"),
        "d": replace(FACTS, torch_version=None),
    }
    faults = version_faults(facts)
    assert [fault.host for fault in faults] == ["c", "d"]
    assert faults[0].text == "torch 2.9.1 here, and 2.13.0+cpu on a"


def test_one_error_names_all_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is said at once, each fault with its host."""

    async def look(*_: object) -> tuple[Fault, ...]:
        return (Fault("a", "is deaf", "ear"), Fault("b", "is mute", "mouth"))

    monkeypatch.setattr("paceline.app.pairs.check_pairs", look)
    with pytest.raises(EnvironmentFault, match=r"a: is deaf\n  b: is mute") as caught:
        asyncio.run(require_pairs((), 1, None, same_torch=False))
    assert caught.value.hint == "ear; mouth"
