"""Runs -> samples: what one run measured, or why it does not count.

All figures leave out the first `warmup` iterations of every rank; those are kept beside them.

`items_per_s` is what all ranks worked through, over the time of the slowest rank's measured
iterations. In synchronous training every step waits for every rank, so the ranks' totals are
all but equal, and the largest is the time that passed. (The sum of each step's slowest rank
would count twice what one rank lost and another waited for; adding up the ranks' own rates would
hide a rank that was waited for.) A last, partial batch counts here with its items and its time.

`iteration_s` is the mean over ranks of their mean iteration, partial batches left out: they are
quicker, and would make short runs look better than long ones.

`epoch_s` is the slowest rank's time for a whole epoch, the mean over the epochs that all ranks
completed. An epoch that was cut short is not an epoch.

`wall_s` is measured by us from start to end, all attempts and all set-up included. It is the
only figure of a job that reports nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from paceline.events import Event
from paceline.measure.ranks import RankReading, broke_off, read_rank
from paceline.model.record import RunRecord, RunState
from paceline.model.summary import RankSample, Sample

# What a job does between its iterations is mentioned from this share of the measured time on.
_GAP_WORTH_A_NOTE = 0.05
_MOST_NOTES_OF_A_JOB = 10
_HOW_TO_END = "a reporter is ended by `end()` or by `with Reporter()`"


def sample_from_events(
    run: RunRecord,
    events: Mapping[int, Iterable[str | Event]],
    *,
    warmup: int = 0,
    hosts: Mapping[int, str] | None = None,
) -> Sample:
    """Return what a run measured, from the lines (or events) of each of its ranks.

    `hosts` names the host of each rank; by default the run's hosts in blocks of equal size. A
    rank without lines counts as silent. If all are silent, the run is measured from outside.
    """
    names = rank_hosts(run) if hosts is None else hosts
    readings = {
        rank: reading
        for rank, lines in sorted(events.items())
        if (reading := read_rank(rank, lines, warmup=warmup, host=names.get(rank))) is not None
    }
    outside = _from_outside(run)
    if not readings:
        return outside
    problem = outside.failed or _problem(run, readings)
    sample = replace(outside, failed=problem, notes=_notes(readings, warmup))
    return with_ranks(sample, [reading.sample for reading in readings.values()])


def with_ranks(sample: Sample, ranks: Sequence[RankSample]) -> Sample:
    """Return the sample with these ranks and the figures that follow; none if it failed."""
    sample = replace(sample, ranks=tuple(ranks))
    if sample.failed is not None:
        return sample
    return replace(
        sample,
        items_per_s=throughput(ranks),
        iteration_s=mean_iteration_s(ranks),
        epoch_s=mean_epoch_s(ranks),
    )


def throughput(ranks: Sequence[RankSample]) -> float | None:
    """Return the items of all ranks over the slowest rank's measured time."""
    items = [rank.items for rank in ranks if rank.items is not None]
    if not ranks or len(items) < len(ranks):
        return None
    slowest_s = max(math.fsum(rank.iteration_s) for rank in ranks)
    return sum(items) / slowest_s if slowest_s > 0 else None


def mean_iteration_s(ranks: Sequence[RankSample]) -> float | None:
    """Return the mean over ranks of the mean iteration, partial batches left out."""
    means = [fmean(times) for rank in ranks if (times := full_iterations_s(rank))]
    return fmean(means) if means and len(means) == len(ranks) else None


def full_iterations_s(rank: RankSample) -> tuple[float, ...]:
    """Return the measured iterations of a rank that had a full batch."""
    return tuple(
        seconds for index, seconds in enumerate(rank.iteration_s) if index not in rank.partial
    )


def mean_epoch_s(ranks: Sequence[RankSample]) -> float | None:
    """Return the mean over whole epochs of the slowest rank's time for them."""
    # In the output of many scripts only rank 0 tells its epochs: it speaks for those that wait.
    told = [rank.epoch_s for rank in ranks if rank.epoch_s]
    slowest = [max(times) for times in zip(*told, strict=False)]
    return fmean(slowest) if slowest else None


def rank_hosts(run: RunRecord) -> dict[int, str]:
    """Return the host of each rank where the run's hosts hold equal blocks of ranks."""
    per_node = run.configuration.procs_per_node
    if len(run.hosts) != run.configuration.nodes:
        return {}
    return {rank: run.hosts[rank // per_node] for rank in range(run.configuration.world_size)}


def _from_outside(run: RunRecord) -> Sample:
    """Return what the run's record alone tells: its wall time and its outcome."""
    failed = _outcome_problem(run)
    price = run.provenance.get("price")
    told = price if isinstance(price, Mapping) else {}
    notes = () if failed else ("the job reported no events: its wall time is all there is",)
    return Sample(
        sample_id=run.sample_id or run.run_id,
        run_id=run.run_id,
        configuration=run.configuration,
        index=run.sample_index or 0,
        wall_s=run.wall_s,
        failed=failed,
        started_at=run.started_at,
        notes=notes,
        usd_per_host_hour=told.get("usd_per_host_hour"),
        price_source=told.get("source"),
    )


def _outcome_problem(run: RunRecord) -> str | None:
    if run.state is RunState.SUCCEEDED:
        return None
    if run.failure is not None:
        return run.failure.reason
    return f"the run is {run.state.value}" if run.state.ended else "the run has not ended"


def _problem(run: RunRecord, readings: Mapping[int, RankReading]) -> str | None:
    """Return the first reason why the ranks' reports do not make a sample."""
    world_size = run.configuration.world_size
    silent = [rank for rank in range(world_size) if rank not in readings]
    if silent:
        names = ", ".join(str(rank) for rank in silent)
        return f"of {world_size} ranks, these reported nothing: {names}"
    problems = [
        *(reading.problem for reading in readings.values() if reading.problem is not None),
        *_broken_off(readings),
        *_disagreements(world_size, readings),
    ]
    return problems[0] if problems else None


def _broken_off(readings: Mapping[int, RankReading]) -> list[str]:
    """Return which ranks said no end and cannot be taken to have come to one.

    This is asked only of runs whose processes all exited with 0. Many a script forgets to end
    its reporter: it counts where all ranks reported the same number of iterations.
    """
    counts = {reading.iterations for reading in readings.values()}
    return [
        f"{broke_off(rank, reading)}; its exit code was 0: {_HOW_TO_END}"
        for rank, reading in readings.items()
        if not reading.ended and (len(counts) > 1 or counts == {0})
    ]


def _disagreements(world_size: int, readings: Mapping[int, RankReading]) -> list[str]:
    """Return where ranks that ended well did not take part in one and the same training."""
    latest = max(reading.attempt for reading in readings.values())
    problems = []
    for rank, reading in readings.items():
        if reading.world_size not in (None, world_size):
            problems.append(
                f"rank {rank} trained in a world of {reading.world_size}, not {world_size}: "
                "the processes did not find each other"
            )
        elif reading.attempt < latest:
            problems.append(f"rank {rank} did not take part in the last attempt ({latest + 1})")
        elif rank >= world_size:
            problems.append(f"rank {rank} is one more than the {world_size} that were started")
    return problems


def _notes(readings: Mapping[int, RankReading], warmup: int) -> tuple[str, ...]:
    """Return what a reader of the figures should know, ours first, then the job's own notes."""
    ours = [
        *_attempt_notes(readings),
        *_end_notes(readings),
        *_count_notes(readings, warmup),
        *_gap_notes(readings),
    ]
    said = [note for reading in readings.values() for note in reading.notes]
    theirs = [f"the job says: {note}" for note in dict.fromkeys(said)]
    return (*ours, *theirs[:_MOST_NOTES_OF_A_JOB])


def _attempt_notes(readings: Mapping[int, RankReading]) -> list[str]:
    attempts = max(reading.attempts for reading in readings.values())
    if attempts == 1:
        return []
    text = "the last attempt is what counts, and the wall time includes them all"
    return [f"the ranks were started {attempts} times: {text}"]


def _end_notes(readings: Mapping[int, RankReading]) -> list[str]:
    return [
        f"rank {rank} did not say that it ended; its exit code was 0 ({_HOW_TO_END})"
        for rank, reading in readings.items()
        if not reading.ended
    ]


def _count_notes(readings: Mapping[int, RankReading], warmup: int) -> list[str]:
    notes = []
    samples = [reading.sample for reading in readings.values()]
    measured = [len(sample.iteration_s) for sample in samples]
    if max(measured) == 0 and any(sample.warmup_s for sample in samples):
        notes.append(
            f"no iteration was left after the warm-up of {warmup}: measure more iterations"
        )
    if min(measured) != max(measured):
        notes.append(
            f"the ranks measured different numbers of iterations: {min(measured)} to "
            f"{max(measured)}"
        )
    if max(measured) and any(sample.items is None for sample in samples):
        notes.append("not every iteration says how many items it had: there is no throughput")
    return notes


def _gap_notes(readings: Mapping[int, RankReading]) -> list[str]:
    """Tell of time between the iterations, which their own durations do not show."""
    rank, reading = max(readings.items(), key=lambda pair: math.fsum(pair[1].sample.iteration_s))
    inside_s = math.fsum(reading.sample.iteration_s)
    if reading.span_s is None or inside_s <= 0:
        return []
    share = reading.span_s / inside_s - 1
    if share < _GAP_WORTH_A_NOTE:
        return []
    what = "(checkpoints, pictures, evaluation): throughput leaves that out"
    return [f"between its iterations, rank {rank} spent another {share:.0%} of their time {what}"]
