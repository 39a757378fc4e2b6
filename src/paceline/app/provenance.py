"""Where a result comes from: versions, hardware, settings, the state of the user's code."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from paceline.app.workplace import Workplace
from paceline.errors import UsageError
from paceline.model.command import Command
from paceline.model.spec import Spec
from paceline.ports import Transport


async def provenance_of(place: Workplace, code: Path, here: Transport) -> Mapping[str, object]:
    """Return everything about the surroundings of a study that could explain its numbers.

    `code` is the folder of the user's code on this machine, and `here` the way to run git on it.
    """
    return {
        "paceline": package_version("paceline"),
        "controlled_by": {"python": platform.python_version(), "platform": platform.platform()},
        "provider": place.cluster.provider,
        "hosts": {name: _host(place, name) for name in place.facts},
        "code": await _git_state(here, code),
    }


def surroundings(place: Workplace, hosts: Sequence[str]) -> Mapping[str, object]:
    """Return what each run keeps of its hosts, so that a change between two runs is seen."""
    return {
        "paceline": package_version("paceline"),
        "hosts": {name: _host(place, name) for name in hosts},
    }


def _host(place: Workplace, name: str) -> dict[str, object]:
    """Return what a host says of itself, and what its provider says of it."""
    return {**_told(asdict(place.facts[name])), **place.cluster.about.get(name, {})}


def code_folder(spec: Spec) -> Path:
    """Return the folder of the user's code: the script's, else where the job works."""
    if spec.job.script is not None:
        return Path(spec.job.script).absolute().parent
    return Path(spec.job.workdir or Path.cwd())


def code_digest(spec: Spec) -> str | None:
    """Return the fingerprint of the user's own code: the script, or the files of the command."""
    files = [spec.job.script] if spec.job.script else []
    for word in spec.job.command or ():
        path = code_folder(spec) / word
        files += [str(path)] if path.is_file() and not Path(word).is_absolute() else []
    if not files:
        return None
    try:
        contents = [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files]
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror or error}") from error
    return hashlib.sha256(" ".join(contents).encode()).hexdigest()


def package_version(name: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _told(facts: Mapping[str, object]) -> dict[str, object]:
    """Leave out what is not known, and the port, which says nothing about a result."""
    return {
        name: value
        for name, value in facts.items()
        if value not in (None, (), {}, "") and name != "free_port"
    }


async def _git_state(local: Transport, folder: Path) -> Mapping[str, object] | None:
    """Return commit and cleanliness of the code that was run, where it is under git."""
    base = ("git", "-C", str(folder))
    try:
        commit = await local.run(Command((*base, "rev-parse", "HEAD")), timeout_s=10.0)
        if not commit.ok:
            return None
        status = await local.run(Command((*base, "status", "--porcelain")), timeout_s=10.0)
    except Exception:  # noqa: BLE001 - no git, or a slow one: provenance is never worth a study
        return None
    return {
        "folder": str(folder),
        "commit": commit.stdout.strip(),
        "uncommitted_changes": bool(status.stdout.strip()),
    }
