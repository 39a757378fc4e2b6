"""The hosts of a spec as nouns, wherever they are listed."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from paceline.errors import UsageError
from paceline.model.host import Host, SshAccess
from paceline.model.spec import ClusterSpec
from paceline.planning.hostfile import parse_hostfile
from paceline.planning.inventory import parse_inventory

_ACCESS = ("user", "port", "key", "jump", "host_key")


def hosts_of(cluster: ClusterSpec, listed: str | None = None) -> tuple[Host, ...]:
    """Return the hosts of a cluster, the master first; `listed` is its hostfile's text."""
    if cluster.hostfile is not None:
        entries = parse_hostfile(listed or "", cluster.hostfile)
    elif cluster.inventory is not None:
        entries = parse_inventory(listed or "", cluster.inventory)
    else:
        entries = tuple(entry.model_dump(exclude_none=True) for entry in cluster.hosts)
    if not entries:
        source = cluster.hostfile or cluster.inventory or "cluster.hosts"
        raise UsageError(f"{source} lists no host", hint="name at least one address")
    return _distinct(_host(entry) for entry in entries)


def _host(entry: Mapping[str, Any]) -> Host:
    access = SshAccess(**{name: entry[name] for name in _ACCESS if name in entry})
    address = str(entry["address"])
    _require_address(address)
    name = str(entry.get("name") or address)
    if access.port not in (None, 22) and "name" not in entry:
        name = f"{name}:{access.port}"
    return Host(
        name=name,
        address=address,
        peer_address=str(entry.get("private_address") or address),
        ssh=access,
        slots=entry.get("slots"),
    )


def _require_address(address: str) -> None:
    """Refuse what can be neither a name nor an address, before anybody is asked for it."""
    if re.search(r"[\s,@]", address) or (":" in address and not _is_ipv6(address)):
        raise UsageError(
            f"{address!r} is no address", hint="write USER@ADDRESS:PORT; several with commas"
        )


def _is_ipv6(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 6  # noqa: PLR2004
    except ValueError:
        return False


def _distinct(hosts: Iterable[Host]) -> tuple[Host, ...]:
    found: dict[str, Host] = {}
    for host in hosts:
        if host.name in found:
            raise UsageError(
                f"the host {host.name} is listed twice",
                hint="several processes on one host are job.procs_per_node",
            )
        found[host.name] = host
    return tuple(found.values())
