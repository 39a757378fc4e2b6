"""The requests that change something, as data: what `plan` prints is what `up` and `down` send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paceline.model.command import Secret
from paceline.model.ec2 import Attempt, ClusterKey, ImageFacts, Kind, Request, Thing, Wish
from paceline.planning.ec2.identity import USER_TAG, resource_name, tags_of
from paceline.planning.ec2.rules import Rule, permissions

_LEAST_DISK_GIB = 16
_LAUNCH_TAGGED = ("instance", "volume", "network-interface")
# AWS takes so many ids at a time.
MOST_IDS = 500


def tag_specifications(tags: Mapping[str, str], *resources: str) -> list[dict[str, Any]]:
    """Return tags as the requests that create something take them."""
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": resource, "Tags": listed} for resource in resources]


def import_key(key: ClusterKey, public_key: str, expires_at: float) -> Request:
    """Make the user's key known."""
    name = resource_name(key)
    words = {
        "KeyName": name,
        "PublicKeyMaterial": public_key,
        "TagSpecifications": tag_specifications(tags_of(key, expires_at), "key-pair"),
    }
    return Request("ImportKeyPair", words, makes="key pair", subject=name)


def create_group(key: ClusterKey, vpc_id: str, expires_at: float) -> Request:
    """Make the security group, with no way in yet."""
    name = resource_name(key)
    words = {
        "GroupName": name,
        "Description": f"Paceline cluster {key.name}",
        "VpcId": vpc_id,
        "TagSpecifications": tag_specifications(tags_of(key, expires_at), "security-group"),
    }
    return Request("CreateSecurityGroup", words, makes="security group", subject=name)


def open_group(group_id: str, rules: Iterable[Rule]) -> Request:
    """Open ways into a group."""
    words = {"GroupId": group_id, "IpPermissions": permissions(rules)}
    return Request("AuthorizeSecurityGroupIngress", words, subject=group_id)


def close_group(group_id: str, rules: Iterable[Rule]) -> Request:
    """Close ways into a group, such as one for an address that is no longer ours."""
    words = {"GroupId": group_id, "IpPermissions": permissions(rules)}
    return Request("RevokeSecurityGroupIngress", words, subject=group_id)


def create_placement(key: ClusterKey, strategy: str, expires_at: float) -> Request:
    """Make the placement group."""
    name = resource_name(key)
    words = {
        "GroupName": name,
        "Strategy": strategy,
        "TagSpecifications": tag_specifications(tags_of(key, expires_at), "placement-group"),
    }
    return Request("CreatePlacementGroup", words, makes="placement group", subject=name)


def disk_size_gib(wish: Wish, image: ImageFacts) -> int:
    """Return the size of the root disk: as asked for, else 16 GiB or what the image needs."""
    return wish.disk.size_gib or max(_LEAST_DISK_GIB, image.size_gib)


def launch(
    wish: Wish,
    attempt: Attempt,
    *,
    user: str,
    counts: tuple[int, int],
    group_id: str,
    token: str,
    user_data: Secret,
    expires_at: float,
) -> Request:
    """Start hosts: at least and at most `counts`, all of them in one request."""
    name = resource_name(wish.key)
    spot = wish.market == "spot"
    tagged = (*_LAUNCH_TAGGED, "spot-instances-request") if spot else _LAUNCH_TAGGED
    tags = {**tags_of(wish.key, expires_at), USER_TAG: user}
    words: dict[str, Any] = {
        "ImageId": attempt.image.id,
        "InstanceType": attempt.instance_type,
        "MinCount": counts[0],
        "MaxCount": counts[1],
        "ClientToken": token,
        "KeyName": name,
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": attempt.subnet.id,
                "Groups": [group_id],
                "AssociatePublicIpAddress": True,
                "DeleteOnTermination": True,
            }
        ],
        "BlockDeviceMappings": [_root_disk(wish, attempt.image)],
        "MetadataOptions": {
            # Whoever makes a host fetch addresses for him must not get at what it knows of
            # itself; with one hop, no container with a network of its own does either.
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
            "HttpEndpoint": "enabled",
        },
        "InstanceInitiatedShutdownBehavior": "terminate",
        "UserData": user_data,
        "TagSpecifications": tag_specifications(tags, *tagged),
    }
    if wish.placement != "none":
        words["Placement"] = {"GroupName": name}
    if spot:
        words["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
            },
        }
    return Request("RunInstances", words, makes="instance", subject=f"{counts[1]} hosts")


def _root_disk(wish: Wish, image: ImageFacts) -> dict[str, Any]:
    return {
        "DeviceName": image.root_device,
        "Ebs": {
            "VolumeSize": disk_size_gib(wish, image),
            "VolumeType": wish.disk.type,
            "Encrypted": wish.disk.encrypted,
            "DeleteOnTermination": True,
        },
    }


def tag(ids: Sequence[str], tags: Mapping[str, str]) -> Request:
    """Give things tags, over those of the same keys that they have."""
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    words = {"Resources": list(ids), "Tags": listed}
    return Request("CreateTags", words, subject=f"{len(ids)} things")


def terminate(ids: Sequence[str]) -> Request:
    """End instances for good."""
    return Request("TerminateInstances", {"InstanceIds": list(ids)}, subject=f"{len(ids)} hosts")


def remove(thing: Thing) -> Request:
    """Remove anything but an instance."""
    action, word, value = _REMOVALS[thing.kind]
    named = thing.name if value == "name" else thing.id
    words = {word: [named]} if word.endswith("Ids") else {word: named}
    return Request(action, words, subject=str(thing))


# Key pairs and placement groups are removed by id where the API can: a name may be another's.
_REMOVALS: Mapping[Kind, tuple[str, str, str]] = {
    "spot request": ("CancelSpotInstanceRequests", "SpotInstanceRequestIds", "id"),
    "network interface": ("DeleteNetworkInterface", "NetworkInterfaceId", "id"),
    "volume": ("DeleteVolume", "VolumeId", "id"),
    "security group": ("DeleteSecurityGroup", "GroupId", "id"),
    "key pair": ("DeleteKeyPair", "KeyPairId", "id"),
    "placement group": ("DeletePlacementGroup", "GroupName", "name"),
    "image": ("DeregisterImage", "ImageId", "id"),
    "snapshot": ("DeleteSnapshot", "SnapshotId", "id"),
}
