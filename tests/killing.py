"""Processes that are killed at every call: a warm parent forks one child per scene.

    with Zygote(emulator.environ) as zygote:
        for point in points(calls):
            with point.armed(emulator):
                assert zygote.run("tests.fakes.scenes:up", folder=str(folder)) == -signal.SIGKILL

A scene is a function of plain arguments in a module of its own. Python, boto3 and its service
descriptions are loaded once, in the parent, so that a child costs milliseconds. The emulator does
the killing: it finds out who has called.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from typing_extensions import Self

    from paceline.rehearsal.emulator import Emulator

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Point:
    """One moment to die at: before or after the k-th call."""

    number: int
    effect: Literal["kill-before", "kill-after"]
    changing_only: bool = False

    @contextmanager
    def armed(self, emulator: Emulator) -> Iterator[None]:
        """Let whoever makes that call be killed, once."""
        from paceline.rehearsal.emulator import Fault

        fault = emulator.faults.add(
            Fault(self.effect, at=self.number, changing_only=self.changing_only)
        )
        try:
            yield
            assert fault.struck == 1, f"{self} was never reached"
        finally:
            emulator.faults.remove(fault)


def points(calls: int, *, changing_only: bool = False) -> Iterator[Point]:
    """Return all moments around so many calls."""
    for number in range(1, calls + 1):
        yield Point(number, "kill-before", changing_only)
        yield Point(number, "kill-after", changing_only)


class Zygote:
    """A process that has loaded everything and forks a child for each scene."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        env = {**os.environ, **environ}
        env["PYTHONPATH"] = os.pathsep.join(
            [str(_ROOT), str(_ROOT / "src"), env.get("PYTHONPATH", "")]
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killing"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=_ROOT,
        )  # fmt: skip

    def __enter__(self) -> Self:
        """Begin to use it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def run(self, scene: str, **words: object) -> int:
        """Carry a scene out in a child; return its exit code, negative for a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([scene, words]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def must_die(self, scene: str, **words: object) -> None:
        """Carry a scene out that is to be killed."""
        assert self.run(scene, **words) == -signal.SIGKILL


def _serve() -> None:
    for line in sys.stdin:
        scene, words = json.loads(line)
        module, _, name = scene.partition(":")
        act = getattr(import_module(module), name)  # loaded here, so that children have it
        pid = os.fork()
        if pid == 0:
            _child(act, words)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


def _child(act: object, words: Mapping[str, object]) -> None:
    code = 1
    try:
        assert callable(act)
        act(**words)
        code = 0
    except BaseException:  # noqa: BLE001 - a child that fails must not go on as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
