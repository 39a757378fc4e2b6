"""Who may reach the hosts: the rules of the security group, wanted against those that are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from paceline.model.ec2 import Wish

SSH_PORT = 22
ANYWHERE = ("0.0.0.0/0", "::/0")


@dataclass(frozen=True)
class Rule:
    """One way in: a TCP port from a network, or everything from a group."""

    port: int | None
    network: str | None = None
    group_id: str | None = None

    def __str__(self) -> str:
        what = "everything" if self.port is None else f"TCP port {self.port}"
        return f"{what} from {self.network or f'the group itself ({self.group_id})'}"


def networks(wish: Wish, own_address: str | None) -> tuple[str, ...]:
    """Return the networks that may reach SSH, the caller's own address put in for `me`."""
    found = [
        network if network != "me" else f"{own_address}/{128 if ':' in str(own_address) else 32}"
        for network in wish.ssh_from
        if network != "me" or own_address is not None
    ]
    return tuple(dict.fromkeys(found))


def shut_out(wish: Wish, own_address: str | None) -> str | None:
    """Say that the rules do not let ourselves in; None if they do, or if nobody knows."""
    if own_address is None or wish.subnet is not None:
        return None
    ours = ip_address(own_address)
    if any(ours in ip_network(one, strict=False) for one in networks(wish, own_address)):
        return None
    return (
        f"your address, {own_address}, is in none of `cluster.ssh_from` "
        f"({', '.join(wish.ssh_from)}): unless another way leads to the hosts, SSH will not "
        "reach them"
    )


def wanted_rules(wish: Wish, own_address: str | None, group_id: str) -> tuple[Rule, ...]:
    """Return the rules of a cluster: SSH and further ports from outside, all from itself."""
    ports = dict.fromkeys((SSH_PORT, *wish.open_ports))
    outside = (Rule(port, net) for port in ports for net in networks(wish, own_address))
    return (*outside, Rule(None, group_id=group_id))


def present_rules(permissions: Iterable[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Read the rules of a group as the API describes them."""
    return tuple(rule for entry in permissions for rule in _rules(entry))


def _rules(entry: Mapping[str, Any]) -> Iterator[Rule]:
    low, high = entry.get("FromPort"), entry.get("ToPort")
    port = low if entry.get("IpProtocol") != "-1" and low == high else None
    for item in entry.get("IpRanges") or ():
        yield Rule(port, network=item["CidrIp"])
    for item in entry.get("Ipv6Ranges") or ():
        yield Rule(port, network=item["CidrIpv6"])
    for item in entry.get("UserIdGroupPairs") or ():
        yield Rule(port, group_id=item.get("GroupId"))


def permissions(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Return rules as the API takes them."""
    return [_permission(rule) for rule in rules]


def _permission(rule: Rule) -> dict[str, Any]:
    if rule.port is None:
        words: dict[str, Any] = {"IpProtocol": "-1"}
    else:
        words = {"IpProtocol": "tcp", "FromPort": rule.port, "ToPort": rule.port}
    if rule.group_id is not None:
        return {**words, "UserIdGroupPairs": [{"GroupId": rule.group_id}]}
    if ":" in str(rule.network):
        return {**words, "Ipv6Ranges": [{"CidrIpv6": rule.network, "Description": "Paceline"}]}
    return {**words, "IpRanges": [{"CidrIp": rule.network, "Description": "Paceline"}]}
