"""Hosts compared: what keeps one from taking part, and what is only odd."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import replace

import pytest

from paceline.app.alike import ClockOffset, clock_offsets, host_faults, python_differences
from paceline.app.doctor import check_alike, check_clocks
from paceline.app.pairs import End
from paceline.model.host import Gpu, Host, HostFacts
from paceline.transports.local import LocalTransport

PLAIN = HostFacts("h", cores=2, python_version="3.11.7", disk_free_bytes=10 * 2**30)
WITH_GPU = replace(PLAIN, gpus=(Gpu("A10G"),))


def test_hosts_that_are_alike_have_no_fault() -> None:
    """Whether all of them have GPUs or none."""
    assert host_faults({"a": PLAIN, "b": PLAIN}, ours=True) == ()
    assert host_faults({"a": WITH_GPU, "b": WITH_GPU}, ours=True) == ()


def test_a_host_without_a_gpu_among_others_is_named() -> None:
    """Its ranks would speak gloo, and theirs NCCL; a command of the user's may know better."""
    (fault,) = host_faults({"a": WITH_GPU, "b": PLAIN}, ours=True)
    assert (fault.host, "no GPU" in fault.text) == ("b", True)
    assert host_faults({"a": WITH_GPU, "b": PLAIN}, ours=False) == ()


def test_a_full_disk_is_named() -> None:
    """A host without room for the logs of a run is told of before the run; unknown is no fault."""
    full = replace(PLAIN, disk_free_bytes=42 * 2**20)
    unknown = replace(PLAIN, disk_free_bytes=None)
    (fault,) = host_faults({"a": PLAIN, "b": full, "c": unknown}, ours=False)
    assert (fault.host, fault.text) == ("b", "its disk is full: 42 MiB are free")


def test_pythons_are_compared_by_their_minor_version() -> None:
    """A patch release is no difference."""
    others = {"b": "3.11.2", "c": "3.12.0"}
    facts = {"a": PLAIN, **{k: replace(PLAIN, python_version=v) for k, v in others.items()}}
    assert python_differences(facts) == {"c": "3.12.0"}
    (check,) = check_alike(facts)
    assert (check.name, check.status) == ("c: python", "warn")
    assert check.detail == "3.12.0, and 3.11.7 on a"


@pytest.mark.parametrize(
    ("offset", "status", "words"),
    [
        (ClockOffset(0.02, 0.05), "ok", "within 0.05 s"),
        (ClockOffset(12.3, 0.1), "warn", "12.3 s ahead of ours"),
        (ClockOffset(-3.0, 0.1), "warn", "3.0 s behind ours"),
        (ClockOffset(3.0, 2.9), "ok", "within 3.00 s"),
        (None, "warn", "it could not be asked for the time"),
    ],
)
def test_a_clock_is_judged_by_what_is_sure(
    offset: ClockOffset | None, status: str, words: str
) -> None:
    """A slow answer is no reason to blame the clock."""
    (check,) = check_clocks({"a": offset})
    assert (check.status, check.detail) == (status, words)


def test_our_own_clock_is_right() -> None:
    """A host is asked for its time, and the offset is known as well as the answer was quick."""
    host = Host("h", "127.0.0.1", "127.0.0.1")
    end = End(host, LocalTransport(host), PLAIN, sys.executable, None)
    begun = time.monotonic()
    offset = asyncio.run(clock_offsets([end]))["h"]
    assert offset is not None
    assert offset.surely_s == 0.0
    assert 0 < offset.within_s <= time.monotonic() - begun
