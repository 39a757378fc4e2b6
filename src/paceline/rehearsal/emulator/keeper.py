"""The port between the API and the machines: who gives an instance a body."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MetadataAccess:
    """How a machine may ask for its metadata, and how many hops a token gets on its way there."""

    enabled: bool = True
    tokens_required: bool = False
    hop_limit: int = 1


@dataclass(frozen=True)
class Machine:
    """What is needed to boot an instance."""

    instance_id: str
    region: str
    zone: str
    instance_type: str
    vcpus: int
    memory_mib: int
    network: str
    image_id: str
    user: str
    private_address: str
    public_address: str | None
    user_data: str
    authorised_keys: tuple[str, ...]
    group_ids: tuple[str, ...]
    image_name: str = ""
    subnet: str = "172.31.0.0/20"
    metadata: MetadataAccess = MetadataAccess()
    spot: bool = False


@dataclass(frozen=True)
class Permission:
    """One thing that a security group allows: a protocol (`-1` is any), ports, and with whom."""

    protocol: str
    from_port: int | None = None
    to_port: int | None = None
    cidr: str | None = None
    group_id: str | None = None


@dataclass(frozen=True)
class Group:
    """What a security group lets in, and what it lets out."""

    id: str
    ingress: tuple[Permission, ...]
    egress: tuple[Permission, ...]


@dataclass(frozen=True)
class Member:
    """One address in a network, the public one that leads to it, and the groups that guard it."""

    address: str
    public_address: str | None
    group_ids: tuple[str, ...]


@dataclass(frozen=True)
class Guard:
    """Who may speak to whom in a region: its groups and their members."""

    region: str
    groups: tuple[Group, ...]
    members: tuple[Member, ...]


class Keeper:
    """Boots machines and takes them away. No call may wait for a boot.

    As it stands here, instances have no bodies: enough for whoever only talks to the API.
    """

    def public_address(self, region: str) -> str | None:
        """Return a free public address and hold it; None if the API may invent one."""
        del region
        return None

    def release(self, address: str) -> None:
        """Give a public address back."""

    def boot(self, machine: Machine) -> None:
        """Start a machine, its disk new or as it was when it was switched off."""

    def power_off(self, instance_id: str) -> None:
        """Switch a machine off; its disk stays."""

    def reboot(self, instance_id: str) -> None:
        """Switch a machine off and on."""

    def remove(self, instance_id: str) -> None:
        """Take a machine away with its disk."""

    def keep_image(self, instance_id: str, image_id: str) -> None:
        """Keep what is on a machine's disk under an image's name."""

    def forget_image(self, image_id: str) -> None:
        """Drop what was kept under an image's name."""

    def console(self, instance_id: str) -> str:
        """Return what a machine has written to its console."""
        del instance_id
        return ""

    def open_metadata(self, instance_id: str, access: MetadataAccess) -> None:
        """Let a machine ask for its metadata in another way than so far."""

    def warn(self, instance_id: str, at: float) -> None:
        """Let a machine know when it will be interrupted."""

    def guard(self, guard: Guard) -> None:
        """Let the security groups of a region have effect as they are now."""
