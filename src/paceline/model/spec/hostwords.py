"""A host as people type it: `ADDRESS`, `USER@ADDRESS`, `ADDRESS:PORT`, `[IPV6]:PORT`."""

from __future__ import annotations

import re
from typing import Any

_WORDS = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?"
    r"(?:\[(?P<ipv6>[^\]\s]+)\]|(?P<name>[^@:\s\[\]]+)|(?P<bare>[0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,}))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


def host_words(text: str) -> dict[str, Any]:
    """Return the keys of a host; what cannot be read is taken for an address as it stands."""
    found = _WORDS.fullmatch(text.strip())
    if found is None:
        return {"address": text}
    words: dict[str, Any] = {"address": found["ipv6"] or found["name"] or found["bare"]}
    if found["user"]:
        words["user"] = found["user"]
    if found["port"]:
        words["port"] = int(found["port"])
    return words
