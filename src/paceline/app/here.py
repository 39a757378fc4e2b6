"""This machine, as far as making hosts ready needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paceline.ports import Transport


@dataclass(frozen=True)
class Here:
    """What making hosts ready needs of this machine.

    `stock` is a folder of ours for drafts and downloads, `never` are folders that are not sent,
    `link` leads to this machine itself, and `say` is told what takes its time.
    """

    stock: Path
    link: Transport
    never: tuple[Path, ...] = ()
    say: Callable[[str], None] = print
