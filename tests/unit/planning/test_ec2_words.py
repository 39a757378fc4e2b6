from __future__ import annotations

import base64
import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.command import Secret
from paceline.model.ec2 import ClusterKey
from paceline.model.spec import load_spec
from paceline.planning.ec2.identity import (
    client_token,
    expiry_of,
    owner_word,
    resource_name,
    tags_of,
)
from paceline.planning.ec2.quotas import exceeded, quota_of
from paceline.planning.ec2.rules import Rule, permissions, present_rules, shut_out, wanted_rules
from paceline.planning.ec2.userdata import EXPIRY_SCRIPT, expiry_script, user_data
from paceline.planning.ec2.wish import wish_of
from paceline.ports import KeyPair

KEY = ClusterKey("study", "ann@desk", "us-east-1")


def test_names_are_the_same_every_time_and_ours_alone() -> None:
    """Two owners' clusters of one name do not meet, and no process has to remember a name."""
    assert resource_name(KEY) == resource_name(ClusterKey("study", "ann@desk", "us-east-1"))
    assert resource_name(KEY).startswith("paceline-study-")
    assert resource_name(KEY) != resource_name(ClusterKey("study", "bob@desk", "us-east-1"))


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_the_expiry_is_read_back_from_the_tags(seconds: int) -> None:
    """What a tag says is when the hosts end."""
    assert expiry_of(tags_of(KEY, float(seconds))) == seconds
    assert expiry_of({}) is None


@given(st.text())
def test_any_owner_fits_into_a_tag(name: str) -> None:
    """Whatever the machine and its user are called, AWS takes it."""
    word = owner_word(name)
    assert 0 < len(word) <= 256
    assert word.isascii()


def test_tokens_are_reproducible_and_short_enough() -> None:
    """The same nonce gives the same token; AWS takes at most 64 characters."""
    token = client_token(KEY, "nonce", "m5.large", "us-east-1a")
    assert token == client_token(KEY, "nonce", "m5.large", "us-east-1a")
    assert token != client_token(KEY, "other", "m5.large", "us-east-1a")
    assert len(token) <= 64


def test_a_wish_has_every_default() -> None:
    """`provider: ec2` alone is a complete wish, and the study says how many hosts it needs."""
    spec = load_spec("cluster: {provider: ec2}\nstudy: {grid: {nodes: [2, 4]}}\nname: s")
    wish = wish_of(spec, "ann@desk", "eu-west-1")
    assert wish.key == ClusterKey("s", "ann@desk", "eu-west-1")
    assert (wish.types, wish.nodes, wish.min_nodes) == (("m5.large",), 4, 4)
    assert (wish.ssh_from, wish.market, wish.placement) == (("me",), "on-demand", "none")
    assert wish.disk.encrypted
    assert wish.ttl_s == 4 * 3600


def test_only_our_own_address_may_knock() -> None:
    """SSH is open to the caller's own address alone, and everything inside the group."""
    spec = load_spec("cluster: {provider: ec2, open_ports: [8888]}")
    wish = wish_of(spec, "o", "us-east-1")
    rules = wanted_rules(wish, "203.0.113.7", "sg-1")
    assert rules == (
        Rule(22, "203.0.113.7/32"),
        Rule(8888, "203.0.113.7/32"),
        Rule(None, group_id="sg-1"),
    )
    assert present_rules(permissions(rules)) == rules
    assert Rule(22, "2001:db8::7/128") in wanted_rules(wish, "2001:db8::7", "sg-1")


def test_whoever_locks_themselves_out_is_told() -> None:
    """Networks that our own address is in none of are named; who cannot know says nothing."""
    spec = load_spec("cluster: {provider: ec2, ssh_from: [198.51.100.0/24, '2001:db8::/32']}")
    wish = wish_of(spec, "o", "us-east-1")
    assert "203.0.113.7" in (shut_out(wish, "203.0.113.7") or "")
    for address in ("198.51.100.9", "2001:db8::7", None):
        assert shut_out(wish, address) is None
    ours = wish_of(load_spec("cluster: {provider: ec2}"), "o", "us-east-1")
    assert shut_out(ours, "203.0.113.7") is None


def test_networks_of_the_spec_come_in_their_own_words() -> None:
    """With networks in the spec, our own address is not among them unless it is asked for."""
    spec = load_spec("cluster: {provider: ec2, ssh_from: [198.51.100.0/24]}")
    rules = wanted_rules(wish_of(spec, "o", "us-east-1"), None, "sg-1")
    assert rules == (Rule(22, "198.51.100.0/24"), Rule(None, group_id="sg-1"))


@pytest.mark.parametrize(
    ("kind", "market", "code"),
    [
        ("m5.large", "on-demand", "L-1216C47A"),
        ("m5.large", "spot", "L-34B43A08"),
        ("g5.xlarge", "on-demand", "L-DB2E81BA"),
        ("p4d.24xlarge", "on-demand", "L-417A185B"),
        ("inf2.xlarge", "spot", "L-B5D1601B"),
        ("trn1.2xlarge", "on-demand", "L-2C3B7624"),
        ("i4i.large", "on-demand", "L-1216C47A"),
        ("d3.xlarge", "on-demand", "L-1216C47A"),
        ("u7i-12tb.224xlarge", "on-demand", "L-43DA4232"),
    ],
)
def test_every_family_has_its_quota(kind: str, market: str, code: str) -> None:
    """The limit that counts depends on the first letters of the type."""
    assert quota_of(kind, market).code == code


def test_quota_arithmetic() -> None:
    """What runs counts too; a limit that nobody may look at refuses nothing."""
    quota = quota_of("m5.large", "on-demand")
    assert exceeded(quota, 32, 24, 2, 4) is None
    assert "5 hosts need 10 vCPUs" in str(exceeded(quota, 32, 24, 2, 5))
    assert exceeded(quota, None, 24, 2, 500) is None


def test_user_data_hides_the_host_key_and_says_the_rest() -> None:
    """The document is what cloud-init reads, within its limit, and prints as a secret."""
    made = user_data(KeyPair(Secret("PRIVATE\nHALF\n"), "ssh-ed25519 AAAA"), 1_800_000_000.5)
    assert str(made) == "[secret]"
    head, _, body = made.value.partition("\n")
    document = json.loads(body)
    assert head == "#cloud-config"
    assert document["ssh_keys"]["ed25519_private"] == "PRIVATE\nHALF\n"
    assert document["ssh_pwauth"] is False
    (file,) = document["write_files"]
    assert (file["path"], file["permissions"]) == (EXPIRY_SCRIPT, "0755")
    assert len(base64.b64encode(made.value.encode())) < 16384


def test_the_expiry_script_is_good_shell() -> None:
    """Every host runs it at every boot; it must parse in the plainest shell."""
    script = expiry_script(1_800_000_000.9)
    assert "expires_at=1800000000\n" in script
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
