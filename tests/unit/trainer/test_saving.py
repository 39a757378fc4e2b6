"""When checkpoints are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.errors import DataError, UsageError
from paceline.trainer.options import Options, parse
from paceline.trainer.resuming import choose_resume, describe, require_match
from paceline.trainer.saving import FORMAT, Schedule, choose_schedule

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", Schedule(0, at_epoch_ends=True)),
        ("--iterations 30", Schedule(0, at_epoch_ends=False)),
        ("--seconds 30", Schedule(0, at_epoch_ends=False)),
        ("--checkpoint_every 0", Schedule(0, at_epoch_ends=False)),
        ("--checkpoint_every 50", Schedule(50, at_epoch_ends=True)),
        ("--checkpoint_every 50 --iterations 30", Schedule(50, at_epoch_ends=True)),
    ],
)
def test_a_measurement_is_not_disturbed(words: str, expected: Schedule) -> None:
    """Whole epochs are kept; a few measured steps are not, unless that is asked for."""
    schedule = choose_schedule(parse(words.split(), {}))
    assert schedule == expected
    assert schedule.on == (schedule.every > 0 or schedule.at_epoch_ends)


@pytest.mark.parametrize(
    ("asked", "environ", "expected"),
    [
        (None, {}, "never"),
        (None, {"TORCHELASTIC_RESTART_COUNT": "0"}, "never"),
        (None, {"TORCHELASTIC_RESTART_COUNT": "1"}, "auto"),
        ("never", {"TORCHELASTIC_RESTART_COUNT": "1"}, "never"),
        ("auto", {}, "auto"),
        ("some/file.pt", {}, "some/file.pt"),
    ],
)
def test_a_restart_goes_on(asked: str | None, environ: dict[str, str], expected: str) -> None:
    """A rank that its launcher starts again goes on; a new training begins anew."""
    assert choose_resume(asked, environ) == expected


def _description(**changes: Any) -> dict[str, Any]:
    return describe(Options(**changes), channels=3, images=50)


def test_a_checkpoint_must_fit() -> None:
    """Another network is refused with what differs; other rates or batches are no obstacle."""
    state = {"format": FORMAT, **_description()}
    require_match(state, _description(batch_size=7, learning_rate=0.1, out_folder=Path("x")))
    with pytest.raises(UsageError, match="'nz': 100"):
        require_match(state, _description(nz=50))
    with pytest.raises(UsageError, match="program is dcgan, not mlp"):
        require_match(state, _description(program="mlp"))
    with pytest.raises(DataError, match="another version"):
        require_match({**state, "format": FORMAT + 1}, _description())
