"""What was measured of hosts, kept as one JSON file for each set of them."""

from __future__ import annotations

import json
from pathlib import Path

from paceline.model.calibration import Calibration, from_plain, to_plain
from paceline.store.files import write_atomically


class CalibrationFiles:
    """The port `Calibrations`, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def known(self, key: str) -> Calibration | None:
        """Return what was kept of these hosts; None where there is nothing that can be read."""
        try:
            return from_plain(json.loads(self._path(key).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def keep(self, key: str, calibration: Calibration) -> None:
        """Keep what was measured of these hosts, in the place of what was known."""
        text = json.dumps(to_plain(calibration), indent=1)
        write_atomically(self._path(key), f"{text}\n".encode())

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"
