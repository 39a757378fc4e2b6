"""The part of this package that travels to the hosts, and a host made ready for our jobs.

Everything that is ours on a host lies below `~/.paceline` there:

    package-DIGEST/paceline/   what travels, by the digest of its content; it is sent once
    jobs/RUN/                  a job, for as long as it runs and its files are not at home
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import EnvironmentFault, PacelineError
from paceline.model.command import Command
from paceline.ports import Transport

_TRAVELS = (
    *("__init__.py", "errors.py", "events", "peers.py", "gauge.py", "mpi.py", "crew.py", "relay"),
    *("supervisor", "datasets", "trainer", "outfit"),
)
_LOOK = """home=${HOME:-$(cd && pwd)}; home=$(cd -- "$home" && pwd -P) || exit 1; echo "$home"
[ -d "$home/.paceline/$1" ] && echo there || echo missing
[ -n "$2" ] && [ -d "$2" ] && echo there || echo missing
"""
_MOVE = 'if [ -d "$2" ]; then rm -rf -- "$1"; else mv -- "$1" "$2"; fi'


@dataclass(frozen=True)
class Package:
    """What travels: its files by the paths that they have below the package, and their digest."""

    digest: str
    files: tuple[tuple[str, Path], ...]

    @property
    def folder(self) -> str:
        """The name of its folder on a host."""
        return f"package-{self.digest}"


@dataclass(frozen=True)
class Homestead:
    """What a host has ready for us: where we may live, our package there, the job's folder."""

    base: str
    import_path: str
    has_workdir: bool


def package_of(root: Path) -> Package:
    """Return what travels of the package at `root`."""
    files = tuple(sorted(_files(root)))
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return Package(digest.hexdigest()[:16], files)


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    for name in _TRAVELS:
        top = root / name
        for path in top.rglob("*") if top.is_dir() else (top,):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix(), path


async def settle_on(transport: Transport, package: Package, workdir: str | None) -> Homestead:
    """Make a host ready: find its home, and send the package if it is not there yet."""
    look = Command(("/bin/sh", "-c", _LOOK, "sh", package.folder, workdir or ""))
    done = await transport.run(look, timeout_s=30.0)
    words = done.stdout.splitlines()
    if not done.ok and not words:
        raise EnvironmentFault(
            f"its home folder cannot be found: {done.stderr.strip()}", host=transport.host.name
        )
    home, has_package, has_workdir = words
    base = f"{home}/.paceline"
    if has_package != "there":
        await _send(transport, package, base)
    return Homestead(base, f"{base}/{package.folder}", has_workdir == "there")


async def _send(transport: Transport, package: Package, base: str) -> None:
    target = f"{base}/{package.folder}"
    draft = f"{target}.{secrets.token_hex(4)}.part"
    with tempfile.TemporaryDirectory(prefix="paceline-package-") as folder:
        for name, path in package.files:
            place = Path(folder) / "paceline" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        try:
            await transport.put(Path(folder), draft)
        except BaseException:
            # Half a package would be one more thing on a disk that is full already.
            with contextlib.suppress(PacelineError):
                await transport.run(Command(("rm", "-rf", "--", draft)))
            raise
    # Nobody ever sees half a package, and whoever comes second finds it there.
    done = await transport.run(Command(("/bin/sh", "-c", _MOVE, "sh", draft, target)))
    if not done.ok:
        raise EnvironmentFault(
            f"{target} cannot be made: {done.stderr.strip()}", host=transport.host.name
        )
