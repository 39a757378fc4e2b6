"""Wheels made on the spot, so that tests of pip need no registry."""

from __future__ import annotations

import zipfile
from pathlib import Path


def tiny_wheel(folder: Path, name: str, version: str, text: str, suffix: str = "py") -> Path:
    """Write a wheel that holds one file, a module or a `.pth`, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
    tags = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    names = (f"{name}.{suffix}", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(names[0], text)
        archive.writestr(names[1], metadata)
        archive.writestr(names[2], tags)
        archive.writestr(names[3], "".join(f"{item},,\n" for item in names))
    return path
