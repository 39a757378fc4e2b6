"""From moto's security groups to what the keeper enforces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupRule

from paceline.rehearsal.emulator.keeper import Group, Guard, Member, Permission
from paceline.rehearsal.emulator.nouns import Interface


def guard_of(
    region: str,
    groups: Mapping[str, Mapping[str, SecurityGroup]],
    interfaces: Iterable[Interface],
) -> Guard:
    """Return who may speak to whom: groups that guard nobody are left out."""
    members = tuple(
        Member(item.private_address, item.public_address, item.group_ids)
        for item in interfaces
        if item.instance_id is not None
    )
    used = {one for member in members for one in member.group_ids}
    found = (item for shelf in groups.values() for item in shelf.values() if item.id in used)
    return Guard(
        region,
        tuple(
            Group(item.id, _permissions(item.ingress_rules), _permissions(item.egress_rules))
            for item in found
        ),
        members,
    )


def _permissions(rules: Iterable[SecurityGroupRule]) -> tuple[Permission, ...]:
    return tuple(
        Permission(
            protocol=rule.ip_protocol or "-1",
            from_port=rule.from_port,
            to_port=rule.to_port,
            cidr=rule.ip_range.get("CidrIp"),
            group_id=rule.source_group.get("GroupId"),
        )
        for rule in rules
        # What is about IPv6 or a prefix list concerns nobody here.
        if rule.ip_range.get("CidrIp") or rule.source_group.get("GroupId")
    )
