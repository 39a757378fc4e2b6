"""Figures read off the output of scripts that were not changed for us."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import UsageError
from paceline.events import End, Epoch, Start
from paceline.measure.extract import Extracted, ProcessLog, compile_extractors, extract
from paceline.measure.extract import with_extracted as apply
from paceline.measure.samples import sample_from_events
from paceline.model.plan import Configuration
from paceline.model.record import RunRecord, RunState
from paceline.model.summary import Sample

EPOCHS = {"epoch_s": r"Epoch \d+ took: ([\d.]+)"}
WITH_RANK = {"epoch_s": r"\[rank: (?P<rank>\d+)\] Epoch \d+ took: (?P<value>[\d.]+)"}


def _run(procs: int = 2) -> RunRecord:
    return RunRecord(
        run_id="r1",
        kind="study",
        state=RunState.SUCCEEDED,
        configuration=Configuration(1, procs),
        folder=Path("r1"),
        created_at=0.0,
        wall_s=400.0,
    )


def _silent(procs: int = 2) -> Sample:
    return sample_from_events(_run(procs), {})


def test_each_process_has_its_own_log() -> None:
    """A log of one rank needs no rank in its lines."""
    logs = [
        ProcessLog((0,), ["Epoch 0 took: 177.0070 seconds", "Epoch 1 took: 175 seconds"]),
        ProcessLog((1,), ["noise", "[rank: 1] Epoch 0 took: 178.5 seconds"]),
    ]
    found = extract(EPOCHS, logs)
    assert found == Extracted({0: {"epoch_s": (177.007, 175.0)}, 1: {"epoch_s": (178.5,)}})


def test_rank_is_read_from_the_line_where_ranks_share_a_log() -> None:
    """The line that the seeds' scripts look for tells its rank itself."""
    log = ProcessLog(
        (0, 1), ["[rank: 1] Epoch 0 took: 178.5 seconds", "[rank: 0] Epoch 0 took: 177.0 seconds"]
    )
    assert extract(WITH_RANK, [log]).ranks == {1: {"epoch_s": (178.5,)}, 0: {"epoch_s": (177.0,)}}


def test_shared_log_without_ranks_belongs_to_the_run() -> None:
    """Nobody guesses a rank: the value is the run's, and still makes the epoch time."""
    found = extract(EPOCHS, [ProcessLog((0, 1), ["Epoch 0 took: 177.0 seconds"])])
    assert (found.ranks, found.run) == ({}, {"epoch_s": (177.0,)})
    assert apply(_silent(), found).epoch_s == 177.0


def test_found_epochs_become_those_of_the_ranks() -> None:
    """The sample's epoch is the slowest rank's, and each rank's epoch 0 is known."""
    log = ProcessLog((0, 1), [f"[rank: {rank}] Epoch 0 took: {170 + rank}.5 s" for rank in (0, 1)])
    sample = apply(_silent(), extract(WITH_RANK, [log]), hosts={0: "a", 1: "b"})
    assert sample.epoch_s == 171.5
    assert [(rank.host, rank.first_epoch_s) for rank in sample.ranks] == [
        ("a", 170.5),
        ("b", 171.5),
    ]
    assert all(rank.first_epoch_whole for rank in sample.ranks)


def test_iterations_found_lose_their_warmup() -> None:
    """Iteration times that a script prints are treated like those that ranks report."""
    lines = [f"step {index}: {seconds} s" for index, seconds in enumerate([9.0, 2.0, 4.0])]
    found = extract({"iteration_s": r"step \d+: ([\d.]+) s"}, [ProcessLog((0,), lines)])
    sample = apply(_silent(1), found, warmup=1)
    assert sample.ranks[0].warmup_s == (9.0,)
    assert sample.iteration_s == 3.0


def test_throughput_counts_only_if_one_voice_says_it() -> None:
    """If two ranks print a rate, it may be their own or everybody's: so it is not used."""
    rates = {"items_per_s": r"([\d.]+) img/s"}
    one = extract(rates, [ProcessLog((0,), ["120 img/s", "130 img/s"]), ProcessLog((1,), [])])
    two = extract(rates, [ProcessLog((rank,), ["120 img/s"]) for rank in (0, 1)])
    assert apply(_silent(), one).items_per_s == 125.0
    assert apply(_silent(), two).items_per_s is None


def test_other_names_are_metrics_and_the_last_counts() -> None:
    """An extractor of any other name makes a metric of the rank, or of the run."""
    patterns = {"loss": r"loss=([-\d.e]+)"}
    ranked = apply(_silent(1), extract(patterns, [ProcessLog((0,), ["loss=2", "loss=1.5e-1"])]))
    shared = apply(_silent(), extract(patterns, [ProcessLog((0, 1), ["loss=2", "loss=1"])]))
    assert ranked.ranks[0].metrics == {"loss": 0.15}
    assert shared.metrics == {"loss": 1.0}


def test_what_ranks_report_takes_precedence() -> None:
    """An extractor fills gaps; it does not overrule a rank's own events."""
    events = [
        Start(rank=0, t=0.0),
        Epoch(rank=0, t=5.0, epoch=0, seconds=5.0),
        End(rank=0, t=5.0),
    ]
    sample = sample_from_events(_run(1), {0: events})
    found = extract(EPOCHS, [ProcessLog((0,), ["Epoch 0 took: 9.0"])])
    assert apply(sample, found).epoch_s == 5.0


def test_extractor_that_finds_nothing_is_named() -> None:
    """A pattern that never matches leaves a note instead of silence."""
    sample = apply(_silent(), extract(EPOCHS, [ProcessLog((0,), ["nothing to see"])]))
    assert sample.notes[-1] == "the extractor 'epoch_s' found nothing in the output"


@pytest.mark.parametrize("text", ["soon", "nan", "inf", "1.2.3"])
def test_what_is_not_a_number_is_named_and_left_out(text: str) -> None:
    """A match that is no finite number is never a measurement."""
    found = extract({"epoch_s": "took (.*)"}, [ProcessLog((0,), [f"took {text}"])])
    assert found.ranks == {}
    assert found.notes == (f"the extractor 'epoch_s' found {text!r}, which is not a number",)


def test_value_without_groups_is_the_whole_match() -> None:
    """A pattern without a group yields what it matched; a lone `rank` group is not the value."""
    assert extract({"a": r"\d+"}, [ProcessLog((0,), ["x 12 y"])]).ranks == {0: {"a": (12.0,)}}
    pattern = {"a": r"r(?P<rank>\d)=(\d+)"}
    assert extract(pattern, [ProcessLog((), ["r3=12"])]).ranks == {3: {"a": (12.0,)}}


def test_bad_expression_is_a_usage_error_with_its_name() -> None:
    """A broken pattern is reported by name, with what to mend."""
    with pytest.raises(UsageError, match="extractor 'epoch_s' is not a regular") as caught:
        compile_extractors({"epoch_s": "(["})
    assert caught.value.hint is not None


def test_failed_sample_gets_no_figures_from_its_log() -> None:
    """What a failed run printed is kept with its ranks and makes no figure."""
    run = _run(1)
    failed = sample_from_events(run, {0: [Start(rank=0, t=0.0)]})
    found = extract(EPOCHS, [ProcessLog((0,), ["Epoch 0 took: 9.0"])])
    sample = apply(failed, found)
    assert sample.failed is not None
    assert sample.epoch_s is None
    assert sample.ranks[0].epoch_s == (9.0,)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.001, 1e5)), max_size=20))
def test_values_keep_their_order_and_rank(said: list[tuple[int, float]]) -> None:
    """Whatever the interleaving, each rank's values come back in the order it said them."""
    lines = [f"[rank: {rank}] Epoch 0 took: {seconds:.6f} s" for rank, seconds in said]
    found = extract(WITH_RANK, [ProcessLog((0, 1, 2, 3), lines)])
    for rank in range(4):
        expected = tuple(float(f"{seconds:.6f}") for who, seconds in said if who == rank)
        assert found.ranks.get(rank, {}).get("epoch_s", ()) == expected
