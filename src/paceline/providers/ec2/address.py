"""Our own address, as the hosts will see us: what may reach their SSH."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import urllib.error
import urllib.request
from urllib.parse import urlsplit

# A setting for whoever knows better: behind a proxy, or in a rehearsal.
MY_ADDRESS = "PACELINE_MY_ADDRESS"
_ASK = "https://checkip.amazonaws.com"
_TIMEOUT_S = 8.0
_LONGEST = 64


async def find_own_address(endpoint: str) -> str | None:
    """Return our address; None if it cannot be found out.

    Where AWS's endpoint is on this machine, so are the hosts, and nobody is asked.
    """
    told = os.environ.get(MY_ADDRESS)
    if told:
        return _address(told)
    if _is_loopback(urlsplit(endpoint).hostname or ""):
        return "127.0.0.1"
    return await asyncio.to_thread(_ask)


def _ask() -> str | None:
    try:
        with urllib.request.urlopen(_ASK, timeout=_TIMEOUT_S) as answer:
            return _address(answer.read(_LONGEST).decode("ascii", "replace"))
    except (OSError, urllib.error.URLError, ValueError):
        return None


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
