"""What hosts and their links can do, as tables."""

from __future__ import annotations

from paceline.cli import show
from paceline.model.calibration import Calibration


def calibration_text(found: Calibration) -> str:
    """Return a calibration for people; what was not measured is an empty cell."""
    head = ("HOST", "THREADS", "FP32 GFLOP/S", "BF16 GFLOP/S", "MEMORY GB/S")
    rows = [head]
    for name, host in found.hosts.items():
        pairs = (
            _pair(host.fp32_gflops_one, host.fp32_gflops_all),
            _pair(host.bf16_gflops_one, host.bf16_gflops_all),
            _pair(host.memory_gb_per_s_one, host.memory_gb_per_s_all),
        )
        rows.append((name, str(host.threads), *pairs))
    parts = [show.columns(rows) + "\n(by one thread / by all)"]
    if found.links:
        lines = [("FROM", "TO", "GBIT/S", "ROUND TRIP MS")]
        for link in found.links:
            figures = (_cell(link.gbit_per_s, 2), _cell(link.round_trip_ms, 3))
            lines.append((link.source, link.target, *figures))
        parts.append(show.columns(lines))
    if found.all_reduce:
        times = [("ALL-REDUCE", "HOSTS", "MS")]
        for item in found.all_reduce:
            size = f"{item.size_bytes / 1024:,.0f} KiB"
            times.append((size, str(item.hosts), _cell(item.seconds * 1e3, 2)))
        parts.append(show.columns(times))
    troubles = [(name, host.trouble) for name, host in found.hosts.items()]
    troubles += [(f"{link.source} to {link.target}", link.trouble) for link in found.links]
    troubles += [("all hosts", found.trouble)]
    parts += [f"{name}: {trouble}" for name, trouble in troubles if trouble]
    return "\n\n".join(parts)


def _pair(one: float | None, every: float | None) -> str:
    return "" if one is None and every is None else f"{_cell(one, 1)} / {_cell(every, 1)}"


def _cell(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
