"""What is to be copied between here and hosts, read from words such as `node-1:out/log`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import UsageError
from paceline.model.host import Host
from paceline.planning.picking import pick

ALL = "all"
_HINT = "one of the two is HOST:PATH or all:PATH, as in `paceline cp data.bin all:data.bin`"


@dataclass(frozen=True)
class Carrying:
    """One copy: from here to hosts (`outwards`), or from hosts to here.

    `remote` is the path on the hosts. Where several hosts send, each has a folder of its own here.
    """

    hosts: tuple[Host, ...]
    outwards: bool
    local: str
    remote: str


def plan_carrying(hosts: Sequence[Host], source: str, target: str) -> Carrying:
    """Return what two words of `paceline cp` mean."""
    ends = [_far_end(hosts, word) for word in (source, target)]
    there, back = ends[1], ends[0]
    if there is not None and back is None:
        return Carrying(there[0], outwards=True, local=source, remote=there[1])
    if back is not None and there is None:
        return Carrying(back[0], outwards=False, local=target, remote=back[1])
    if there is None:
        raise UsageError("neither of the two lies on a host", hint=_HINT)
    raise UsageError("both of the two lie on hosts", hint=_HINT)


def _far_end(hosts: Sequence[Host], word: str) -> tuple[tuple[Host, ...], str] | None:
    """Return the hosts and the path of a word; None if it means something here.

    As with scp, a slash before the first colon says that the word is a path of this machine.
    """
    for host in hosts:  # a name may have a colon in it, as `node7:2222` has
        for name in (host.name, f"[{host.address}]"):
            if word.startswith(f"{name}:"):
                return (host,), _below_home(word[len(name) + 1 :])
    name, colon, path = word.partition(":")
    if not colon or not name or "/" in name:
        return None
    found = tuple(hosts) if name == ALL else (pick(hosts, name),)
    return found, _below_home(path)


def _below_home(path: str) -> str:
    """Return a path as the host takes it: what is not absolute lies below the home folder."""
    if path in ("", "~", "~/"):
        return "./"
    return path.removeprefix("~/")
