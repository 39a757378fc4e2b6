"""User data as it was given to the API, read into what a machine's boot carries out."""

from __future__ import annotations

import base64
import binascii
import gzip
import shlex
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

_HEADER = "#cloud-config"
_KNOWN = {"ssh_keys", "ssh_deletekeys", "ssh_pwauth", "write_files", "bootcmd", "runcmd"}
_GZIP = b"\x1f\x8b"


def read_user_data(encoded: str) -> dict[str, Any]:
    """Return the parts that a boot carries out; `notes` says what it cannot."""
    data = base64.b64decode(encoded or "")
    if data.startswith(_GZIP):
        data = gzip.decompress(data)
    text = data.decode("utf-8", "replace")
    if text.startswith("#!"):
        return {"script": text}
    if not text.strip():
        return {}
    if not text.startswith(_HEADER):
        return {"notes": ["the user data is neither a script nor #cloud-config"]}
    try:
        return _cloud_config(YAML(typ="safe").load(text) or {})
    except (YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        return {"notes": [f"the user data cannot be read: {error}"]}


def _cloud_config(words: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ssh_keys": dict(words.get("ssh_keys") or {}),
        "write_files": [_file(entry) for entry in words.get("write_files") or ()],
        "notes": [f"not carried out here: {key}" for key in words if key not in _KNOWN],
    }
    for key in ("bootcmd", "runcmd"):
        if words.get(key):
            found[key] = script_of(words[key])
    return found


def script_of(commands: Sequence[Any]) -> str:
    """Return commands as one script: a list is words, a text is a line of the shell."""
    lines = [
        command if isinstance(command, str) else shlex.join(str(word) for word in command)
        for command in commands
    ]
    return "\n".join(["#!/bin/sh", *lines, ""])


def _file(entry: Mapping[str, Any]) -> dict[str, Any]:
    content = _content(entry.get("content", ""), str(entry.get("encoding") or ""))
    return {
        "path": str(entry["path"]),
        "content": base64.b64encode(content).decode(),
        "permissions": str(entry.get("permissions") or "0644"),
        "owner": str(entry.get("owner") or "root:root"),
        "append": bool(entry.get("append")),
    }


def _content(given: Any, encoding: str) -> bytes:
    data = given if isinstance(given, bytes) else str(given).encode()
    try:
        if "b64" in encoding or "base64" in encoding:
            data = base64.b64decode(data)
        if encoding.startswith("gz"):
            data = gzip.decompress(data)
    except (binascii.Error, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"a file's content: {error}") from error
    return data
