"""What a rank prints and reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from paceline.events import Epoch, Iteration, Note, Place, Reporter, parse_events
from paceline.trainer.averages import Averages
from paceline.trainer.classifying import Classifying
from paceline.trainer.gan import Gan
from paceline.trainer.position import Position
from paceline.trainer.telling import Step, Teller

pytestmark = pytest.mark.torch
FIGURES = {"loss_d": 1.5, "loss_g": 2.25, "d_x": 0.625, "d_gz": 0.5, "d_gz_after": 0.125}


def _teller(folder: Path, *, rank: int = 2, program: type[Gan | Classifying] = Gan) -> Teller:
    reporter = Reporter(str(folder), place=Place(rank, 0, 4, 1))
    made: Gan | Classifying = program.__new__(program)
    return Teller(reporter, made, rank=rank, epochs=3)


def _step(metrics: Mapping[str, float]) -> Step:
    return Step(seconds=0.25, data_s=0.001, wait_s=0.01, items=16, metrics=metrics)


def test_the_lines_are_the_public_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts that read the public program's output find what they look for."""
    teller = _teller(tmp_path)
    teller.epoch_begins(0)
    teller.step(Position(epoch=0, index=3), 3125, _step(FIGURES))
    teller.epoch_ends(0, 177.0070, {})
    assert capsys.readouterr().out == (
        "Rank: 2, Epoch: 0, Training ...\n"
        "[epoch: 0/3][iteration: 3/3125][rank: 2] Loss_D: 1.5000, Loss_G: 2.2500, "
        "D(x): 0.6250, D(G(z)): 0.5000 / 0.1250, iteration time: 0.2500s\n"
        "[rank: 2] Epoch 0 took: 177.0070 seconds\n"
    )


def test_the_events_say_the_same(tmp_path: Path) -> None:
    """Each line has its event, with all figures."""
    teller = _teller(tmp_path)
    teller.epoch_begins(1)
    teller.step(Position(epoch=1, index=0), 5, _step(FIGURES))
    teller.epoch_ends(1, 2.5, {"loss_d": 1.5})
    lines = (tmp_path / "rank-2.jsonl").read_text().splitlines()
    _, iteration, epoch = parse_events(lines)
    assert isinstance(iteration, Iteration)
    assert (iteration.epoch, iteration.index, iteration.of, iteration.items) == (1, 0, 5, 16)
    assert (iteration.seconds, iteration.data_s, iteration.wait_s) == (0.25, 0.001, 0.01)
    assert iteration.metrics == FIGURES
    assert isinstance(epoch, Epoch)
    assert (epoch.epoch, epoch.seconds, epoch.iterations, epoch.items) == (1, 2.5, 1, 16)
    assert epoch.metrics == {"loss_d": 1.5}


def test_a_fast_program_prints_now_and_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The classifier's steps are reported all, and printed every hundred."""
    teller = _teller(tmp_path, program=Classifying)
    for index in range(201):
        teller.step(Position(index=index), 300, _step({"loss": 0.5, "accuracy": 0.75}))
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("]")[1] for line in printed] == [
        f"[iteration: {index}/300" for index in (0, 100, 200)
    ]
    assert "Loss: 0.5000, accuracy: 0.7500, iteration time" in printed[0]
    assert len((tmp_path / "rank-2.jsonl").read_text().splitlines()) == 1 + 201


@pytest.mark.parametrize(
    ("rank", "level", "heard"), [(0, "info", True), (1, "info", False), (1, "warning", True)]
)
def test_a_note_is_said_once_and_kept_by_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, rank: int, level: str, heard: bool
) -> None:
    """Rank 0 speaks for all; a warning is everybody's; events hold every note."""
    _teller(tmp_path, rank=rank).note("words", level=level)
    assert (capsys.readouterr().err == "paceline: words\n") is heard
    events = list(parse_events((tmp_path / f"rank-{rank}.jsonl").read_text().splitlines()))
    assert isinstance(events[-1], Note)
    assert (events[-1].text, events[-1].level) == ("words", level)


def test_means_are_weighted_by_images() -> None:
    """A smaller last batch counts for less; nothing has no mean."""
    averages = Averages()
    assert averages.means() == {}
    averages.add({"loss": 1.0}, 16)
    averages.add({"loss": 4.0}, 8)
    assert averages.means() == {"loss": 2.0}


def test_positions_move_on() -> None:
    """Steps count within the epoch and over all; an epoch's end begins the next."""
    position = Position().next_step(32).next_step(32)
    assert position == Position(epoch=0, index=2, consumed=64, steps=2)
    assert position.next_epoch() == Position(epoch=1, index=0, consumed=0, steps=2)
