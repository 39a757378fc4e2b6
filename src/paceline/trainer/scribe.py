"""Writes files in the background, so that training need not wait for a disk."""

from __future__ import annotations

import os
import queue
import threading
from pathlib import Path
from typing import Callable

Task = Callable[[], None]


class Scribe:
    """One thread that carries out tasks in order; a task that fails is reported, not raised."""

    def __init__(self, complain: Callable[[str], None], *, waiting: int = 4) -> None:
        self._complain = complain
        self._tasks: queue.Queue[Task | None] = queue.Queue(maxsize=waiting)
        self._thread = threading.Thread(target=self._work, name="scribe", daemon=True)
        self._thread.start()

    def do(self, task: Task) -> None:
        """Carry the task out soon; wait only where too many are waiting already."""
        self._tasks.put(task)

    def close(self) -> None:
        """Carry out what is waiting, and end; `contextlib.closing` calls this."""
        self._tasks.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._carry_out(task)

    def _carry_out(self, task: Task) -> None:
        try:
            task()
        except Exception as error:  # noqa: BLE001 - a picture is not worth a training
            self._complain(f"{type(error).__name__}: {error}")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there completely or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
