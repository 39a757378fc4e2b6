"""The daemon: `python -m paceline.rehearsal.daemon FOLDER BANDWIDTH LOCK`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.rehearsal.daemon.card import Card
from paceline.rehearsal.daemon.control import Control
from paceline.rehearsal.daemon.faults import Faults
from paceline.rehearsal.daemon.folder import Folder
from paceline.rehearsal.machines.rates import read_rate_mbit
from paceline.rehearsal.machines.rehearsal import Rehearsal
from paceline.supervisor import procfs

# Whoever waits for it gives up before; this is for a daemon that nobody waits for any more.
_UP_WITHIN_S = 120


class Daemon:
    """Holds a rehearsal until it is told to stop."""

    def __init__(self, folder: Folder, bandwidth: str) -> None:
        self._folder = folder
        self._rate_mbit = read_rate_mbit(bandwidth) if bandwidth else None
        self._rehearsal = Rehearsal(folder.path, bandwidth_mbit=self._rate_mbit)
        self._faults = Faults(self._rehearsal)
        self._stopping = threading.Event()
        self._answered = threading.Event()
        self._control = Control(folder.control, self._answer)
        emulator = self._rehearsal.emulator
        self.card = Card(
            pid=os.getpid(), mark=procfs.mark_of(os.getpid()) or "", url=emulator.url,
            key_id=emulator.key_id, region=emulator.region, caller=self._rehearsal.keeper.caller,
            control=str(folder.control), started_at=time.time(), bandwidth=bandwidth or "scaled",
            letters=self._rehearsal.places.letters,
        )  # fmt: skip

    def run(self) -> None:
        """Wait for the end, and clear up."""
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda *_: self._stopping.set())
        self._stopping.wait()
        replace(self.card, ending=True).write(self._folder.card)
        self._rehearsal.close()
        self._answered.set()
        self._control.close()

    def _answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        what, words = question["what"], question.get("words", [])
        if what == "fault":
            return {"said": self._faults.set(question["name"], words)}
        if what == "undo":
            return {"said": self._faults.undo(question["name"], words)}
        if what == "stop":
            self._stopping.set()
            self._answered.wait()
            return {}
        return self._status()

    def _status(self) -> Mapping[str, Any]:
        emulator, keeper = self._rehearsal.emulator, self._rehearsal.keeper
        names = self._faults.names()
        bodies = {body.machine.instance_id: body for body in keeper.bodies()}
        return {
            "machines": [
                {
                    "id": item.id,
                    "name": names[item.id][0],
                    "type": item.instance_type,
                    "zone": item.zone,
                    "state": item.state,
                    "private_address": item.private_address,
                    "public_address": item.public_address,
                    "on": item.id in bodies and bodies[item.id].on,
                    "unlimited": list(bodies[item.id].unlimited) if item.id in bodies else [],
                    "trouble": bodies[item.id].trouble if item.id in bodies else None,
                    "interruption_at": item.interruption_at,
                }
                for item in emulator.instances()
            ],
            "faults": list(self._faults.in_force()),
            "account": {kind: len(items) for kind, items in emulator.inventory().items()},
        }


def main() -> None:
    """Be the daemon of a folder."""
    path, bandwidth, lock = sys.argv[1:]
    # The lock of whoever started us, who may be gone before we are up: until then it is ours.
    os.set_inheritable(int(lock), False)  # noqa: FBT003 - it has no other form
    signal.alarm(_UP_WITHIN_S)
    folder = Folder(Path(path))
    daemon = Daemon(folder, bandwidth)
    daemon.card.write(folder.card)
    signal.alarm(0)
    os.close(int(lock))
    # The card stays behind: whoever clears up waits for the very end of the process that it names.
    daemon.run()


if __name__ == "__main__":
    main()
