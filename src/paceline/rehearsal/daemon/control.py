"""Speaking to the daemon: one JSON object each way, over a socket that root alone can open."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paceline.errors import EnvironmentFault, NotFound, PacelineError, PlanError, UsageError

_WITHIN_S = 120.0
_ERRORS = {error.__name__: error for error in (EnvironmentFault, NotFound, PlanError, UsageError)}
Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def ask(path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the daemon, and return its answer; its refusal is raised here."""
    try:
        with socket.socket(socket.AF_UNIX) as link, _short(Path(path)) as name:
            link.settimeout(_WITHIN_S)
            link.connect(name)
            link.sendall(json.dumps(question).encode() + b"\n")
            with link.makefile("rb") as file:
                answer = json.loads(file.readline() or b"{}")
    except (OSError, ValueError) as error:
        raise EnvironmentFault(
            f"the rehearsal's daemon does not answer: {error}",
            hint="`paceline rehearsal stop` clears up after it",
        ) from error
    if "error" in answer:
        kind = _ERRORS.get(answer["error"], PacelineError)
        raise kind(answer["message"], hint=answer.get("hint"))
    return dict(answer)


class Control:
    """The daemon's side: answers each question in a thread of its own."""

    def __init__(self, path: Path, answer: Answer) -> None:
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
        with _short(path) as name:
            self._server = _Server(name, handler)
        path.chmod(0o600)
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _Handler(socketserver.StreamRequestHandler):
    answer: Answer

    def handle(self) -> None:
        """Answer one question."""
        try:
            found = self.answer(json.loads(self.rfile.readline()))
        except PacelineError as error:
            found = {
                "error": type(error).__name__, "message": str(error), "hint": error.hint,
            }  # fmt: skip
        except Exception as error:  # noqa: BLE001 - the one who asked shall hear of it
            found = {"error": "PacelineError", "message": f"{type(error).__name__}: {error}"}
        self.wfile.write(json.dumps(found).encode() + b"\n")


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Lend a short name: that of a socket has at most 107 letters, a folder's may have more."""
    folder = os.open(path.parent, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
