"""Calibration: links in waves, figures from real hosts, and nothing measured twice in a sitting."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.app.calibration import SITTING_S, calibration_of, key_of, measure, waves_of
from paceline.app.pairs import End
from paceline.model.calibration import Calibration
from paceline.model.host import Host, HostFacts
from paceline.rehearsal.hosts import SshHost
from paceline.store.calibrations import CalibrationFiles
from paceline.transports.local import LocalTransport
from paceline.transports.ssh import SshTransport
from tests.lab import host_noun, no_keys

SOURCE = str(Path(__file__).parents[3] / "src")
FACTS = HostFacts("h", cores=1)


def local_end(name: str = "h") -> End:
    """Return this machine as the end of a link, without torch."""
    host = Host(name, "127.0.0.1", "127.0.0.1")
    return End(host, LocalTransport(host), FACTS, sys.executable, SOURCE)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 64])
def test_no_host_measures_two_links_at_once(count: int) -> None:
    """Every link of the ring is in one wave, and no host is twice in any."""
    waves = waves_of(count)
    links = [link for wave in waves for link in wave]
    assert sorted(links) == [(i, (i + 1) % count) for i in range(count) if count > 1]
    for wave in waves:
        places = [place for link in wave for place in link]
        assert len(places) == len(set(places))
    assert len(waves) <= 3


def test_hosts_without_torch_have_their_memory_and_links_measured() -> None:
    """What needs no torch is measured, what does is left open, and the reason is told."""
    found = asyncio.run(measure([local_end("a"), local_end("b")], 1, 5.0))
    assert found.measured_at == 5.0
    assert all((item.memory_gb_per_s_one or 0) > 0 for item in found.hosts.values())
    assert [item.fp32_gflops_one for item in found.hosts.values()] == [None, None]
    assert [(link.source, link.target) for link in found.links] == [("a", "b"), ("b", "a")]
    assert all((link.gbit_per_s or 0) > 0 and link.trouble is None for link in found.links)
    assert found.all_reduce == ()
    assert "torch" in str(found.trouble)


def test_a_sitting_measures_once(tmp_path: Path) -> None:
    """What this sitting has measured is taken again; later, on request or elsewhere it is not."""
    ends, kept = [local_end()], CalibrationFiles(tmp_path)
    old = Calibration(1000.0)
    kept.keep(key_of(ends), old)

    def found(now: float, *, anew: bool = False) -> Calibration:
        return asyncio.run(calibration_of(ends, 1, kept, now, anew=anew))

    assert found(1000.0 + SITTING_S - 1) == old
    assert found(1000.0 + SITTING_S).measured_at == 1000.0 + SITTING_S
    assert found(2000.0, anew=True).measured_at == 2000.0
    assert key_of([replace(ends[0], facts=HostFacts("h", cores=2))]) != key_of(ends)


@pytest.mark.e2e
@pytest.mark.torch
def test_hosts_are_calibrated_over_their_own_links(lab: tuple[SshHost, ...]) -> None:
    """Real hosts: products, memory, links both ways, and an all-reduce over both."""

    async def look() -> Calibration:
        async with AsyncExitStack() as stack:
            ends = []
            for host in (host_noun(item) for item in lab):
                link = SshTransport(host, no_keys(lab[0].folder))
                stack.push_async_callback(link.close)
                facts = HostFacts("h", cores=2, torch_version="2", interface="eth0")
                ends.append(End(host, link, facts, sys.executable, SOURCE))
            return await measure(ends, 23457, 0.0)

    found = asyncio.run(look())
    assert found.trouble is None
    for host in found.hosts.values():
        assert host.trouble is None
        assert min(host.fp32_gflops_one or 0, host.bf16_gflops_all or 0) > 0
    assert [link.trouble for link in found.links] == [None, None]
    assert [item.hosts for item in found.all_reduce] == [2, 2, 2]
    assert all(item.seconds > 0 for item in found.all_reduce)
