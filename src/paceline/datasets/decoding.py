"""Decodes many pictures at once, in order, with a bounded number of processes."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Callable, Union

from paceline.datasets.decode_worker import ANSWER, GREETING, NUMBER
from paceline.errors import EnvironmentFault, MissingProgram

MOST_WORKERS = 32
BUNDLE = 32
_BUNDLE_BYTES = 8 << 20
_DYING_S = 10.0

Read = Callable[[int], bytes]
"""Fetches the encoded bytes of one picture by its number."""


@dataclass(frozen=True)
class Bad:
    """A picture that could not be decoded, and why."""

    reason: str


Decoded = Union[bytes, Bad]


def require_pillow() -> None:
    """Say so before any work if pictures cannot be decoded on this host."""
    require_module("PIL", "Pillow", "pip install pillow")


def require_module(module: str, title: str, command: str) -> None:
    """Raise MissingProgram, with the command that helps, where a module is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingProgram(
            f"{title} is not installed, and is needed to read these images",
            hint=f"install it where the job runs: {command}",
        )


def worker_count(items: int) -> int:
    """Return how many processes are worth starting: the cores we may use, within limits."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, MOST_WORKERS, -(-items // BUNDLE)))


def decoded(
    read: Read, total: int, *, size: int, channels: int, workers: int | None = None
) -> Iterator[Decoded]:
    """Yield the pixels of each picture, or what is wrong with it, in the given order."""
    number = worker_count(total) if workers is None else workers
    with contextlib.ExitStack() as stack:
        idle: SimpleQueue[_Worker] = SimpleQueue()
        for _ in range(number):
            worker = _Worker(size, channels)
            stack.callback(worker.close)
            idle.put(worker)
        pool = ThreadPoolExecutor(number, thread_name_prefix="decoding")
        stack.callback(pool.shutdown, wait=True)

        def work(bundle: range) -> list[Decoded]:
            worker = idle.get()
            try:
                return worker.decode(_read_all(read, bundle))
            finally:
                idle.put(worker)

        # A window of bundles keeps all workers busy and the memory bounded.
        waiting: deque[Future[list[Decoded]]] = deque()
        stack.callback(lambda: [one.cancel() for one in waiting])
        for start in range(0, total, BUNDLE):
            waiting.append(pool.submit(work, range(start, min(start + BUNDLE, total))))
            if len(waiting) > 2 * number:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


class _Worker:
    """One decoding process, started when it is first needed and again if it crashes."""

    def __init__(self, size: int, channels: int) -> None:
        self._argv: tuple[str, ...] = (
            *(sys.executable, "-m", "paceline.datasets.decode_worker"),
            *(str(size), str(channels)),
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None

    def decode(self, bundle: Iterable[Decoded]) -> list[Decoded]:
        """Decode a bundle; a picture that crashes the process is found and named."""
        answers: list[Decoded] = []
        for encoded in _by_size(bundle):
            answers += self._decode_or_split(encoded)
        return answers

    def _decode_or_split(self, encoded: Sequence[Decoded]) -> list[Decoded]:
        try:
            return self._exchange(encoded)
        except (EOFError, BrokenPipeError):
            reason = f"the decoder crashed: {self._last_words()}"
            self.close()
        if len(encoded) == 1:
            return [Bad(reason)]
        return [answer for one in encoded for answer in self._decode_or_split([one])]

    def _exchange(self, encoded: Sequence[Decoded]) -> list[Decoded]:
        good = [item for item in encoded if isinstance(item, bytes)]
        if not good:
            return list(encoded)
        incoming, outgoing = self._pipes()
        incoming.write(NUMBER.pack(len(good)))
        for item in good:
            incoming.write(NUMBER.pack(len(item)))
            incoming.write(item)
        incoming.flush()
        return [_answer(outgoing) if isinstance(item, bytes) else item for item in encoded]

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise EOFError
        return process.stdin, process.stdout

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process; one that cannot even greet will fail for every picture."""
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={**os.environ, "PYTHONPATH": _python_path()},
            start_new_session=True,  # Ctrl-C is for us: we end the workers
        )
        stdout = self._process.stdout
        if stdout is None or stdout.read(len(GREETING)) != GREETING:
            raise EnvironmentFault(
                f"the decoder of pictures does not start: {self._last_words()}",
                hint="is Pillow installed for this Python? try: python -m PIL",
            )
        return self._process

    def _last_words(self) -> str:
        code: int | None = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_DYING_S)
        lines: list[str] = []
        if self._complaints is not None:
            self._complaints.seek(0)
            lines = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {code}"

    def close(self) -> None:
        """End the process; nothing of value is in it."""
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            self._process.wait()
        if self._complaints is not None:
            self._complaints.close()
        self._process = self._complaints = None


def _python_path() -> str:
    """Return a search path on which the new process finds this package as we did."""
    ours = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH", ""))))


def _read_all(read: Read, bundle: Iterable[int]) -> Iterator[Decoded]:
    for number in bundle:
        try:
            content = read(number)
        except OSError as error:
            yield Bad(error.strerror or str(error))
            continue
        yield content or Bad("it is empty")


def _by_size(items: Iterable[Decoded]) -> Iterator[list[Decoded]]:
    """Split a bundle of large pictures, so that a bundle never takes much memory."""
    held: list[Decoded] = []
    held_bytes = 0
    for item in items:
        held.append(item)
        held_bytes += len(item) if isinstance(item, bytes) else 0
        if held_bytes >= _BUNDLE_BYTES:
            yield held
            held, held_bytes = [], 0
    if held:
        yield held


def _answer(outgoing: IO[bytes]) -> Decoded:
    head = outgoing.read(ANSWER.size)
    if len(head) != ANSWER.size:
        raise EOFError
    good, length = ANSWER.unpack(head)
    content = outgoing.read(length)
    if len(content) != length:
        raise EOFError
    return content if good else Bad(content.decode("utf-8", "replace"))
