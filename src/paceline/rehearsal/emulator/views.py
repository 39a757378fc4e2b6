"""What the Describe calls answer, in the words of EC2's own API model."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any

from paceline.rehearsal.emulator.nouns import (
    STATE_CODES,
    Disk,
    Image,
    Instance,
    Interface,
    PlacementGroup,
    Snapshot,
    SpotRequest,
    Volume,
)
from paceline.rehearsal.emulator.region import Region

Facts = dict[str, Any]


def moment(unix_s: float) -> datetime:
    """Return a time as the serializer wants it."""
    return datetime.fromtimestamp(unix_s, tz=timezone.utc)


def tags_of(region: Region, resource_id: str) -> list[Facts]:
    """Return the tags of a resource."""
    found = region.tags.get(resource_id) or {}
    return [{"Key": key, "Value": value} for key, value in found.items()]


def state(name: str) -> Facts:
    """Return an instance's state with its code."""
    return {"Name": name, "Code": STATE_CODES[name]}


def instance(region: Region, item: Instance) -> Facts:
    """Describe an instance."""
    interfaces = [interface(region, one) for one in region.interfaces_of(item.id)]
    code, message = item.reason or ("", "")
    facts: Facts = {
        "InstanceId": item.id,
        "ImageId": item.order.image_id,
        "InstanceType": item.instance_type,
        "AmiLaunchIndex": item.launch_index,
        "Architecture": item.architecture,
        "BlockDeviceMappings": [_attached(one) for one in region.disks_of(item.id)],
        "ClientToken": item.order.client_token or "",
        "EbsOptimized": False,
        "EnaSupport": True,
        "Hypervisor": "xen",
        "KeyName": item.order.key_name,
        "LaunchTime": moment(item.launched_at),
        "MetadataOptions": item.metadata,
        "Monitoring": {"State": "disabled"},
        "NetworkInterfaces": interfaces,
        "Placement": {
            "AvailabilityZone": item.zone,
            "GroupName": item.order.placement_group or "",
            "Tenancy": item.order.tenancy,
        },
        "PrivateDnsName": "",
        "PublicDnsName": "",
        "RootDeviceName": item.root_device,
        "RootDeviceType": "ebs",
        "SecurityGroups": _groups(region, item.group_ids) if item.alive else [],
        "SourceDestCheck": True,
        "State": state(item.state),
        "StateTransitionReason": message.partition(": ")[2],
        "Tags": tags_of(region, item.id),
        "VirtualizationType": "hvm",
    }
    if item.alive:
        facts |= _whereabouts(region, item)
    if code:
        facts["StateReason"] = {"Code": code, "Message": message}
    if item.order.spot is not None:
        facts |= {"InstanceLifecycle": "spot", "SpotInstanceRequestId": item.spot_request_id}
    return facts


def _whereabouts(region: Region, item: Instance) -> Facts:
    inside = item.private_address.replace(".", "-")
    domain = "ec2" if region.region_name == "us-east-1" else f"{region.region_name}.compute"
    facts: Facts = {
        "PrivateIpAddress": item.private_address,
        "PrivateDnsName": f"ip-{inside}.{domain}.internal",
        "SubnetId": item.subnet_id,
        "VpcId": item.vpc_id,
    }
    if item.public_address is not None:
        outside = item.public_address.replace(".", "-")
        here = region.region_name
        domain = "compute-1" if here == "us-east-1" else f"{here}.compute"
        facts |= {
            "PublicIpAddress": item.public_address,
            "PublicDnsName": f"ec2-{outside}.{domain}.amazonaws.com",
        }
    return facts


def _attached(item: Volume) -> Facts:
    return {
        "DeviceName": item.device,
        "Ebs": {
            "VolumeId": item.id,
            "Status": "attached",
            "AttachTime": moment(item.created_at),
            "DeleteOnTermination": item.disk.goes_with_instance,
        },
    }


def _groups(region: Region, group_ids: tuple[str, ...]) -> list[Facts]:
    found = [region.get_security_group_from_id(one) for one in group_ids]
    return [{"GroupId": one.id, "GroupName": one.name} for one in found if one is not None]


def status(region: Region, item: Instance) -> Facts:
    """Describe an instance's status checks."""
    passed = item.running_since is not None and (
        time.time() >= item.running_since + region.conditions.checks_s
    )
    checks = {
        "Status": "ok" if passed else "initializing",
        "Details": [
            {"Name": "reachability", "Status": "passed" if passed else "initializing"},
        ],
    }
    if item.state != "running":
        checks = {"Status": "not-applicable", "Details": []}
    return {
        "InstanceId": item.id,
        "AvailabilityZone": item.zone,
        "InstanceState": state(item.state),
        "InstanceStatus": checks,
        "SystemStatus": checks,
        "Tags": tags_of(region, item.id),
    }


def interface(region: Region, item: Interface) -> Facts:
    """Describe a network interface, alone or as part of its instance."""
    address: Facts = {"PrivateIpAddress": item.private_address, "Primary": True}
    facts: Facts = {
        "NetworkInterfaceId": item.id,
        "SubnetId": item.subnet_id,
        "VpcId": item.vpc_id,
        "AvailabilityZone": item.zone,
        "OwnerId": region.account_id,
        "Description": item.description,
        "MacAddress": item.mac,
        "InterfaceType": "interface",
        "PrivateIpAddress": item.private_address,
        "PrivateIpAddresses": [address],
        "SourceDestCheck": True,
        "Status": "in-use" if item.instance_id else "available",
        "Groups": _groups(region, item.group_ids),
        "TagSet": tags_of(region, item.id),
        "Tags": tags_of(region, item.id),
    }
    if item.public_address is not None:
        outer = {"PublicIp": item.public_address, "IpOwnerId": "amazon", "PublicDnsName": ""}
        facts["Association"] = address["Association"] = outer
    if item.instance_id is not None:
        facts["Attachment"] = {
            "AttachmentId": f"eni-attach-{item.id[4:]}",
            "AttachTime": moment(item.created_at),
            "DeleteOnTermination": item.goes_with_instance,
            "DeviceIndex": 0,
            "InstanceId": item.instance_id,
            "InstanceOwnerId": region.account_id,
            "Status": "attached",
        }
    return facts


def volume(region: Region, item: Volume) -> Facts:
    """Describe a volume."""
    attachment = {
        "AttachTime": moment(item.created_at),
        "Device": item.device,
        "InstanceId": item.instance_id,
        "State": "attached",
        "VolumeId": item.id,
        "DeleteOnTermination": item.disk.goes_with_instance,
    }
    return {
        "VolumeId": item.id,
        "AvailabilityZone": item.zone,
        "CreateTime": moment(item.created_at),
        "State": "in-use" if item.instance_id else "available",
        "Attachments": [attachment] if item.instance_id else [],
        "Tags": tags_of(region, item.id),
        "MultiAttachEnabled": False,
        "Size": item.disk.size_gib,
        "SnapshotId": item.disk.snapshot_id or "",
        **_disk(item.disk),
    }


def _disk(disk: Disk) -> Facts:
    facts: Facts = {"VolumeType": disk.type, "Encrypted": disk.encrypted}
    if disk.iops is not None:
        facts["Iops"] = disk.iops
    if disk.throughput is not None:
        facts["Throughput"] = disk.throughput
    if disk.key_id is not None:
        facts["KmsKeyId"] = disk.key_id
    return facts


def snapshot(region: Region, item: Snapshot) -> Facts:
    """Describe a snapshot."""
    ready = time.time() >= item.ready_at
    return {
        "SnapshotId": item.id,
        "VolumeId": item.volume_id,
        "VolumeSize": item.size_gib,
        "Encrypted": item.encrypted,
        "OwnerId": item.owner_id,
        "StartTime": moment(item.created_at),
        "State": "completed" if ready else "pending",
        "Progress": "100%" if ready else "50%",
        "Description": item.description,
        "Tags": tags_of(region, item.id),
    }


def image(region: Region, item: Image) -> Facts:
    """Describe an image."""
    return {
        "ImageId": item.id,
        "Name": item.name,
        "Description": item.description,
        "OwnerId": item.owner_id,
        "ImageOwnerAlias": item.owner_alias,
        "ImageLocation": f"{item.owner_alias or item.owner_id}/{item.name}",
        "ImageType": "machine",
        "Architecture": item.architecture,
        "Public": item.public,
        "State": image_state(item),
        "CreationDate": moment(item.created_at).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "RootDeviceName": item.root_device,
        "RootDeviceType": "ebs",
        "VirtualizationType": "hvm",
        "Hypervisor": "xen",
        "EnaSupport": True,
        "PlatformDetails": "Linux/UNIX",
        "SourceInstanceId": item.source_instance_id,
        "BlockDeviceMappings": [
            {
                "DeviceName": device,
                "Ebs": {
                    "SnapshotId": disk.snapshot_id,
                    "VolumeSize": disk.size_gib,
                    "DeleteOnTermination": disk.goes_with_instance,
                    **_disk(disk),
                },
            }
            for device, disk in item.disks.items()
        ],
        "Tags": tags_of(region, item.id),
    }


def image_state(item: Image) -> str:
    """Return `pending` until an image can be launched."""
    return "available" if time.time() >= item.ready_at else "pending"


def placement(region: Region, item: PlacementGroup) -> Facts:
    """Describe a placement group."""
    return {
        "GroupName": item.name,
        "GroupId": item.id,
        "GroupArn": f"arn:aws:ec2:{region.region_name}:{region.account_id}:placement-group/"
        f"{item.name}",
        "State": "available",
        "Strategy": item.strategy,
        "Tags": tags_of(region, item.id),
    }


def spot_request(region: Region, item: SpotRequest) -> Facts:
    """Describe a spot request."""
    return {
        "SpotInstanceRequestId": item.id,
        "InstanceId": item.instance_id,
        "CreateTime": moment(item.created_at),
        "SpotPrice": f"{item.max_usd_per_hour:.6f}",
        "State": item.state,
        "Status": {"Code": item.status, "Message": item.status, "UpdateTime": moment(time.time())},
        "Type": item.type,
        "Tags": tags_of(region, item.id),
    }
