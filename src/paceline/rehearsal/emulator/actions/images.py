"""Images: describe, make of an instance, remove with or without their snapshots."""

from __future__ import annotations

import time
from dataclasses import replace

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError

from paceline.rehearsal.emulator import views
from paceline.rehearsal.emulator.actions.base import RegionActions
from paceline.rehearsal.emulator.nouns import Disk, Image, Instance, Snapshot, Volume, new_id
from paceline.rehearsal.emulator.region import not_found
from paceline.rehearsal.emulator.wishes import read_tags

_PATHS = {
    "architecture": "Architecture",
    "description": "Description",
    "image-id": "ImageId",
    "is-public": "Public",
    "name": "Name",
    "owner-alias": "ImageOwnerAlias",
    "owner-id": "OwnerId",
    "root-device-name": "RootDeviceName",
    "root-device-type": "RootDeviceType",
    "source-instance-id": "SourceInstanceId",
    "state": "State",
    "virtualization-type": "VirtualizationType",
    "block-device-mapping.snapshot-id": "BlockDeviceMappings.Ebs.SnapshotId",
}


class ImageActions(RegionActions):
    """The actions on images."""

    def describe_images(self) -> ActionResult:
        """Describe images."""
        region = self.ec2_backend
        ids = self.words.get("ImageIds")
        if ids:
            for one in ids:
                if not one.startswith("ami-"):
                    raise EC2ClientError("InvalidAMIID.Malformed", f'Invalid id: "{one}"')
            items = region.find(region.images, ids, "InvalidAMIID.NotFound", "image id")
        else:
            items = [item for item in region.images.values() if region.seen(item.id)]
        owners = {
            region.account_id if one == "self" else one for one in self.words.get("Owners") or ()
        }
        facts = [
            views.image(region, item)
            for item in items
            if not owners or {item.owner_id, item.owner_alias} & owners
        ]
        return self.answer("Images", facts, _PATHS)

    def create_image(self) -> ActionResult:
        """Make an image of an instance, with a snapshot of each of its volumes."""
        region = self.ec2_backend
        ids = [self.words["InstanceId"]]
        (item,) = region.find(region.machines, ids, "InvalidInstanceID.NotFound", "instance ID")
        if item.state not in {"running", "stopping", "stopped"}:
            raise EC2ClientError(
                "IncorrectState", f"The instance '{item.id}' is {item.state}, and cannot be imaged"
            )
        name = self.words["Name"]
        for image in region.own_images():
            if image.name == name:
                raise EC2ClientError(
                    "InvalidAMIName.Duplicate",
                    f"AMI name {name} is already in use by AMI {image.id}",
                )
        image = self._image_of(item, name)
        region.add(region.images, image, read_tags(self.words).get("image"))
        region.keeper.keep_image(item.id, image.id)
        if not self.words.get("NoReboot") and item.state == "running":
            region.keeper.reboot(item.id)
        return ActionResult({"ImageId": image.id})

    def _image_of(self, item: Instance, name: str) -> Image:
        region, now = self.ec2_backend, time.time()
        ready = now + region.conditions.image_s
        image_id = new_id("ami")
        return Image(
            id=image_id, name=name, owner_id=region.account_id, architecture=item.architecture,
            root_device=item.root_device, created_at=now, ready_at=ready,
            disks={
                one.device or "": self._keep(one, image_id, now, ready)
                for one in region.disks_of(item.id)
            },
            description=self.words.get("Description") or "", source_instance_id=item.id,
            parent_id=item.order.image_id, user=region.images[item.order.image_id].user
            if item.order.image_id in region.images else "ubuntu",
        )  # fmt: skip

    def _keep(self, volume: Volume, image_id: str, now: float, ready: float) -> Disk:
        region = self.ec2_backend
        still = Snapshot(
            new_id("snap"), volume.id, volume.disk.size_gib, volume.disk.encrypted,
            region.account_id, now, ready,
            f"Created by CreateImage({volume.instance_id}) for {image_id}",
        )  # fmt: skip
        region.add(region.stills, still, read_tags(self.words).get("snapshot"))
        return replace(volume.disk, snapshot_id=still.id)

    def deregister_image(self) -> ActionResult:
        """Remove an image, and its snapshots if asked."""
        region = self.ec2_backend
        one = self.words["ImageId"]
        image = region.images.get(one)
        if image is None or not region.seen(one):
            raise not_found("InvalidAMIID.NotFound", "image id", [one])
        if image.owner_id != region.account_id:
            raise EC2ClientError("AuthFailure", f"Not authorized for image:{one}")
        region.drop(region.images, one)
        region.keeper.forget_image(one)
        results = []
        if self.words.get("DeleteAssociatedSnapshots"):
            for disk in image.disks.values():
                region.drop(region.stills, disk.snapshot_id or "")
                results.append({"SnapshotId": disk.snapshot_id, "ReturnCode": "success"})
        return ActionResult({"Return": True, "DeleteSnapshotResults": results})
