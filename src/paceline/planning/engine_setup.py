"""A docker engine for a host that has none: which commands install it there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from paceline.errors import EnvironmentFault
from paceline.model.command import Command
from paceline.model.spec import Spec

Manager = Literal["apt", "dnf", "yum"]
_SUDO = ("sudo", "-n")
# A fresh machine still installs its own updates for a while, and holds the lock.
_APT_WAITS = ("-o", "DPkg::Lock::Timeout=600")
# The lists have a lock of their own, for which apt does not wait.
_PATIENTLY = 'n=0; until "$@"; do n=$((n + 1)); [ "$n" -lt 24 ] || exit 1; sleep 5; done'
_QUIET = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "a"}

_LOOK = """\
engine=no; command -v docker >/dev/null 2>&1 && engine=yes
answers=no
if docker info >/dev/null 2>&1; then answers=yes
elif sudo -n docker info >/dev/null 2>&1; then answers=sudo
fi
manager=none
for each in apt-get dnf yum; do
    command -v "$each" >/dev/null 2>&1 && { manager=$each; break; }
done
echo "engine=$engine answers=$answers manager=$manager user=$(id -un)"
"""


def is_ours(spec: Spec) -> bool:
    """Whether the hosts of a spec are rented by us: on what people own, we install nothing."""
    return str(spec.cluster.provider) == "ec2"


def engine_note(spec: Spec) -> str | None:
    """Return what `plan` says of an engine that rented hosts may lack; None if none is needed."""
    if not is_ours(spec) or str(spec.runtime.kind) != "docker":
        return None
    return (
        "a host without a docker engine gets one before the first run, from its own packages "
        "(`sudo apt-get install docker.io`, or docker by dnf or yum); `paceline bake` keeps it in "
        "an image, and later hosts start quicker"
    )


@dataclass(frozen=True)
class EngineFacts:
    """What a host has: an engine, one that answers, a package manager, and who we are there.

    An engine may answer through sudo only: whoever logs in is not in its group.
    """

    installed: bool
    answers: bool
    through_sudo: bool
    manager: Manager | None
    user: str


def look_for_engine() -> Command:
    """Return the command that says what there is of a docker engine."""
    return Command(("/bin/sh", "-c", _LOOK))


def engine_facts(told: str) -> EngineFacts:
    """Read what `look_for_engine` has printed."""
    words = dict(word.split("=", 1) for word in told.split() if "=" in word)
    return EngineFacts(
        installed=words.get("engine") == "yes",
        answers=words.get("answers") in ("yes", "sudo"),
        through_sudo=words.get("answers") == "sudo",
        manager=_MANAGERS.get(words.get("manager", "")),
        user=words.get("user", ""),
    )


def install_engine(facts: EngineFacts) -> tuple[Command, ...]:
    """Return what gives a host a docker engine that answers; nothing where it has one.

    Whoever logs in may use it without sudo from the next login on.
    """
    let_in = _root("usermod", "-aG", "docker", facts.user)
    if facts.answers:
        return (let_in,) if facts.through_sudo else ()
    start = (_root("systemctl", "enable", "--now", "docker"), let_in)
    if facts.installed:
        return start
    if facts.manager is None:
        raise EnvironmentFault(
            "there is no docker engine, and neither apt, dnf nor yum to install one",
            hint="install docker there, or begin with another image",
        )
    return (*_installing(facts.manager), *start)


def _installing(manager: Manager) -> tuple[Command, ...]:
    if manager == "apt":
        return (
            _root("sh", "-c", _PATIENTLY, "sh", "apt-get", "update", "-q", env=_QUIET),
            _root("apt-get", *_APT_WAITS, "install", "-y", "-q", "docker.io", env=_QUIET),
        )
    return (_root(manager, "install", "-y", "-q", "docker"),)


def _root(*words: str, env: Mapping[str, str] | None = None) -> Command:
    # sudo keeps no variable by itself: `env` sets them behind it.
    settings = ("env", *(f"{name}={value}" for name, value in env.items())) if env else ()
    return Command((*_SUDO, *settings, *words))


_MANAGERS: Mapping[str, Manager] = {"apt-get": "apt", "dnf": "dnf", "yum": "yum"}
