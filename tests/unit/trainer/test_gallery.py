"""Pictures and scores on the way."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
import torch
from torch import Tensor

from paceline.events import Event, Metric, Note, Picture, Place, Reporter, parse_events
from paceline.trainer.gallery import Gallery
from paceline.trainer.images import Batch, Images
from paceline.trainer.judging import Judge
from paceline.trainer.learner import Learner
from paceline.trainer.program import StepResult
from paceline.trainer.scribe import Scribe
from paceline.trainer.telling import Teller
from tests.fakes.pixels import image_set

pytestmark = pytest.mark.torch


class Painter:
    """A program that makes grey images, or none."""

    learners: Mapping[str, Learner] = {}
    line_every = 1

    def __init__(self, *, paints: bool = True) -> None:
        self._paints = paints

    def step(self, batch: Batch) -> StepResult:
        """Learn nothing."""
        raise NotImplementedError

    def finish(self) -> float:
        """Have nothing to do."""
        return 0.0

    def samples(self, count: int, start: int = 0) -> Tensor | None:
        """Return grey images."""
        del start
        return torch.zeros(count, 3, 32, 32) if self._paints else None

    def line(self, metrics: Mapping[str, float]) -> str:
        """Say nothing."""
        return str(metrics)


def _reporter(folder: Path) -> Reporter:
    return Reporter(str(folder), place=Place(1, 1, 2, 2))


def _events(folder: Path) -> list[Event]:
    return list(parse_events((folder / "rank-1.jsonl").read_text().splitlines()))[1:]


def test_pictures_have_the_public_programs_names(tmp_path: Path) -> None:
    """Real and generated samples of a rank, an epoch and an iteration, each with its event."""
    with closing(Scribe(pytest.fail)) as scribe:
        gallery = Gallery(tmp_path, rank=1, every=100, scribe=scribe, reporter=_reporter(tmp_path))
        gallery.take(Painter(), torch.zeros(4, 3, 32, 32), epoch=2, index=300)
    names = ["real_samples_rank_1_epoch_2_iter_300.png", "fake_samples_rank_1_epoch_2_iter_300.png"]
    assert sorted(path.name for path in tmp_path.glob("*.png")) == sorted(names)
    pictures = [event for event in _events(tmp_path) if isinstance(event, Picture)]
    assert [(p.path, p.what, p.epoch, p.index) for p in pictures] == [
        (str(tmp_path / names[0]), "real", 2, 300),
        (str(tmp_path / names[1]), "fake", 2, 300),
    ]


def test_a_program_without_samples_has_no_pictures(tmp_path: Path) -> None:
    """Nothing is written for a classifier."""
    with closing(Scribe(pytest.fail)) as scribe:
        gallery = Gallery(tmp_path, rank=1, every=1, scribe=scribe, reporter=_reporter(tmp_path))
        gallery.take(Painter(paints=False), torch.zeros(4, 3, 32, 32), epoch=0, index=0)
    assert list(tmp_path.glob("*.png")) == []


@pytest.mark.parametrize(("every", "due"), [(100, [0, 100, 200]), (0, []), (150, [0, 150])])
def test_pictures_are_due_every_so_many_steps(tmp_path: Path, every: int, due: list[int]) -> None:
    """From the first step of an epoch on; 0 means never."""
    with closing(Scribe(pytest.fail)) as scribe:
        gallery = Gallery(
            tmp_path, rank=1, every=every, scribe=scribe, reporter=_reporter(tmp_path)
        )
        assert [index for index in range(201) if gallery.due(index)] == due


@pytest.mark.parametrize(("paints", "names"), [(True, ["swd", "swd_floor"]), (False, [])])
def test_samples_are_scored(tmp_path: Path, paints: bool, names: list[str]) -> None:  # noqa: FBT001
    """The distance and its floor are reported for the epoch, where there are samples."""
    painter = Painter(paints=paints)
    images = Images(
        image_set(tmp_path, count=40), size=32, dtype=torch.float32, device=torch.device("cpu")
    )
    teller = Teller(_reporter(tmp_path), painter, rank=1, epochs=1)
    Judge(painter, images, teller, seed=0).score(3)
    metrics = [event for event in _events(tmp_path) if isinstance(event, Metric)]
    assert [metric.name for metric in metrics] == names
    assert {metric.epoch for metric in metrics} <= {3}
    if metrics:
        assert metrics[0].value > 2 * metrics[1].value > 0


def test_a_single_image_is_no_measure(tmp_path: Path) -> None:
    """Where there are too few images to compare with, that is said, and nothing is scored."""
    painter = Painter()
    images = Images(
        image_set(tmp_path, count=1), size=32, dtype=torch.float32, device=torch.device("cpu")
    )
    teller = Teller(_reporter(tmp_path), painter, rank=0, epochs=1)
    Judge(painter, images, teller, seed=0).score(0)
    assert [type(event) for event in _events(tmp_path) if isinstance(event, (Metric, Note))] == [
        Note
    ]
