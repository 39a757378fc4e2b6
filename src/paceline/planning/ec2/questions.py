"""The requests that only look: what the region offers, and what an account holds in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from paceline.model.ec2 import ClusterKey, Kind, Request
from paceline.planning.ec2.identity import (
    CLUSTER_TAG,
    IMAGE_TAG,
    MANAGED_BY,
    MANAGED_TAG,
    OWNER_TAG,
)

PRICING_REGION = "us-east-1"
_USING_VCPUS = ("pending", "running")
_NOT_ENDED = ("pending", "running", "shutting-down", "stopping", "stopped")
_OPEN_REQUESTS = ("open", "active")

WHO_AM_I = Request("GetCallerIdentity", service="sts", subject="whose account this is")


def filters(values: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return filters as the API wants them."""
    return [{"Name": name, "Values": list(wanted)} for name, wanted in values.items()]


def types(names: Sequence[str]) -> Request:
    """Ask what instance types are and have; those that do not exist are left out."""
    wanted = filters({"instance-type": names})
    return Request("DescribeInstanceTypes", {"Filters": wanted}, subject="what the types have")


def zones(names: Sequence[str]) -> Request:
    """Ask in which zones types are offered."""
    words = {
        "LocationType": "availability-zone",
        "Filters": filters({"instance-type": names}),
    }
    return Request("DescribeInstanceTypeOfferings", words, subject="which zones offer the types")


def subnets(subnet: str | None) -> Request:
    """Ask for the default subnet of each zone, or for the one that is named."""
    wanted = {"default-for-az": ["true"]} if subnet is None else {"subnet-id": [subnet]}
    return Request("DescribeSubnets", {"Filters": filters(wanted)}, subject="the zones' networks")


def parameters(names: Sequence[str]) -> Request:
    """Ask for public parameters that name images; those that do not exist are left out."""
    return Request(
        "GetParameters", {"Names": list(names)}, service="ssm", subject="the newest image"
    )


def images(ids: Sequence[str]) -> Request:
    """Ask about images by id."""
    wanted = filters({"image-id": ids})
    return Request("DescribeImages", {"Filters": wanted}, subject="about the image")


def images_named(owner: str, pattern: str) -> Request:
    """Ask for the images of an owner whose name fits a pattern."""
    wanted = filters({"name": [pattern], "state": ["available"]})
    return Request(
        "DescribeImages", {"Owners": [owner], "Filters": wanted}, subject="the newest image"
    )


def images_baked(name: str) -> Request:
    """Ask for the image of our own that was baked under a name."""
    wanted = filters({f"tag:{IMAGE_TAG}": [name]})
    return Request(
        "DescribeImages", {"Owners": ["self"], "Filters": wanted}, subject="the baked image"
    )


def price(instance_type: str, region: str) -> Request:
    """Ask for the list price of an hour."""
    wanted = {
        "instanceType": instance_type,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    entries = [{"Type": "TERM_MATCH", "Field": name, "Value": is_} for name, is_ in wanted.items()]
    return Request(
        "GetProducts", {"ServiceCode": "AmazonEC2", "Filters": entries}, service="pricing",
        subject="what an hour costs",
    )  # fmt: skip


def spot_price(instance_type: str, now: float) -> Request:
    """Ask for the spot price in each zone."""
    words = {
        "InstanceTypes": [instance_type],
        "ProductDescriptions": ["Linux/UNIX"],
        "StartTime": datetime.fromtimestamp(now, tz=timezone.utc),
    }
    return Request("DescribeSpotPriceHistory", words, subject="what an hour costs")


def quota(code: str) -> Request:
    """Ask how many vCPUs the account may have of a kind."""
    words = {"ServiceCode": "ec2", "QuotaCode": code}
    return Request("GetServiceQuota", words, service="service-quotas", subject="the vCPU limit")


def in_use() -> Request:
    """Ask for all instances that count against the vCPU limits."""
    wanted = filters({"instance-state-name": _USING_VCPUS})
    return Request("DescribeInstances", {"Filters": wanted}, subject="how many vCPUs are in use")


def holdings(wanted: Mapping[str, Sequence[str]]) -> Mapping[Kind, Request]:
    """Ask for everything that passes filters on tags, by kind."""
    by = filters(wanted)
    return {
        "instance": _look("DescribeInstances", by, {"instance-state-name": _NOT_ENDED}),
        "spot request": _look("DescribeSpotInstanceRequests", by, {"state": _OPEN_REQUESTS}),
        "network interface": _look("DescribeNetworkInterfaces", by),
        "volume": _look("DescribeVolumes", by),
        "security group": _look("DescribeSecurityGroups", by),
        "key pair": _look("DescribeKeyPairs", by, IncludePublicKey=True),
        "placement group": _look("DescribePlacementGroups", by),
        "image": _look("DescribeImages", by, Owners=["self"]),
        "snapshot": _look("DescribeSnapshots", by, OwnerIds=["self"]),
    }


def _look(
    action: str,
    by: list[dict[str, Any]],
    more: Mapping[str, Sequence[str]] | None = None,
    **words: Any,
) -> Request:
    return Request(action, {"Filters": [*by, *filters(more or {})], **words})


def machines(wanted: Mapping[str, Sequence[str]]) -> Request:
    """Ask for all instances that pass filters, those that have just ended included."""
    return Request("DescribeInstances", {"Filters": filters(wanted)})


def of_cluster(key: ClusterKey) -> Mapping[str, Sequence[str]]:
    """Return the filters that only the things of one cluster pass."""
    return {f"tag:{CLUSTER_TAG}": [key.name], f"tag:{OWNER_TAG}": [key.owner]}


def of_owner(owner: str) -> Mapping[str, Sequence[str]]:
    """Return the filters that everything of one owner passes."""
    return {f"tag:{MANAGED_TAG}": [MANAGED_BY], f"tag:{OWNER_TAG}": [owner]}


def by_id(kind: Kind, ids: Sequence[str]) -> Request:
    """Ask for things by id or name, whatever tags they bear; who is not there is left out."""
    action, name, more = _BY_ID[kind]
    return Request(action, {"Filters": filters({name: ids}), **more})


_BY_ID: Mapping[Kind, tuple[str, str, dict[str, Any]]] = {
    "instance": ("DescribeInstances", "instance-id", {}),
    "spot request": ("DescribeSpotInstanceRequests", "spot-instance-request-id", {}),
    "network interface": ("DescribeNetworkInterfaces", "network-interface-id", {}),
    "volume": ("DescribeVolumes", "volume-id", {}),
    "security group": ("DescribeSecurityGroups", "group-name", {}),
    "key pair": ("DescribeKeyPairs", "key-name", {"IncludePublicKey": True}),
    "placement group": ("DescribePlacementGroups", "group-name", {}),
    "image": ("DescribeImages", "image-id", {"Owners": ["self"]}),
    "snapshot": ("DescribeSnapshots", "snapshot-id", {"OwnerIds": ["self"]}),
}


def launched_with(tokens: Sequence[str]) -> Request:
    """Ask for the instances that came of launches with these client tokens."""
    return Request("DescribeInstances", {"Filters": filters({"client-token": tokens})})
