"""Open MPI's hostfiles: `ADDRESS slots=4`, one host per line."""

from __future__ import annotations

import re
from typing import Any

from paceline.errors import UsageError

_WORD = re.compile(r"(?P<name>[\w-]+)=(?P<value>\S+)")
_USER = ("user", "username", "user_name", "user-name")
# They say how mpirun is to place ranks on a host, which `procs_per_node` says here.
_IGNORED = ("max_slots", "max-slots", "slots_max", "slots-max", "cpu", "cpus", "count", "sockets",
            "cores", "boards", "sockets_per_board", "cores_per_socket", "rank", "slot")  # fmt: skip


def parse_hostfile(text: str, source: str = "hostfile") -> tuple[dict[str, Any], ...]:
    """Read an Open MPI hostfile, in its order; a host named twice adds its slots."""
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = re.sub(r"\s*=\s*", "=", line.partition("#")[0]).split()
        if content:
            entry = _entry(content[0], content[1:], f"{source}: line {number}")
            known = found.setdefault(entry["address"], entry)
            if known is not entry and "slots" in entry:
                known["slots"] = known.get("slots", 0) + entry["slots"]
    return tuple(found.values())


def _entry(place: str, words: list[str], where: str) -> dict[str, Any]:
    user, _, address = place.rpartition("@")
    _require_address(address, where)
    entry: dict[str, Any] = {"address": address}
    if user:
        entry["user"] = user
    for word in words:
        found = _WORD.fullmatch(word)
        name, value = (found["name"], found["value"]) if found else ("", "")
        if name in ("slots", "port") and re.fullmatch("[0-9]+", value):
            entry[name] = int(value)
        elif name in _USER:
            entry["user"] = value
        elif name not in _IGNORED:
            raise UsageError(f"{where}: {word!r} is not understood; write ADDRESS slots=NUMBER")
    return entry


def _require_address(address: str, where: str) -> None:
    name, colon, number = address.partition(":")
    if colon and ":" not in number:
        raise UsageError(
            f"{where}: {address!r} could mean slots or a port",
            hint=f"write `{name} slots={number}`, or `{name} port={number}` for its SSH server",
        )
    if not address or address[0] in "+^":
        raise UsageError(f"{where}: {address!r} is no address")
