"""A metadata service as a machine of EC2 sees it, on our loopback: a token first, then answers."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Metadata:
    """What the service says; `notice` is the text of `spot/instance-action`, None a 404.

    `notices_left` counts how often a notice is given before there is none again.
    """

    address: str = ""
    notice: str | None = None
    notices_left: int = 10**6
    tokens: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def take_back(self, in_s: float = 120.0, *, times: int = 10**6) -> None:
        """Say that the machine will be terminated."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + in_s))
        self.notice = json.dumps({"action": "terminate", "time": moment})
        self.notices_left = times

    def answer(self, method: str, path: str, token: str | None) -> tuple[int, str]:
        """Return status and text."""
        self.asked.append(f"{method} {path}")
        if (method, path) == ("PUT", "/latest/api/token"):
            self.tokens.add(made := f"token-{len(self.asked)}")
            return 200, made
        if token not in self.tokens:
            return 401, ""
        if path != "/latest/meta-data/spot/instance-action" or self.notice is None:
            return 404, ""
        self.notices_left -= 1
        return (200, self.notice) if self.notices_left >= 0 else (404, "")


@contextlib.contextmanager
def metadata_service() -> Iterator[Metadata]:
    """Serve metadata at a port of our own."""
    metadata = Metadata()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_PUT(self) -> None:
            # As the real one, it gives no token to those that do not say how long it shall live.
            if self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") is None:
                self.send_error(400)
                return
            self._answer("PUT")

        def _answer(self, method: str) -> None:
            token = self.headers.get("X-aws-ec2-metadata-token")
            status, text = metadata.answer(method, self.path, token)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # whoever asked has ended meanwhile
                self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        metadata.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield metadata
        finally:
            server.shutdown()
            thread.join()
