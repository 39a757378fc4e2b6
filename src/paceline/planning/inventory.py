"""Lists of hosts that people have already: Open MPI hostfiles and Ansible inventories."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.errors import UsageError
from paceline.model.spec.hostwords import host_words
from paceline.model.spec.yaml_text import parse_yaml

_RANGE = re.compile(r"\[(?P<first>[0-9]+|[a-z]):(?P<last>[0-9]+|[a-z])\]")
_MOST_HOSTS = 10_000
# What Ansible calls it, newest name first, and what we do.
_NAMES = (
    ("ansible_host", "address"),
    ("ansible_ssh_host", "address"),
    ("ansible_user", "user"),
    ("ansible_ssh_user", "user"),
    ("ansible_port", "port"),
    ("ansible_ssh_port", "port"),
    ("ansible_ssh_private_key_file", "key"),
    ("private_address", "private_address"),
    ("host_key", "host_key"),
    ("jump", "jump"),
    ("slots", "slots"),
)


def parse_hostfile(text: str, source: str = "hostfile") -> tuple[dict[str, Any], ...]:
    """Read an Open MPI hostfile: `ADDRESS slots=4` per line; a host named twice adds its slots."""
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        values = host_words(words[0])
        slots = _slots(words[1:], f"{source}: line {number}")
        known = found.setdefault(values["address"], values)
        if slots is not None:
            known["slots"] = known.get("slots", 0) + slots
    return tuple(found.values())


def _slots(words: list[str], where: str) -> int | None:
    slots = None
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value.isdigit():
            raise UsageError(f"{where}: {word!r} is not understood; write ADDRESS slots=NUMBER")
        if name == "slots":
            slots = int(value)
    return slots


def parse_inventory(text: str, source: str = "inventory") -> tuple[dict[str, Any], ...]:
    """Read an Ansible inventory, INI or YAML; the hosts come in the order of the file."""
    try:
        hosts = _from_yaml(text) if _looks_like_yaml(text) else _from_ini(text)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from error
    return tuple(_entry(alias, variables) for alias, variables in hosts.items())


def _looks_like_yaml(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;"]
    return bool(lines) and (lines[0].startswith("---") or lines[0].rstrip().endswith(":"))


def _entry(alias: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": alias, **host_words(alias)}
    for theirs, ours in reversed(_NAMES):
        value = variables.get(theirs)
        if value is not None:
            entry[ours] = int(value) if ours in ("port", "slots") else str(value)
    return entry


def _from_ini(text: str) -> dict[str, dict[str, Any]]:
    hosts: dict[str, dict[str, Any]] = {}
    members: dict[str, list[str]] = {"all": []}
    children: dict[str, list[str]] = {}
    variables: dict[str, dict[str, Any]] = {}
    group, kind = "ungrouped", ""
    for number, line in enumerate(text.splitlines(), start=1):
        words = _words(line, number)
        if not words:
            continue
        if line.strip().startswith("["):
            group, _, kind = line.strip().strip("[]").partition(":")
        elif kind == "vars":
            variables.setdefault(group, {}).update(_pairs([line.strip()], number))
        elif kind == "children":
            children.setdefault(group, []).append(words[0])
        else:
            for name in _expanded(words[0]):
                hosts.setdefault(name, {}).update(_pairs(words[1:], number))
                members.setdefault(group, []).append(name)
    members["all"] = list(hosts)
    return {
        name: {**_inherited(name, members, children, variables), **own}
        for name, own in hosts.items()
    }


def _inherited(
    host: str,
    members: Mapping[str, list[str]],
    children: Mapping[str, list[str]],
    variables: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return what a host has from its groups: the outer ones first, `all` before any."""
    chain = [group for group, names in members.items() if host in names and group != "all"]
    for group in chain:  # grows while it is read: the parents of the parents follow
        chain += [up for up, below in children.items() if group in below and up not in chain]
    found: dict[str, Any] = {}
    for group in ("all", *reversed(chain)):
        found.update(variables.get(group, {}))
    return found


def _words(line: str, number: int) -> list[str]:
    if line.lstrip().startswith((";", "#")):
        return []
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error


def _pairs(words: list[str], number: int) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"line {number}: {word!r} is not NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _expanded(pattern: str) -> Iterator[str]:
    """Yield the names that a pattern such as `node[01:10]` stands for."""
    found = _RANGE.search(pattern)
    if found is None:
        yield pattern
        return
    first, last = found["first"], found["last"]
    if first.isdigit() != last.isdigit():
        raise ValueError(f"{pattern!r} counts from a number to a letter")
    low, high = (int(first), int(last)) if first.isdigit() else (ord(first), ord(last))
    if high - low >= _MOST_HOSTS:
        raise ValueError(f"{pattern!r} stands for more than {_MOST_HOSTS} hosts")
    for value in range(low, high + 1):
        word = str(value).zfill(len(first)) if first.isdigit() else chr(value)
        yield from _expanded(pattern[: found.start()] + word + pattern[found.end() :])


def _from_yaml(text: str) -> dict[str, dict[str, Any]]:
    parsed = parse_yaml(text)
    if parsed.problems:
        line, problem = parsed.problems[0]
        raise ValueError(f"line {line}: {problem.text}" if line else problem.text)
    if not isinstance(parsed.data, Mapping):
        raise ValueError("must hold groups with `hosts:`")  # noqa: TRY004 - a user's mistake
    hosts: dict[str, dict[str, Any]] = {}
    for group in parsed.data.values():
        _walk(group, {}, hosts)
    return hosts


def _walk(group: Any, inherited: Mapping[str, Any], hosts: dict[str, dict[str, Any]]) -> None:
    if not isinstance(group, Mapping):
        return
    variables = {**inherited, **(group.get("vars") or {})}
    for pattern, own in (group.get("hosts") or {}).items():
        for name in _expanded(str(pattern)):
            hosts[name] = {**variables, **hosts.get(name, {}), **(own or {})}
    for child in (group.get("children") or {}).values():
        _walk(child, variables, hosts)
