"""Which files of a working folder travel: all but what is ignored, and what is never wanted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import PlanError, StorageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

GIT_IGNORES = (".gitignore", ".pacelineignore")
DOCKER_IGNORES = (".dockerignore",)
_NEVER = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", "paceline-results"})
_LARGEST_BYTES = 4 << 30
_MOST_FILES = 50_000


@dataclass(frozen=True)
class TreeFile:
    """A file that travels: where its content lies, its digest, its mode."""

    source: Path
    digest: str
    mode: int


@dataclass(frozen=True)
class Tree:
    """The files of a folder by their names below it, and its links by theirs."""

    root: Path
    files: dict[str, TreeFile] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def tree_of(
    root: Path, *, ignores: Sequence[str] = GIT_IGNORES, never: Sequence[Path] = ()
) -> Tree:
    """Return what travels of a folder; `never` are folders that stay, wherever they are.

    A link within the folder stays a link; one to a file elsewhere becomes that file.
    """
    walk = _Walk(root.resolve(), tuple(ignores), frozenset(path.resolve() for path in never))
    try:
        for name, path in walk.entries():
            walk.take(name, path)
    except OSError as error:
        where = error.filename or root
        raise StorageError(f"{where} cannot be read: {error.strerror or error}") from error
    return walk.tree


class _Walk:
    def __init__(self, root: Path, ignores: tuple[str, ...], never: frozenset[Path]) -> None:
        self.tree = Tree(root)
        self._ignores = ignores
        self._never = never
        self._size_bytes = 0

    def entries(self) -> Iterator[tuple[str, Path]]:
        """Yield every file and link that is not ignored, in the order of their names."""
        # The rules of a repository hold in its subfolders as well.
        above = _repository(self.tree.root) if self._ignores == GIT_IGNORES else []
        rules = [(folder, self._rules_of(folder)) for folder in above]
        yield from self._below(self.tree.root, "", rules)

    def take(self, name: str, path: Path) -> None:
        """Note a file or a link down."""
        if path.is_symlink() and (path.is_dir() or self._within(path)):
            self.tree.links[name] = str(path.readlink())
            return
        if not path.is_file():
            return  # a socket, a pipe, a link to nowhere
        status = path.stat()
        self._size_bytes += status.st_size
        if self._size_bytes > _LARGEST_BYTES or len(self.tree.files) >= _MOST_FILES:
            raise PlanError(
                f"the working folder {self.tree.root} is too large to be sent along: "
                f"more than {_LARGEST_BYTES >> 30} GiB or {_MOST_FILES} files",
                hint="name what stays here in a .pacelineignore there (it reads like a "
                ".gitignore), start in a folder of the project's own, or say `job: {sync: false}`",
            )
        with path.open("rb") as file:
            digest = hashlib.sha256()
            while block := file.read(1 << 20):
                digest.update(block)
        self.tree.files[name] = TreeFile(path.resolve(), digest.hexdigest(), status.st_mode & 0o777)

    def _within(self, link: Path) -> bool:
        return link.resolve().is_relative_to(self.tree.root) and not link.readlink().is_absolute()

    def _below(
        self, folder: Path, prefix: str, rules: list[tuple[Path, GitIgnoreSpec]]
    ) -> Iterator[tuple[str, Path]]:
        if folder == self.tree.root or self._ignores == GIT_IGNORES:
            rules = [*rules, (folder, self._rules_of(folder))]
        for entry in sorted(os.scandir(folder), key=lambda item: item.name):
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in _NEVER or _ignored(path, rules, is_folder=is_folder):
                continue
            if not is_folder:
                yield prefix + entry.name, path
            elif path not in self._never and not (path / "pyvenv.cfg").exists():
                yield from self._below(path, f"{prefix}{entry.name}/", rules)

    def _rules_of(self, folder: Path) -> GitIgnoreSpec:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only jobs that send files need it

        lines: list[str] = []
        for name in self._ignores:
            path = folder / name
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace").splitlines()
                lines += text if name not in DOCKER_IGNORES else _anchored(text)
        return GitIgnoreSpec.from_lines(lines)


def _ignored(path: Path, rules: list[tuple[Path, GitIgnoreSpec]], *, is_folder: bool) -> bool:
    """Whether the last rule that speaks of a path excludes it; inner files go over outer ones."""
    for folder, spec in reversed(rules):
        name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
        include = spec.check_file(name).include
        if include is not None:
            return include
    return False


def _anchored(lines: Sequence[str]) -> list[str]:
    """Write docker's rules as git's: they are all meant from the top.

    Docker can take something back out of a folder that is left out, and git cannot: where a rule
    does so, everything is sent, and docker itself chooses.
    """
    bare = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if any(line.startswith("!") for line in bare):
        return []
    return [f"/{line.removeprefix('./').lstrip('/')}" for line in bare]


def _repository(root: Path) -> list[Path]:
    """Return the folders above one, from the top of its repository down; none outside of one."""
    above = [root, *root.parents]
    for number, folder in enumerate(above):
        if (folder / ".git").exists():
            return above[1 : number + 1][::-1]
    return []
