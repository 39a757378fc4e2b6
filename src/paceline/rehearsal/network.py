"""A network of hosts on this machine: one namespace each, joined by a bridge, links shaped.

What will be made is planned first, as commands with the names that they create; the names are
written down before anything is made, so that `remove_recorded` can take away exactly that, also
after this process was killed.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from paceline.errors import EnvironmentFault, MissingProgram

INTERFACE = "eth0"
NETNS_FOLDER = Path("/run/netns")
# Of the 15 letters that the kernel gives a link's name, ours need some for themselves.
MAX_ID_LENGTH = 8
MAX_HOSTS = 250


@dataclass(frozen=True)
class LabHost:
    """One host of a network: its namespace, the bridge's end of its link, its address."""

    name: str
    namespace: str
    link: str
    address: str

    def inside(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs `argv` on this host."""
        return ("ip", "netns", "exec", self.namespace, *argv)

    def sent_bytes(self) -> int:
        """Return what this host has sent through its link so far."""
        path = f"/sys/class/net/{INTERFACE}/statistics/tx_bytes"
        return int(_run(self.inside(("cat", path))))


@dataclass(frozen=True)
class NetworkPlan:
    """The hosts of a network, and what is made for them."""

    bridge: str
    gateway: str
    prefix: int
    hosts: tuple[LabHost, ...]
    rate: str | None = None

    def build(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that make the network, in order."""
        commands: list[tuple[str, ...]] = [
            ("ip", "link", "add", self.bridge, "type", "bridge"),
            ("ip", "addr", "add", f"{self.gateway}/{self.prefix}", "dev", self.bridge),
            ("ip", "link", "set", self.bridge, "up"),
        ]
        for host in self.hosts:
            commands += self._build_host(host)
        return tuple(commands)

    def _build_host(self, host: LabHost) -> list[tuple[str, ...]]:
        space = ("ip", "-n", host.namespace)
        commands: list[tuple[str, ...]] = [
            ("ip", "netns", "add", host.namespace),
            ("ip", "link", "add", host.link, "type", "veth", "peer", "name", INTERFACE,
             "netns", host.namespace),
            ("ip", "link", "set", host.link, "master", self.bridge, "up"),
            (*space, "addr", "add", f"{host.address}/{self.prefix}", "dev", INTERFACE),
            (*space, "link", "set", INTERFACE, "up"),
            (*space, "link", "set", "lo", "up"),
            (*space, "route", "add", "default", "via", self.gateway),
        ]  # fmt: skip
        if self.rate is not None:
            commands.append(shape_command(host, self.rate, "add"))
        return commands

    def remove(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that take away what `build` makes; each may find it gone."""
        links = tuple(("ip", "link", "del", host.link) for host in self.hosts)
        spaces = tuple(("ip", "netns", "del", host.namespace) for host in self.hosts)
        return (*links, *spaces, ("ip", "link", "del", self.bridge))


def plan_network(
    lab_id: str, count: int, *, rate: str | None = None, subnet: int = 77
) -> NetworkPlan:
    """Plan `count` hosts at 10.SUBNET.0.11 and upwards; `rate` shapes what each sends (`1gbit`)."""
    if not lab_id.isalnum() or len(lab_id) > MAX_ID_LENGTH:
        raise ValueError(f"a lab's id has at most {MAX_ID_LENGTH} letters and digits: {lab_id!r}")
    if not 1 <= count <= MAX_HOSTS - 10:
        raise ValueError(f"a lab has 1 to {MAX_HOSTS - 10} hosts, not {count}")
    hosts = tuple(
        LabHost(
            name=f"host{index}",
            namespace=f"pl-{lab_id}-{index}",
            link=f"pl{lab_id}v{index}",
            address=f"10.{subnet}.0.{11 + index}",
        )
        for index in range(count)
    )
    return NetworkPlan(f"pl{lab_id}br", f"10.{subnet}.0.1", 24, hosts, rate)


def shape_command(host: LabHost, rate: str, verb: str = "replace") -> tuple[str, ...]:
    """Return the command that limits what a host may send."""
    return (
        "tc", "-n", host.namespace, "qdisc", verb, "dev", INTERFACE, "root",
        "tbf", "rate", rate, "burst", "256kb", "latency", "50ms",
    )  # fmt: skip


@contextmanager
def network(plan: NetworkPlan, record: Path) -> Iterator[NetworkPlan]:
    """Make a network and take it away again, whatever happens in between."""
    require_lab()
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("x") as file:
        json.dump(asdict(plan), file)
        file.flush()
        os.fsync(file.fileno())
    try:
        for command in plan.build():
            _run(command)
        yield plan
    finally:
        remove_recorded(record)


def remove_recorded(record: Path) -> None:
    """Take away what a network's record names, and the record when nothing of it is left."""
    data = json.loads(record.read_text())
    hosts = tuple(LabHost(**host) for host in data["hosts"])
    plan = NetworkPlan(**{**data, "hosts": hosts})
    for command in plan.remove():
        # Each part may never have been made, or be gone already; what counts is the end.
        subprocess.run(command, capture_output=True, check=False)
    left = leftovers(plan)
    if left:
        raise EnvironmentFault(
            f"could not be removed: {', '.join(left)}",
            hint="is a process still at work there? `ip netns pids NAME` names it",
        )
    record.unlink()


def leftovers(plan: NetworkPlan) -> tuple[str, ...]:
    """Return the namespaces and links of a plan that exist now."""
    spaces = {path.name for path in NETNS_FOLDER.iterdir()} if NETNS_FOLDER.is_dir() else set()
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    ours = [host.namespace for host in plan.hosts if host.namespace in spaces]
    ours += [link for link in (*(host.link for host in plan.hosts), plan.bridge) if link in links]
    return tuple(ours)


def require_lab() -> None:
    """Say plainly what is missing for a network of one's own."""
    if os.geteuid() != 0:
        raise EnvironmentFault("hosts on this machine need root", hint="run it with sudo")
    try:
        _run(("ip", "-V"))
        _run(("tc", "-V"))
    except FileNotFoundError as error:
        raise MissingProgram(
            "ip and tc are not installed", hint="apt-get install iproute2"
        ) from error


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFault(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
