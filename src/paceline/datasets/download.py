"""Downloads one file over HTTP: resumed where it stopped, checked while it comes, limited in time.

What has come so far lies in `NAME.part`; the file itself appears only when its size and its
SHA-256 are right. A wrong file is deleted and fetched once more, then given up.
"""

from __future__ import annotations

import hashlib
import http.client
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from paceline.datasets.catalogue import WebFile
from paceline.datasets.nouns import Progress, silent
from paceline.datasets.web import opener
from paceline.errors import DataError

_BLOCK = 1 << 18
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONTENT_TRIES = 2


class Unreachable(DataError):
    """A host cannot be reached, or does not have the file: try another source at once."""


class _Interrupted(Exception):
    """The transfer broke off; what came so far is kept."""


@dataclass(frozen=True)
class Limits:
    """How long to wait for what, and how often to try; seconds."""

    connect_s: float = 5.0
    silence_s: float = 15.0
    whole_s: float = 3600.0
    tries: int = 5
    pause_s: float = 1.0
    sleep: Callable[[float], None] = time.sleep


def download(
    file: WebFile, folder: Path, *, progress: Progress = silent, limits: Limits | None = None
) -> Path:
    """Return the path of a downloaded and verified file."""
    return _Transfer(file, folder, progress, limits or Limits()).run()


class _Transfer:
    """The download of one file; its digest grows with the part that lies on the disk."""

    def __init__(self, file: WebFile, folder: Path, progress: Progress, limits: Limits) -> None:
        self._file = file
        self._target = folder / file.name
        self._part = folder / f"{file.name}.part"
        self._progress = progress
        self._limits = limits
        self._deadline = time.monotonic() + limits.whole_s
        self._digest = hashlib.sha256()
        self._have = 0
        self._connected = False

    def run(self) -> Path:
        """Bring the file, and once more if it is a wrong one."""
        wrong = ""
        for _ in range(_CONTENT_TRIES):
            self._take_up()
            self._bring()
            wrong = self._difference()
            if not wrong:
                self._part.replace(self._target)
                return self._target
            self._start_over()
        raise DataError(
            f"{self._file.url} is not what was published: {wrong}",
            hint="it was fetched twice; try another network, or bring the file by other means",
        )

    def _difference(self) -> str:
        if self._have != self._file.size_bytes:
            return f"expected {self._file.size_bytes} bytes, got {self._have} or more"
        if self._digest.hexdigest() != self._file.sha256:
            return f"expected SHA-256 {self._file.sha256}, got {self._digest.hexdigest()}"
        return ""

    def _take_up(self) -> None:
        """Read what an earlier try left; a digest cannot be resumed otherwise."""
        self._digest, self._have = hashlib.sha256(), 0
        if not self._part.is_file():
            return
        with self._part.open("rb") as part:
            while block := part.read(_BLOCK):
                self._digest.update(block)
                self._have += len(block)
        if self._have > self._file.size_bytes:
            self._start_over()

    def _start_over(self) -> None:
        self._part.unlink(missing_ok=True)
        self._digest, self._have = hashlib.sha256(), 0

    def _bring(self) -> None:
        """Transfer the rest, again and again; only tries that bring nothing are counted."""
        failures = 0
        while self._have < self._file.size_bytes:
            before = self._have
            try:
                self._transfer()
            except _Interrupted as error:
                failures = 1 if self._have > before else failures + 1
                if failures >= self._limits.tries:
                    raise Unreachable(
                        f"{self._file.url} broke off again and again: {error}"
                    ) from error
                self._pause(failures, error)
            else:
                return

    def _pause(self, failures: int, error: _Interrupted) -> None:
        jitter = random.uniform(0.75, 1.25)  # noqa: S311 - nothing secret
        pause_s = self._limits.pause_s * 2 ** (failures - 1) * jitter
        if time.monotonic() + pause_s > self._deadline:
            raise self._too_slow() from error
        self._limits.sleep(pause_s)

    def _too_slow(self) -> Unreachable:
        limit_s = self._limits.whole_s
        return Unreachable(f"{self._file.url} took more than {limit_s:.0f} s; what came is kept")

    def _transfer(self) -> None:
        with self._request() as response:
            self._connected = True
            if response.status != http.client.PARTIAL_CONTENT:
                self._start_over()
            elif not _continues(response, self._have):
                self._start_over()
                raise _Interrupted("the server resumed at another place")
            announced = response.headers.get("Content-Length", "")
            end = self._have + int(announced) if announced.isdigit() else None
            with self._part.open("ab") as part:
                self._receive(response, part)
        if end is not None and self._have < end and self._have <= self._file.size_bytes:
            raise _Interrupted(f"{end - self._have} bytes are missing")

    def _request(self) -> Any:
        headers = {"User-Agent": "paceline", "Accept-Encoding": "identity"}
        if self._have:
            headers["Range"] = f"bytes={self._have}-"
        request = urllib.request.Request(self._file.url, headers=headers)  # noqa: S310 - see web.py
        try:
            return opener(self._limits.connect_s).open(request, timeout=self._limits.silence_s)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error.code) from error
        except (OSError, http.client.HTTPException) as error:
            # A host that never answered is out of reach; one that did may come back.
            if self._connected:
                raise _Interrupted(_reason(error)) from error
            raise Unreachable(f"{self._file.url}: {_reason(error)}") from error

    def _refused(self, status: int) -> Exception:
        if status == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            self._start_over()
            return _Interrupted("the server would not resume")
        if status in _PASSING:
            return _Interrupted(f"the server answered {status}")
        return Unreachable(f"{self._file.url}: the server answered {status}")

    def _receive(self, response: Any, part: BinaryIO) -> None:
        """Take what comes, and stop as soon as it is more than there should be."""
        while self._have <= self._file.size_bytes:
            try:
                block = response.read1(_BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise _Interrupted(_reason(error)) from error
            if not block:
                return
            part.write(block)
            self._digest.update(block)
            self._have += len(block)
            self._progress(f"downloading {self._file.name}", self._have, self._file.size_bytes)
            if time.monotonic() > self._deadline:
                raise self._too_slow()


def _continues(response: Any, start: int) -> bool:
    return str(response.headers.get("Content-Range", "")).startswith(f"bytes {start}-")


def _reason(error: BaseException) -> str:
    inner = getattr(error, "reason", None)
    return str(inner or error) or type(error).__name__
