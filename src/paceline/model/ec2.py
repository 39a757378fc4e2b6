"""Nouns of EC2: requests as data, what the region offers, and what an account holds there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Kind = Literal[
    "instance",
    "spot request",
    "network interface",
    "volume",
    "security group",
    "key pair",
    "placement group",
    "image",
    "snapshot",
]
# In the order in which they can be removed.
KINDS: tuple[Kind, ...] = get_args(Kind)

_LOOKING = ("Describe", "Get", "List")
ENDED_STATES = ("terminated",)
GOING_STATES = ("shutting-down", "terminated")


@dataclass(frozen=True)
class ClusterKey:
    """What tells one cluster from all others of an account."""

    name: str
    owner: str
    region: str

    def __str__(self) -> str:
        return f"{self.name} in {self.region}"


@dataclass(frozen=True)
class Request:
    """One call of the API, as data: what `plan` prints is what `up` sends.

    `makes` is the kind of thing that it creates, and `subject` what it is about, in a few words.
    """

    action: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    service: str = "ec2"
    makes: Kind | None = None
    subject: str = ""

    @property
    def changes(self) -> bool:
        """Whether it is of a kind that changes something."""
        return not self.action.startswith(_LOOKING)


Answer = Mapping[str, Any]


@dataclass(frozen=True)
class TypeFacts:
    """What an instance type is and has."""

    name: str
    vcpus: int
    memory_mib: int
    architectures: tuple[str, ...]
    placement_strategies: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    network: str = ""


@dataclass(frozen=True)
class Subnet:
    """A stretch of a network in one zone."""

    id: str
    zone: str
    vpc_id: str


@dataclass(frozen=True)
class ImageFacts:
    """What an instance starts from, and who logs in to it."""

    id: str
    name: str
    architecture: str
    root_device: str
    size_gib: int
    user: str


@dataclass(frozen=True)
class HostPrice:
    """What one host costs per hour; `source` says who says so, and of which day it is."""

    usd_per_hour: float | None
    source: str


@dataclass(frozen=True)
class Machine:
    """One instance, as the account's own listing shows it."""

    id: str
    state: str
    instance_type: str
    zone: str
    image_id: str
    launched_at: float
    launch_index: int = 0
    private_address: str | None = None
    public_address: str | None = None
    client_token: str = ""
    reason: str = ""
    spot_request_id: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Whether it runs, or may run again."""
        return self.state not in GOING_STATES

    @property
    def ended(self) -> bool:
        """Whether it has let go of everything that it held."""
        return self.state in ENDED_STATES


@dataclass(frozen=True)
class Thing:
    """Anything else that an account holds: a group, a key, a disk."""

    kind: Kind
    id: str
    name: str = ""
    state: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = f" ({self.name})" if self.name and self.name != self.id else ""
        return f"{self.kind} {self.id}{shown}"


@dataclass(frozen=True)
class Holdings:
    """What an account holds that bears certain tags."""

    machines: tuple[Machine, ...] = ()
    things: tuple[Thing, ...] = ()

    def of(self, kind: Kind) -> tuple[Thing, ...]:
        """Return the things of one kind."""
        return tuple(thing for thing in self.things if thing.kind == kind)

    @property
    def living(self) -> tuple[Machine, ...]:
        """The instances that are not on their way out, in the order in which they were made."""
        return tuple(sorted((one for one in self.machines if one.alive), key=_age))

    @property
    def remains(self) -> tuple[Thing, ...]:
        """All that is still there, instances included."""
        machines = (
            Thing("instance", one.id, one.tags.get("Name", ""), one.state)
            for one in self.machines
            if not one.ended
        )
        return (*machines, *self.things)


def _age(machine: Machine) -> tuple[float, int, str]:
    return (machine.launched_at, machine.launch_index, machine.id)


@dataclass(frozen=True)
class DiskWish:
    """The root disk that is asked for; without a size, as much as the image needs."""

    size_gib: int | None = None
    type: str = "gp3"
    encrypted: bool = True


@dataclass(frozen=True)
class Wish:
    """What a spec asks of EC2, with every default filled in."""

    key: ClusterKey
    types: tuple[str, ...]
    nodes: int
    min_nodes: int
    image: str
    user: str | None
    disk: DiskWish
    placement: str
    market: str
    ssh_from: tuple[str, ...]
    open_ports: tuple[int, ...]
    zones: tuple[str, ...]
    subnet: str | None
    ttl_s: float
    idle_s: float | None = None


@dataclass(frozen=True)
class Survey:
    """What the region has for a wish: everything that planning needs to know of the world.

    `quotas` has the limit of vCPUs by quota code, and `vcpus_in_use` what runs of it already;
    None is what the account may not ask.
    """

    types: Mapping[str, TypeFacts]
    zones: Mapping[str, tuple[str, ...]]
    subnets: tuple[Subnet, ...]
    images: Mapping[str, ImageFacts]
    prices: Mapping[str, HostPrice]
    quotas: Mapping[str, float | None]
    vcpus_in_use: Mapping[str, int | None]
    account: str | None
    own_address: str | None
    held: Holdings = field(default_factory=Holdings)


@dataclass(frozen=True)
class Attempt:
    """Where one attempt to launch goes: a type, and a subnet of a zone that offers it."""

    instance_type: str
    subnet: Subnet
    image: ImageFacts


@dataclass(frozen=True)
class PlannedThing:
    """A resource by name, before it exists."""

    kind: Kind
    name: str
    what: str


@dataclass(frozen=True)
class CloudPlan:
    """What `up` would do: resources by name, every request in order, prices, doubts.

    `refusals` are reasons why it cannot be done; with one of them, `up` does not begin.
    """

    key: ClusterKey
    nodes: int
    there: int
    instance_type: str
    image: ImageFacts
    expires_at: float
    ttl_s: float
    price: HostPrice
    attempts: tuple[Attempt, ...]
    things: tuple[PlannedThing, ...]
    looks: tuple[str, ...]
    requests: tuple[Request, ...]
    zones: Mapping[str, tuple[str, ...]]
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def usd_per_hour(self) -> float | None:
        """What all hosts together cost per hour."""
        hourly = self.price.usd_per_hour
        return None if hourly is None else hourly * self.nodes

    @property
    def most_usd(self) -> float | None:
        """What all hosts cost until they switch themselves off."""
        hourly = self.usd_per_hour
        return None if hourly is None else hourly * self.ttl_s / 3600.0
