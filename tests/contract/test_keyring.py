"""The contract of a keyring; every keyring, real or fake, has to pass it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.model.command import Secret
from paceline.model.ec2 import ClusterKey
from paceline.ports import HostPin, KeyPair, Keyring
from paceline.store.keyring import FileKeyring
from tests.fakes.ledger import FakeKeyring

KEY = ClusterKey("study", "ann@desk", "us-east-1")
OTHER = ClusterKey("other", "ann@desk", "us-east-1")


@pytest.fixture(params=["files", "fake"])
def keyring(request: pytest.FixtureRequest, tmp_path: Path) -> Keyring:
    """Return the keyring under test."""
    made = iter(range(100))
    if request.param == "fake":
        return FakeKeyring()
    return FileKeyring(
        tmp_path / "keys", lambda: KeyPair(Secret(f"private {next(made)}\n"), "ssh-ed25519 AA")
    )


def test_a_key_is_made_once(keyring: Keyring) -> None:
    """The same key is given again and again, and another name is another key."""
    assert not keyring.known(KEY, "user")
    first = keyring.pair(KEY, "user")
    assert keyring.known(KEY, "user")
    assert keyring.pair(KEY, "user") == first
    assert keyring.pair(KEY, "host").private != first.private
    assert repr(first.private) == "[secret]"


def test_pins_are_kept_by_host(keyring: Keyring) -> None:
    """What is known of a host's key is replaced as it changes."""
    assert keyring.pins(KEY) == {}
    keyring.write_pin(KEY, "i-1", HostPin("a", coming="b"))
    keyring.write_pin(KEY, "i-2", HostPin("a"))
    keyring.write_pin(KEY, "i-1", HostPin("b", settled=True))
    assert keyring.pins(KEY) == {"i-1": HostPin("b", settled=True), "i-2": HostPin("a")}
    assert keyring.pins(OTHER) == {}


def test_forgetting_concerns_one_cluster(keyring: Keyring) -> None:
    """A cluster's keys go with it; those of others stay."""
    keyring.pair(KEY, "user")
    kept = keyring.pair(OTHER, "user")
    keyring.write_pin(KEY, "i-1", HostPin("a"))
    keyring.forget(KEY)
    keyring.forget(KEY)
    assert not keyring.known(KEY, "user")
    assert keyring.pins(KEY) == {}
    assert keyring.pair(OTHER, "user") == kept
