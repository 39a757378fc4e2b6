"""What encoded pictures are: their names, how they begin, and what to do when some are bad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from paceline.errors import DataError

T = TypeVar("T")

ENDINGS = frozenset(
    {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff"}
)
_BEGINNINGS = (
    *(b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"BM", b"GIF8", b"RIFF"),
    *(b"P5", b"P6", b"P2", b"P3", b"II*\0", b"MM\0*"),
)
_TOLERATED = 0.05
_NAMED = 5


def looks_encoded(start: bytes) -> bool:
    """Say whether bytes begin like a picture of a known format."""
    return start.startswith(_BEGINNINGS)


@dataclass
class Failures:
    """Pictures that could not be read: how many, and the first few by name."""

    total: int
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str, reason: str) -> None:
        """Note a bad picture; give up when there are too many."""
        self.count += 1
        if len(self.first) < _NAMED:
            self.first.append(f"{name} ({reason})")
        if self.count > _TOLERATED * self.total:
            raise DataError(
                f"{self.count} images, which is more than {_TOLERATED:.0%} of {self.total},"
                f" cannot be read, among them: {self.named()}",
                hint="are these images? remove what is not, or get them again",
            )

    def named(self) -> str:
        """Return the first few, separated by commas."""
        return ", ".join(self.first)

    def sentence(self) -> str:
        """Return what to tell about them, or nothing."""
        if not self.count:
            return ""
        return f"; {self.count} of {self.total} unreadable and left out: {self.named()}"


def spread(items: Sequence[T], count: int | None) -> Sequence[T]:
    """Return so many items, evenly taken from all: the first ones would be of one class."""
    if count is None or count >= len(items):
        return items
    return [items[number * len(items) // count] for number in range(count)]


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Return a number for each class name, in alphabetical order."""
    return {name: number for number, name in enumerate(sorted(set(names)))}
