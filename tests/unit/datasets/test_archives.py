"""Archives: single files are read out of them, and nothing else can happen."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.datasets import archives
from paceline.errors import DataError


def packed(path: Path, *entries: tuple[str, bytes | tarfile.TarInfo], mode: str = "w:gz") -> Path:
    """Write an archive of files, and of entries that are anything else."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in entries:
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                archive.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def link(target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    """Return a link."""
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_wanted_files_are_read_from_any_compression(tmp_path: Path, mode: str) -> None:
    """Files are told by their base name, wherever they lie in the archive."""
    path = packed(tmp_path / "a", ("deep/in/a.bin", b"one"), ("b.txt", b"two"), mode=mode)
    assert list(archives.members(path, {"a.bin"}.__contains__)) == [("a.bin", b"one")]


def test_paths_lead_nowhere_and_links_are_passed_over(tmp_path: Path) -> None:
    """An archive that would escape or point elsewhere writes nothing and reads nothing."""
    (tmp_path / "secret").write_bytes(b"secret")
    path = packed(
        tmp_path / "a.tar.gz",
        ("../../escaped", b"harmless"),
        ("/absolute", b"harmless"),
        ("linked", link(str(tmp_path / "secret"))),
        ("hard", link("../secret", tarfile.LNKTYPE)),
        ("fifo", link("", tarfile.FIFOTYPE)),
    )
    before = sorted(tmp_path.rglob("*"))
    found = dict(archives.members(path, lambda _name: True))
    assert found == {"escaped": b"harmless", "absolute": b"harmless"}
    assert sorted(tmp_path.rglob("*")) == before


def test_a_cut_off_archive_is_an_error_that_says_so(tmp_path: Path) -> None:
    """Half a download is never taken for a whole one."""
    path = packed(tmp_path / "a.tar.gz", ("a", hashlib.shake_256(b"").digest(100_000)))
    path.write_bytes(path.read_bytes()[:-20_000])
    with pytest.raises(DataError, match=r"a\.tar\.gz cannot be read") as caught:
        list(archives.members(path, lambda _name: True))
    assert "fetch it again" in (caught.value.hint or "")


def test_an_absurd_size_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A header may claim anything; memory is not given for it."""
    info = tarfile.TarInfo("a")
    info.size = archives.MAX_MEMBER_BYTES + 1
    (tmp_path / "a.tar").write_bytes(info.tobuf() + bytes(10_240))
    with pytest.raises(DataError, match="claims 1073741825 bytes"):
        list(archives.members(tmp_path / "a.tar", lambda _name: True))


def test_a_missing_archive_is_the_systems_own_error(tmp_path: Path) -> None:
    """What the operating system says is not dressed up as damage."""
    with pytest.raises(FileNotFoundError):
        list(archives.members(tmp_path / "none", lambda _name: True))


@given(raw=st.binary(max_size=1500), zipped=st.booleans())
def test_no_bytes_whatever_lead_to_another_error(
    tmp_path_factory: pytest.TempPathFactory, *, raw: bytes, zipped: bool
) -> None:
    """Anything that is no archive is a DataError, or empty."""
    path = tmp_path_factory.mktemp("fuzz") / "a"
    path.write_bytes((b"\x1f\x8b\x08\x00" if zipped else b"") + raw)
    with contextlib.suppress(DataError):
        list(archives.members(path, lambda _name: True))
