"""Which wheels a host's Python takes, and pip's words to fetch them on another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# The oldest glibc that anybody still builds wheels for.
_OLDEST_GLIBC = 5
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_TORCH = "https://download.pytorch.org/whl"


@dataclass(frozen=True)
class PythonKind:
    """A Python as far as it decides which wheels it takes."""

    version: str
    machine: str
    glibc: str
    implementation: str = "cpython"

    @property
    def short_version(self) -> str:
        """The version without its last part."""
        return ".".join(self.version.split(".")[:2])


def platform_words(kind: PythonKind) -> tuple[str, ...]:
    """Return pip's words for the wheels of a Python that is not the one that pip runs in."""
    digits = kind.short_version.replace(".", "")
    abis = (f"cp{digits}", "abi3", "none")
    words = ["--only-binary=:all:", "--implementation", "cp", "--python-version", kind.version]
    words += [word for abi in abis for word in ("--abi", abi)]
    words += [word for tag in _platforms(kind) for word in ("--platform", tag)]
    return tuple(words)


def _platforms(kind: PythonKind) -> list[str]:
    """Return the platforms whose wheels run there, the newest first."""
    try:
        newest = int(kind.glibc.split(".")[1])
    except (IndexError, ValueError):
        newest = 17
    found = []
    for minor in range(newest, _OLDEST_GLIBC - 1, -1):
        found.append(f"manylinux_2_{minor}_{kind.machine}")
        if minor in _LEGACY:
            found.append(f"{_LEGACY[minor]}_{kind.machine}")
    return [*found, f"linux_{kind.machine}"]


def torch_index(word: str | None) -> tuple[str, ...]:
    """Return where a build of torch comes from: `cpu`, `cu126`, or an address of its own."""
    if word is None:
        return ()
    return (word,) if "://" in word else (f"{_TORCH}/{word}",)


def download_words(
    kind: PythonKind, index: Sequence[str], folder: str, requirements: str, constraints: str
) -> tuple[str, ...]:
    """Return pip's words that fetch everything that an environment needs into a folder."""
    words = ["download", "--no-input", "--disable-pip-version-check", "--dest", folder]
    words += [word for address in index for word in ("--extra-index-url", address)]
    words += platform_words(kind)
    # pip comes along for hosts that have none, setuptools because markers are read here.
    return (*words, "--requirement", requirements, "--constraint", constraints, "pip", "setuptools")
