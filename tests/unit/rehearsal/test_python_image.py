"""The image of this machine's Python: what is left out of it."""

from __future__ import annotations

import tarfile
from pathlib import Path

from paceline.rehearsal.python_image import _without


def test_what_no_trainer_needs_is_left_out(tmp_path: Path) -> None:
    """Tests and headers stay behind, wherever they lie; modules called so do not."""
    package = tmp_path / "package"
    kept = ("code.py", "tests.py", "deep/testing/code.py")
    for name in (*kept, "include/header.h", "deep/tests/code.py", "deep/lib.a"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    with tarfile.open(tmp_path / "image.tar", "w") as archive:
        archive.add(package, "usr/package", filter=_without("usr/package"))
        found = {member.name for member in archive.getmembers() if member.isfile()}
        owners = {(member.uid, member.uname) for member in archive.getmembers()}
    assert found == {f"usr/package/{name}" for name in kept}
    assert owners == {(0, "root")}
