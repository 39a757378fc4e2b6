"""Which hosts of a cluster somebody means: by name, by address, or by number."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.errors import NotFound
from paceline.model.host import Host

_SHOWN = 8


def pick(hosts: Sequence[Host], word: str | None) -> Host:
    """Return the host that a word means; without one, the master."""
    if word is None:
        return hosts[0]
    for host in hosts:
        if word in (host.name, host.address, host.peer_address):
            return host
    if word.isdecimal() and int(word) < len(hosts):
        return hosts[int(word)]
    names = ", ".join(f"{number} {host.name}" for number, host in enumerate(hosts[:_SHOWN]))
    more = f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else ""
    raise NotFound(f"there is no host {word!r}", hint=f"there are: {names}{more}")


def pick_some(hosts: Sequence[Host], words: Sequence[str]) -> tuple[Host, ...]:
    """Return the hosts that the words mean, each once and in the cluster's order; else all."""
    if not words:
        return tuple(hosts)
    meant = {pick(hosts, word) for word in words}
    return tuple(host for host in hosts if host in meant)
