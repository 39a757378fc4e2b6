"""An image that stands by itself: this machine's Python and torch, copied.

`docker build` can go on from it, and nothing of this machine need be mounted: where no image can
be pulled, it takes the place of a Python image with torch in it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from paceline.errors import EnvironmentFault
from paceline.rehearsal.engine import Engine
from paceline.rehearsal.images import PATH, add_link, add_skeleton

PYTHON_IMAGE = "paceline-lab/python:latest"
_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
_HOME = f"usr/local/lib/python{_VERSION}"
_PACKAGES = (
    *("torch", "torch-*", "torchgen", "numpy", "numpy.libs", "typing_extensions*", "filelock*"),
    *("sympy", "mpmath", "networkx", "jinja2", "markupsafe", "fsspec"),
    # With these, and the records of the others, pip finds torch installed already.
    *("pip", "pip-*", "setuptools", "setuptools-*", "_distutils_hack", "distutils-precedence.pth"),
    *("sympy-*", "mpmath-*", "networkx-*", "jinja2-*", "markupsafe-*", "fsspec-*", "numpy-*"),
)
_TOOLS = (
    *("sh", "cat", "env", "id", "ln", "ls", "mkdir", "mv", "rm", "sleep", "tail", "uname"),
    *("chmod", "cp", "kill", "touch", "true"),
)
# What no trainer needs, and what would double the image.
_UNUSED = (
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "include",
    "site-packages",
)
Keeping = Callable[[tarfile.TarInfo], tarfile.TarInfo | None]


def load_python_image(engine: Engine, name: str = PYTHON_IMAGE) -> str:
    """Give an engine the image; return its id."""
    words = ("docker", "--host", engine.address, "import", "--change", f"ENV PATH={PATH}", "-")
    client = subprocess.Popen((*words, name), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with client:
        with tarfile.open(fileobj=client.stdin, mode="w|") as archive:
            add_python(archive)
        said, _ = client.communicate()
    if client.returncode != 0:
        raise EnvironmentFault(f"docker could not import {name}", host=engine.namespace)
    return said.decode().strip()


def add_python(archive: tarfile.TarFile) -> None:
    """Add the whole root file system of the image."""
    add_skeleton(archive)
    for path, place in python_files():
        archive.add(path, place, filter=_without(place))
    for program in ("python", "python3"):
        add_link(archive, f"usr/local/bin/{program}", f"python{_VERSION}")
    add_link(archive, f"{_HOME}/dist-packages", "site-packages")


def python_files() -> Iterator[tuple[str, str]]:
    """Yield the paths of a Python with torch and of all that both need, each with its new place."""
    executable = str(Path(sys.executable).resolve())
    stdlib, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    tools = [found for name in _TOOLS if (found := shutil.which(name, path="/usr/bin:/bin"))]
    yield executable, f"usr/local/bin/python{_VERSION}"
    yield str(stdlib), _HOME
    for pattern in _PACKAGES:
        for path in sorted(packages.glob(pattern)):
            yield str(path), f"{_HOME}/site-packages/{path.name}"
    for tool in tools:
        yield str(Path(tool).resolve()), f"usr/bin/{Path(tool).name}"
    native = [*(stdlib / "lib-dynload").glob("*.so"), *packages.glob("torch/lib/*.so*")]
    for library in libraries_of([executable, *tools, *map(str, native)]):
        if not Path(library).is_relative_to(packages):
            yield str(Path(library).resolve()), _place_of(library)


def libraries_of(paths: Sequence[str]) -> list[str]:
    """Return the shared libraries that programs and libraries load, their loader included."""
    done = subprocess.run(("ldd", *paths), capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, re.MULTILINE)))


def _place_of(library: str) -> str:
    """Return where a library goes: where it is, or, out of a Python's own folder, beside libc."""
    if library.startswith("/lib"):
        return f"usr{library}"
    if library.startswith("/usr/lib"):
        return library[1:]
    return f"usr/lib/{sysconfig.get_config_var('MULTIARCH') or ''}/{Path(library).name}"


def _without(place: str) -> Keeping:
    """Return what leaves out of a folder's files what nobody needs."""

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        inner = member.name[len(place) :].strip("/").split("/")
        # A fifth of all files are tests deep inside of packages; each engine would unpack them.
        if inner[0] in _UNUSED or "tests" in inner or member.name.endswith(".a"):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    return keep
