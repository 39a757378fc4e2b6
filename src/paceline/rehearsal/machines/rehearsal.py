"""A rehearsal as one thing: the emulated API with machines behind it."""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

from paceline.rehearsal.closing import Closing
from paceline.rehearsal.emulator import Conditions, Emulator
from paceline.rehearsal.machines.ground import Ground
from paceline.rehearsal.machines.images import ImageShelf
from paceline.rehearsal.machines.journal import Journal
from paceline.rehearsal.machines.keeper import HostKeeper
from paceline.rehearsal.machines.places import Places

_TICK_S = 0.5


class Rehearsal(Closing):
    """An EC2 on this machine whose instances are hosts; all of it is gone at the end."""

    def __init__(
        self,
        folder: Path,
        *,
        bandwidth_mbit: float | None = None,
        conditions: Conditions | None = None,
        port: int = 0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.places = Places(folder, secrets.token_hex(3))
        journal = Journal(self.places.journal)
        ground = Ground(self.places, journal, ImageShelf(self.places), bandwidth_mbit)
        self.keeper = HostKeeper(ground)
        self.emulator = Emulator(conditions, keeper=self.keeper, port=port)
        self.keeper.on_shutdown = self.emulator.shut_down_from_inside
        self._closing = threading.Event()
        self._ticking = threading.Thread(target=self._tick, daemon=True)
        self._ticking.start()

    def _tick(self) -> None:
        while not self._closing.wait(_TICK_S):
            self.emulator.settle()

    def close(self) -> None:
        """End every machine, and take away what was made."""
        self._closing.set()
        self._ticking.join()
        self.emulator.close()
        self.keeper.close()
