"""Settings that nobody wrote down are found out, and stolen CPU time is named."""

from __future__ import annotations

from pathlib import Path

from paceline.events import End, Iteration, Start
from paceline.events.surroundings import cpu_ticks, settings, steal_share
from paceline.measure.ranks import read_rank
from paceline.measure.settings import hidden_differences, stolen
from paceline.model.plan import ArgValue, Configuration
from paceline.model.summary import RankSample, Sample


def sample(
    threads: int,
    procs: int = 1,
    steal: float | None = None,
    args: tuple[tuple[str, ArgValue], ...] = (),
) -> Sample:
    """Return a sample whose ranks had so many threads."""
    ranks = tuple(
        RankSample(number, "a", settings={"torch_threads": threads}, steal=steal)
        for number in range(procs)
    )
    return Sample("s", "r", Configuration(1, procs, 16, args), 1, 30.0, ranks=ranks)


def test_other_threads_with_as_many_processes_are_named() -> None:
    """Two runs of one process each, one with two threads and one with one."""
    (found,) = hidden_differences([sample(1), sample(2), sample(1, procs=2)])
    assert found == (
        "torch_threads was not the same in runs with 1 process per host: 1 in 1 run (1 node x "
        "1 process, batch 16), 2 in 1 run (1 node x 1 process, batch 16)"
    )


def test_more_processes_have_fewer_threads_on_purpose() -> None:
    """Cores are shared out: that is no secret, nor is what the study itself varies."""
    assert hidden_differences([sample(2), sample(1, procs=2)]) == ()
    varied = [sample(count, args=(("torch_threads", count),)) for count in (1, 2)]
    assert hidden_differences(varied) == ()


def test_stolen_time_is_named_from_a_percent_on() -> None:
    """Three percent are said, with the host; less is noise."""
    (found,) = stolen(sample(1, steal=0.03))
    assert found.startswith("sample 1: 3% of the CPU time of a was stolen")
    assert stolen(sample(1, steal=0.004)) == ()
    assert stolen(sample(1)) == ()


def test_what_held_at_the_end_is_read_from_the_events() -> None:
    """What a trainer chose and what really held come together; an old file has neither."""
    events = [
        Start(0, 1.0, info={"precision": "bf16", "seed": 3}),
        Iteration(0, 2.0, seconds=1.0),
        End(0, 3.0, info={"torch_threads": 2, "cpu_steal": 0.25}),
    ]
    found = read_rank(0, events, warmup=0)
    assert found is not None
    assert found.sample.settings == {"precision": "bf16", "torch_threads": 2}
    assert found.sample.steal == 0.25
    old = read_rank(0, [Start(0, 1.0), Iteration(0, 2.0, seconds=1.0), End(0, 3.0)], warmup=0)
    assert old is not None
    assert old.sample.settings == {}
    assert old.sample.steal is None


def test_this_process_says_how_many_cores_it_may_use() -> None:
    """Asked of the system, not of a variable."""
    assert isinstance(settings()["cpus"], int)


def test_steal_is_a_share_of_the_time_between_two_readings(tmp_path: Path) -> None:
    """A tenth of the ticks in between was stolen; what cannot be read is not known."""
    path = tmp_path / "stat"
    readings = []
    for line in ("cpu  50 0 50 800 0 0 0 100 0 0\ncpu0 1", "cpu  100 0 100 1600 0 0 0 200 0 0\n"):
        path.write_text(line)
        readings.append(cpu_ticks(str(path)))
    assert readings == [(1000, 100), (2000, 200)]
    assert steal_share(*readings) == 0.1
    path.write_text("nothing")
    assert cpu_ticks(str(path)) is None
    assert cpu_ticks(str(tmp_path / "none")) is None
    assert steal_share(None, readings[0]) is None
    assert steal_share(readings[0], readings[0]) is None
