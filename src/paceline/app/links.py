"""The links between hosts, as the hosts themselves see them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from paceline.errors import EnvironmentFault
from paceline.model.command import Command
from paceline.ports import Transport


@dataclass(frozen=True)
class Route:
    """How a host reaches another: its interface and its own address there, or why it cannot.

    `interfaces` are all that the host has, each once.
    """

    interface: str | None
    source: str | None
    error: str | None = None
    interfaces: tuple[tuple[str, str], ...] = ()


def peers_command(python: str, import_path: str | None, *words: str) -> Command:
    """Return the command with which a host looks at its peers."""
    env = {"PYTHONPATH": import_path} if import_path else {}
    return Command((python, "-m", "paceline.peers", *words), env=env)


async def ask_route(
    transport: Transport, python: str, import_path: str | None, address: str
) -> Route:
    """Ask a host which of its interfaces leads to an address."""
    done = await transport.run(peers_command(python, import_path, "route", address))
    try:
        data: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise EnvironmentFault(
            f"the host could not look at its interfaces: {last[0]}", host=transport.host.name
        ) from error
    return Route(
        interface=data["interface"],
        source=data["source"],
        error=data["error"],
        interfaces=tuple((name, address) for name, address in data["addresses"]),
    )
