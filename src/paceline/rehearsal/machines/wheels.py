"""Wheels of what this machine's Python has, for the machines' pip: they hold links, no copies.

A machine has no way to a package registry. What is installed here can be installed there all the
same, in any environment: a wheel has the records of the real one, so that pip resolves as it
would, and one file that leads Python to this machine's files.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

# They are built for this very Python, and for no other.
_TAG = f"cp{sys.version_info.major}{sys.version_info.minor}-none-any"
_WHEEL = f"""\
Wheel-Version: 1.0
Generator: paceline rehearsal
Root-Is-Purelib: true
Tag: {_TAG}
"""
_NAME = re.compile(r"[\w.-]+")
_COPIED = ("METADATA", "entry_points.txt")


@dataclass(frozen=True)
class Package:
    """A package that is installed here."""

    name: str
    version: str
    needs: tuple[str, ...]
    installed: metadata.Distribution

    def parts(self) -> Iterator[Path]:
        """Yield the folders and files that it has in site-packages.

        `files` would parse every line; torch has fifteen thousand.
        """
        record = self.installed.read_text("RECORD") or ""
        tops = {line.split("/", 1)[0].split(",", 1)[0] for line in record.splitlines()}
        for top in sorted(tops - {"", "..", "__pycache__"}):
            yield Path(str(self.installed.locate_file(top))).absolute()


def installed_with(names: Sequence[str]) -> tuple[Package, ...]:
    """Return packages that are installed here, and all that they need; others are left out."""
    waiting, found = [canonical(name) for name in names], dict[str, Package]()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = _read(metadata.distribution(name))
        except metadata.PackageNotFoundError:
            continue
        waiting += found[name].needs
    return tuple(found.values())


def canonical(name: str) -> str:
    """Return the one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _read(installed: metadata.Distribution) -> Package:
    # Each look at `metadata` would parse all of it again.
    told = installed.metadata
    required = [line for line in told.get_all("Requires-Dist") or () if not _is_extra(line)]
    needs = tuple(canonical(_NAME.match(line)[0]) for line in required)  # type: ignore[index]
    return Package(told["Name"], told["Version"], needs, installed)


def _is_extra(requirement: str) -> bool:
    return "extra ==" in requirement.rpartition(";")[2]


def write_wheel(package: Package, folder: Path, modules: str) -> Path:
    """Write the wheel of a package into a folder; its modules are found below a path."""
    name = re.sub(r"[^\w.]+", "_", package.name)
    info = f"{name}-{package.version}.dist-info"
    files = {f"{name}.pth": f"{modules}\n", f"{info}/WHEEL": _WHEEL}
    for one in _COPIED:
        if (text := package.installed.read_text(one)) is not None:
            files[f"{info}/{one}"] = text
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    path = folder / f"{name}-{package.version}-{_TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
    return path


def _record(files: dict[str, str], itself: str) -> str:
    lines = []
    for path, text in files.items():
        content = text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{itself},,", ""])
