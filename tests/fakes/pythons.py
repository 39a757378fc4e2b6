"""Other Pythons of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

OLDEST = "3.8"


def old_python() -> str | None:
    """Return the oldest Python that a host may have, where this machine has one; else None."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{OLDEST}.*/bin/python{OLDEST}"))
    named = (os.environ.get("PACELINE_OLD_PYTHON"), shutil.which(f"python{OLDEST}"))
    for path in (*named, *(str(one) for one in kept)):
        # A shim may lie there and lead nowhere.
        if (
            path
            and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return path
    return None
