"""The cache: built once, published whole, never used when truncated or out of date."""

from __future__ import annotations

import errno
import os
import resource
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.datasets import cache
from paceline.datasets.cache import Contents, Draft, Recipe
from paceline.errors import DataError, StorageError

PIXELS = bytes(range(24))


def recipe(*, state: str = "v1", built: list[int] | None = None) -> Recipe:
    """Return a recipe of two images of 3x2x2 that counts how often it is followed."""

    def write(draft: Draft) -> Contents:
        if built is not None:
            built.append(1)
        draft.add(PIXELS, [7, 300], of=2)
        return Contents(3, 2, 2, ("a", "b"), "two test images")

    return Recipe("toy", "train", ("wish",), (state,), len(PIXELS), write)


def test_what_is_built_can_be_mapped_as_promised(tmp_path: Path) -> None:
    """The raw file is exactly N*C*H*W bytes, and the labels are little-endian int32."""
    made = cache.obtain(recipe(), tmp_path)
    assert made.path.read_bytes() == PIXELS
    assert made.labels_path is not None
    assert struct.unpack("<2i", made.labels_path.read_bytes()) == (7, 300)
    assert (made.count, made.channels, made.height, made.width) == (2, 3, 2, 2)
    assert made.size_bytes == made.path.stat().st_size
    assert (made.classes, made.source) == (("a", "b"), "two test images")
    assert made.path.parent == tmp_path / ".paceline-cache"


def test_the_second_call_builds_nothing(tmp_path: Path) -> None:
    """A whole set is used again, and is the same set."""
    built: list[int] = []
    first = cache.obtain(recipe(built=built), tmp_path)
    assert cache.obtain(recipe(built=built), tmp_path) == first
    assert len(built) == 1


def test_changed_sources_make_a_new_set_and_remove_the_old(tmp_path: Path) -> None:
    """A cache never outlives its sources, and does not fill the disk with old ones."""
    old = cache.obtain(recipe(state="v1"), tmp_path)
    new = cache.obtain(recipe(state="v2"), tmp_path)
    assert new.path != old.path
    assert not old.path.exists()
    assert new.path.exists()


@pytest.mark.parametrize("ending", [".images", ".labels", ".json"])
def test_a_truncated_set_is_built_again(tmp_path: Path, ending: str) -> None:
    """Whichever of the three files is cut off, the set is not used."""
    built: list[int] = []
    made = cache.obtain(recipe(built=built), tmp_path)
    os.truncate(made.path.with_suffix(ending), 3)
    again = cache.obtain(recipe(built=built), tmp_path)
    assert len(built) == 2
    assert again.path.read_bytes() == PIXELS


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"labelled": 1}', "null", '{"labelled":1,"classes":3}']
)
def test_notes_that_make_no_sense_are_not_believed(tmp_path: Path, text: str) -> None:
    """A damaged note means that the set is built again, not that the program fails."""
    made = cache.obtain(recipe(), tmp_path)
    made.path.with_suffix(".json").write_text(text)
    assert cache.load(made.path.parent, made.path.stem) is None
    assert cache.obtain(recipe(), tmp_path) == made


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    """An error while building removes what was written so far."""

    def write(draft: Draft) -> Contents:
        draft.add(PIXELS, [1, 2], of=4)
        raise DataError("the third image is broken")

    with pytest.raises(DataError, match="third image"):
        cache.obtain(replace(recipe(), write=write), tmp_path)
    left = [path.name for path in (tmp_path / ".paceline-cache").iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []


def test_what_a_killed_process_left_is_swept_away(tmp_path: Path) -> None:
    """A half-made set of an earlier process does not stay for ever."""
    family = recipe().family
    left = tmp_path / ".paceline-cache" / f"{family}.making-abc"
    left.mkdir(parents=True)
    (left / ".images").write_bytes(b"half")
    cache.obtain(recipe(), tmp_path)
    assert not left.exists()


def test_a_place_that_cannot_be_written_is_passed_over(tmp_path: Path, home: Path) -> None:
    """Data on a read-only disk is prepared in the user's cache."""
    (tmp_path / ".paceline-cache").write_text("a file in the way, as a read-only disk would be")
    made = cache.obtain(recipe(), tmp_path)
    assert made.path.parent == home / ".cache/paceline/prepared"


def test_a_set_on_a_read_only_disk_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was prepared before is used without a lock, a copy or a right to write."""
    made = cache.obtain(recipe(), tmp_path)
    monkeypatch.setattr(cache, "usable", lambda _folder: False)
    assert cache.obtain(recipe(), tmp_path) == made


def test_no_writable_place_at_all_is_an_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error lists the folders and the variable that helps."""
    monkeypatch.setattr(cache, "usable", lambda _folder: False)
    with pytest.raises(StorageError, match="no folder for the prepared images of toy") as caught:
        cache.obtain(recipe(), tmp_path)
    assert "PACELINE_CACHE" in (caught.value.hint or "")


def test_a_disk_that_fills_up_is_named_and_the_next_place_tried(tmp_path: Path, home: Path) -> None:
    """The set is made where there is room; a full disk is no reason to fail if there is one."""
    calls: list[int] = []

    def write(draft: Draft) -> Contents:
        calls.append(1)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return recipe().write(draft)

    made = cache.obtain(replace(recipe(), write=write), tmp_path)
    assert made.path.parent == home / ".cache/paceline/prepared"


def test_full_disks_everywhere_are_a_storage_error(tmp_path: Path) -> None:
    """The error says which folder is full and what to do."""

    def write(_draft: Draft) -> Contents:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageError, match="the disk is full") as caught:
        cache.obtain(replace(recipe(), write=write), tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert caught.value.hint is not None


def test_a_real_limit_on_files_is_found_before_anything_is_read(tmp_path: Path) -> None:
    """The space is claimed first: the recipe is not even started on a disk that is too small."""
    program = f"""
import resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, {resource.getrlimit(resource.RLIMIT_FSIZE)[1]}))
from paceline.datasets import cache
from paceline.errors import StorageError
def write(draft):
    print("started")
try:
    cache.obtain(cache.Recipe("toy", "train", (), (), 1 << 20, write), Path({str(tmp_path)!r}))
except StorageError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(cache.__file__).parents[2])},
    )
    assert "the disk is full" in done.stdout
    assert "started" not in done.stdout


def test_too_little_space_is_found_before_anything_is_written(tmp_path: Path) -> None:
    """A set of a petabyte is refused at once."""
    with pytest.raises(StorageError, match="preparing toy needs"):
        cache.obtain(replace(recipe(), expected_bytes=1 << 60), tmp_path)


def test_an_estimate_that_was_too_high_leaves_no_room_behind(tmp_path: Path) -> None:
    """The reserved space is given back: the file has the size of the images."""
    made = cache.obtain(replace(recipe(), expected_bytes=1 << 20), tmp_path)
    assert made.path.stat().st_size == len(PIXELS)


def test_the_digest_tells_images_labels_and_shape_apart(tmp_path: Path) -> None:
    """Hosts that hold different data show different digests."""

    def made(name: str, pixels: bytes, labels: list[int], height: int, width: int) -> str:
        def write(draft: Draft) -> Contents:
            draft.add(pixels, labels, of=2)
            return Contents(3, height, width, (), "")

        return cache.obtain(Recipe(name, "train", (), (), 24, write), tmp_path).digest

    digests = {
        made("a", PIXELS, [1, 2], 2, 2),
        made("b", PIXELS[::-1], [1, 2], 2, 2),
        made("c", PIXELS, [2, 1], 2, 2),
        made("d", PIXELS, [1, 2], 4, 1),
    }
    assert len(digests) == 4
    assert made("e", PIXELS, [1, 2], 2, 2) in digests
