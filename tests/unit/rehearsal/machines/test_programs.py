"""The programs of a rehearsed machine: time spans are those of systemd."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from paceline.rehearsal import machines

_SCRIPT = Path(machines.__file__).parent / "programs/systemd-run"


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        ("1", 1.0),
        ("3600s", 3600.0),
        ("1h 30min", 5400.0),
        ("2h30m", 9000.0),
        ("500ms", 0.5),
        ("1d", 86400.0),
    ],
)
def test_time_spans(span: str, seconds: float) -> None:
    """A span that is misread would switch a machine off at once."""
    found = re.search(r"awk '(\{.*?\})'\)", _SCRIPT.read_text(), re.DOTALL)
    assert found is not None
    done = subprocess.run(
        ("awk", found[1]), input=f"{span}\n", capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == seconds


@pytest.mark.parametrize("script", sorted(_SCRIPT.parent.iterdir()), ids=lambda path: path.name)
def test_the_shell_takes_them(script: Path) -> None:
    """Each is a script that /bin/sh can read."""
    subprocess.run(("sh", "-n", str(script)), check=True)
