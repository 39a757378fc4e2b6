"""The address 169.254.169.254: what a machine can learn of itself (IMDSv1 and IMDSv2)."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from paceline.rehearsal.machines.elsewhere import Service
from paceline.rehearsal.machines.rules import METADATA_ADDRESS, METADATA_PORT

_MOST_TTL_S = 21600
_TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105 - the name of a header
_ROOTS = ("/latest/meta-data", "/latest/dynamic", "/latest/user-data")
# Who asks, by address: its answers by path, and whether a token is required.
Answers = Callable[[str], "tuple[Mapping[str, str], bool] | None"]


class MetadataServer(Service):
    """Answers in the network of one router, each machine with its own facts."""

    def __init__(self, namespace: str, answers: Answers) -> None:
        self._answers = answers
        self._tokens: dict[str, tuple[str, float]] = {}
        handler = type("Handler", (_Handler,), {"owner": self})
        super().__init__(namespace, (METADATA_ADDRESS, METADATA_PORT), handler)

    def new_token(self, address: str, ttl_s: int) -> str:
        """Return a token that opens the metadata to one machine for a while."""
        token = secrets.token_urlsafe(40)
        self._tokens[token] = (address, time.monotonic() + ttl_s)
        return token

    def answer(self, address: str, path: str, token: str | None) -> tuple[int, str]:
        """Return status and text for a question."""
        known = self._answers(address)
        if known is None:
            return 404, ""
        facts, token_required = known
        if (token is not None or token_required) and not self._valid(token, address):
            return 401, ""
        return look_up(facts, path)

    def _valid(self, token: str | None, address: str) -> bool:
        owner, until = self._tokens.get(token or "", ("", 0.0))
        return owner == address and time.monotonic() < until


def look_up(facts: Mapping[str, str], path: str) -> tuple[int, str]:
    """Return a value, or the listing of a folder."""
    key = path.rstrip("/")
    if key in facts:
        return 200, facts[key]
    below = {name[len(key) + 1 :] for name in facts if name.startswith(f"{key}/")}
    if not below:
        return 404, ""
    names = {f"{name.partition('/')[0]}/" if "/" in name else name for name in below}
    return 200, "\n".join(sorted(names))


def facts_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths under which a machine finds its facts; None is "there is none"."""
    top = "/latest/meta-data"
    found = {
        f"{top}/{path}": str(value)
        for path, value in values["meta-data"].items()
        if value is not None
    }
    document = json.dumps(values["document"], indent=2)
    found["/latest/dynamic/instance-identity/document"] = document
    if values.get("user-data"):
        found["/latest/user-data"] = values["user-data"]
    return found


class _Handler(BaseHTTPRequestHandler):
    """One request of a machine."""

    owner: MetadataServer
    server_version = "EC2ws"
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Give a token."""
        ttl = self.headers.get(f"{_TOKEN}-ttl-seconds", "")
        if self.path != "/latest/api/token" or self.headers.get("X-Forwarded-For"):
            self._reply(403, "")
        elif not ttl.isdigit() or not 1 <= int(ttl) <= _MOST_TTL_S:
            self._reply(400, "")
        else:
            self._reply(200, self.owner.new_token(self.client_address[0], int(ttl)))

    def do_GET(self) -> None:
        """Answer a question."""
        token = self.headers.get(_TOKEN)
        self._reply(*self.owner.answer(self.client_address[0], self.path, token))

    def _reply(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's word
        """Say nothing."""
