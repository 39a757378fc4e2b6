"""The metadata: what a machine is told, and how it has to ask."""

from __future__ import annotations

import base64
from dataclasses import replace

from paceline.rehearsal.emulator.keeper import Machine, MetadataAccess
from paceline.rehearsal.machines.metadata import MetadataServer, facts_of, look_up

MACHINE = Machine(
    instance_id="i-1", region="eu-west-1", zone="eu-west-1a", instance_type="m5.large", vcpus=2,
    memory_mib=8192, network="Up to 10 Gigabit", image_id="ami-1", user="ubuntu",
    private_address="172.31.0.4", public_address=None, user_data="", authorised_keys=(),
    group_ids=(),
)  # fmt: skip


class Desk(MetadataServer):
    """A server that nobody listens for."""

    def __init__(self, access: MetadataAccess) -> None:
        facts = facts_of(MACHINE, None)
        self._answers = lambda one: (facts, access) if one == "172.31.0.4" else None
        self._tokens = {}


def test_what_there_is_none_of_is_not_listed() -> None:
    """Without public address, key, notice and user data, there are no such paths."""
    facts = facts_of(MACHINE, None)
    status, listing = look_up(facts, "/latest/meta-data/")
    assert status == 200
    assert not {"public-ipv4", "public-keys/", "spot/"} & set(listing.split())
    assert look_up(facts, "/latest") == (200, "dynamic/\nmeta-data/")
    assert look_up(facts, "/latest/user-data")[0] == 404


def test_the_user_data_comes_as_it_was_given() -> None:
    """Bytes that are no text come back as the same bytes."""
    given = b"\x1f\x8b\xff not text"
    machine = replace(MACHINE, user_data=base64.b64encode(given).decode())
    found = look_up(facts_of(machine, None), "/latest/user-data")[1]
    assert found.encode("utf-8", "surrogateescape") == given


def test_whoever_asks_needs_what_the_machine_was_launched_with() -> None:
    """With or without a token, a token of another machine, or not at all."""
    path, address = "/latest/meta-data/instance-id", "172.31.0.4"
    asked = Desk(MetadataAccess(tokens_required=True))
    token = asked.new_token(address, 60)
    assert asked.answer(address, path, token) == (200, "i-1")
    assert asked.answer(address, path, None)[0] == 401
    assert asked.answer(address, path, asked.new_token("172.31.0.5", 60))[0] == 401
    assert Desk(MetadataAccess()).answer(address, path, None) == (200, "i-1")
    assert Desk(MetadataAccess()).answer(address, path, "wrong")[0] == 401
    assert Desk(MetadataAccess(enabled=False)).answer(address, path, None)[0] == 403
    assert Desk(MetadataAccess()).answer("172.31.0.9", path, None)[0] == 404
    assert not Desk(MetadataAccess()).access("172.31.0.9").enabled
