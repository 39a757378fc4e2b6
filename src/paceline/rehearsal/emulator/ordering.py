"""RunInstances: from the words of the request to a checked order. Nothing is changed."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from moto.ec2.exceptions import EC2ClientError

from paceline.rehearsal.emulator import views
from paceline.rehearsal.emulator.market import read_spot
from paceline.rehearsal.emulator.nouns import Image, Order
from paceline.rehearsal.emulator.region import Region, not_found
from paceline.rehearsal.emulator.wishes import bad_value, read_disks, read_tags

Params = Mapping[str, Any]
_MOST_USER_DATA_BYTES = 16384


def read_order(region: Region, params: Params) -> Order:
    """Check a request, and fill in its defaults."""
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
        raise bad_value("User data is limited to 16384 bytes")
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
        spot=read_spot(region, kind, market) if market.get("MarketType") == "spot" else None,
        tags=read_tags(params),
        client_token=params.get("ClientToken"),
        protected=params.get("DisableApiTermination") is True,
    )


def _counts(params: Params) -> tuple[int, int]:
    at_least, at_most = int(params.get("MinCount", 1)), int(params.get("MaxCount", 1))
    if at_least < 1 or at_most < at_least:
        raise bad_value(f"Value ({at_least}) for parameter minCount is invalid.")
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
        raise bad_value(
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
        raise bad_value(f"Invalid availability zone: [{wanted}]")
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
