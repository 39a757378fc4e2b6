"""What the API answers, read into nouns; what is absent is not known, never a guess."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from paceline.model.ec2 import (
    Answer,
    HostPrice,
    ImageFacts,
    Kind,
    Machine,
    Request,
    Subnet,
    Thing,
    TypeFacts,
)
from paceline.planning.ec2.identity import USER_TAG
from paceline.planning.ec2.images import usual_user


def account(answer: Answer) -> str | None:
    """Read whose account this is."""
    return answer.get("Account")


_IDS: Mapping[Kind, tuple[str, ...]] = {
    "key pair": ("KeyPairId",),
    "security group": ("GroupId",),
    "placement group": ("PlacementGroup", "GroupId"),
}


def made_id(request: Request, answer: Answer) -> str:
    """Read the id of what a request has made; its name where the answer has no id."""
    value: Any = answer
    for name in _IDS.get(request.makes or "instance", ()):
        value = value.get(name, {}) if isinstance(value, Mapping) else {}
    return value if isinstance(value, str) else request.subject


def types(answer: Answer) -> dict[str, TypeFacts]:
    """Read what instance types are."""
    return {item["InstanceType"]: _type(item) for item in answer.get("InstanceTypes", ())}


def _type(item: Answer) -> TypeFacts:
    gpus = item.get("GpuInfo", {}).get("Gpus", ())
    return TypeFacts(
        name=item["InstanceType"],
        vcpus=int(item["VCpuInfo"]["DefaultVCpus"]),
        memory_mib=int(item["MemoryInfo"]["SizeInMiB"]),
        architectures=tuple(item["ProcessorInfo"]["SupportedArchitectures"]),
        placement_strategies=tuple(
            item.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())
        ),
        gpus=tuple(f"{gpu['Count']} x {gpu['Manufacturer']} {gpu['Name']}" for gpu in gpus),
        network=item.get("NetworkInfo", {}).get("NetworkPerformance", ""),
    )


def zones(answer: Answer) -> dict[str, tuple[str, ...]]:
    """Read which zones offer which types, in order of their names."""
    found: dict[str, list[str]] = {}
    for item in answer.get("InstanceTypeOfferings", ()):
        found.setdefault(item["InstanceType"], []).append(item["Location"])
    return {name: tuple(sorted(places)) for name, places in found.items()}


def subnets(answer: Answer) -> tuple[Subnet, ...]:
    """Read subnets, in order of their zones."""
    found = (
        Subnet(item["SubnetId"], item["AvailabilityZone"], item["VpcId"])
        for item in answer.get("Subnets", ())
    )
    return tuple(sorted(found, key=lambda subnet: (subnet.zone, subnet.id)))


def parameters(answer: Answer) -> dict[str, str]:
    """Read the values of parameters by their names."""
    return {item["Name"]: item["Value"] for item in answer.get("Parameters", ())}


def images(answer: Answer, user: str | None = None) -> tuple[ImageFacts, ...]:
    """Read images, the newest first; `user` logs in where the image itself does not say who."""
    found = sorted(answer.get("Images", ()), key=lambda item: str(item.get("CreationDate", "")))
    return tuple(_image(item, user) for item in reversed(found))


def _image(item: Answer, user: str | None) -> ImageFacts:
    device = item.get("RootDeviceName") or "/dev/sda1"
    sizes = [
        int(entry["Ebs"]["VolumeSize"])
        for entry in item.get("BlockDeviceMappings", ())
        if entry.get("DeviceName") == device and "VolumeSize" in entry.get("Ebs", {})
    ]
    name = item.get("Name", "")
    told = tags(item).get(USER_TAG) or user or usual_user(name, item.get("Description") or "")
    return ImageFacts(
        id=item["ImageId"],
        name=name,
        architecture=item.get("Architecture", "x86_64"),
        root_device=device,
        size_gib=max(sizes, default=0),
        user=told or "",
    )


def price(answer: Answer, today: str) -> HostPrice | None:
    """Read the price of an hour from the Price List; None where it has none."""
    found = []
    for text in answer.get("PriceList", ()):
        product = json.loads(text) if isinstance(text, str) else text
        for offer in product.get("terms", {}).get("OnDemand", {}).values():
            for dimension in offer.get("priceDimensions", {}).values():
                usd = dimension.get("pricePerUnit", {}).get("USD")
                if usd is not None and dimension.get("unit") == "Hrs":
                    found.append(float(usd))
    # Reserved hosts and the like are listed at zero: that is not what an instance costs.
    costs = [usd for usd in found if usd > 0]
    return HostPrice(min(costs), f"AWS's list price, asked on {today}") if costs else None


def spot_price(answer: Answer, zones: Sequence[str], today: str) -> HostPrice | None:
    """Read the spot price: the dearest of the zones where we may end up."""
    newest: dict[str, tuple[Any, float]] = {}
    for item in answer.get("SpotPriceHistory", ()):
        zone, at = item["AvailabilityZone"], item.get("Timestamp")
        if (not zones or zone in zones) and (zone not in newest or at > newest[zone][0]):
            newest[zone] = (at, float(item["SpotPrice"]))
    costs = [usd for _, usd in newest.values()]
    return HostPrice(max(costs), f"the spot price, asked on {today}") if costs else None


def quota(answer: Answer) -> float | None:
    """Read the limit of a quota."""
    value = answer.get("Quota", {}).get("Value")
    return None if value is None else float(value)


def machines(answer: Answer) -> tuple[Machine, ...]:
    """Read instances."""
    return tuple(
        _machine(item)
        for reservation in answer.get("Reservations", ())
        for item in reservation.get("Instances", ())
    )


def launched(answer: Answer) -> tuple[Machine, ...]:
    """Read the instances that a launch has made."""
    return tuple(_machine(item) for item in answer.get("Instances", ()))


def _machine(item: Answer) -> Machine:
    return Machine(
        id=item["InstanceId"],
        state=item["State"]["Name"],
        instance_type=item["InstanceType"],
        zone=item.get("Placement", {}).get("AvailabilityZone", ""),
        image_id=item.get("ImageId", ""),
        launched_at=_seconds(item.get("LaunchTime")),
        launch_index=int(item.get("AmiLaunchIndex", 0)),
        private_address=item.get("PrivateIpAddress") or None,
        public_address=item.get("PublicIpAddress") or None,
        client_token=item.get("ClientToken") or "",
        reason=item.get("StateReason", {}).get("Message", ""),
        spot_request_id=item.get("SpotInstanceRequestId") or None,
        tags=tags(item),
    )


def _seconds(value: Any) -> float:
    return value.timestamp() if isinstance(value, datetime) else 0.0


def tags(item: Answer) -> Mapping[str, str]:
    """Read the tags of anything."""
    found = item.get("Tags") or item.get("TagSet") or ()
    return {tag["Key"]: tag.get("Value", "") for tag in found}


def things(kind: Kind, answer: Answer) -> tuple[Thing, ...]:
    """Read the things of one kind, other than instances."""
    key, read = _THINGS[kind]
    return tuple(thing for item in answer.get(key, ()) for thing in read(item))


def _plain(
    kind: Kind, id_key: str, name_key: str = "", *facts: str
) -> Callable[[Answer], Iterator[Thing]]:
    def read(item: Answer) -> Iterator[Thing]:
        state = item.get("State") or item.get("Status") or ""
        own = tags(item)
        yield Thing(
            kind=kind,
            id=item[id_key],
            name=item.get(name_key) or own.get("Name", ""),
            state=state if isinstance(state, str) else "",
            tags=own,
            facts={name: item[name] for name in facts if name in item},
        )

    return read


_THINGS: Mapping[Kind, tuple[str, Callable[[Answer], Iterator[Thing]]]] = {
    "spot request": (
        "SpotInstanceRequests",
        _plain("spot request", "SpotInstanceRequestId", "", "InstanceId"),
    ),
    "network interface": (
        "NetworkInterfaces",
        _plain("network interface", "NetworkInterfaceId", "", "Attachment"),
    ),
    "volume": ("Volumes", _plain("volume", "VolumeId", "", "Attachments", "Encrypted", "Size")),
    "security group": (
        "SecurityGroups",
        _plain("security group", "GroupId", "GroupName", "IpPermissions", "VpcId"),
    ),
    "key pair": (
        "KeyPairs", _plain("key pair", "KeyPairId", "KeyName", "PublicKey", "KeyFingerprint"),
    ),
    "placement group": (
        "PlacementGroups", _plain("placement group", "GroupId", "GroupName", "Strategy"),
    ),
    "image": ("Images", _plain("image", "ImageId", "Name", "BlockDeviceMappings")),
    "snapshot": ("Snapshots", _plain("snapshot", "SnapshotId")),
}  # fmt: skip
