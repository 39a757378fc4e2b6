"""From the events of ranks to a sample: figures, and the reasons why a run does not count."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.events import End, Epoch, Event, Iteration, Metric, Note, Start
from paceline.measure.samples import rank_hosts, sample_from_events
from paceline.model.plan import Configuration
from paceline.model.record import Failure, RunRecord, RunState

DATA = Path(__file__).parents[2] / "data"


def _run(
    procs: int = 1, *, nodes: int = 1, state: RunState = RunState.SUCCEEDED, **more: object
) -> RunRecord:
    values: dict[str, object] = {
        "run_id": "r1",
        "kind": "study",
        "folder": Path("r1"),
        "created_at": 1.0,
        "wall_s": 30.0,
        "sample_id": "s1",
        "sample_index": 2,
        **more,
    }
    return RunRecord(state=state, configuration=Configuration(nodes, procs, 16), **values)  # type: ignore[arg-type]


def _rank(
    rank: int,
    seconds: list[float],
    *,
    world_size: int = 1,
    items: int | None = 16,
    last: int | None = None,
    of: int | None = None,
    end: str | None = "ok",
    attempt: int = 0,
) -> list[Event]:
    """Return the events of a rank whose iterations took these times, one after the other."""
    made: list[Event] = [
        Start(rank=rank, t=0.0, world_size=world_size, host="here", attempt=attempt)
    ]
    clock = 0.0
    for index, value in enumerate(seconds):
        clock += value
        count = last if last is not None and index == len(seconds) - 1 else items
        made.append(Iteration(rank=rank, t=clock, index=index, of=of, seconds=value, items=count))
    if end is not None:
        made.append(End(rank=rank, t=clock, status=end, error="boom" if end == "failed" else None))
    return made


def _line(event: Event) -> str:
    return json.dumps({"kind": event.kind, **vars(event)})


def test_throughput_is_all_items_over_the_slowest_rank() -> None:
    """Two ranks with 32 items in 4.0 and 4.1 s make 64 items in 4.1 s."""
    sample = sample_from_events(
        _run(2),
        {0: _rank(0, [2.0, 2.0], world_size=2), 1: _rank(1, [2.0, 2.1], world_size=2)},
    )
    assert sample.failed is None
    assert sample.items_per_s == pytest.approx(64 / 4.1)
    assert sample.iteration_s == pytest.approx((2.0 + 2.05) / 2)
    assert (sample.sample_id, sample.run_id, sample.index) == ("s1", "r1", 2)


def test_warmup_is_left_out_and_kept() -> None:
    """The first iterations count in no figure, and stay readable."""
    sample = sample_from_events(_run(), {0: _rank(0, [9.0, 5.0, 1.0, 1.0])}, warmup=2)
    rank = sample.ranks[0]
    assert rank.warmup_s == (9.0, 5.0)
    assert rank.iteration_s == (1.0, 1.0)
    assert rank.items == 32
    assert sample.items_per_s == pytest.approx(16.0)


def test_partial_last_batch_counts_in_throughput_only() -> None:
    """A last batch of 4 in a quarter of the time does not make the mean iteration look faster."""
    sample = sample_from_events(_run(), {0: _rank(0, [1.0, 1.0, 0.25], last=4, of=3)})
    assert sample.ranks[0].partial == (2,)
    assert sample.iteration_s == pytest.approx(1.0)
    assert sample.items_per_s == pytest.approx(36 / 2.25)


def test_batches_that_differ_by_nature_all_count() -> None:
    """Where the number of items varies all the time, only the last of an epoch is left out."""
    events: list[Event] = [Start(rank=0, t=0.0)]
    for index, (seconds, items) in enumerate([(1.0, 90), (3.0, 120), (2.0, 100), (0.1, 5)]):
        events.append(Iteration(rank=0, t=0.0, index=index, seconds=seconds, items=items))
    sample = sample_from_events(_run(), {0: [*events, End(rank=0, t=9.0)]})
    assert sample.iteration_s == pytest.approx(2.0)


def test_job_that_reports_nothing_is_measured_from_outside() -> None:
    """A silent job that succeeded is a sample of its wall time and nothing else."""
    sample = sample_from_events(_run(2), {0: [], 1: ["", "\n"]})
    assert (sample.failed, sample.wall_s, sample.ranks) == (None, 30.0, ())
    assert sample.items_per_s is None
    assert "wall time is all there is" in sample.notes[0]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ({0: _rank(0, [1.0], world_size=2)}, "of 2 ranks, these reported nothing: 1"),
        (
            {0: _rank(0, [1.0], world_size=2), 1: _rank(1, [1.0, 1.0], world_size=2, end=None)},
            (
                "rank 1 broke off without an end, after 2 iterations; its exit code was 0: "
                "a reporter is ended by `end()` or by `with Reporter()`"
            ),
        ),
        (
            {0: _rank(0, [1.0], world_size=2), 1: _rank(1, [1.0], world_size=2, end="failed")},
            "rank 1 failed: boom",
        ),
        (
            {0: _rank(0, [1.0], world_size=2), 1: _rank(1, [1.0], world_size=2, end="stopped")},
            "rank 1 was stopped after 1 iteration",
        ),
        (
            {0: _rank(0, [1.0]), 1: _rank(1, [1.0])},
            "rank 0 trained in a world of 1, not 2: the processes did not find each other",
        ),
        (
            {0: _rank(0, [1.0], world_size=2, attempt=1), 1: _rank(1, [1.0], world_size=2)},
            "rank 1 did not take part in the last attempt (2)",
        ),
        (
            {rank: _rank(rank, [1.0], world_size=2) for rank in range(3)},
            "rank 2 is one more than the 2 that were started",
        ),
        (
            {0: _rank(0, [1.0], world_size=2), 1: [Start(rank=1, t=0.0, schema=99)]},
            "rank 1 reports events of schema 99, newer than this program",
        ),
    ],
)
def test_reasons_why_a_run_does_not_count(events: dict[int, list[Event]], reason: str) -> None:
    """Each way in which the ranks can disappoint is a failed sample that says so."""
    sample = sample_from_events(_run(2), events)
    assert sample.failed == reason
    assert sample.items_per_s is None
    assert sample.wall_s == 30.0


def test_ranks_that_forgot_to_say_their_end_count() -> None:
    """A script without `with` and `end()` is measured all the same, and told how to do better."""
    events = {rank: _rank(rank, [1.0, 1.0], world_size=2, end=None) for rank in (0, 1)}
    sample = sample_from_events(_run(2), events)
    assert (sample.failed, sample.items_per_s) == (None, 32.0)
    assert sample.notes[0].startswith("rank 0 did not say that it ended; its exit code was 0")
    stopped = sample_from_events(_run(2, state=RunState.STOPPED), events)
    assert stopped.failed == "the run is stopped"


def test_rank_that_said_nothing_but_hello_broke_off() -> None:
    """A start without any iteration and without an end measures nothing."""
    sample = sample_from_events(_run(), {0: [Start(rank=0, t=0.0)]})
    assert sample.failed is not None
    assert sample.failed.startswith("rank 0 broke off without an end, after 0 iterations")


@pytest.mark.parametrize("line", ["{", "garbage", "\x00", '{"kind": []}', "[" * 5000])
def test_file_that_holds_garbage_alone_is_no_silence(line: str) -> None:
    """Bytes that are no event make a failed sample, not one that is measured from outside."""
    sample = sample_from_events(_run(), {0: [line, ""]})
    assert sample.failed == "rank 0 broke off in the middle of a line, after 0 iterations"


def test_failed_run_gives_its_own_reason_and_keeps_the_raw_times() -> None:
    """The record's reason comes before ours, and what was measured stays readable."""
    run = _run(state=RunState.FAILED, failure=Failure("rank0 was killed by signal 9"))
    sample = sample_from_events(run, {0: _rank(0, [1.0, 1.1], end=None)})
    assert sample.failed == "rank0 was killed by signal 9"
    assert sample.ranks[0].iteration_s == (1.0, 1.1)
    assert sample.items_per_s is None


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (RunState.STOPPED, "the run is stopped"),
        (RunState.LOST, "the run is lost"),
        (RunState.RUNNING, "the run has not ended"),
    ],
)
def test_run_that_did_not_succeed_is_never_a_measurement(state: RunState, reason: str) -> None:
    """Without a failure on record, the state itself is the reason."""
    assert sample_from_events(_run(state=state), {0: _rank(0, [1.0])}).failed == reason


def test_unreadable_line_is_named() -> None:
    """A broken line in the middle of a rank's file makes the sample fail, not the program."""
    lines = [_line(event) for event in _rank(0, [1.0, 1.0])]
    sample = sample_from_events(_run(), {0: [lines[0], "{broken", *lines[1:]]})
    assert sample.failed is not None
    assert sample.failed.startswith("the events of rank 0 are unreadable")


def test_last_attempt_counts_and_a_note_says_so() -> None:
    """After a restart only the last attempt's iterations are measured."""
    events = [*_rank(0, [5.0, 5.0, 5.0], end=None), *_rank(0, [1.0, 1.0], attempt=1)]
    sample = sample_from_events(_run(), {0: events})
    assert sample.failed is None
    assert sample.ranks[0].iteration_s == (1.0, 1.0)
    assert sample.notes[0].startswith("the ranks were started 2 times")


def test_whole_epochs_and_the_slowest_rank() -> None:
    """The epoch's time is the slowest rank's; both ranks keep their own."""
    events = {
        rank: [
            *_rank(rank, [1.0, 1.0], world_size=2, of=2, end=None),
            Epoch(rank=rank, t=3.0, epoch=0, seconds=2.5 + rank, iterations=2),
            End(rank=rank, t=3.0),
        ]
        for rank in (0, 1)
    }
    sample = sample_from_events(_run(2), events)
    assert sample.epoch_s == 3.5
    assert [rank.epoch_s for rank in sample.ranks] == [(2.5,), (3.5,)]
    assert all(rank.first_epoch_whole for rank in sample.ranks)


def test_epoch_that_was_cut_short_is_no_epoch() -> None:
    """Two of 100 iterations make no epoch time, but the time so far is known."""
    events = [
        *_rank(0, [1.0, 1.5], of=100, end=None),
        Epoch(rank=0, t=2.6, epoch=0, seconds=2.6, iterations=2),
        End(rank=0, t=2.6),
    ]
    sample = sample_from_events(_run(), {0: events})
    assert sample.epoch_s is None
    assert sample.ranks[0].first_epoch_s == 2.6
    assert not sample.ranks[0].first_epoch_whole


def test_epoch_so_far_is_known_without_its_end() -> None:
    """A job that stops inside epoch 0 has spent there what its iterations took, warm-up too."""
    sample = sample_from_events(_run(), {0: _rank(0, [3.0, 1.0, 1.0], of=50)}, warmup=1)
    assert sample.ranks[0].first_epoch_s == 5.0


def test_iterations_without_items_have_no_throughput() -> None:
    """Missing items are missing: no figure is made of half of them, and a note says so."""
    sample = sample_from_events(_run(), {0: _rank(0, [1.0, 1.0], items=None)})
    assert sample.failed is None
    assert sample.items_per_s is None
    assert sample.iteration_s == 1.0
    assert "there is no throughput" in sample.notes[0]


def test_nothing_but_warmup_is_said() -> None:
    """Iterations that all belong to the warm-up leave no figure and a note."""
    sample = sample_from_events(_run(), {0: _rank(0, [1.0, 1.0])}, warmup=5)
    assert sample.items_per_s is None
    assert sample.iteration_s is None
    assert "no iteration was left after the warm-up of 5" in sample.notes[0]


def test_time_between_iterations_is_mentioned() -> None:
    """A job that spends much outside its own iteration times is not silently flattered."""
    events = [Start(rank=0, t=0.0)] + [
        Iteration(rank=0, t=2.0 * index, index=index, seconds=1.0, items=8) for index in range(5)
    ]
    sample = sample_from_events(_run(), {0: [*events, End(rank=0, t=9.0)]}, warmup=1)
    assert "another 100% of their time" in sample.notes[0]


def test_parts_of_the_time_are_summed_only_if_all_are_known() -> None:
    """Waiting is a sum over all measured iterations, or missing."""

    def iteration(index: int, wait_s: float | None) -> Iteration:
        return Iteration(rank=0, t=0.0, index=index, seconds=1.0, wait_s=wait_s, data_s=0.25)

    events = [Start(rank=0, t=0.0), iteration(0, 0.5), iteration(1, None), End(rank=0, t=2.0)]
    rank = sample_from_events(_run(), {0: events}).ranks[0]
    assert (rank.data_s, rank.wait_s) == (0.5, None)


def test_notes_and_last_metrics_are_kept() -> None:
    """What a job says of itself reaches the sample once, and metrics keep their last value."""
    events = {
        rank: [
            Start(rank=rank, t=0.0, world_size=2),
            Note(rank=rank, t=0.0, text="fell back to gloo"),
            Iteration(rank=rank, t=1.0, seconds=1.0, items=1, metrics={"loss": 0.75}),
            Metric(rank=rank, t=1.0, name="fid", value=40.5),
            End(rank=rank, t=1.0),
        ]
        for rank in (0, 1)
    }
    sample = sample_from_events(_run(2), events)
    assert sample.notes == ("the job says: fell back to gloo",)
    assert sample.ranks[1].metrics == {"loss": 0.75, "fid": 40.5}


def test_hosts_hold_blocks_of_ranks() -> None:
    """Rank 2 of 2 nodes x 2 processes runs on the second host; unknown hosts stay unknown."""
    run = _run(2, nodes=2, hosts=("alpha", "beta"))
    assert rank_hosts(run) == {0: "alpha", 1: "alpha", 2: "beta", 3: "beta"}
    assert rank_hosts(_run(2)) == {}
    events = {rank: _rank(rank, [1.0], world_size=4) for rank in range(4)}
    assert [rank.host for rank in sample_from_events(run, events).ranks][2] == "beta"
    assert sample_from_events(_run(), {0: _rank(0, [1.0])}).ranks[0].host == "here"


_times = st.lists(st.floats(min_value=1e-4, max_value=10), min_size=1, max_size=12)


@settings(deadline=None)
@given(st.lists(_times, min_size=1, max_size=4), st.integers(0, 3))
def test_figures_follow_from_the_ranks(ranks: list[list[float]], warmup: int) -> None:
    """For any times: throughput x slowest time = items, lines equal events, order is free."""
    count = len(ranks)
    events = {rank: _rank(rank, times, world_size=count) for rank, times in enumerate(ranks)}
    sample = sample_from_events(_run(count), events, warmup=warmup)
    lines = {rank: [_line(event) for event in events[rank]] for rank in reversed(range(count))}
    assert sample_from_events(_run(count), lines, warmup=warmup) == sample
    assert sample.failed is None
    slowest_s = max(sum(times[warmup:]) for times in ranks)
    if all(len(times) > warmup for times in ranks):
        assert sample.items_per_s is not None
        items = 16 * sum(len(times) - warmup for times in ranks)
        assert sample.items_per_s * slowest_s == pytest.approx(items)
    for rank, times in zip(sample.ranks, ranks, strict=True):
        assert list(rank.warmup_s + rank.iteration_s) == times


@settings(deadline=None)
@given(_times, st.integers(min_value=1, max_value=400))
def test_cut_off_file_is_never_a_good_sample(times: list[float], cut: int) -> None:
    """A rank's file that lost its tail is a failed sample, or one that says what is missing."""
    text = "\n".join(_line(event) for event in _rank(0, times)) + "\n"
    sample = sample_from_events(_run(), {0: text[: max(1, len(text) - 1 - cut)].splitlines()})
    assert sample.failed is not None or "did not say that it ended" in sample.notes[0]


def test_real_ec2_iterations_give_the_published_throughput() -> None:
    """On 1, 2, 4 real t2.medium, our figures agree with the epoch times that were printed."""
    runs: dict[int, dict[int, list[Event]]] = defaultdict(dict)
    with (DATA / "ec2-dcgan-t2.medium-epoch0.csv").open() as file:
        for row in csv.DictReader(file):
            nodes, rank = int(row["nodes"]), int(row["rank"])
            events = runs[nodes].setdefault(rank, [Start(rank=rank, t=0.0, world_size=nodes)])
            of, index = int(row["iterations_per_epoch"]), int(row["iteration"])
            # 10,000 images in batches of 128 per process; the last batch holds the rest.
            rest = 10_000 // nodes - 128 * (of - 1)
            items = rest if index == of - 1 else 128
            seconds = float(row["seconds"])
            events.append(
                Iteration(rank=rank, t=0.0, index=index, of=of, seconds=seconds, items=items)
            )
    printed_s = {1: 340.4, 2: 195.8, 4: 107.9}
    for nodes, ranks in runs.items():
        full = {rank: [*events, End(rank=rank, t=0.0)] for rank, events in ranks.items()}
        sample = sample_from_events(_run(1, nodes=nodes), full)
        assert sample.failed is None
        assert sample.items_per_s == pytest.approx(10_000 / printed_s[nodes], rel=0.015)
        assert all(rank.partial == (len(rank.iteration_s) - 1,) for rank in sample.ranks)
