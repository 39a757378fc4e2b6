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
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^\]]*)\])?")
_ONLY_FOR = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_COPIED = ("METADATA", "entry_points.txt")


@dataclass(frozen=True)
class Package:
    """A package that is installed here."""

    name: str
    version: str
    required: tuple[str, ...]
    installed: metadata.Distribution

    def needs(self, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield what it needs, with the extras of that, when some extras of its own are wanted."""
        for line in self.required:
            only_for = {canonical(word) for word in _ONLY_FOR.findall(line.rpartition(";")[2])}
            words = _REQUIREMENT.match(line)
            if words is not None and (not only_for or only_for & extras):
                wanted = (words[2] or "").split(",")
                yield canonical(words[1]), frozenset(canonical(word.strip()) for word in wanted)

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
    waiting = [(canonical(name), frozenset[str]()) for name in names]
    found, seen = dict[str, Package](), set()
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        name, extras = wanted
        try:
            found[name] = found.get(name) or _read(metadata.distribution(name))
        except metadata.PackageNotFoundError:
            continue
        waiting += found[name].needs(extras)
    return tuple(found.values())


def canonical(name: str) -> str:
    """Return the one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _read(installed: metadata.Distribution) -> Package:
    # Each look at `metadata` would parse all of it again.
    told = installed.metadata
    required = tuple(told.get_all("Requires-Dist") or ())
    return Package(told["Name"], told["Version"], required, installed)


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
