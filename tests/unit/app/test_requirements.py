"""Requirements as one text for another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.app.requirements import Requirements, read_requirements
from paceline.errors import UsageError


def test_what_a_file_includes_is_in_the_text(tmp_path: Path) -> None:
    """Included files, constraints, comments and continued lines; packages come after."""
    (tmp_path / "more").mkdir()
    (tmp_path / "requirements.txt").write_text(
        "# ours\nnumpy>=2  # a comment\n-r more/base.txt\n-c pins.txt\n"
        "six==1.16.0 \\\n  --hash=sha256:00\nx @ https://example.org/x.whl\n"
    )
    (tmp_path / "more" / "base.txt").write_text("rich\n")
    (tmp_path / "pins.txt").write_text("numpy==2.1\n")
    found = read_requirements(tmp_path / "requirements.txt", ("torch",))
    lines = [" ".join(line.split()) for line in found.requirements.splitlines()]
    assert lines == [
        "numpy>=2", "rich", "six==1.16.0 --hash=sha256:00", "x @ https://example.org/x.whl",
        "torch",
    ]  # fmt: skip
    assert found.constraints == "numpy==2.1"
    assert read_requirements(None, ()) == Requirements()


@pytest.mark.parametrize("line", ["-e .", "./local", "../x", "/abs", "file:///x", "dist/x.whl"])
def test_a_path_is_refused(tmp_path: Path, line: str) -> None:
    """What lies here only is named with its line, and with what to do instead."""
    path = tmp_path / "requirements.txt"
    path.write_text(f"six\n{line}\n")
    with pytest.raises(UsageError, match=r"requirements.txt:2: .* is a path") as caught:
        read_requirements(path, ())
    assert "wheels: FOLDER" in str(caught.value.hint)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """An include that is not there is an error with its path."""
    (tmp_path / "r.txt").write_text("-r gone.txt\n")
    with pytest.raises(UsageError, match=r"gone\.txt cannot be read"):
        read_requirements(tmp_path / "r.txt", ())
