"""A study that goes on without its terminal: the same command, in a session of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.api.wiring import load, results_folder
from paceline.errors import JobFailed
from paceline.store.files import storage_errors

_LOOKS_AFTER_S = 1.5
_LAST_WORDS = 600


@dataclass(frozen=True)
class DetachedStudy:
    """A study that goes on by itself: its name, its process, and where its words go."""

    name: str
    pid: int
    log: Path


def study_detached(
    spec: Path | str | None = None,
    *,
    overrides: Sequence[str] = (),
    results: Path | str | None = None,
) -> DetachedStudy:
    """Start a study that outlives this process; `watch` looks on, SIGTERM ends it in order.

    Mistakes in the spec, and what makes it end at once, are raised here.
    """
    name = load(spec, overrides).name
    folder = results_folder(results)
    log = folder / f"{name}.log"
    with storage_errors(log):
        folder.mkdir(parents=True, exist_ok=True)
        words = log.open("wb")
    with words:
        process = subprocess.Popen(
            detached_words(spec, overrides, folder),
            stdin=subprocess.DEVNULL, stdout=words, stderr=words, start_new_session=True,
        )  # fmt: skip
    _raise_if_over(process, log)
    return DetachedStudy(name, process.pid, log)


def detached_words(
    spec: Path | str | None, overrides: Sequence[str], folder: Path
) -> tuple[str, ...]:
    """Return the command of a study's own process."""
    sets = (word for override in overrides for word in ("--set", override))
    named = () if spec is None else (str(spec),)
    program = (sys.executable, "-m", "paceline", "study")
    return (*program, *named, *sets, "--results", str(folder))


def _raise_if_over(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait a moment: what fails at once is better said here than in a file."""
    deadline = time.monotonic() + _LOOKS_AFTER_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if process.returncode:
        said = log.read_text(errors="replace")[-_LAST_WORDS:].strip()
        raise JobFailed(f"the study ended at once:\n{said}", hint=f"its words are in {log}")
