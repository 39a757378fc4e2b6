"""Where data sets are looked for, and where prepared images go."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.datasets import places
from paceline.errors import StorageError


def test_the_usual_places_are_looked_at_in_the_promised_order(home: Path) -> None:
    """./NAME, ./data/NAME, $PACELINE_DATA/NAME, then the user's cache."""
    found = places.usual_places("cifar10", {"PACELINE_DATA": "/sets"})
    assert found == (
        Path("cifar10"),
        Path("data/cifar10"),
        Path("/sets/cifar10"),
        home / ".cache/paceline/data/cifar10",
    )


def test_data_is_fetched_to_the_named_disk_or_the_users_cache(home: Path) -> None:
    """PACELINE_DATA wins; without it nothing is written into the working folder."""
    assert places.fetch_place("mnist", {"PACELINE_DATA": "/sets"}) == Path("/sets/mnist")
    assert places.fetch_place("mnist", {}) == home / ".cache/paceline/data/mnist"


def test_prepared_images_go_beside_the_data_first(tmp_path: Path, home: Path) -> None:
    """The order is: named folder, beside the data, the user's cache, temporary files."""
    found = places.cache_places(tmp_path, {"PACELINE_CACHE": "/fast"})
    assert found[:3] == (
        Path("/fast"),
        tmp_path / ".paceline-cache",
        home / ".cache/paceline/prepared",
    )
    assert found[3].parent == tmp_path / "tmp"


def test_a_planted_temporary_folder_is_not_trusted(tmp_path: Path) -> None:
    """A link in the shared folder for temporary files could lead to anybody's data."""
    trusted = places.cache_places(None, {})
    (tmp_path / "elsewhere").mkdir()
    trusted[-1].symlink_to(tmp_path / "elsewhere")
    assert places.cache_places(None, {}) == trusted[:-1]


def test_a_folder_that_cannot_be_made_is_not_usable(tmp_path: Path) -> None:
    """A file in the way is a reason to go elsewhere, not an error."""
    (tmp_path / "file").touch()
    assert not places.usable(tmp_path / "file" / "below")
    assert places.usable(tmp_path / "new" / "below")


def test_missing_space_is_said_in_numbers(tmp_path: Path) -> None:
    """The error names what is needed, what is there, and what to do."""
    with pytest.raises(StorageError, match=r"needs 1099511627776\.0 MiB in .* are free") as caught:
        places.require_space(tmp_path / "not" / "there", 1 << 60, "a test")
    assert "PACELINE_DATA" in (caught.value.hint or "")
    places.require_space(tmp_path, 1, "a test")
