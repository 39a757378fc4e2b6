"""Security groups as a rule set: who is let in, who is let out."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from paceline.rehearsal.emulator.keeper import Group, Guard, Member, Permission
from paceline.rehearsal.machines.rules import rule_set

_ANYWHERE = (Permission("-1", cidr="0.0.0.0/0"),)
_INGRESS = (
    Permission("tcp", 22, 22, cidr="198.18.1.1/32"),
    Permission("udp", 1000, 2000, cidr="10.0.0.0/8"),
    Permission("icmp", -1, -1, cidr="0.0.0.0/0"),
    Permission("icmp", 8, 0, cidr="0.0.0.0/0"),
    Permission("50", cidr="10.0.0.0/8"),
    Permission("-1", group_id="sg-1"),
)


def _guard(*members: Member) -> Guard:
    groups = (Group("sg-1", _INGRESS, _ANYWHERE), Group("sg-2", (), ()))
    return Guard("us-east-1", groups, members)


def test_members_of_a_group_are_its_addresses() -> None:
    """A rule that names a group stands for the addresses that it has now."""
    text = rule_set(_guard(Member("172.31.0.4", None, ("sg-1",)), Member("172.31.0.5", None, ())))
    assert "set sg_1 {\ntype ipv4_addr\nelements = { 172.31.0.4 }\n}" in text
    assert "ip saddr @sg_1 accept" in text


def test_each_combination_of_groups_is_one_pair_of_chains() -> None:
    """Machines with the same groups share their rules, however many they are."""
    same = [Member(f"172.31.0.{number}", None, ("sg-1",)) for number in range(4, 100)]
    text = rule_set(_guard(*same, Member("172.31.1.4", None, ("sg-1", "sg-2"))))
    assert text.count("chain ingress") == text.count("chain egress") == 2


def test_only_who_has_a_public_address_gets_out() -> None:
    """Without one there is neither a translation nor a way through the uplink."""
    assert "type nat" not in rule_set(_guard(Member("172.31.0.4", None, ("sg-1",))))
    text = rule_set(_guard(Member("172.31.0.4", "198.18.1.10", ("sg-1",))))
    assert "dnat to ip daddr map { 198.18.1.10 : 172.31.0.4 }" in text
    assert "snat to ip saddr map { 172.31.0.4 : 198.18.1.10 }" in text


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("nft", path="/usr/sbin:/usr/bin") is None,
    reason="needs root and nftables",
)
def test_the_kernel_takes_the_rules() -> None:
    """Every kind of rule is one that nftables understands; an empty region has a rule set too."""
    for guard in (
        _guard(),
        _guard(
            Member("172.31.0.4", "198.18.1.10", ("sg-1",)),
            Member("172.31.0.5", None, ("sg-1", "sg-2")),
            Member("172.31.0.6", None, ()),
        ),
    ):
        subprocess.run(("nft", "--check", "-f", "-"), input=rule_set(guard), text=True, check=True)
