"""A name server for the machines of a region, as EC2 has one: every private address has a name."""

from __future__ import annotations

import re
import socketserver
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

from paceline.rehearsal.machines.elsewhere import Service
from paceline.rehearsal.machines.rules import NAMES_ADDRESS

# Where a VPC's own name server answers on EC2 as well.
ADDRESS, PORT = NAMES_ADDRESS, 53
_A, _PTR, _ANY, _INTERNET = 1, 12, 255, 1
_ANSWER, _NO_SUCH_NAME = 0x8580, 3
_TTL_S = 60
_LONGEST = 63
_FORWARD = re.compile(r"ip-(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})")
_BACKWARD = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa")


@dataclass(frozen=True)
class Question:
    """What somebody wants to know: a name, and which kind of thing about it."""

    number: int
    name: str
    kind: int
    raw: bytes


def domain_of(region: str) -> str:
    """Return the domain that EC2 gives to the names of machines."""
    return "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"


def answer_to(packet: bytes, domain: str) -> bytes | None:
    """Return the answer to a packet; None where it is no question."""
    asked = _read(packet)
    if asked is None:
        return None
    found = _look_up(asked, domain)
    code = 0 if found is not None else _NO_SUCH_NAME
    count = 1 if found else 0
    head = struct.pack("!6H", asked.number, _ANSWER | code, 1, count, 0, 0)
    return head + asked.raw + (found or b"")


def _look_up(asked: Question, domain: str) -> bytes | None:
    """Return the record that is asked for; empty if the name has none of that kind."""
    name = asked.name.lower()
    if forward := _FORWARD.fullmatch(name.removesuffix(f".{domain}")):
        address = _address(".".join(forward.groups()))
        if address is None or not name.endswith(domain):
            return None
        return _record(_A, address.packed) if asked.kind in {_A, _ANY} else b""
    if backward := _BACKWARD.fullmatch(name):
        address = _address(".".join(reversed(backward.groups())))
        if address is None or not address.is_private:
            return None
        host = f"ip-{str(address).replace('.', '-')}.{domain}"
        return _record(_PTR, _labels(host)) if asked.kind in {_PTR, _ANY} else b""
    return None


def _address(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except ValueError:
        return None


def _record(kind: int, data: bytes) -> bytes:
    # 0xC00C points to the name of the question.
    return struct.pack("!HHHIH", 0xC00C, kind, _INTERNET, _TTL_S, len(data)) + data


def _labels(name: str) -> bytes:
    parts = (part.encode() for part in name.split("."))
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


def _read(packet: bytes) -> Question | None:
    try:
        number, flags, count = struct.unpack("!3H", packet[:6])
        if flags & 0x8000 or count != 1:
            return None
        labels, place = [], 12
        while (length := packet[place]) != 0:
            if length > _LONGEST:
                return None
            labels.append(packet[place + 1 : place + 1 + length].decode("ascii", "replace"))
            place += 1 + length
        (kind,) = struct.unpack("!H", packet[place + 1 : place + 3])
    except (struct.error, IndexError):
        return None
    return Question(number, ".".join(labels), kind, packet[12 : place + 5])


class NameServer(Service):
    """Answers in the network of one router."""

    def __init__(self, namespace: str, region: str) -> None:
        handler = type("Handler", (_Handler,), {"domain": domain_of(region)})
        super().__init__(namespace, (ADDRESS, PORT), handler, socketserver.ThreadingUDPServer)


class _Handler(socketserver.BaseRequestHandler):
    domain: str

    def handle(self) -> None:
        """Answer one question."""
        packet, link = self.request
        answer = answer_to(packet, self.domain)
        if answer is not None:
            link.sendto(answer, self.client_address)
