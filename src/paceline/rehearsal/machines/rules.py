"""Security groups as a rule set of nftables, for the router between the machines.

The rules stand outside of the machines, as EC2's do: root on a machine cannot change them. What
is refused is dropped without a word. A connection that has begun goes on when its rule is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paceline.rehearsal.emulator.keeper import Group, Guard, Permission

UPLINK = "outside"
METADATA_ADDRESS = "169.254.169.254"
NAMES_ADDRESS = "169.254.169.253"
METADATA_PORT, REGISTRY_PORT = 80, 5000
# Of packets that were sent to a public address: group rules do not hold for those.
_VIA_PUBLIC = "1"
_PORTS = ("tcp", "udp")


def rule_set(guard: Guard) -> str:
    """Return the whole rule set of a region's router; it replaces the one before in one step."""
    combinations = sorted({member.group_ids for member in guard.members})
    by_id = {group.id: group for group in guard.groups}
    lines = ["flush ruleset", "table inet guard {"]
    for group in guard.groups:
        lines += _set(_set_name(group.id), _addresses(guard, group.id))
    for index, ids in enumerate(combinations):
        groups = [by_id[one] for one in ids if one in by_id]
        lines += _chain(f"egress{index}", _egress(groups))
        lines += _chain(f"ingress{index}", _ingress(groups))
    lines += _chain("forward", _forward(guard, combinations))
    lines += _chain("input", _input())
    return "\n".join([*lines, "}", *_translation(guard), ""])


def _addresses(guard: Guard, group_id: str) -> list[str]:
    return [member.address for member in guard.members if group_id in member.group_ids]


def _set_name(group_id: str) -> str:
    return group_id.replace("-", "_")


def _set(name: str, addresses: Iterable[str]) -> list[str]:
    elements = ", ".join(addresses)
    return [
        f"set {name} {{",
        "type ipv4_addr",
        *([f"elements = {{ {elements} }}"] if elements else []),
        "}",
    ]


def _chain(name: str, rules: Iterable[str]) -> list[str]:
    return [f"chain {name} {{", *rules, "}"]


def _egress(groups: Iterable[Group]) -> Iterator[str]:
    """Come back from what is allowed, so that the receiver's groups have their say as well."""
    for group in groups:
        for permission in group.egress:
            yield _rule(permission, "daddr", "return")
    yield "drop"


def _ingress(groups: Iterable[Group]) -> Iterator[str]:
    for group in groups:
        for permission in group.ingress:
            yield _rule(permission, "saddr", "accept")
    yield "drop"


def _rule(permission: Permission, side: str, verdict: str) -> str:
    words = []
    if permission.group_id is not None:
        words.append(f"meta mark != {_VIA_PUBLIC} ip {side} @{_set_name(permission.group_id)}")
    elif permission.cidr is not None:
        words.append(f"ip {side} {permission.cidr}")
    return " ".join([*words, *_protocol(permission), verdict])


def _protocol(permission: Permission) -> Iterator[str]:
    if permission.protocol == "-1":
        return
    yield f"meta l4proto {permission.protocol}"
    first, last = permission.from_port, permission.to_port
    if permission.protocol in _PORTS and None not in {first, last}:
        yield f"th dport {first}-{last}"
    elif permission.protocol == "icmp" and first not in {None, -1}:
        yield f"icmp type {first}"


def _forward(guard: Guard, combinations: list[tuple[str, ...]]) -> Iterator[str]:
    yield "type filter hook forward priority 0; policy drop;"
    yield "ct state established,related accept"
    yield "ct state invalid drop"
    yield f"ct status dnat meta mark set {_VIA_PUBLIC}"
    for index, ids in enumerate(combinations):
        members = ", ".join(one.address for one in guard.members if one.group_ids == ids)
        yield f"ip saddr {{ {members} }} jump egress{index}"
    public = ", ".join(one.address for one in guard.members if one.public_address is not None)
    if public:
        # Without a public address there is no way out.
        yield f"oifname {UPLINK} ip saddr {{ {public} }} accept"
    for index, ids in enumerate(combinations):
        members = ", ".join(one.address for one in guard.members if one.group_ids == ids)
        yield f"ip daddr {{ {members} }} jump ingress{index}"


def _input() -> Iterator[str]:
    """Let machines ask for their metadata and for names, and nobody for anything else."""
    yield "type filter hook input priority 0; policy drop;"
    yield "ct state established,related accept"
    ports = f"{{ {METADATA_PORT}, {REGISTRY_PORT} }}"
    yield f"iifname != {UPLINK} ip daddr {METADATA_ADDRESS} tcp dport {ports} accept"
    yield f"iifname != {UPLINK} ip daddr {NAMES_ADDRESS} udp dport 53 accept"
    yield f"iifname != {UPLINK} ip daddr {NAMES_ADDRESS} reject"
    yield "icmp type echo-request accept"


def _translation(guard: Guard) -> list[str]:
    """Lead public addresses to the private ones, as an internet gateway does."""
    pairs = [(one.public_address, one.address) for one in guard.members if one.public_address]
    if not pairs:
        return []
    inward = ", ".join(f"{public} : {private}" for public, private in pairs)
    outward = ", ".join(f"{private} : {public}" for public, private in pairs)
    arriving = ("type nat hook prerouting priority dstnat;",
                f"dnat to ip daddr map {{ {inward} }}")  # fmt: skip
    leaving = ("type nat hook postrouting priority srcnat;",
               f"oifname {UPLINK} snat to ip saddr map {{ {outward} }}")  # fmt: skip
    return [
        "table ip gateway {",
        *_chain("arriving", arriving),
        *_chain("leaving", leaving),
        "}",
    ]
