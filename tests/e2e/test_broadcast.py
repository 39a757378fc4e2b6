"""A file and a folder brought to hosts of the lab over their own links."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import paceline
from paceline.app.broadcast import Delivery, HostFile, broadcast, require_delivered
from paceline.app.package import package_of, settle_on
from paceline.app.pairs import End
from paceline.errors import StorageError, TransportError
from paceline.model.host import HostFacts
from paceline.rehearsal.hosts import SshHost
from paceline.transports.ssh import SshTransport
from tests.lab import host_noun, no_keys

pytestmark = pytest.mark.e2e

SIZE = 5_000_001
Work = Callable[[Sequence[End]], Awaitable[tuple[Delivery, ...]]]


def carried_out(lab: Sequence[SshHost], work: Work) -> tuple[Delivery, ...]:
    """Do something with the ends of the lab."""

    async def whole() -> tuple[Delivery, ...]:
        links = [SshTransport(host_noun(host), no_keys(host.folder)) for host in lab]
        try:
            package = package_of(Path(paceline.__file__).parent)
            homes = [await settle_on(link, package, None) for link in links]
            ends = [
                End(link.host, link, HostFacts("", 1), sys.executable, home.import_path)
                for link, home in zip(links, homes, strict=True)
            ]
            return await work(ends)
        finally:
            for link in links:
                await link.close()

    return asyncio.run(whole())


def sent_bytes(lab: Sequence[SshHost]) -> list[int]:
    """Return what each host has sent so far."""
    return [host.lab.sent_bytes() for host in lab]


def test_a_file_from_here_goes_down_the_chain(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """The first host gives it to the second; a second time nothing is sent to anybody."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(SIZE))
    targets = {host.address: str(host.home / "from-here") for host in lab}
    before = sent_bytes(lab)
    progress: list[tuple[str, int, int]] = []

    def on_bytes(host: str, done: int, total: int) -> None:
        progress.append((host, done, total))

    first = carried_out(lab, lambda ends: broadcast(ends, source, targets, on_bytes=on_bytes))
    assert [(item.received_bytes, item.error) for item in first] == [(SIZE, None)] * 2
    assert all(Path(path).read_bytes() == source.read_bytes() for path in targets.values())
    assert sent_bytes(lab)[0] - before[0] > SIZE, "the first host has given it on"
    assert {item for item in progress if item[1] == SIZE} == {
        (host.address, SIZE, SIZE) for host in lab
    }
    again = carried_out(lab, lambda ends: broadcast(ends, source, targets))
    assert [(item.received_bytes, item.error) for item in again] == [(0, None)] * 2


def test_a_folder_goes_from_one_host_to_the_others(lab: tuple[SshHost, ...]) -> None:
    """The source keeps its own; what stays behind does not travel."""
    folder = lab[0].home / "set"
    (folder / "cache").mkdir(parents=True)
    (folder / "cache" / "x").write_bytes(b"x")
    (folder / "images").write_bytes(os.urandom(1_500_000))
    (folder / "labels").write_bytes(b"")
    targets = {host.address: str(host.home / "set") for host in lab}
    source = HostFile(lab[0].address, str(folder))
    found = carried_out(lab, lambda ends: broadcast(ends, source, targets, leave_out=("cache",)))
    assert [(item.received_bytes, item.error) for item in found] == [(0, None), (1_500_000, None)]
    there = lab[1].home / "set"
    assert sorted(path.name for path in there.iterdir()) == ["images", "labels"]
    assert (there / "images").read_bytes() == (folder / "images").read_bytes()


def test_a_host_whose_peers_cannot_reach_it_is_served_from_here(
    lab: tuple[SshHost, ...], tmp_path: Path
) -> None:
    """A wrong private address costs the chain, and not the delivery."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(SIZE))
    targets = {host.address: str(host.home / "from-here-too") for host in lab}

    async def work(ends: Sequence[End]) -> tuple[Delivery, ...]:
        hidden = replace(ends[1], host=replace(ends[1].host, peer_address="127.0.0.1"))
        return await broadcast([ends[0], hidden], source, targets)

    found = carried_out(lab, work)
    require_delivered(found)
    assert all(Path(path).read_bytes() == source.read_bytes() for path in targets.values())


def test_every_host_that_fails_is_named(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """A host that cannot write says why, and the other one has it all the same."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(SIZE))
    good = lab[1].home / "good"
    targets = {lab[0].address: "/proc/no/such", lab[1].address: str(good)}
    found = carried_out(lab, lambda ends: broadcast(ends, source, targets))
    assert isinstance(found[0].error, StorageError)
    assert found[0].error.host == lab[0].address
    assert found[1].error is None
    assert good.read_bytes() == source.read_bytes()
    with pytest.raises(StorageError, match="/proc/no"):
        require_delivered(found)


def test_a_source_that_is_missing_is_an_error(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """Here or there, its path is named, and nothing is begun."""
    with pytest.raises(StorageError, match="none"):
        carried_out(lab, lambda ends: broadcast(ends, tmp_path / "none", "/tmp/x"))
    there = HostFile(lab[0].address, "/no/such/file")
    with pytest.raises((StorageError, TransportError), match="/no/such/file"):
        carried_out(lab, lambda ends: broadcast(ends, there, "/tmp/x"))
