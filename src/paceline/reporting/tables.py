"""A study as CSV: a tidy table of every rank of every sample, and the files of old habit.

The files of old habit are named `nnode-N_nproc-P_batch_size-B.csv`, have the header
`total,t0,t1,...` and one line per sample that counts. `total` is the run's wall time as we
measured it; `tK` is the time that rank K spent in epoch 0, as its script's `Epoch 0 took` line
has it: the whole epoch where the study ran whole epochs, else as far as the study let it run
(the tidy table says which, in `epoch0_complete`). A time that nobody knows is an empty cell.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from paceline.measure.costs import cost_per_epoch_usd, expected_epoch_s
from paceline.model.plan import TRAIT_AXES, Configuration
from paceline.model.summary import ConfigurationSummary, RankSample, Sample, StudySummary

Cell = str | int | float | bool | None

_CONFIGURATION_COLUMNS = ("nodes", "procs_per_node", "world_size", "batch_size")


def tidy_csv(summary: StudySummary) -> str:
    """Return one line per rank and sample; a sample without ranks has one line of its own."""
    rows = [
        _row(summary, item, sample, rank)
        for item in summary.configurations
        for sample in item.samples
        for rank in (sample.ranks or (None,))
    ]
    columns = list(dict.fromkeys(name for row in [_empty_row(summary), *rows] for name in row))
    return _csv(columns, ([row.get(name) for name in columns] for row in rows))


def configuration_files(summary: StudySummary) -> Mapping[str, str]:
    """Return the files of old habit by name, for every configuration with a sample that counts."""
    return {
        f"{item.configuration.label}.csv": _configuration_csv(item)
        for item in summary.configurations
        if item.good
    }


def _configuration_csv(item: ConfigurationSummary) -> str:
    ranks = range(item.configuration.world_size)
    rows = []
    for sample in item.good:
        times = {rank.rank: rank.first_epoch_s for rank in sample.ranks}
        rows.append([sample.wall_s, *(times.get(rank) for rank in ranks)])
    return _csv(["total", *(f"t{rank}" for rank in ranks)], rows)


def _empty_row(summary: StudySummary) -> dict[str, Cell]:
    """Return the columns in their order, those of arguments included, without any value."""
    item = ConfigurationSummary(Configuration(1, 1), is_baseline=False, planned=0, samples=())
    nothing = Sample("", "", item.configuration, 0, None)
    row = _row(summary, item, nothing, None)
    return dict.fromkeys(row)


def _row(
    summary: StudySummary, item: ConfigurationSummary, sample: Sample, rank: RankSample | None
) -> dict[str, Cell]:
    return {
        "study": summary.name,
        "sample_id": sample.sample_id,
        "run_id": sample.run_id,
        **_configuration_cells(summary, item.configuration),
        "baseline": item.is_baseline,
        "sample": sample.index,
        "state": "ok" if sample.failed is None else "failed",
        "failed": sample.failed,
        "started_at": sample.started_at,
        "unit": summary.unit,
        "wall_s": sample.wall_s,
        "items_per_s": sample.items_per_s,
        "iteration_s": sample.iteration_s,
        "epoch_s": sample.epoch_s,
        "expected_epoch_s": expected_epoch_s(sample),
        "usd_per_host_hour": sample.usd_per_host_hour,
        "cost_per_epoch_usd": cost_per_epoch_usd(sample),
        **_rank_cells(rank),
        **{f"metric.{name}": value for name, value in _metrics(sample, rank).items()},
    }


def _configuration_cells(summary: StudySummary, configuration: Configuration) -> dict[str, Cell]:
    names = dict.fromkeys(
        name for item in summary.configurations for name, _ in item.configuration.args
    )
    args = dict(configuration.args)
    values: dict[str, Cell] = {
        name: getattr(configuration, name) for name in _CONFIGURATION_COLUMNS
    }
    traits = {
        name: getattr(configuration, name)
        for name in TRAIT_AXES
        if any(getattr(item.configuration, name) is not None for item in summary.configurations)
    }
    return {**values, **traits, **{f"arg.{name}": args.get(name) for name in names}}


def _rank_cells(rank: RankSample | None) -> dict[str, Cell]:
    """Return what one rank measured; a rank that is not there has empty cells."""
    if rank is None:
        rank = RankSample(rank=-1, host="")
    there = rank.rank >= 0
    return {
        "rank": rank.rank if there else None,
        "host": rank.host or None,
        "rank_epoch0_s": rank.first_epoch_s,
        "epoch0_complete": rank.first_epoch_whole if rank.first_epoch_s is not None else None,
        "rank_epochs": len(rank.epoch_s) if there else None,
        "rank_iterations": len(rank.iteration_s) if there else None,
        "rank_warmup_iterations": len(rank.warmup_s) if there else None,
        "rank_iteration_s": fmean(rank.iteration_s) if rank.iteration_s else None,
        "rank_measured_s": sum(rank.iteration_s) if rank.iteration_s else None,
        "rank_items": rank.items,
        "rank_data_s": rank.data_s,
        "rank_wait_s": rank.wait_s,
    }


def _metrics(sample: Sample, rank: RankSample | None) -> Mapping[str, float]:
    return {**sample.metrics, **(rank.metrics if rank else {})}


def _csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: Cell) -> str:
    """Return a cell's text: empty for what is missing, microseconds for what was timed."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) >= _SMALL else repr(value)
    return str(value)


_SMALL = 1e-3
