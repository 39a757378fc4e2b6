"""RunInstances: from a checked order to instances, once for each client token."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moto.ec2.exceptions import EC2ClientError

from paceline.rehearsal.emulator.conditions import QUOTA_NAMES, quota_code
from paceline.rehearsal.emulator.nouns import (
    Instance,
    Interface,
    Order,
    Reservation,
    SpotRequest,
    Volume,
    new_id,
)
from paceline.rehearsal.emulator.region import Region

Params = Mapping[str, Any]
_SPREAD_PER_ZONE = 7


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
