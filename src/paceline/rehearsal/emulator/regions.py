"""The regions of the one account, made when they are first spoken to."""

from __future__ import annotations

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from paceline.rehearsal.emulator.conditions import Conditions
from paceline.rehearsal.emulator.keeper import Keeper
from paceline.rehearsal.emulator.region import Region

ACCOUNT_ID = "123456789012"


class Regions:
    """All regions, with the conditions and the keeper that they share."""

    def __init__(self, conditions: Conditions, keeper: Keeper) -> None:
        self.conditions = conditions
        self.keeper = keeper
        self.made: dict[str, Region] = {}

    def __getitem__(self, name: str) -> Region:
        """Return a region; raise EC2's error if there is none of that name."""
        if name not in self.made:
            if name not in RegionsAndZonesBackend.zones:
                raise EC2ClientError("AuthFailure", f"There is no region '{name}'")
            self.made[name] = Region(name, ACCOUNT_ID, self.conditions, self.keeper)
        return self.made[name]
