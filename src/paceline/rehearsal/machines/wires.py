"""The network of a region on this machine, as commands: a router, and machines around it.

Everything between the machines passes through the router, a namespace of its own, where the
security groups have their say. This machine sees one link: the way to the public addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network

from paceline.rehearsal.machines.rules import METADATA_ADDRESS, NAMES_ADDRESS, UPLINK

Command = tuple[str, ...]
INTERFACE = "eth0"
# Addresses for tests of networks, which nobody routes: RFC 2544. Each region gets 256 of them.
PUBLIC_RANGE = IPv4Network("198.18.0.0/15")
SLICES = range(1, 512)
_FIRST_PUBLIC = 10
_JUMBO = "9001"
_SHAPE = ("burst", "256kb", "latency", "50ms")
_WORDS_GBIT = {"very low": 0.1, "low": 0.3, "low to moderate": 0.5, "moderate": 1.0, "high": 2.5}


@dataclass(frozen=True)
class Router:
    """The router of a region: its namespace, and its slice of the public addresses.

    This machine's calls come from one address in all regions: that of its first router.
    """

    namespace: str
    letters: str
    slice: int
    home: Router | None = None

    @property
    def link(self) -> str:
        """The link to it, as this machine names it; no other ever has the same name."""
        return f"plr{self.slice}-{self.letters}"

    @property
    def network(self) -> IPv4Network:
        """The public addresses behind it."""
        base = int(PUBLIC_RANGE.network_address) + 256 * self.slice
        return IPv4Network((base, 24))

    @property
    def near_end(self) -> str:
        """The address of this machine's end of the link."""
        return str(self.network[1])

    @property
    def caller(self) -> str:
        """The address that this machine's calls come from."""
        return self.near_end if self.home is None else self.home.near_end

    @property
    def public_addresses(self) -> tuple[str, ...]:
        """What it can give to machines."""
        return tuple(str(self.network[number]) for number in range(_FIRST_PUBLIC, 255))

    def build(self) -> tuple[Command, ...]:
        """Return the commands that make it."""
        inside = ("ip", "-n", self.namespace)
        gate = str(self.network[2])
        return (
            ("ip", "netns", "add", self.namespace),
            ("ip", "link", "add", self.link, "type", "veth", "peer", "name", UPLINK,
             "netns", self.namespace),
            ("ip", "addr", "add", f"{self.near_end}/30", "dev", self.link),
            ("ip", "link", "set", self.link, "up"),
            (*inside, "link", "set", "lo", "up"),
            (*inside, "addr", "add", f"{gate}/30", "dev", UPLINK),
            (*inside, "addr", "add", f"{METADATA_ADDRESS}/32", "dev", "lo"),
            (*inside, "addr", "add", f"{NAMES_ADDRESS}/32", "dev", "lo"),
            (*inside, "link", "set", UPLINK, "up"),
            (*inside, "route", "replace", f"{self.caller}/32", "via", self.near_end, "dev", UPLINK,
             "onlink"),
            ("ip", "netns", "exec", self.namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1"),
            ("ip", "route", "add", str(self.network), "via", gate, "src", self.caller),
        )  # fmt: skip


@dataclass(frozen=True)
class Wire:
    """How one machine hangs on its router."""

    namespace: str
    router: str
    link: str
    address: str
    subnet: str
    rate_mbit: float | None = None

    @property
    def gateway(self) -> str:
        """The first address of the subnet, as on EC2."""
        return str(IPv4Network(self.subnet)[1])

    def build(self) -> tuple[Command, ...]:
        """Return the commands that connect it."""
        router, inside = ("ip", "-n", self.router), ("ip", "-n", self.namespace)
        prefix = IPv4Network(self.subnet).prefixlen
        return (
            ("ip", "netns", "add", self.namespace),
            (*router, "link", "add", self.link, "mtu", _JUMBO, "type", "veth",
             "peer", "name", INTERFACE, "mtu", _JUMBO, "netns", self.namespace),
            (*router, "addr", "add", f"{self.gateway}/32", "dev", self.link),
            (*router, "link", "set", self.link, "up"),
            # Somebody who is just going away may have had the address until now.
            self.restore(),
            (*inside, "link", "set", "lo", "up"),
            # Neighbours are reached by way of the router too: no route to the subnet itself.
            (*inside, "addr", "add", f"{self.address}/{prefix}", "dev", INTERFACE,
             "noprefixroute"),
            (*inside, "link", "set", INTERFACE, "up"),
            (*inside, "route", "add", self.gateway, "dev", INTERFACE),
            (*inside, "route", "add", "default", "via", self.gateway),
            *(self.shape(self.rate_mbit, "add") if self.rate_mbit is not None else ()),
        )  # fmt: skip

    def shape(self, rate_mbit: float, verb: str = "replace") -> tuple[Command, Command]:
        """Return the commands that limit what the machine sends, and what it receives."""
        rate = ("tbf", "rate", f"{rate_mbit:g}mbit", *_SHAPE)
        return (
            ("tc", "-n", self.namespace, "qdisc", verb, "dev", INTERFACE, "root", *rate),
            ("tc", "-n", self.router, "qdisc", verb, "dev", self.link, "root", *rate),
        )

    def unshape(self) -> tuple[Command, Command]:
        """Return the commands that lift the limits."""
        return (
            ("tc", "-n", self.namespace, "qdisc", "del", "dev", INTERFACE, "root"),
            ("tc", "-n", self.router, "qdisc", "del", "dev", self.link, "root"),
        )

    def plug(self, *, into: bool) -> Command:
        """Return the command that cuts the machine off, or connects it again."""
        state = "up" if into else "down"
        return ("ip", "-n", self.router, "link", "set", self.link, state)

    def restore(self) -> Command:
        """Return the command that leads to the machine; its route goes away with a cut link."""
        return ("ip", "-n", self.router, "route", "replace", f"{self.address}/32",
                "dev", self.link)  # fmt: skip


def network_gbit(performance: str) -> float:
    """Return how much EC2's words for a type's network promise: `Up to 10 Gigabit` is 10."""
    text = performance.lower().strip()
    found = re.search(r"(?:(\d+)x\s+)?(\d+(?:\.\d+)?)\s*(gigabit|megabit)", text)
    if found is None:
        return _WORDS_GBIT.get(text, _WORDS_GBIT["moderate"])
    count, number, unit = found.groups()
    return int(count or 1) * float(number) / (1 if unit == "gigabit" else 1000)
