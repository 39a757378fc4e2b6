"""What was timed, in words, and where it is not what was planned."""

from __future__ import annotations

import pytest

from paceline.measure.measured import measured_notes, measured_words
from paceline.model.plan import Configuration
from paceline.model.spec import Measurement
from paceline.model.summary import RankSample, Sample

COUNTED = Measurement("iterations", 4, 1)
TIMED = Measurement("seconds", 20.0, 1)
EPOCHS = Measurement("epoch", None, 1)


def _sample(
    name: str,
    *iterations: int,
    seconds: float = 1.0,
    epoch_s: float | None = None,
    failed: str | None = None,
) -> Sample:
    """Return a sample whose ranks measured so many iterations after one of warm-up."""
    ranks = tuple(
        RankSample(rank, "h", iteration_s=(seconds,) * count, warmup_s=(seconds,))
        for rank, count in enumerate(iterations)
    )
    configuration = Configuration(1, max(1, len(ranks)))
    return Sample(name, name, configuration, 1, 9.0, ranks, epoch_s=epoch_s, failed=failed)


@pytest.mark.parametrize(
    ("measurement", "samples", "words"),
    [
        (COUNTED, [], "planned: 5 iterations, the first 1 left out"),
        (
            TIMED,
            [_sample("a", 3, failed="no")],
            "planned: the iterations of 20 s, the first 1 left out",
        ),
        (EPOCHS, [], "planned: whole epochs"),
        (COUNTED, [_sample("a", 4), _sample("b", 4, 4)], "4 iterations after 1 of warm-up"),
        (COUNTED, [_sample("a", 4), _sample("b", 7)], "4 to 7 iterations after 1 of warm-up"),
        (COUNTED, [_sample("a", 4, epoch_s=5.0)], "4 iterations after 1 of warm-up"),
        (
            EPOCHS,
            [_sample("a", 9, epoch_s=5.0)],
            "whole epochs; of the iterations, the first 1 left out",
        ),
        (EPOCHS, [_sample("a", 9)], "9 iterations after 1 of warm-up"),
        (EPOCHS, [_sample("a", epoch_s=5.0)], "whole epochs"),
        (EPOCHS, [_sample("a")], "whole runs, by their wall time"),
    ],
)
def test_words_are_those_of_the_ranks(
    measurement: Measurement, samples: list[Sample], words: str
) -> None:
    """What ranks reported is said as a fact; a plan is called a plan."""
    assert measured_words(measurement, samples) == words


@pytest.mark.parametrize(
    ("measurement", "samples", "note"),
    [
        (COUNTED, [_sample("a", 4, 4), _sample("b", failed="no"), _sample("c")], None),
        (
            COUNTED,
            [_sample("a", 4), _sample("b", 2, 3)],
            "4 iterations were to be measured, and the ranks reported 2 to 3: 1 of 2 samples",
        ),
        (TIMED, [_sample("a", 18), _sample("b", 8, seconds=2.0)], None),
        (
            TIMED,
            [_sample("a", 18), _sample("b", 1), _sample("c", 99)],
            "a sample was to train for 20 s, and the ranks reported 2 to 100 s: 2 of 3 samples",
        ),
        (EPOCHS, [_sample("a", 9, epoch_s=5.0)], None),
        (
            EPOCHS,
            [_sample("a", 9)],
            "whole epochs were to be timed, and the ranks reported none: 1 of 1 samples",
        ),
    ],
)
def test_what_is_not_as_planned_is_noted(
    measurement: Measurement, samples: list[Sample], note: str | None
) -> None:
    """A difference from the plan is a sentence; samples without ranks speak for themselves."""
    assert measured_notes(measurement, samples) == (() if note is None else (note,))
