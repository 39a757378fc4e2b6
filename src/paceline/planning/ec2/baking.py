"""The requests around images that we bake: made of a builder, then let go of by its cluster.

While it is being made, an image and its snapshots belong to the builder's cluster, so that `down`
sweeps what is half made. Only when all is well they get the name of an image and lose the name of
the cluster and its expiry: from then on they stay until `bake rm`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.model.ec2 import Answer, ClusterKey, Request, Thing
from paceline.planning.ec2.answers import tags
from paceline.planning.ec2.identity import (
    CLUSTER_TAG,
    EXPIRY_TAG,
    IMAGE_TAG,
    OWNER_TAG,
    USER_TAG,
    resource_name,
    tags_of,
)
from paceline.planning.ec2.questions import filters
from paceline.planning.ec2.requests import tag_specifications

BUILDER_PREFIX = "bake-"


def builder_key(name: str, owner: str, region: str) -> ClusterKey:
    """Return the cluster of one host that an image is made of."""
    return ClusterKey(f"{BUILDER_PREFIX}{name}", owner, region)


def create_image(key: ClusterKey, instance_id: str, name: str, expires_at: float) -> Request:
    """Make an image of a host that is stopped. It has no client token: its name is the token."""
    own = tags_of(key, expires_at)
    words = {
        "InstanceId": instance_id,
        "Name": resource_name(key),
        "Description": f"Baked by Paceline as {name}",
        "TagSpecifications": tag_specifications(own, "image", "snapshot"),
    }
    return Request("CreateImage", words, makes="image", subject=name)


def give_name(ids: Sequence[str], name: str, user: str) -> Request:
    """Say that an image and its snapshots are whole, what they are called, and who logs in."""
    listed = [{"Key": IMAGE_TAG, "Value": name}, {"Key": USER_TAG, "Value": user}]
    return Request("CreateTags", {"Resources": list(ids), "Tags": listed}, subject=name)


def take_from_cluster(ids: Sequence[str]) -> Request:
    """Let an image and its snapshots outlive the cluster that they were made by."""
    listed = [{"Key": CLUSTER_TAG}, {"Key": EXPIRY_TAG}]
    return Request("DeleteTags", {"Resources": list(ids), "Tags": listed}, subject="the image")


def images_called(name: str) -> Request:
    """Ask for our own image by the name that the account knows it by."""
    return Request("DescribeImages", {"Owners": ["self"], "Filters": filters({"name": [name]})})


def image_by_id(image_id: str) -> Request:
    """Ask how an image stands."""
    return Request("DescribeImages", {"Filters": filters({"image-id": [image_id]})})


def baked(owner: str, name: str | None = None) -> tuple[Request, Request]:
    """Ask for the images that an owner has baked, and for their snapshots."""
    named = {"tag-key": [IMAGE_TAG]} if name is None else {f"tag:{IMAGE_TAG}": [name]}
    by = filters({**named, f"tag:{OWNER_TAG}": [owner]})
    return (
        Request("DescribeImages", {"Owners": ["self"], "Filters": by}),
        Request("DescribeSnapshots", {"OwnerIds": ["self"], "Filters": by}),
    )


def stop(ids: Sequence[str]) -> Request:
    """Switch hosts off, to be started again."""
    return Request("StopInstances", {"InstanceIds": list(ids)}, subject=f"{len(ids)} hosts")


def start(ids: Sequence[str]) -> Request:
    """Switch hosts on again."""
    return Request("StartInstances", {"InstanceIds": list(ids)}, subject=f"{len(ids)} hosts")


def snapshot_ids(image: Answer | Thing) -> tuple[str, ...]:
    """Return the snapshots that an image is made of."""
    facts: Mapping[str, object] = image.facts if isinstance(image, Thing) else image
    mappings = facts.get("BlockDeviceMappings") or ()
    found = (
        item.get("Ebs", {}).get("SnapshotId")
        for item in (mappings if isinstance(mappings, Sequence) else ())
        if isinstance(item, Mapping)
    )
    return tuple(str(one) for one in found if one)


def is_of_cluster(image: Answer, key: ClusterKey) -> bool:
    """Whether an image is what this builder has made."""
    own = tags(image)
    return own.get(CLUSTER_TAG) == key.name and own.get(OWNER_TAG) == key.owner
