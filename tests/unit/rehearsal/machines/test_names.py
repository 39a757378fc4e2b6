"""The name server: what EC2's says, and an answer to everything else."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.rehearsal.machines.names import answer_to, domain_of

A, PTR, AAAA = 1, 12, 28


def _ask(name: str, kind: int) -> tuple[int, bytes]:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    question = labels + b"\0" + struct.pack("!HH", kind, 1)
    answer = answer_to(struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + question, "ec2.internal")
    assert answer is not None
    number, flags, _, count, _, _ = struct.unpack("!6H", answer[:12])
    assert (number, flags & 0x8000) == (7, 0x8000)
    record = answer[12 + len(question) :]
    assert bool(count) == bool(record)
    return flags & 0xF, record[12:]


def test_names_of_machines() -> None:
    """A name is the address that stands in it, and an address has its name."""
    assert _ask("ip-172-31-16-5.ec2.internal", A) == (0, bytes([172, 31, 16, 5]))
    code, data = _ask("5.16.31.172.in-addr.arpa", PTR)
    assert (code, data) == (0, b"\x0eip-172-31-16-5\x03ec2\x08internal\x00")


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("ip-172-31-16-5.ec2.internal", AAAA, 0),
        ("ip-172-31-16-500.ec2.internal", A, 3),
        ("ip-172-31-16-5.elsewhere", A, 3),
        ("example.org", A, 3),
        ("8.8.8.8.in-addr.arpa", PTR, 3),
    ],
)
def test_everything_else_has_no_answer(name: str, kind: int, code: int) -> None:
    """Nobody waits for a name that there is not."""
    assert _ask(name, kind) == (code, b"")


@given(st.binary(max_size=80))
def test_any_packet_is_taken(packet: bytes) -> None:
    """What is no question is passed over."""
    answer = answer_to(packet, "ec2.internal")
    assert answer is None or answer[:2] == packet[:2]


def test_domains() -> None:
    """The first region's machines have the short domain."""
    assert domain_of("us-east-1") == "ec2.internal"
    assert domain_of("eu-west-1") == "eu-west-1.compute.internal"
