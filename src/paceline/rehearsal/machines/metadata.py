"""The address 169.254.169.254: what a machine can learn of itself (IMDSv1 and IMDSv2)."""

from __future__ import annotations

import base64
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from paceline.rehearsal.emulator.keeper import Machine, MetadataAccess
from paceline.rehearsal.machines.elsewhere import Service
from paceline.rehearsal.machines.names import domain_of
from paceline.rehearsal.machines.rules import METADATA_ADDRESS, METADATA_PORT

_MOST_TTL_S = 21600
_TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105 - the name of a header
_HOPS = 64
# Who asks, by address: its answers by path, and how it may ask.
Answers = Callable[[str], "tuple[Mapping[str, str], MetadataAccess] | None"]


class MetadataServer(Service):
    """Answers in the network of one router, each machine with its own facts."""

    def __init__(self, namespace: str, answers: Answers) -> None:
        self._answers = answers
        self._tokens: dict[str, tuple[str, float]] = {}
        handler = type("Handler", (_Handler,), {"owner": self})
        super().__init__(namespace, (METADATA_ADDRESS, METADATA_PORT), handler)

    def access(self, address: str) -> MetadataAccess:
        """Return how a machine may ask; who is no machine may not."""
        known = self._answers(address)
        return MetadataAccess(enabled=False) if known is None else known[1]

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
        facts, access = known
        if not access.enabled:
            return 403, ""
        if (token is not None or access.tokens_required) and not self._valid(token, address):
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


def facts_of(machine: Machine, interruption_at: float | None) -> dict[str, str]:
    """Return what a machine's metadata holds, by path."""
    name = f"ip-{machine.private_address.replace('.', '-')}.{domain_of(machine.region)}"
    moment = None
    if interruption_at is not None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(interruption_at))
    values = {
        "instance-id": machine.instance_id,
        "instance-type": machine.instance_type,
        "instance-life-cycle": "spot" if machine.spot else "on-demand",
        "ami-id": machine.image_id,
        "hostname": name,
        "local-hostname": name,
        "local-ipv4": machine.private_address,
        "public-ipv4": machine.public_address,
        "placement/availability-zone": machine.zone,
        "placement/region": machine.region,
        "public-keys/0/openssh-key": next(iter(machine.authorised_keys), None),
        "spot/instance-action": moment and f'{{"action":"terminate","time":"{moment}"}}',
        "spot/termination-time": moment,
    }
    document = {
        "instanceId": machine.instance_id,
        "instanceType": machine.instance_type,
        "imageId": machine.image_id,
        "region": machine.region,
        "availabilityZone": machine.zone,
        "privateIp": machine.private_address,
    }
    found = {f"/latest/meta-data/{path}": text for path, text in values.items() if text is not None}
    found["/latest/dynamic/instance-identity/document"] = json.dumps(document, indent=2)
    if machine.user_data:
        data = base64.b64decode(machine.user_data)
        found["/latest/user-data"] = data.decode("utf-8", "surrogateescape")
    return found


class _Handler(BaseHTTPRequestHandler):
    """One request of a machine."""

    owner: MetadataServer
    server_version = "EC2ws"
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Give a token, which gets no further than the machine's options allow."""
        ttl = self.headers.get(f"{_TOKEN}-ttl-seconds", "")
        address = self.client_address[0]
        access = self.owner.access(address)
        refused = not access.enabled or self.headers.get("X-Forwarded-For")
        if refused or self.path != "/latest/api/token":
            self._reply(403, "")
        elif not ttl.isdigit() or not 1 <= int(ttl) <= _MOST_TTL_S:
            self._reply(400, "")
        else:
            self._reply(200, self.owner.new_token(address, int(ttl)), access.hop_limit)

    def do_GET(self) -> None:
        """Answer a question."""
        token = self.headers.get(_TOKEN)
        self._reply(*self.owner.answer(self.client_address[0], self.path, token))

    do_HEAD = do_GET  # noqa: N815 - http.server's word

    def _reply(self, status: int, text: str, hops: int = _HOPS) -> None:
        data = text.encode("utf-8", "surrogateescape")
        self.connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's word
        """Say nothing."""
