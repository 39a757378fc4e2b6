"""All that an account holds, by kind: what was there before must be there after, and no more."""

from __future__ import annotations

from paceline.rehearsal.emulator.region import Region
from paceline.rehearsal.emulator.regions import Regions

# Kind of resource -> `REGION/ID` -> its name.
Inventory = dict[str, dict[str, str]]


def inventory(regions: Regions) -> Inventory:
    """Return all that was made in an account and is not gone: what EC2 itself supplies is not."""
    found: Inventory = {}
    for name, region in regions.made.items():
        region.settle()
        for kind, items in _held(region).items():
            found.setdefault(kind, {}).update(
                {f"{name}/{key}": word for key, word in items.items()}
            )
    return found


def _held(region: Region) -> Inventory:
    groups = [group for groups in region.groups.values() for group in groups.values()]
    return {
        "instances": {item.id: _name(region, item.id, item.state) for item in region.living()},
        "volumes": {item.id: _name(region, item.id) for item in region.disks.values()},
        "interfaces": {item.id: _name(region, item.id) for item in region.interfaces.values()},
        "security groups": {item.id: item.name for item in groups if item.name != "default"},
        "key pairs": {item.id: item.key_name for item in region.key_pairs.values()},
        "placement groups": {item.id: item.name for item in region.placements.values()},
        "images": {item.id: item.name for item in region.own_images()},
        "snapshots": {item.id: item.description for item in region.own_stills()},
        "spot requests": {
            item.id: item.state
            for item in region.spot_requests.values()
            if item.state in {"open", "active"}
        },
        "addresses": {str(item.allocation_id): item.public_ip for item in region.addresses},
        "launch templates": {item.id: item.name for item in region.launch_templates.values()},
    }


def _name(region: Region, resource_id: str, otherwise: str = "") -> str:
    return region.tags.get(resource_id, {}).get("Name", otherwise)
