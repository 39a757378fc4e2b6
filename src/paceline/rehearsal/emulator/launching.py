"""RunInstances: from the words of the request to a checked order, and from that to instances."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moto.ec2.exceptions import EC2ClientError

from paceline.planning.prices import packaged_prices
from paceline.rehearsal.emulator import views
from paceline.rehearsal.emulator.conditions import QUOTA_NAMES, quota_code
from paceline.rehearsal.emulator.nouns import (
    Disk,
    Image,
    Instance,
    Interface,
    Order,
    Reservation,
    SpotRequest,
    Volume,
    new_id,
)
from paceline.rehearsal.emulator.region import Region, not_found

Params = Mapping[str, Any]
_FASTER_TYPES = ("io1", "io2")
_DISK_TYPES = ("gp2", "gp3", "io1", "io2", "st1", "sc1", "standard")
_MOST_USER_DATA_BYTES = 16384
_SPREAD_PER_ZONE = 7
GP3_IOPS, GP3_THROUGHPUT = 3000, 125


def fingerprint(params: Params) -> str:
    """Return what two requests with one client token must have in common."""
    kept = {key: value for key, value in params.items() if key not in {"ClientToken", "DryRun"}}
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def repeated(region: Region, params: Params) -> Reservation | None:
    """Return the launch that had the same client token before."""
    token = params.get("ClientToken")
    known = next((one for one in region.launches.values() if token and one.token == token), None)
    if known is None:
        return None
    if known.fingerprint != fingerprint(params):
        raise EC2ClientError(
            "IdempotentParameterMismatch",
            "Arguments on this idempotent request are inconsistent with arguments used in "
            "previous request(s).",
        )
    if not any(region.machines[one].alive for one in known.instance_ids):
        raise EC2ClientError(
            "IdempotentInstanceTerminated",
            "The client token belongs to instances that have been terminated.",
        )
    return known


def read_order(region: Region, params: Params) -> Order:
    """Check a request and fill in its defaults; nothing is changed."""
    at_least, at_most = _counts(params)
    image = _image(region, params.get("ImageId"))
    kind = params.get("InstanceType", "m1.small")
    _check_type(region, kind, image)
    _check_key(region, params.get("KeyName"))
    placement = params.get("Placement") or {}
    first_interface: Params = next(iter(params.get("NetworkInterfaces") or ()), {})
    subnet_id = params.get("SubnetId") or first_interface.get("SubnetId")
    user_data = params.get("UserData") or ""
    if len(base64.b64decode(user_data)) > _MOST_USER_DATA_BYTES:
        raise _bad("User data is limited to 16384 bytes")
    market = params.get("InstanceMarketOptions") or {}
    return Order(
        image_id=image.id,
        instance_type=kind,
        at_least=at_least,
        at_most=at_most,
        group_ids=_groups(region, params, first_interface),
        disks=read_disks(image, params.get("BlockDeviceMappings") or ()),
        zones=_zones(region, kind, subnet_id, placement.get("AvailabilityZone")),
        subnet_id=subnet_id,
        private_address=params.get("PrivateIpAddress") or first_interface.get("PrivateIpAddress"),
        public_address=first_interface.get("AssociatePublicIpAddress"),
        key_name=params.get("KeyName"),
        user_data=user_data,
        behaviour=params.get("InstanceInitiatedShutdownBehavior") or "stop",
        metadata=_metadata(params.get("MetadataOptions") or {}),
        placement_group=_placement(region, kind, placement),
        tenancy=placement.get("Tenancy") or "default",
        spot=_spot(region, kind, market) if market.get("MarketType") == "spot" else None,
        tags=read_tags(params),
        client_token=params.get("ClientToken"),
        protected=params.get("DisableApiTermination") is True,
    )


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
        raise _bad(f"Invalid volume type: {kind}")
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


def _counts(params: Params) -> tuple[int, int]:
    at_least, at_most = int(params.get("MinCount", 1)), int(params.get("MaxCount", 1))
    if at_least < 1 or at_most < at_least:
        raise _bad(f"Value ({at_least}) for parameter minCount is invalid.")
    return at_least, at_most


def _image(region: Region, image_id: str | None) -> Image:
    if image_id is None:
        raise EC2ClientError("MissingParameter", "The request must contain the parameter ImageId")
    if not image_id.startswith("ami-"):
        raise EC2ClientError("InvalidAMIID.Malformed", f'Invalid id: "{image_id}"')
    image = region.images.get(image_id)
    if image is None or not region.seen(image_id):
        raise not_found("InvalidAMIID.NotFound", "image id", [image_id])
    if views.image_state(image) != "available":
        raise EC2ClientError(
            "InvalidAMIID.Unavailable", f"The image ID '{image_id}' is not available"
        )
    return image


def _check_type(region: Region, kind: str, image: Image) -> None:
    facts = region.type_facts(kind)
    if image.architecture not in facts["ProcessorInfo"]["SupportedArchitectures"]:
        raise _bad(
            f"The architecture '{image.architecture}' of the specified AMI does not fit the "
            f"instance type '{kind}'. Specify an instance type or an AMI with matching "
            "architectures, and try again."
        )


def _check_key(region: Region, name: str | None) -> None:
    if name is None:
        return
    key = region.key_pairs.get(name)
    if key is None or not region.seen(key.id):
        raise not_found("InvalidKeyPair.NotFound", "key pair", [name])


def _groups(region: Region, params: Params, interface: Params) -> tuple[str, ...]:
    ids = [*(params.get("SecurityGroupIds") or ()), *(interface.get("Groups") or ())]
    for name in params.get("SecurityGroups") or ():
        group = region.get_security_group_from_name(name)
        if group is None:
            raise not_found("InvalidGroup.NotFound", "security group", [name])
        ids.append(group.id)
    for one in ids:
        if region.get_security_group_from_id(one) is None or not region.seen(one):
            raise not_found("InvalidGroup.NotFound", "security group", [one])
    if not ids:
        default = region.get_security_group_from_name("default", region.default_vpc.id)
        ids = [default.id] if default is not None else []
    return tuple(dict.fromkeys(ids))


def _metadata(wish: Params) -> dict[str, Any]:
    return {
        "State": "applied",
        "HttpTokens": wish.get("HttpTokens", "optional"),
        "HttpPutResponseHopLimit": int(wish.get("HttpPutResponseHopLimit", 1)),
        "HttpEndpoint": wish.get("HttpEndpoint", "enabled"),
        "HttpProtocolIpv6": "disabled",
        "InstanceMetadataTags": wish.get("InstanceMetadataTags", "disabled"),
    }


def _zones(region: Region, kind: str, subnet_id: str | None, zone: str | None) -> tuple[str, ...]:
    """Return the zones where the type may start, those that do not offer it refused."""
    offered = region.describe_instance_type_offerings(
        "availability-zone", {"instance-type": [kind]}
    )
    places = sorted(item["Location"] for item in offered)
    wanted: str | None = region.get_subnet(subnet_id).availability_zone if subnet_id else zone
    known = {item.name for item in region.describe_availability_zones()}
    if wanted is not None and wanted not in known:
        raise _bad(f"Invalid availability zone: [{wanted}]")
    if wanted is None and places:
        return tuple(place for place in places if place in known)
    if wanted is None or wanted not in places:
        raise EC2ClientError(
            "Unsupported",
            f"Your requested instance type ({kind}) is not supported in your requested "
            f"Availability Zone ({wanted}). Please retry your request by not specifying an "
            f"Availability Zone or choosing {', '.join(places)}.",
        )
    return (wanted,)


def _placement(region: Region, kind: str, wish: Params) -> str | None:
    name = wish.get("GroupName")
    if not name:
        return None
    group = region.placements.get(name)
    if group is None or not region.seen(group.id):
        raise EC2ClientError(
            "InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown."
        )
    strategies = region.type_facts(kind).get("PlacementGroupInfo", {}).get("SupportedStrategies")
    if group.strategy not in (strategies or ()):
        raise EC2ClientError(
            "InvalidParameterCombination",
            f"{group.strategy.capitalize()} placement groups are not supported by the '{kind}' "
            "instance type. Specify a supported instance type or change the placement group "
            "strategy, and try again.",
        )
    return str(name)


def spot_price(region: Region, kind: str, zone: str) -> float:
    """Return today's spot price: around the mean of the packaged prices, other in each zone."""
    price = packaged_prices().find(kind, region.region_name)
    mean = None if price is None else price.mean_spot_usd_per_hour
    if mean is None:
        listed = None if price is None else price.on_demand_usd_per_hour
        mean = 0.4 * (listed or 0.1 * region.vcpus(kind))
    return round(mean * (1 + 0.03 * (ord(zone[-1]) % 5 - 2)), 4)


def _spot(region: Region, kind: str, market: Params) -> dict[str, Any]:
    options = market.get("SpotOptions") or {}
    price = spot_price(region, kind, "c")
    listed = packaged_prices().find(kind, region.region_name)
    most = float(options.get("MaxPrice") or (listed and listed.on_demand_usd_per_hour) or price)
    if most < price:
        raise EC2ClientError(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {most} is lower than the minimum required Spot request "
            f"fulfillment price of {price}.",
        )
    return {"type": options.get("SpotInstanceType") or "one-time", "most": most}


def _bad(message: str) -> EC2ClientError:
    return EC2ClientError("InvalidParameterValue", message)


# --- from the order to instances ------------------------------------------------------------------


def launch(region: Region, order: Order, params: Params) -> Reservation:
    """Start the instances of an order, in the first zone that has room for enough of them."""
    count = _affordable(region, order)
    zone, count = _zone_with_room(region, order, count)
    reservation_id = new_id("r")
    made = [_instance(region, order, zone, reservation_id, index) for index in range(count)]
    region.conditions.take(zone, order.instance_type, count)
    reservation = Reservation(
        reservation_id, order.client_token, fingerprint(params), tuple(item.id for item in made)
    )
    region.launches[reservation_id] = reservation
    for item in made:
        region.boot(item)
    return reservation


def _affordable(region: Region, order: Order) -> int:
    """Return how many instances the vCPU quota leaves room for; EC2 refuses, it does not trim."""
    code = quota_code(order.instance_type, spot=order.spot is not None)
    limit = region.conditions.vcpu_quotas.get(code)
    wanted = region.vcpus(order.instance_type) * order.at_most
    if limit is None or region.vcpus_in_use(code) + wanted <= limit:
        return order.at_most
    if order.spot is not None:
        raise EC2ClientError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    raise EC2ClientError(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {limit:g} allows "
        "for the instance bucket that the specified instance type belongs to "
        f"({QUOTA_NAMES[code]}).",
    )


def _zone_with_room(region: Region, order: Order, count: int) -> tuple[str, int]:
    for zone in _zones_of_group(region, order):
        room = region.conditions.room(zone, order.instance_type)
        fits = count if room is None else min(count, room)
        if fits >= order.at_least and _spread_allows(region, order, zone, fits):
            return zone, fits
    where = order.zones[0] if len(order.zones) == 1 else region.region_name
    raise EC2ClientError(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {order.instance_type} capacity in the Availability "
        f"Zone you requested ({where}). Our system will be working on provisioning additional "
        "capacity.",
    )


def _in_group(region: Region, name: str | None) -> list[Instance]:
    return [item for item in region.living() if name and item.order.placement_group == name]


def _zones_of_group(region: Region, order: Order) -> tuple[str, ...]:
    """Keep a cluster placement group in the one zone where it has begun."""
    group = region.placements.get(order.placement_group or "")
    begun = {item.zone for item in _in_group(region, order.placement_group)}
    if group is not None and group.strategy == "cluster" and begun:
        return tuple(zone for zone in order.zones if zone in begun)
    return order.zones


def _spread_allows(region: Region, order: Order, zone: str, count: int) -> bool:
    group = region.placements.get(order.placement_group or "")
    if group is None or group.strategy != "spread":
        return True
    there = [item for item in _in_group(region, group.name) if item.zone == zone]
    return len(there) + count <= _SPREAD_PER_ZONE


def _instance(region: Region, order: Order, zone: str, reservation_id: str, index: int) -> Instance:
    now = time.time()
    subnet = (
        region.get_subnet(order.subnet_id) if order.subnet_id else _default_subnet(region, zone)
    )
    image = region.images[order.image_id]
    outside = subnet.map_public_ip_on_launch is True
    if order.public_address is not None:
        outside = order.public_address
    item = Instance(
        id=new_id("i"), order=order, reservation_id=reservation_id, launch_index=index, zone=zone,
        subnet_id=subnet.id, vpc_id=subnet.vpc_id, architecture=image.architecture,
        root_device=image.root_device, launched_at=now,
        private_address=order.private_address or region.free_address(subnet),
        public_address=region.new_public_address() if outside else None,
        behaviour=order.behaviour, instance_type=order.instance_type, user_data=order.user_data,
        group_ids=order.group_ids, metadata=dict(order.metadata), protected=order.protected,
    )  # fmt: skip
    region.add(region.machines, item, order.tags.get("instance"))
    _give_interface(region, item, now)
    for device, disk in order.disks.items():
        volume = Volume(new_id("vol"), replace(disk), zone, now, item.id, device)
        region.add(region.disks, volume, order.tags.get("volume"))
    if order.spot is not None:
        _give_request(region, item, now)
    return item


def _default_subnet(region: Region, zone: str) -> Any:
    subnet = region.get_default_subnets().get(zone)
    if subnet is None:
        raise EC2ClientError("InvalidInput", f"No default subnet for availability zone: '{zone}'.")
    return subnet


def _give_interface(region: Region, item: Instance, now: float) -> None:
    mac = ":".join(["0a", *(secrets.token_hex(1) for _ in range(5))])
    interface = Interface(
        new_id("eni"), item.subnet_id, item.vpc_id, item.zone, item.private_address,
        item.public_address, item.group_ids, mac, now, item.id,
    )  # fmt: skip
    region.add(region.interfaces, interface, item.order.tags.get("network-interface"))


def _give_request(region: Region, item: Instance, now: float) -> None:
    spot = item.order.spot or {}
    request = SpotRequest(f"sir-{secrets.token_hex(4)}", item.id, spot["type"], spot["most"], now)
    item.spot_request_id = request.id
    region.add(region.spot_requests, request, item.order.tags.get("spot-instances-request"))
