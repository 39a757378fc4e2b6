"""One region of the account: networks, keys and groups of moto, machines and disks of our own."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend

from paceline.rehearsal.emulator import catalogue
from paceline.rehearsal.emulator.conditions import Conditions, quota_code
from paceline.rehearsal.emulator.guarding import guard_of
from paceline.rehearsal.emulator.keeper import Guard, Keeper, Machine, MetadataAccess
from paceline.rehearsal.emulator.nouns import (
    ENDS_AS,
    Image,
    Instance,
    Interface,
    PlacementGroup,
    Reservation,
    Snapshot,
    SpotRequest,
    Volume,
)

_INVENTED_PUBLIC = IPv4Network("54.144.0.0/12")
# EC2 keeps the first four addresses of a subnet to itself, and the last one.
_FIRST_ADDRESS = 4


class Region(EC2Backend):
    """The state of one region, and the laws that hold between its parts."""

    def __init__(
        self, region_name: str, account_id: str, conditions: Conditions, keeper: Keeper
    ) -> None:
        super().__init__(region_name, account_id)
        self.conditions = conditions
        self.keeper = keeper
        self.machines: dict[str, Instance] = {}
        self.launches: dict[str, Reservation] = {}
        self.disks: dict[str, Volume] = {}
        self.interfaces: dict[str, Interface] = {}
        self.images, self.stills = catalogue.stock(region_name)
        self.placements: dict[str, PlacementGroup] = {}
        self.spot_requests: dict[str, SpotRequest] = {}
        self._types: dict[str, dict[str, Any]] = {item.name: item for item in self.instance_types}
        self._young: Counter[str] = Counter()
        self._moving: set[str] = set()
        self._invented = itertools.count(_FIRST_ADDRESS)
        self._guard: Guard | None = None

    def _load_amis(self) -> None:
        """Have none of moto's images: the catalogue has those of today."""

    # --- time ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let all that is due by now happen: boots end, terminated instances let go."""
        now = time.time()
        for instance in [self.machines[key] for key in self._moving]:
            if instance.interruption_at is not None and instance.interruption_at <= now:
                self._reclaim(instance)
            if instance.state in ENDS_AS and instance.settles_at <= now:
                self._arrive(instance)
            if instance.state not in ENDS_AS and instance.interruption_at is None:
                self._moving.discard(instance.id)

    def move(self, instance: Instance, state: str, within_s: float) -> None:
        """Send an instance on its way to a state that it reaches after a while."""
        instance.state = state
        instance.settles_at = time.time() + within_s
        self._moving.add(instance.id)

    def interrupt(self, instance: Instance, at: float) -> None:
        """Announce that a spot instance is taken back at a certain time."""
        instance.interruption_at = at
        self._moving.add(instance.id)
        self.keeper.warn(instance.id, at)

    def _reclaim(self, instance: Instance) -> None:
        instance.interruption_at = None
        if instance.on:
            self.terminate(instance, "Server.SpotInstanceTermination", "Spot instance termination")

    def _arrive(self, instance: Instance) -> None:
        instance.state = ENDS_AS[instance.state]
        if instance.state == "running":
            instance.running_since = instance.settles_at
        elif instance.state == "terminated":
            self._let_go(instance)

    def _let_go(self, instance: Instance) -> None:
        self.keeper.remove(instance.id)
        for interface in self.interfaces_of(instance.id):
            if interface.public_address is not None:
                self.keeper.release(interface.public_address)
            if interface.goes_with_instance:
                self.drop(self.interfaces, interface.id)
            else:
                interface.instance_id = None
        for volume in self.disks_of(instance.id):
            if volume.disk.goes_with_instance:
                self.drop(self.disks, volume.id)
            else:
                volume.instance_id = volume.device = None

    # --- what an instance does ------------------------------------------------------------------

    def boot(self, instance: Instance) -> None:
        """Give an instance power."""
        instance.reason = None
        self.move(instance, "pending", self.conditions.boot_s)
        self.keeper.boot(self.machine_of(instance))

    def stop(self, instance: Instance, code: str, message: str) -> None:
        """Take an instance's power away, and keep its disks."""
        if not instance.on:
            return
        instance.reason = (code, f"{code}: {message}")
        instance.running_since = None
        self.move(instance, "stopping", self.conditions.stop_s)
        self.keeper.power_off(instance.id)
        for interface in self.interfaces_of(instance.id):
            if interface.public_address is not None:
                self.keeper.release(interface.public_address)
            interface.public_address = None
        instance.public_address = None

    def start(self, instance: Instance) -> None:
        """Give a stopped instance power again, with another public address."""
        instance.public_address = self.new_public_address()
        for interface in self.interfaces_of(instance.id):
            interface.public_address = instance.public_address
        self.boot(instance)

    def terminate(self, instance: Instance, code: str, message: str) -> None:
        """End an instance for good."""
        if instance.state in {"shutting-down", "terminated"}:
            return
        instance.reason = (code, f"{code}: {message}")
        instance.running_since = None
        self.keeper.power_off(instance.id)
        self.move(instance, "shutting-down", self.conditions.stop_s)
        request = self.spot_requests.get(instance.spot_request_id or "")
        if request is not None:
            request.state = "closed"
            ours = code.startswith("Client.")
            request.status = (
                "instance-terminated-by-user" if ours else "instance-terminated-no-capacity"
            )

    def shut_down_from_inside(self, instance_id: str) -> None:
        """Do what the instance's own shutdown means: stop or terminate it."""
        instance = self.machines.get(instance_id)
        if instance is None or not instance.on:
            return
        code = "Client.InstanceInitiatedShutdown"
        if instance.behaviour == "terminate" or instance.order.spot is not None:
            self.terminate(instance, code, "Instance initiated shutdown")
        else:
            self.stop(instance, code, "Instance initiated shutdown")

    # --- looking things up ----------------------------------------------------------------------

    def add(self, shelf: dict[str, Any], item: Any, tags: dict[str, str] | None = None) -> None:
        """Put something new on its shelf, with its tags, not to be seen for the first looks."""
        shelf[item.id] = item
        if tags:
            self.tags[item.id].update(tags)
        self.hide(item.id)

    def hide(self, resource_id: str) -> None:
        """Let the next looks miss a resource, as EC2 does shortly after its creation."""
        if self.conditions.hidden_looks:
            self._young[resource_id] = self.conditions.hidden_looks

    def drop(self, shelf: dict[str, Any], resource_id: str) -> None:
        """Take something off its shelf, with its tags."""
        shelf.pop(resource_id, None)
        self.tags.pop(resource_id, None)

    def seen(self, resource_id: str) -> bool:
        """Tell whether a look sees a resource yet."""
        if self._young[resource_id] > 0:
            self._young[resource_id] -= 1
            return False
        return True

    def find(self, shelf: dict[str, Any], ids: Iterable[str], code: str, noun: str) -> list[Any]:
        """Return what has these ids; raise EC2's error for those that are not there."""
        wanted = list(ids)
        missing = [one for one in wanted if one not in shelf or not self.seen(one)]
        if missing:
            raise not_found(code, noun, missing)
        return [shelf[one] for one in wanted]

    def interfaces_of(self, instance_id: str) -> list[Interface]:
        """Return the network interfaces of an instance."""
        return [item for item in self.interfaces.values() if item.instance_id == instance_id]

    def disks_of(self, instance_id: str) -> list[Volume]:
        """Return the volumes of an instance."""
        return [item for item in self.disks.values() if item.instance_id == instance_id]

    def living(self) -> Iterator[Instance]:
        """Return the instances that are not terminated."""
        return (item for item in self.machines.values() if item.alive)

    def own_images(self) -> list[Image]:
        """Return the images that this account made."""
        return [item for item in self.images.values() if item.owner_id == self.account_id]

    def own_stills(self) -> list[Snapshot]:
        """Return the snapshots that this account made."""
        return [item for item in self.stills.values() if item.owner_id == self.account_id]

    def do_resources_exist(self, resource_ids: list[str]) -> bool:
        """Look before tagging, over our own shelves and moto's."""
        shelves: dict[str, tuple[dict[str, Any], str, str]] = {
            "i-": (self.machines, "InvalidInstanceID", "instance ID"),
            "vol-": (self.disks, "InvalidVolume", "volume"),
            "eni-": (self.interfaces, "InvalidNetworkInterfaceID", "networkInterface ID"),
            "ami-": (self.images, "InvalidAMIID", "image id"),
            "snap-": (self.stills, "InvalidSnapshot", "snapshot"),
            "sir-": (self.spot_requests, "InvalidSpotInstanceRequestID", "spot instance request"),
            "pg-": (
                {item.id: item for item in self.placements.values()},
                "InvalidPlacementGroupId",
                "placement group",
            ),
            "key-": (
                {item.id: item for item in self.key_pairs.values()},
                "InvalidKeyPair",
                "key pair",
            ),
        }
        for one in resource_ids:
            shelf, code, noun = shelves.get(one[: one.find("-") + 1], ({}, "", ""))
            if code:
                self.find(shelf, [one], f"{code}.NotFound", noun)
            else:
                super().do_resources_exist([one])
        return True

    # --- addresses and numbers --------------------------------------------------------------------

    def free_address(self, subnet: Any) -> str:
        """Return the lowest free address of a subnet, from the fourth upwards."""
        taken = {int(IPv4Address(item.private_address)) for item in self.interfaces.values()}
        network = IPv4Network(subnet.cidr_block)
        first = int(network.network_address)
        for number in range(first + _FIRST_ADDRESS, first + network.num_addresses - 1):
            if number not in taken:
                return str(IPv4Address(number))
        raise EC2ClientError(
            "InsufficientFreeAddressesInSubnet",
            f"There are not enough free addresses in subnet '{subnet.id}' to satisfy the requested "
            "number of instances.",
        )

    def new_public_address(self) -> str:
        """Return a public address that leads to a machine, or at least looks like one."""
        given = self.keeper.public_address(self.region_name)
        return given or str(_INVENTED_PUBLIC[next(self._invented)])

    def vcpus(self, instance_type: str) -> int:
        """Return how many vCPUs a type has."""
        return int(self.type_facts(instance_type)["VCpuInfo"]["DefaultVCpus"])

    def type_facts(self, instance_type: str) -> dict[str, Any]:
        """Return what EC2 says about a type; raise its error for what is none."""
        facts = self._types.get(instance_type)
        if facts is None:
            raise EC2ClientError(
                "InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType."
            )
        return facts

    def vcpus_in_use(self, code: str) -> int:
        """Return how much of a quota the running instances use."""
        return sum(
            self.vcpus(item.instance_type)
            for item in self.living()
            if item.on and quota_code(item.instance_type, spot=item.order.spot is not None) == code
        )

    def machine_of(self, instance: Instance) -> Machine:
        """Return what is needed to boot an instance."""
        facts = self.type_facts(instance.instance_type)
        key = self.key_pairs.get(instance.order.key_name or "")
        image = self.images.get(instance.order.image_id)
        return Machine(
            instance_id=instance.id,
            region=self.region_name,
            zone=instance.zone,
            instance_type=instance.instance_type,
            vcpus=int(facts["VCpuInfo"]["DefaultVCpus"]),
            memory_mib=int(facts["MemoryInfo"]["SizeInMiB"]),
            network=str(facts["NetworkInfo"]["NetworkPerformance"]),
            image_id=instance.order.image_id,
            user=image.user if image is not None else "ubuntu",
            private_address=instance.private_address,
            public_address=instance.public_address,
            user_data=instance.user_data,
            authorised_keys=() if key is None else (key.public_key.strip(),),
            group_ids=instance.group_ids,
            image_name=image.name if image is not None else "",
            subnet=str(self.get_subnet(instance.subnet_id).cidr_block),
            metadata=metadata_access(instance),
            spot=instance.order.spot is not None,
        )

    def let_groups_have_effect(self) -> None:
        """Tell the keeper who may speak to whom, if that has changed."""
        guard = guard_of(self.region_name, self.groups, self.interfaces.values())
        if guard != self._guard:
            self._guard = guard
            self.keeper.guard(guard)


def metadata_access(instance: Instance) -> MetadataAccess:
    """Return how an instance may ask for its metadata."""
    options = instance.metadata
    return MetadataAccess(
        enabled=options["HttpEndpoint"] == "enabled",
        tokens_required=options["HttpTokens"] == "required",
        hop_limit=int(options["HttpPutResponseHopLimit"]),
    )


def not_found(code: str, noun: str, ids: list[str]) -> EC2ClientError:
    """Return EC2's error for ids that do not exist."""
    if len(ids) == 1:
        return EC2ClientError(code, f"The {noun} '{ids[0]}' does not exist")
    return EC2ClientError(code, f"The {noun}s '{', '.join(ids)}' do not exist")
