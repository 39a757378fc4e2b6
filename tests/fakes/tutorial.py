"""A tutorial as a list of commands, so that tests type what its readers copy."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.terminal import Terminal, wait_until

ROOT = Path(__file__).resolve().parents[2]
STORIES = ROOT / "docs" / "stories"
RENTED = "On rented machines"
# Nothing else changes for those who rehearse.
REHEARSED = {"paceline ": "paceline --rehearse "}
_PROMPT = "$ "
_MORE = "\\"


def commands_of(page: Path) -> list[str]:
    """Return the commands of a page's console blocks, continued lines joined."""
    return [command for chapter in chapters_of(page).values() for command in chapter]


def chapters_of(page: Path) -> dict[str, list[str]]:
    """Return the commands of a page by the titles of its chapters."""
    chapters: dict[str, list[str]] = {"": []}
    found = chapters[""]
    inside = going_on = False
    for line in page.read_text().splitlines():
        if line.startswith("## ") and not inside:
            found = chapters.setdefault(line.removeprefix("## "), [])
        elif line.startswith("```"):
            inside, going_on = line == "```console", False
        elif inside and going_on:
            found[-1] = f"{found[-1].removesuffix(_MORE).rstrip()} {line.strip()}"
            going_on = line.endswith(_MORE)
        elif inside and line.startswith(_PROMPT):
            found.append(line.removeprefix(_PROMPT).rstrip())
            going_on = line.endswith(_MORE)
    return chapters


def _hears_no_hangup(group: int) -> bool:
    """Whether a group has processes, and all of them ignore SIGHUP."""
    ignored = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                status = (folder / "status").read_text()
                ignored.append(int(status.partition("SigIgn:")[2].split()[0], 16) & 1)
    return bool(ignored) and all(ignored)


class Tutorial:
    """A reader at a terminal, who types the commands of a page one after the other.

    `instead` has the reader's own words for those of the page, such as addresses. A page has a
    chapter for those who rent their machines, and the others for those who have some.
    """

    def __init__(
        self, name: str, terminal: Terminal, instead: Mapping[str, str], *, rented: bool = False
    ) -> None:
        chapters = chapters_of(STORIES / f"{name}.md")
        self._left = [
            command
            for title, commands in chapters.items()
            for command in commands
            if (title == RENTED) == rented
        ]
        self._terminal = terminal
        self._instead = instead
        (terminal.folder / "examples").mkdir(exist_ok=True)

    def log_in_with(self, key: Path) -> None:
        """Let the reader's ssh config name a key for all hosts."""
        folder = self._terminal.home / ".ssh"
        folder.mkdir(parents=True)
        (folder / "config").write_text(f"Host *\n  IdentityFile {key}\n")

    def example(self, name: str, changes: Mapping[str, str]) -> None:
        """Copy an example into the reader's folder; `changes` make it small enough for a test."""
        text = (ROOT / "examples" / name).read_text()
        for old, new in changes.items():
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new)
        self._terminal.file(f"examples/{name}", text)

    def clone(self, *names: str) -> None:
        """Let these files and folders of the project lie where the reader types."""
        for name in names:
            target = self._terminal.folder / name
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, target, ignore=ignored)
            else:
                shutil.copy(ROOT / name, target)

    def type(self, beginning: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Type the next command of the page, which begins like this, and wait for its end."""
        return self.run(self.next_line(beginning), timeout_s)

    def run(
        self, line: str, timeout_s: float = 300.0, *, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a line; `typed` is what the reader types while it goes on, such as in a shell."""
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self._terminal.folder, env=self._env(), input=typed,
            capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip

    def begin(self, beginning: str) -> subprocess.Popen[bytes]:
        """Type the next command into a terminal of its own, and return while that is open."""
        return subprocess.Popen(
            ["bash", "-c", self.next_line(beginning)],
            cwd=self._terminal.folder, env=self._env(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def hang_up(self, shell: subprocess.Popen[bytes]) -> None:
        """Close the terminal of a shell that has begun something with `nohup`."""
        shell.communicate(timeout=60)
        assert shell.returncode == 0
        wait_until(lambda: _hears_no_hangup(shell.pid))
        os.killpg(shell.pid, signal.SIGHUP)

    def see(self, beginning: str, timeout_s: float = 300.0) -> str:
        """Type the next command, which must succeed, and return what it prints."""
        done = self.type(beginning, timeout_s)
        assert done.returncode == 0, f"{beginning}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def skip(self, beginning: str, *, because: str) -> None:
        """Pass over a command that a test cannot run."""
        assert because
        self.next_line(beginning)

    def expect_end(self) -> None:
        """Fail where the page goes on."""
        assert self._left == []

    def expect_an_empty_account(self) -> None:
        """Check that nothing is left over, by our own search and by the rehearsed account's list.

        That is the end of the page.
        """
        assert "nothing of yours is left over" in self.type("paceline reap").stderr
        self.expect_end()
        assert "the account holds: nothing" in self._terminal.paceline("rehearsal", "status").stdout

    def word(self, of_the_page: str) -> str:
        """Return what the reader types for a word of the page."""
        return self._instead[of_the_page]

    def next_line(self, beginning: str) -> str:
        """Return the next command, in the reader's own words, to be typed elsewhere."""
        line = self._left.pop(0)
        assert line.startswith(beginning), f"the page goes on with {line!r}"
        for old, new in self._instead.items():
            line = line.replace(old, new)
        return line

    def _env(self) -> dict[str, str]:
        programs = Path(sys.executable).parent
        path = f"{programs}:{os.environ.get('PATH', '')}"
        return {**self._terminal.env, "PATH": path, "HOME": str(self._terminal.home)}
