"""What hosts and their links can do, measured by a small program before anything depends on it.

A study keeps it as `provenance["calibration"]`, in the form of `to_plain`; what was not measured
is None there, or missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class HostCalibration:
    """What one host can do; None was not measured, as without torch.

    `…_one` is one thread, `…_all` are `threads` threads, all at work at once. Memory counts the
    bytes that are read and those that are written.
    """

    threads: int
    fp32_gflops_one: float | None = None
    fp32_gflops_all: float | None = None
    bf16_gflops_one: float | None = None
    bf16_gflops_all: float | None = None
    memory_gb_per_s_one: float | None = None
    memory_gb_per_s_all: float | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class LinkCalibration:
    """What goes from one host to another over a single connection, and how long an answer takes."""

    source: str
    target: str
    gbit_per_s: float | None = None
    round_trip_ms: float | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class AllReduceTime:
    """How long all hosts, one rank each, take to add up a message of this size, over gloo."""

    size_bytes: int
    hosts: int
    seconds: float


@dataclass(frozen=True)
class Calibration:
    """All of it, by the hosts' names, and when it was measured (Unix seconds)."""

    measured_at: float
    hosts: Mapping[str, HostCalibration] = field(default_factory=dict)
    links: tuple[LinkCalibration, ...] = ()
    all_reduce: tuple[AllReduceTime, ...] = ()
    trouble: str | None = None


def to_plain(calibration: Calibration) -> dict[str, Any]:
    """Return it as JSON data."""
    return asdict(calibration)


def from_plain(data: Mapping[str, Any]) -> Calibration:
    """Read it from JSON data; what a newer version has added is passed over."""
    return Calibration(
        measured_at=float(data["measured_at"]),
        hosts={name: _read(HostCalibration, item) for name, item in data["hosts"].items()},
        links=tuple(_read(LinkCalibration, item) for item in data.get("links", ())),
        all_reduce=tuple(_read(AllReduceTime, item) for item in data.get("all_reduce", ())),
        trouble=data.get("trouble"),
    )


def _read(noun: Any, data: Mapping[str, Any]) -> Any:
    known = {item.name for item in fields(noun)}
    return noun(**{name: value for name, value in data.items() if name in known})
