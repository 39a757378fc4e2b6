"""What requests of several kinds wish for in the same words: tags and disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moto.ec2.exceptions import EC2ClientError

from paceline.rehearsal.emulator.nouns import Disk, Image

Params = Mapping[str, Any]
_FASTER_TYPES = ("io1", "io2")
_DISK_TYPES = ("gp2", "gp3", "io1", "io2", "st1", "sc1", "standard")
GP3_IOPS, GP3_THROUGHPUT = 3000, 125


def read_tags(params: Params) -> dict[str, dict[str, str]]:
    """Return the tags of a request by the kind of resource that they are for."""
    tags: dict[str, dict[str, str]] = {}
    for entry in params.get("TagSpecifications") or ():
        found = {tag["Key"]: tag.get("Value", "") for tag in entry.get("Tags") or ()}
        tags.setdefault(entry["ResourceType"], {}).update(found)
    return tags


def read_disks(image: Image, mappings: Any) -> dict[str, Disk]:
    """Return the disks of an image with what a request changes about them."""
    disks = {device: replace(disk) for device, disk in image.disks.items()}
    for mapping in mappings:
        wish = mapping.get("Ebs")
        if wish is not None:
            device = mapping["DeviceName"]
            disks[device] = read_disk(wish, disks.get(device))
    return {device: _with_speed(disk) for device, disk in disks.items()}


def read_disk(wish: Params, base: Disk | None) -> Disk:
    """Return one disk as it was asked for."""
    kind = wish.get("VolumeType") or (base.type if base else "gp2")
    if kind not in _DISK_TYPES:
        raise bad_value(f"Invalid volume type: {kind}")
    if wish.get("Throughput") and kind != "gp3":
        raise EC2ClientError(
            "InvalidParameterCombination",
            f"The parameter throughput is not supported for {kind} volumes.",
        )
    if wish.get("Iops") and kind not in {"gp3", *_FASTER_TYPES}:
        raise EC2ClientError(
            "InvalidParameterCombination", f"The parameter iops is not supported for {kind} volumes"
        )
    size = int(wish.get("VolumeSize") or (base.size_gib if base else 8))
    if base is not None and size < base.size_gib:
        raise EC2ClientError(
            "InvalidBlockDeviceMapping",
            f"Volume of size {size}GB is smaller than snapshot '{base.snapshot_id}', expect size "
            f">= {base.size_gib}GB",
        )
    return Disk(
        size_gib=size,
        type=kind,
        encrypted=bool(wish.get("Encrypted")) or bool(base and base.encrypted),
        iops=wish.get("Iops"),
        throughput=wish.get("Throughput"),
        key_id=wish.get("KmsKeyId"),
        snapshot_id=wish.get("SnapshotId") or (base.snapshot_id if base else None),
        goes_with_instance=wish.get("DeleteOnTermination", base is not None) is not False,
    )


def _with_speed(disk: Disk) -> Disk:
    if disk.type == "gp3":
        return replace(
            disk, iops=disk.iops or GP3_IOPS, throughput=disk.throughput or GP3_THROUGHPUT
        )
    if disk.type == "gp2":
        return replace(disk, iops=min(16000, max(100, 3 * disk.size_gib)))
    return disk


def bad_value(message: str) -> EC2ClientError:
    """Return EC2's error for a parameter that has a value which it cannot have."""
    return EC2ClientError("InvalidParameterValue", message)
