"""Volumes, snapshots and network interfaces."""

from __future__ import annotations

import secrets
import time

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError

from paceline.rehearsal.emulator import views
from paceline.rehearsal.emulator.actions.base import RegionActions
from paceline.rehearsal.emulator.nouns import Disk, Interface, Snapshot, Volume, new_id
from paceline.rehearsal.emulator.wishes import read_disk, read_tags

_VOLUME_PATHS = {
    "attachment.delete-on-termination": "Attachments.DeleteOnTermination",
    "attachment.device": "Attachments.Device",
    "attachment.instance-id": "Attachments.InstanceId",
    "attachment.status": "Attachments.State",
    "availability-zone": "AvailabilityZone",
    "encrypted": "Encrypted",
    "size": "Size",
    "snapshot-id": "SnapshotId",
    "status": "State",
    "volume-id": "VolumeId",
    "volume-type": "VolumeType",
}
_SNAPSHOT_PATHS = {
    "description": "Description",
    "encrypted": "Encrypted",
    "owner-id": "OwnerId",
    "snapshot-id": "SnapshotId",
    "status": "State",
    "volume-id": "VolumeId",
    "volume-size": "VolumeSize",
}
_INTERFACE_PATHS = {
    "attachment.instance-id": "Attachment.InstanceId",
    "availability-zone": "AvailabilityZone",
    "description": "Description",
    "group-id": "Groups.GroupId",
    "network-interface-id": "NetworkInterfaceId",
    "private-ip-address": "PrivateIpAddress",
    "status": "Status",
    "subnet-id": "SubnetId",
    "vpc-id": "VpcId",
}


class DiskActions(RegionActions):
    """The actions on what hangs on instances."""

    def describe_volumes(self) -> ActionResult:
        """Describe volumes."""
        region = self.ec2_backend
        ids = self.words.get("VolumeIds")
        if ids:
            items = region.find(region.disks, ids, "InvalidVolume.NotFound", "volume")
        else:
            items = [item for item in region.disks.values() if region.seen(item.id)]
        return self.answer("Volumes", [views.volume(region, one) for one in items], _VOLUME_PATHS)

    def create_volume(self) -> ActionResult:
        """Make a volume of its own."""
        region = self.ec2_backend
        still = region.stills.get(self.words.get("SnapshotId") or "")
        base = None if still is None else Disk(still.size_gib, encrypted=still.encrypted)
        if base is None and not self.words.get("Size"):
            raise EC2ClientError("MissingParameter", "The request must contain the parameter size")
        disk = read_disk({**self.words, "VolumeSize": self.words.get("Size")}, base)
        volume = Volume(new_id("vol"), disk, self.words["AvailabilityZone"], time.time())
        region.add(region.disks, volume, read_tags(self.words).get("volume"))
        return ActionResult(views.volume(region, volume))

    def delete_volume(self) -> ActionResult:
        """Delete a volume that nothing is attached to."""
        region = self.ec2_backend
        ids = [self.words["VolumeId"]]
        (volume,) = region.find(region.disks, ids, "InvalidVolume.NotFound", "volume")
        if volume.instance_id is not None:
            raise EC2ClientError(
                "VolumeInUse", f"Volume {volume.id} is currently attached to {volume.instance_id}"
            )
        region.drop(region.disks, volume.id)
        return EmptyResult()

    def describe_snapshots(self) -> ActionResult:
        """Describe snapshots."""
        region = self.ec2_backend
        ids = self.words.get("SnapshotIds")
        if ids:
            items = region.find(region.stills, ids, "InvalidSnapshot.NotFound", "snapshot")
        else:
            items = [item for item in region.stills.values() if region.seen(item.id)]
        owners = {
            region.account_id if one == "self" else one for one in self.words.get("OwnerIds") or ()
        }
        facts = [
            views.snapshot(region, item) for item in items if not owners or item.owner_id in owners
        ]
        return self.answer("Snapshots", facts, _SNAPSHOT_PATHS)

    def create_snapshot(self) -> ActionResult:
        """Keep a volume's content."""
        region = self.ec2_backend
        ids = [self.words["VolumeId"]]
        (volume,) = region.find(region.disks, ids, "InvalidVolume.NotFound", "volume")
        now = time.time()
        still = Snapshot(
            new_id("snap"), volume.id, volume.disk.size_gib, volume.disk.encrypted,
            region.account_id, now, now + region.conditions.image_s,
            self.words.get("Description") or "",
        )  # fmt: skip
        region.add(region.stills, still, read_tags(self.words).get("snapshot"))
        return ActionResult(views.snapshot(region, still))

    def delete_snapshot(self) -> ActionResult:
        """Delete a snapshot that no image is made of."""
        region = self.ec2_backend
        one = self.words["SnapshotId"]
        region.find(region.stills, [one], "InvalidSnapshot.NotFound", "snapshot")
        for image in region.images.values():
            if any(disk.snapshot_id == one for disk in image.disks.values()):
                raise EC2ClientError(
                    "InvalidSnapshot.InUse",
                    f"The snapshot {one} is currently in use by {image.id}",
                )
        region.drop(region.stills, one)
        return EmptyResult()

    def describe_network_interfaces(self) -> ActionResult:
        """Describe network interfaces."""
        region = self.ec2_backend
        ids = self.words.get("NetworkInterfaceIds")
        if ids:
            items = region.find(
                region.interfaces, ids, "InvalidNetworkInterfaceID.NotFound", "networkInterface ID"
            )
        else:
            items = [item for item in region.interfaces.values() if region.seen(item.id)]
        facts = [views.interface(region, item) for item in items]
        return self.answer("NetworkInterfaces", facts, _INTERFACE_PATHS)

    def create_network_interface(self) -> ActionResult:
        """Make an interface of its own."""
        region = self.ec2_backend
        subnet = region.get_subnet(self.words["SubnetId"])
        groups = self.words.get("Groups") or ()
        address = self.words.get("PrivateIpAddress") or region.free_address(subnet)
        mac = ":".join(["0a", *(secrets.token_hex(1) for _ in range(5))])
        item = Interface(
            new_id("eni"), subnet.id, subnet.vpc_id, subnet.availability_zone, address, None,
            tuple(groups), mac, time.time(), description=self.words.get("Description") or "",
        )  # fmt: skip
        region.add(region.interfaces, item, read_tags(self.words).get("network-interface"))
        return ActionResult({"NetworkInterface": views.interface(region, item)})

    def delete_network_interface(self) -> ActionResult:
        """Delete an interface that no instance has."""
        region = self.ec2_backend
        ids = [self.words["NetworkInterfaceId"]]
        (item,) = region.find(
            region.interfaces, ids, "InvalidNetworkInterfaceID.NotFound", "networkInterface ID"
        )
        if item.instance_id is not None:
            raise EC2ClientError(
                "InvalidNetworkInterface.InUse", f"Interface {item.id} is currently in use"
            )
        region.drop(region.interfaces, item.id)
        return EmptyResult()
