"""What is to be sent: every byte is in exactly one piece, and nothing leads out of the target."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.relay.manifest import (
    LEAST_PIECE_BYTES,
    MOST_PIECES_OF_A_FILE,
    Manifest,
    manifest_of,
    piece_bytes_for,
    survey,
)


def test_the_pieces_make_up_the_file(tmp_path: Path) -> None:
    """In order and with their digests, the last one shorter."""
    data = os.urandom(2 * LEAST_PIECE_BYTES + 7)
    path = tmp_path / "file"
    path.write_bytes(data)
    path.chmod(0o640)
    found = survey(str(path))
    assert (found.files[0].name, found.files[0].mode, found.size_bytes) == ("", 0o640, len(data))
    pieces = [data[piece.offset : piece.offset + piece.size] for piece in found.pieces()]
    assert b"".join(pieces) == data
    assert [hashlib.sha256(item).hexdigest() for item in pieces] == list(found.files[0].digests)


@given(size=st.integers(0, 1 << 50))
def test_a_file_of_any_size_has_few_pieces(size: int) -> None:
    """Large files have larger pieces, so that a manifest stays small."""
    piece_bytes = piece_bytes_for(size)
    assert piece_bytes >= LEAST_PIECE_BYTES
    assert -(-size // piece_bytes) <= MOST_PIECES_OF_A_FILE


def test_a_folder_is_surveyed_without_what_stays_behind(tmp_path: Path) -> None:
    """All files below it, links to files as files; what is left out is left out everywhere."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "ö\udcff").write_bytes(b"x")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "a" / "cache").mkdir()
    (tmp_path / "a" / "cache" / "no").write_bytes(b"x")
    (tmp_path / "link").symlink_to("a/b/ö\udcff")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    found = survey(str(tmp_path), ("cache",))
    assert [file.name for file in found.files] == ["a/b/ö\udcff", "empty", "link"]
    assert manifest_of(json.loads(json.dumps(found.to_dict()))) == found


def test_a_missing_source_is_an_error(tmp_path: Path) -> None:
    """What is not there, or no file, is named."""
    with pytest.raises(OSError, match="none"):
        survey(str(tmp_path / "none"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a plain file"):
        survey(str(tmp_path / "pipe"))


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "a\0b"])
def test_a_name_that_leads_out_is_refused(name: str) -> None:
    """A manifest cannot write elsewhere."""
    with pytest.raises(ValueError, match="leads out"):
        manifest_of({"files": [_entry(name)]})


def test_a_manifest_that_does_not_add_up_is_refused() -> None:
    """As many digests as pieces; a file without a name is alone."""
    with pytest.raises(ValueError, match="too few or too many"):
        manifest_of({"files": [{**_entry("a"), "size": 11}]})
    with pytest.raises(ValueError, match="without a name"):
        manifest_of({"files": [_entry(""), _entry("b")]})
    assert manifest_of({"files": []}) == Manifest(())


def _entry(name: str) -> dict[str, Any]:
    return {"name": name, "size": 10, "mode": 0o644, "piece_bytes": 10, "digests": ["0"]}
