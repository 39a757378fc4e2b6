"""Ansible inventories, INI or YAML: the hosts and what their groups say of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.errors import UsageError
from paceline.model.spec.hostwords import host_words
from paceline.model.spec.yaml_text import parse_yaml
from paceline.planning.ssh_arguments import jump_in

_RANGE = re.compile(
    r"\[(?P<first>[0-9]+|[a-zA-Z]):(?P<last>[0-9]+|[a-zA-Z])(?::(?P<step>[1-9][0-9]*))?\]"
)
_HEADER = re.compile(r"\[(?P<group>[^\]:]+)(?::(?P<kind>[^\]]*))?\]\s*(?:[#;].*)?")
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
    ("ansible_private_key_file", "key"),
    ("private_address", "private_address"),
    ("host_key", "host_key"),
    ("jump", "jump"),
    ("slots", "slots"),
)
_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")


def parse_inventory(text: str, source: str = "inventory") -> tuple[dict[str, Any], ...]:
    """Read an Ansible inventory, INI or YAML; the hosts come in the order of the file.

    This machine (`ansible_connection=local`) is left out: no ssh leads to it.
    """
    try:
        hosts = _from_yaml(text) if _looks_like_yaml(text) else _from_ini(text)
        return tuple(
            _entry(alias, variables)
            for alias, variables in hosts.items()
            if variables.get("ansible_connection") != "local"
        )
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from error


def _looks_like_yaml(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;"]
    if not lines:
        return False
    # JSON is YAML, too; `[web]` opens a section of an INI file.
    return lines[0].startswith(("---", "{")) or lines[0].rstrip().endswith(":")


def _entry(alias: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": alias, **host_words(alias)}
    for theirs, ours in reversed(_NAMES):
        value = variables.get(theirs)
        if value is not None:
            entry[ours] = _value(alias, theirs, ours, str(value))
    for name in _ARGUMENTS:
        if "jump" not in entry and variables.get(name) is not None:
            jump = jump_in(str(variables[name]), f"{name} of {alias}")
            entry |= {} if jump is None else {"jump": jump}
    return entry


def _value(alias: str, theirs: str, ours: str, value: str) -> str | int:
    if "{{" in value:
        raise ValueError(f"{theirs} of {alias} is a template, which only Ansible can fill in")
    if ours not in ("port", "slots"):
        return value
    if not re.fullmatch("[0-9]{1,5}", value) or not 1 <= int(value) <= 65_535:  # noqa: PLR2004
        raise ValueError(f"{theirs} of {alias} must be a number from 1 to 65,535, not {value!r}")
    return int(value)


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
            group, kind = _header(line.strip(), number)
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


def _header(line: str, number: int) -> tuple[str, str]:
    found = _HEADER.fullmatch(line)
    kind = (found["kind"] or "") if found else ""
    if found is None or kind not in ("", "vars", "children", "hosts"):
        raise ValueError(f"line {number}: {line!r} opens no section that is known")
    return found["group"].strip(), "" if kind == "hosts" else kind


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
        pairs[name.strip()] = _unquoted(value.strip())
    return pairs


def _unquoted(value: str) -> str:
    """Return a value without the quotes around it, which a line of variables keeps."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _expanded(pattern: str) -> Iterator[str]:
    """Yield the names that a pattern such as `node[01:10]` or `node[0:8:2]` stands for."""
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
    for value in range(low, high + 1, int(found["step"] or 1)):
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
    variables = {**inherited, **_mapping(group, "vars")}
    for pattern, own in _mapping(group, "hosts").items():
        for name in _expanded(str(pattern)):
            hosts[name] = {**variables, **hosts.get(name, {}), **_as_mapping(own, name)}
    for child in _mapping(group, "children").values():
        _walk(child, variables, hosts)


def _mapping(group: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _as_mapping(group.get(key), f"`{key}`")


def _as_mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name} must hold `NAME: …` below it, not {value!r}")
    return value or {}
