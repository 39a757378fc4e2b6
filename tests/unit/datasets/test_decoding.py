"""Decoding in processes: in order, as torchvision would, and safe against bad pictures."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets import decode_worker, decoding
from paceline.datasets.decoding import Bad, Decoded, decoded
from paceline.errors import EnvironmentFault, MissingProgram

image_module = pytest.importorskip("PIL.Image")


def planes(picture: Any) -> bytes:
    """Return a picture channel by channel."""
    return b"".join(band.tobytes() for band in picture.split())


def plainly(encoded: bytes, size: int) -> bytes:
    """Resize and cut in the way that torchvision's transforms do, one step at a time."""
    picture = image_module.open(io.BytesIO(encoded)).convert("RGB")
    width, height = picture.size
    if width <= height:
        scaled = (size, int(size * height / width))
    else:
        scaled = (int(size * width / height), size)
    picture = picture.resize(scaled, image_module.Resampling.BILINEAR)
    left = round((scaled[0] - size) / 2.0)
    top = round((scaled[1] - size) / 2.0)
    return planes(picture.crop((left, top, left + size, top + size)))


def all_of(encoded: Sequence[bytes], **options: Any) -> list[Decoded]:
    """Decode bytes that are at hand."""
    return list(decoded(encoded.__getitem__, len(encoded), **{"size": 8, "channels": 3, **options}))


@pytest.mark.parametrize(
    ("width", "height"), [(20, 14), (14, 20), (8, 8), (3, 5), (9, 31), (200, 8)]
)
def test_a_picture_becomes_what_torchvision_makes_of_it(make: Any, width: int, height: int) -> None:
    """The shorter side becomes the size, and the middle is cut out: pixel by pixel the same."""
    encoded = make.picture(width, height)
    assert decode_worker.decode(encoded, 8, 3) == plainly(encoded, 8)


@pytest.mark.parametrize(
    ("kind", "mode"), [("JPEG", "RGB"), ("PNG", "RGBA"), ("PNG", "L"), ("GIF", "L")]
)
def test_every_kind_becomes_colours_or_grey(make: Any, kind: str, mode: str) -> None:
    """Transparency, palettes and grey pictures are all converted."""
    encoded = make.picture(20, 20, kind=kind, mode=mode)
    assert len(decode_worker.decode(encoded, 8, 3)) == 3 * 64
    assert len(decode_worker.decode(encoded, 8, 1)) == 64


def test_a_large_jpeg_is_decoded_nearly_the_same_and_cheaper(make: Any) -> None:
    """The shortcut for JPEG pictures changes no pixel by more than rounding does."""
    encoded = make.picture(400, 300, kind="JPEG")
    pairs = zip(decode_worker.decode(encoded, 16, 3), plainly(encoded, 16), strict=True)
    assert max(abs(a - b) for a, b in pairs) <= 4


@pytest.mark.parametrize("workers", [1, 3])
def test_many_pictures_come_in_their_order(make: Any, workers: int) -> None:
    """Whatever process was faster."""
    encoded = [make.picture(12, 10, seed=number) for number in range(150)]
    assert all_of(encoded, workers=workers) == [plainly(one, 8) for one in encoded]


def test_bad_pictures_are_told_apart_from_good_ones(make: Any) -> None:
    """Each bad picture has its reason; its neighbours are decoded."""
    good = make.picture(9, 9)
    answers = all_of([good, b"no picture", b"", good[: len(good) // 2], good])
    assert answers[0] == answers[4] == plainly(good, 8)
    reasons = [answer.reason for answer in answers[1:4] if isinstance(answer, Bad)]
    assert reasons[0].startswith("UnidentifiedImageError: cannot identify image file")
    assert "0x" not in reasons[0]
    assert reasons[1] == "it is empty"
    assert len(reasons) == 3


def test_a_picture_that_cannot_be_read_is_bad(make: Any) -> None:
    """A file that vanished or is forbidden is one bad picture, not the end."""

    def read(number: int) -> bytes:
        if number == 1:
            raise PermissionError(13, "Permission denied")
        return bytes(make.picture(9, 9))

    answers = list(decoded(read, 3, size=8, channels=3))
    assert answers[1] == Bad("Permission denied")
    assert isinstance(answers[0], bytes)
    assert isinstance(answers[2], bytes)


def test_a_picture_that_crashes_the_decoder_is_found(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only that one is lost; the process is started again for the others."""
    program = tmp_path / "crashing.py"
    program.write_text(
        "import os, sys\n"
        "from paceline.datasets import decode_worker\n"
        "whole = decode_worker.decode\n"
        "def decode(encoded, size, channels):\n"
        "    if encoded == b'crash':\n"
        "        sys.stderr.write('out of luck')\n"
        "        sys.stderr.flush()\n"
        "        os.abort()\n"
        "    return whole(encoded, size, channels)\n"
        "decode_worker.decode = decode\n"
        "decode_worker.main()\n"
    )

    class Crashing(decoding._Worker):
        def __init__(self, size: int, channels: int) -> None:
            super().__init__(size, channels)
            self._argv = (sys.executable, str(program), str(size), str(channels))

    monkeypatch.setattr(decoding, "_Worker", Crashing)
    good = make.picture(9, 9)
    answers = all_of([good, good, b"crash", good], workers=1)
    assert [isinstance(answer, bytes) for answer in answers] == [True, True, False, True]
    assert answers[2] == Bad("the decoder crashed: out of luck")


def test_a_decoder_that_does_not_start_is_no_fault_of_the_pictures(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken installation is said at once, and not a million times."""

    class Broken(decoding._Worker):
        def __init__(self, size: int, channels: int) -> None:
            super().__init__(size, channels)
            self._argv = (sys.executable, "-c", "raise SystemExit('no libjpeg here')")

    monkeypatch.setattr(decoding, "_Worker", Broken)
    with pytest.raises(EnvironmentFault, match="does not start: no libjpeg here"):
        all_of([make.picture(9, 9)] * 100)


def test_large_pictures_are_sent_in_small_bundles(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory for a bundle is bounded, and the order stays."""
    monkeypatch.setattr(decoding, "_BUNDLE_BYTES", 100)
    encoded = [make.picture(12, 10, seed=number) for number in range(7)]
    assert all_of([*encoded, b""])[:7] == [plainly(one, 8) for one in encoded]


def test_giving_up_ends_the_processes(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer that stops early leaves no process behind."""
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(decoding._Worker):
        def close(self) -> None:
            if self._process is not None:
                started.append(self._process)
            super().close()

    monkeypatch.setattr(decoding, "_Worker", Recorded)
    encoded = [make.picture(9, 9)] * 200
    answers = decoded(encoded.__getitem__, 200, size=8, channels=3)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert started
    assert all(process.returncode is not None for process in started)


def test_the_number_of_processes_is_bounded() -> None:
    """One for a few pictures, and never more than the cores or the limit."""
    assert decoding.worker_count(1) == 1
    assert 1 <= decoding.worker_count(10**9) <= decoding.MOST_WORKERS


def test_a_missing_module_is_named_with_the_command_that_helps() -> None:
    """Pillow and lmdb are wanted only where they are needed, and then said."""
    with pytest.raises(MissingProgram, match="Nothing is not installed") as caught:
        decoding.require_module("no_such_module_here", "Nothing", "pip install nothing")
    assert "pip install nothing" in (caught.value.hint or "")
