"""Which calls were made: by name, with their parameters, and whether they change anything."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

_LOOKING = ("Describe", "Get", "List", "Search")


@dataclass(frozen=True)
class Call:
    """One request. `outcome` is `ok`, an error code, or what a fault made of it."""

    number: int
    service: str
    region: str
    action: str
    parameters: Mapping[str, Any] = field(repr=False)
    outcome: str = "under way"

    @property
    def changes(self) -> bool:
        """Whether it is of a kind that changes something; a dry run never does."""
        dry = str(self.parameters.get("DryRun", "")).lower() == "true"
        return not dry and not self.action.startswith(_LOOKING)


class CallLog:
    """All calls since the start, or since `clear`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._count = 0

    def begin(self, service: str, region: str, action: str, parameters: Mapping[str, Any]) -> Call:
        """Write down that a call came in, and number it from 1 upwards."""
        with self._lock:
            self._count += 1
            call = Call(self._count, service, region, action, parameters)
            self._calls.append(call)
            return call

    def end(self, call: Call, outcome: str) -> None:
        """Write down how a call ended."""
        done = Call(call.number, call.service, call.region, call.action, call.parameters, outcome)
        with self._lock:
            self._calls = [done if one is call else one for one in self._calls]

    def all(self) -> tuple[Call, ...]:
        """Return the calls in the order in which they came."""
        with self._lock:
            return tuple(self._calls)

    def changing(self) -> tuple[Call, ...]:
        """Return the calls of the kinds that change something."""
        return tuple(call for call in self.all() if call.changes)

    def clear(self) -> None:
        """Forget all calls; the next one is number 1."""
        with self._lock:
            self._calls, self._count = [], 0


def parse_credential(authorization: str) -> tuple[str, str, str] | None:
    """Return key id, region and service from a signature's scope."""
    _, found, rest = authorization.partition("Credential=")
    parts = rest.split(",")[0].split("/")
    return (parts[0], parts[2], parts[3]) if found and len(parts) >= 5 else None  # noqa: PLR2004


def parse_action(target: str, body: bytes) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a call, of either of AWS's two dialects."""
    if target:
        words = json.loads(body or b"{}")
        return target.rpartition(".")[2], words if isinstance(words, dict) else {}
    words = dict(parse_qsl(body.decode(), keep_blank_values=True))
    return str(words.pop("Action", "")), words
