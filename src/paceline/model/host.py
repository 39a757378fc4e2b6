"""A host: one machine with an address that we reach and one that its peers reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SshAccess:
    """How a host is reached over SSH; for what is None, the user's ssh config decides.

    `key` is the path of a private key, `jump` is `USER@HOST:PORT` (several with commas), and
    `host_key` is the only key that is accepted of the host: a public key, or its fingerprint.
    """

    user: str | None = None
    port: int | None = None
    key: str | None = None
    jump: str | None = None
    host_key: str | None = None


@dataclass(frozen=True)
class Host:
    """A machine of a cluster. On a single machine both addresses are the loopback's."""

    name: str
    address: str
    peer_address: str
    ssh: SshAccess | None = None
    slots: int | None = None


@dataclass(frozen=True)
class Gpu:
    """An accelerator as the host's own tools name it."""

    name: str
    memory_mib: int | None = None


@dataclass(frozen=True)
class HostFacts:
    """What a host says of itself; None is "not known", never a guess."""

    hostname: str
    cores: int
    cpu_model: str | None = None
    memory_bytes: int | None = None
    disk_free_bytes: int | None = None
    gpus: tuple[Gpu, ...] = ()
    platform: str = ""
    python_path: str = ""
    python_version: str = ""
    torch_version: str | None = None
    interface: str | None = None
    free_port: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    cpu_features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """Hosts with one name; the first is the master.

    `usd_per_host_hour` is what each host costs while it is rented; None where nobody knows.
    `price_source` says where that comes from and of which day it is. `about` is what else the
    provider knows of each host, by its name, that could explain a result: `instance_type`,
    `zone`, `placement`, `image`, `market`. `notices_at` is where a host learns that it will be
    taken back (spot); None where nobody takes it. `rented_since` is when we began to pay, if
    that was for this work.
    """

    name: str
    provider: str
    hosts: tuple[Host, ...]
    usd_per_host_hour: float | None = None
    price_source: str = ""
    about: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notices_at: str | None = None
    rented_since: float | None = None

    @property
    def cost_usd_per_hour(self) -> float | None:
        """What all hosts together cost, those that are idle included."""
        hourly = self.usd_per_host_hour
        return None if hourly is None else hourly * len(self.hosts)

    @property
    def master(self) -> Host:
        """The host at whose address the ranks meet."""
        return self.hosts[0]
