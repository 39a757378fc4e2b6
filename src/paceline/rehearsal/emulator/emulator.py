"""The emulator as one thing: started, spoken to over HTTP, looked into, and gone."""

from __future__ import annotations

import secrets
import time

from paceline.errors import NotFound
from paceline.rehearsal.closing import Closing
from paceline.rehearsal.emulator.calls import CallLog
from paceline.rehearsal.emulator.conditions import Conditions
from paceline.rehearsal.emulator.faults import Fault, Faults, throttling
from paceline.rehearsal.emulator.inventory import Inventory, inventory
from paceline.rehearsal.emulator.keeper import Keeper
from paceline.rehearsal.emulator.nouns import Instance
from paceline.rehearsal.emulator.region import Region
from paceline.rehearsal.emulator.regions import Regions
from paceline.rehearsal.emulator.server import Door, Listener

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class Emulator(Closing):
    """One account with all its regions, behind one address."""

    def __init__(
        self,
        conditions: Conditions | None = None,
        *,
        keeper: Keeper | None = None,
        port: int = 0,
        region: str = "us-east-1",
    ) -> None:
        self.conditions = conditions or Conditions()
        self.keeper = keeper or Keeper()
        self.calls = CallLog()
        self.faults = Faults()
        self.region = region
        self.key_id = "AKIA" + "".join(secrets.choice(_LETTERS) for _ in range(16))
        self.regions = Regions(self.conditions, self.keeper)
        self.door = Door(self.regions, self.calls, self.faults, self.key_id)
        self._listener = Listener(self.door, port=port)

    def close(self) -> None:
        """Stop listening, and take every machine away."""
        self._listener.close()
        with self.door.lock:
            for region in self.regions.made.values():
                for instance in region.living():
                    self.keeper.remove(instance.id)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._listener.url

    @property
    def environ(self) -> dict[str, str]:
        """What leads AWS's own tools and ours here instead of to AWS."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": "rehearsal",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def inventory(self) -> Inventory:
        """Return all that the account holds, by kind; an empty kind is there as well."""
        with self.door.lock:
            _ = self.regions[self.region]
            return inventory(self.regions)

    def instances(self) -> list[Instance]:
        """Return the instances that are not terminated, the first launched first."""
        with self.door.lock:
            found = []
            for region in self.regions.made.values():
                region.settle()
                found += list(region.living())
            return found

    def tags_of(self, instance_id: str) -> dict[str, str]:
        """Return the tags of an instance."""
        with self.door.lock:
            return dict(self._home_of(instance_id).tags.get(instance_id, {}))

    def settle(self) -> None:
        """Let what is due happen, also while nobody calls."""
        with self.door.lock:
            for region in self.regions.made.values():
                region.settle()
                region.let_groups_have_effect()

    # --- what can happen to the machines, and what the caller will meet ---------------------------

    def shut_down_from_inside(self, instance_id: str) -> None:
        """Act on a shutdown that was ordered on the instance itself."""
        with self.door.lock:
            self._home_of(instance_id).shut_down_from_inside(instance_id)

    def interrupt(self, instance_id: str, notice_s: float | None = None) -> None:
        """Take a spot instance back, after the notice."""
        wait = self.conditions.notice_s if notice_s is None else notice_s
        with self.door.lock:
            region = self._home_of(instance_id)
            region.interrupt(region.machines[instance_id], time.time() + wait)

    def throttle(self, probability: float, *, seed: int = 0) -> Fault:
        """Refuse a share of all calls."""
        return self.faults.add(throttling(probability, seed=seed))

    def limit_capacity(self, room: int = 0, *, zone: str = "*", instance_type: str = "*") -> None:
        """Leave room for so many more instances; none, if nothing is said."""
        with self.door.lock:
            self.conditions.capacity[zone, instance_type] = room

    def lift_limits(self) -> None:
        """Let there be room for any number of instances again."""
        with self.door.lock:
            self.conditions.capacity.clear()

    def _home_of(self, instance_id: str) -> Region:
        for region in self.regions.made.values():
            if instance_id in region.machines:
                return region
        raise NotFound(f"there is no instance {instance_id}")
