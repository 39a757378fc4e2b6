"""Placement groups, and what moto gets wrong about security groups and key pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.security_groups import SecurityGroup
from moto.ec2.responses.key_pairs import KeyPairs
from moto.ec2.responses.security_groups import SecurityGroups

from paceline.rehearsal.emulator import views
from paceline.rehearsal.emulator.actions.base import RegionActions
from paceline.rehearsal.emulator.nouns import PlacementGroup, new_id
from paceline.rehearsal.emulator.region import Region, not_found
from paceline.rehearsal.emulator.wishes import read_tags

_STRATEGIES = ("cluster", "spread", "partition")
_PATHS = {
    "group-name": "GroupName",
    "group-arn": "GroupArn",
    "state": "State",
    "strategy": "Strategy",
}


class GroupActions(RegionActions, KeyPairs, SecurityGroups):
    """The actions on groups of all kinds, and on keys."""

    def create_placement_group(self) -> ActionResult:
        """Make a placement group."""
        region = self.ec2_backend
        name, strategy = self.words["GroupName"], self.words.get("Strategy") or "cluster"
        if strategy not in _STRATEGIES:
            raise EC2ClientError("InvalidParameterValue", f"Invalid strategy: {strategy}")
        if name in region.placements:
            raise EC2ClientError(
                "InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists."
            )
        group = PlacementGroup(new_id("pg"), name, strategy)
        region.placements[name] = group
        region.tags[group.id].update(read_tags(self.words).get("placement-group", {}))
        region.hide(group.id)
        return ActionResult({"PlacementGroup": views.placement(region, group)})

    def describe_placement_groups(self) -> ActionResult:
        """Describe placement groups."""
        region = self.ec2_backend
        by_id = {item.id: item.name for item in region.placements.values()}
        names = list(self.words.get("GroupNames") or ())
        names += [by_id.get(one, one) for one in self.words.get("GroupIds") or ()]
        items = [item for item in region.placements.values() if region.seen(item.id)]
        for name in names:
            if name not in {item.name for item in items}:
                raise _unknown_placement(name)
        facts = [views.placement(region, one) for one in items if not names or one.name in names]
        return self.answer("PlacementGroups", facts, _PATHS)

    def delete_placement_group(self) -> ActionResult:
        """Delete a placement group that no instance is in."""
        region = self.ec2_backend
        name = self.words["GroupName"]
        group = region.placements.get(name)
        if group is None or not region.seen(group.id):
            raise _unknown_placement(name)
        if any(item.order.placement_group == name for item in region.living()):
            raise EC2ClientError(
                "InvalidPlacementGroup.InUse",
                f"The placement group '{name}' is in use and may not be deleted.",
            )
        del region.placements[name]
        region.tags.pop(group.id, None)
        return EmptyResult()

    def create_security_group(self) -> ActionResult:
        """Make a security group, not to be seen for the first looks."""
        made = super().create_security_group()
        self.ec2_backend.hide(_held(made)["GroupId"])
        return made

    def describe_security_groups(self) -> ActionResult:
        """Describe security groups that can be seen yet."""
        region = self.ec2_backend
        made = super().describe_security_groups()
        groups = [one for one in _held(made)["SecurityGroups"] if region.seen(one.id)]
        missing = set(self.words.get("GroupIds") or ()) - {one.id for one in groups}
        if missing and not self.words.get("Filters"):
            raise not_found("InvalidGroup.NotFound", "security group", sorted(missing))
        return ActionResult({**_held(made), "SecurityGroups": groups})

    def delete_security_group(self) -> ActionResult:
        """Delete a security group that nothing uses and no other group names."""
        region = self.ec2_backend
        word = self.words.get("GroupId") or self.words.get("GroupName") or ""
        group = region.get_security_group_by_name_or_id(word)
        if group is not None:
            used = any(group.id in item.group_ids for item in region.interfaces.values())
            if used or group.id in set(_named_by_others(region, group)):
                raise EC2ClientError(
                    "DependencyViolation", f"resource {group.id} has a dependent object"
                )
        return super().delete_security_group()

    def describe_key_pairs(self) -> ActionResult:
        """Describe key pairs that can be seen yet, by name or by id."""
        region = self.ec2_backend
        names = [
            item.key_name
            for item in region.key_pairs.values()
            if item.id in (self.words.get("KeyPairIds") or ())
        ]
        lost = len(self.words.get("KeyPairIds") or ()) - len(names)
        if lost:
            raise not_found("InvalidKeyPair.NotFound", "key pair", self.words["KeyPairIds"])
        if names:
            self.words["KeyNames"] = [*(self.words.get("KeyNames") or ()), *names]
        made = super().describe_key_pairs()
        pairs = [one for one in _held(made)["KeyPairs"] if region.seen(one.id)]
        missing = set(self.words.get("KeyNames") or ()) - {one.key_name for one in pairs}
        if missing and not self.words.get("Filters"):
            raise not_found("InvalidKeyPair.NotFound", "key pair", sorted(missing))
        return ActionResult({"KeyPairs": pairs})

    def create_key_pair(self) -> ActionResult:
        """Make a key pair, not to be seen for the first looks."""
        made = super().create_key_pair()
        self.ec2_backend.hide(self.ec2_backend.key_pairs[self.words["KeyName"]].id)
        return made

    def import_key_pair(self) -> ActionResult:
        """Take a public key, not to be seen for the first looks."""
        made = super().import_key_pair()
        self.ec2_backend.hide(self.ec2_backend.key_pairs[self.words["KeyName"]].id)
        return made

    def delete_key_pair(self) -> ActionResult:
        """Delete a key pair, by name or by id; one that is not there is no error."""
        by_id = {item.id: item.key_name for item in self.ec2_backend.key_pairs.values()}
        if not self.words.get("KeyName"):
            self.words["KeyName"] = by_id.get(self.words.get("KeyPairId") or "", "")
        return super().delete_key_pair()


def _held(result: ActionResult) -> dict[str, Any]:
    """Return what moto answers, which it holds as a plain mapping."""
    return cast("dict[str, Any]", result.result)


def _unknown_placement(name: str) -> EC2ClientError:
    return EC2ClientError(
        "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown."
    )


def _named_by_others(region: Region, group: SecurityGroup) -> Iterator[str]:
    """Return the ids of the groups that the rules of other groups name."""
    for groups in region.groups.values():
        for other in groups.values():
            if other.id == group.id:
                continue
            for rule in (*other.ingress_rules, *other.egress_rules):
                yield rule.source_group.get("GroupId", "")
