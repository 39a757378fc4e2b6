"""Ranks of the trainer as real processes, quickly: forked from one that has loaded torch already.

Loading torch takes two seconds. Here one process, the nursery, loads it and then forks a child
for each rank that a test asks for. A child is a process like any other: its own pid, signals,
folder, environment, output files and exit code; it runs `paceline.trainer.main.main`, or a file
of Python. Run as a program this module is the nursery; imported, it talks to one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from paceline.events import Event, parse_events

PATIENCE_S = 100.0
_LAUNCHERS = ("RANK", "LOCAL_", "WORLD_SIZE", "MASTER_", "OMPI_", "PMI_", "SLURM_", "TORCHELASTIC_")


def free_port() -> int:
    """Return a port that nobody listens at just now."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a rank: nobody's launcher, one thread, the caller's `more`."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith((*_LAUNCHERS, "PACELINE_"))
    }
    return {**own, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that must happen; how long it takes is not tested."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, f"waited in vain: {what}"
        time.sleep(0.01)


@contextlib.contextmanager
def launched(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a launcher; if it still runs at the end, it gets the time to end its workers."""
    process = subprocess.Popen(
        argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=40)
            process.kill()
        process.communicate()


@dataclass
class Rank:
    """One process of a training."""

    pid: int
    folder: Path
    number: int
    nursery: Nursery
    _code: int | None = None

    @property
    def out(self) -> str:
        """What it has printed."""
        return (self.folder / f"rank-{self.number}.out").read_text()

    @property
    def said(self) -> str:
        """What it has said on stderr."""
        return (self.folder / f"rank-{self.number}.err").read_text()

    @property
    def events(self) -> list[Event]:
        """What it has reported."""
        path = self.folder / "events" / f"rank-{self.number}.jsonl"
        return list(parse_events(path.read_text().splitlines())) if path.exists() else []

    def code(self) -> int | None:
        """Return the exit code (minus the signal's number where one killed it), or None."""
        if self._code is None:
            self._code = self.nursery.ask({"poll": self.pid})
        return self._code

    def ended(self) -> int:
        """Wait for the end and return the exit code."""
        until(lambda: self.code() is not None, f"rank {self.number} to end")
        return self._code or 0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.code() is None:
            os.kill(self.pid, number)

    def reported(self, count: int, kind: type[Event]) -> None:
        """Wait until it has reported so many events of a kind, or has ended."""
        until(
            lambda: (
                sum(isinstance(event, kind) for event in self.events) >= count
                or self.code() is not None
            ),
            f"rank {self.number} to report {count} {kind.kind}",
        )


@dataclass
class Nursery:
    """Starts ranks, and ends those that a test leaves behind."""

    process: subprocess.Popen[str]
    folder: Path
    _started: list[Rank] = field(default_factory=list)

    def ask(self, request: Mapping[str, Any]) -> Any:
        """Send a request to the nursery's process and return its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(
        self,
        folder: Path,
        words: Sequence[str],
        *,
        ranks: int = 1,
        file: Path | None = None,
        places: Sequence[Mapping[str, str]] | None = None,
        **env: str,
    ) -> list[Rank]:
        """Start the trainer (or a file of Python) in a folder, as a job of so many ranks.

        `places` are the variables that say to each rank who it is; by default the plain ones.
        """
        (folder / "events").mkdir(parents=True, exist_ok=True)
        started = []
        for number, place in enumerate(plain_places(ranks) if places is None else places):
            own = {"PACELINE_CACHE": str(self.folder / "cache"), "HOME": str(self.folder)}
            own["PACELINE_EVENTS"] = str(folder / "events")
            request = {
                "argv": list(words),
                "file": None if file is None else str(file),
                "env": environment(**{**own, **place, **env}),
                "cwd": str(folder),
                "out": str(folder / f"rank-{number}.out"),
                "err": str(folder / f"rank-{number}.err"),
            }
            started.append(Rank(self.ask(request), folder, number, self))
        self._started += started
        return started

    def run(self, folder: Path, words: Sequence[str], **options: Any) -> list[Rank]:
        """Start it as `start` does; every rank must end well."""
        started = self.start(folder, words, **options)
        for rank in started:
            assert rank.ended() == 0, rank.said
        return started

    def clear_up(self) -> None:
        """End what still runs, each by its own pid."""
        for rank in self._started:
            rank.signal(signal.SIGKILL)
            rank.ended()
        self._started.clear()


def plain_places(ranks: int) -> list[dict[str, str]]:
    """Return the variables of ranks on one host; a rank alone needs none."""
    if ranks == 1:
        return [{}]
    common = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


@functools.lru_cache(maxsize=1)
def _nursery() -> Nursery:
    """Open the one nursery of this test process; it ends with it."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paceline-nursery-")))
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(HOME=str(folder)),
        )
    )
    return Nursery(process, folder)


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    """Lend the nursery; all ranks are gone afterwards."""
    made = _nursery()
    try:
        yield made
    finally:
        made.clear_up()


class _Child(Exception):
    """This process is a new rank."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__()
        self.request = request


def _serve(requests: IO[str]) -> None:
    """Answer requests until there are no more; a forked child leaves by `_Child`."""
    import torch
    import torch.distributed

    import paceline.trainer.rank  # noqa: F401

    torch.set_num_threads(1)
    codes: dict[int, int] = {}
    children: set[int] = set()
    for line in requests:
        request = json.loads(line)
        if "poll" in request:
            answer = _poll(request["poll"], codes)
        else:
            answer = os.fork()
            if answer == 0:
                raise _Child(request)
            children.add(answer)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in children:
        if _poll(pid, codes) is None:
            os.kill(pid, signal.SIGKILL)


def _poll(pid: int, codes: dict[int, int]) -> int | None:
    if pid not in codes:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            codes[pid] = os.waitstatus_to_exitcode(status)
    return codes.get(pid)


def _become(request: dict[str, Any]) -> None:
    """Be a rank: its folder, its environment, its files; then its work."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for target, path, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["out"], flags),
        (2, request["err"], flags),
    ):
        opened = os.open(path, mode, 0o644)
        os.dup2(opened, target)
        os.close(opened)
    code = 1
    try:
        code = _work(request)
    except BaseException as error:  # noqa: BLE001 - as the interpreter does at its end
        traceback.print_exception(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # To take torch apart would need a second, and every page of it copied.
        os._exit(code)


def _work(request: dict[str, Any]) -> int:
    from paceline.trainer.main import main

    try:
        if request["file"] is None:
            return main(request["argv"])
        sys.argv = [request["file"], *request["argv"]]
        runpy.run_path(request["file"], run_name="__main__")
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return 0


if __name__ == "__main__":
    try:
        _serve(sys.stdin)
    except _Child as child:
        wanted = child.request
    else:
        sys.exit(0)
    _become(wanted)
