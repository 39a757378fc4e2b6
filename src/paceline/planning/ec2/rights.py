"""The rights that the product needs in an account: one table, and the least policy from it.

A test holds the table and what is really called together. Everything that the product makes bears
its tag from the first moment, so it may only change and remove what bears it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paceline.planning.ec2.identity import MANAGED_BY, MANAGED_TAG

Kind = Literal["look", "make", "change", "tag"]


@dataclass(frozen=True)
class Right:
    """One action, and what it is for.

    What is made lies at `arns`; what is only used in making it, such as the network of a host,
    at `uses`, and of ours must be `from_ours`. Without an `optional` right we fall back.
    """

    action: str
    kind: Kind
    service: str = "ec2"
    arns: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    from_ours: tuple[str, ...] = ()
    optional: bool = False

    @property
    def word(self) -> str:
        """The action as policies name it."""
        return f"{self.service}:{self.action}"


def _own(*kinds: str) -> tuple[str, ...]:
    return tuple(f"arn:*:ec2:*:*:{kind}/*" for kind in kinds)


def _ownerless(*kinds: str) -> tuple[str, ...]:
    return tuple(f"arn:*:ec2:*::{kind}/*" for kind in kinds)


_LOOKS = (
    "DescribeImages", "DescribeInstances", "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes", "DescribeKeyPairs", "DescribeNetworkInterfaces",
    "DescribePlacementGroups", "DescribeSecurityGroups", "DescribeSnapshots",
    "DescribeSpotInstanceRequests", "DescribeSpotPriceHistory", "DescribeSubnets",
    "DescribeVolumes",
)  # fmt: skip
_CHANGES = (
    "AuthorizeSecurityGroupIngress", "CancelSpotInstanceRequests", "DeleteKeyPair",
    "DeleteNetworkInterface", "DeletePlacementGroup", "DeleteSecurityGroup", "DeleteSnapshot",
    "DeleteVolume", "DeregisterImage", "RevokeSecurityGroupIngress", "StartInstances",
    "StopInstances", "TerminateInstances",
)  # fmt: skip
RIGHTS: tuple[Right, ...] = (
    *(Right(action, "look") for action in _LOOKS),
    Right("GetCallerIdentity", "look", "sts"),
    # Without these three, images are found by name, prices come from the packaged list, and
    # nobody says beforehand that a limit would be hit.
    Right("GetParameters", "look", "ssm", optional=True),
    Right("GetProducts", "look", "pricing", optional=True),
    Right("GetServiceQuota", "look", "servicequotas", optional=True),
    Right("ImportKeyPair", "make", arns=_own("key-pair")),
    Right("CreateSecurityGroup", "make", arns=_own("security-group"), uses=_own("vpc")),
    Right("CreatePlacementGroup", "make", arns=_own("placement-group")),
    Right(
        "RunInstances",
        "make",
        arns=_own("instance", "volume", "network-interface", "spot-instances-request"),
        uses=(*_own("subnet"), *_ownerless("image", "snapshot")),
        from_ours=_own("key-pair", "security-group", "placement-group"),
    ),
    Right("CreateImage", "make", arns=_ownerless("image", "snapshot"), from_ours=_own("instance")),
    Right("CreateTags", "tag"),
    Right("DeleteTags", "change"),
    *(Right(action, "change") for action in _CHANGES),
)
_RENTS_SPOT = {
    "Sid": "FirstSpotHostOfTheAccount",
    "Effect": "Allow",
    "Action": ["iam:CreateServiceLinkedRole"],
    "Resource": "arn:*:iam::*:role/aws-service-role/spot.amazonaws.com/*",
    "Condition": {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
}


def policy(rights: Iterable[Right] = RIGHTS) -> dict[str, Any]:
    """Return the least policy for some rights, as IAM takes it."""
    known = tuple(rights)
    looks, makes, tags, changes = (
        [right for right in known if right.kind == kind]
        for kind in ("look", "make", "tag", "change")
    )
    statements = [
        _allow("Look", looks),
        *(statement for right in makes for statement in _making(right)),
        # Tags are given while things are made, and later only to what is ours already.
        _allow("TagWhatIsMade", tags, condition={
            "StringEquals": {"ec2:CreateAction": sorted(right.action for right in makes)}
        }),
        _allow("TagWhatIsOurs", tags, condition=_ours("Resource")),
        _allow("ChangeWhatIsOurs", changes, condition=_ours("Resource")),
        _RENTS_SPOT,
    ]  # fmt: skip
    return {"Version": "2012-10-17", "Statement": statements}


def _making(right: Right) -> Iterable[Mapping[str, Any]]:
    yield _allow(right.action, [right], right.arns, _ours("Request"))
    if right.uses:
        yield _allow(f"{right.action}From", [right], right.uses)
    if right.from_ours:
        yield _allow(f"{right.action}FromOurs", [right], right.from_ours, _ours("Resource"))


def _ours(what: Literal["Request", "Resource"]) -> dict[str, Any]:
    return {"StringEquals": {f"aws:{what}Tag/{MANAGED_TAG}": MANAGED_BY}}


def _allow(
    sid: str,
    rights: Iterable[Right],
    resources: tuple[str, ...] = (),
    condition: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": sorted(right.word for right in rights),
        "Resource": list(resources) or "*",
    }
    return statement if condition is None else {**statement, "Condition": condition}
