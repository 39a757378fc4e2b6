"""What an account holds that the library behind the emulator has not, or has differently."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

STATE_CODES = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}
# What a state that is on its way turns into.
ENDS_AS = {"pending": "running", "stopping": "stopped", "shutting-down": "terminated"}


def new_id(kind: str) -> str:
    """Return an id as EC2 gives them: `i-` and 17 hexadecimal digits."""
    return f"{kind}-{secrets.token_hex(9)[:17]}"


@dataclass
class Disk:
    """What a volume is made of: in an image, in a request, and of a volume itself."""

    size_gib: int
    type: str = "gp3"
    encrypted: bool = False
    iops: int | None = None
    throughput: int | None = None
    key_id: str | None = None
    snapshot_id: str | None = None
    goes_with_instance: bool = True


@dataclass
class Volume:
    """A disk in a zone, perhaps attached to an instance."""

    id: str
    disk: Disk
    zone: str
    created_at: float
    instance_id: str | None = None
    device: str | None = None


@dataclass
class Interface:
    """A network interface with its addresses."""

    id: str
    subnet_id: str
    vpc_id: str
    zone: str
    private_address: str
    public_address: str | None
    group_ids: tuple[str, ...]
    mac: str
    created_at: float
    instance_id: str | None = None
    goes_with_instance: bool = True
    description: str = ""


@dataclass
class Snapshot:
    """The content of a volume at one moment."""

    id: str
    volume_id: str
    size_gib: int
    encrypted: bool
    owner_id: str
    created_at: float
    ready_at: float
    description: str = ""


@dataclass
class Image:
    """What an instance starts from."""

    id: str
    name: str
    owner_id: str
    architecture: str
    root_device: str
    disks: dict[str, Disk]
    created_at: float
    ready_at: float
    description: str = ""
    owner_alias: str | None = None
    public: bool = False
    source_instance_id: str | None = None
    parent_id: str | None = None
    user: str = "ubuntu"


@dataclass
class PlacementGroup:
    """Instances that stand close together, or far apart."""

    id: str
    name: str
    strategy: str


@dataclass
class SpotRequest:
    """What stands behind an instance of the spot market."""

    id: str
    instance_id: str
    type: str
    max_usd_per_hour: float
    created_at: float
    state: str = "active"
    status: str = "fulfilled"


@dataclass(frozen=True)
class Order:
    """What RunInstances was asked for, checked and with all defaults filled in."""

    image_id: str
    instance_type: str
    at_least: int
    at_most: int
    group_ids: tuple[str, ...]
    disks: dict[str, Disk]
    zones: tuple[str, ...]
    subnet_id: str | None = None
    private_address: str | None = None
    public_address: bool | None = None
    key_name: str | None = None
    user_data: str = ""
    behaviour: str = "stop"
    metadata: dict[str, Any] = field(default_factory=dict)
    placement_group: str | None = None
    tenancy: str = "default"
    spot: dict[str, Any] | None = None
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    client_token: str | None = None
    protected: bool = False


@dataclass
class Instance:
    """One machine, from its launch to its end."""

    id: str
    order: Order
    reservation_id: str
    launch_index: int
    zone: str
    subnet_id: str
    vpc_id: str
    architecture: str
    root_device: str
    private_address: str
    public_address: str | None
    launched_at: float
    state: str = "pending"
    settles_at: float = 0.0
    running_since: float | None = None
    reason: tuple[str, str] | None = None
    spot_request_id: str | None = None
    interruption_at: float | None = None
    behaviour: str = "stop"
    instance_type: str = ""
    user_data: str = ""
    group_ids: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    protected: bool = False

    @property
    def alive(self) -> bool:
        """Whether it still holds disks and addresses."""
        return self.state != "terminated"

    @property
    def on(self) -> bool:
        """Whether it has power."""
        return self.state in {"pending", "running"}


@dataclass(frozen=True)
class Reservation:
    """The instances of one launch."""

    id: str
    token: str | None
    fingerprint: str
    instance_ids: tuple[str, ...]
