"""A command is a value: argv, environment, folder, input. It is quoted once, when shown."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

REDACTED = "[secret]"


class Secret:
    """A value that a process needs and that no log, ledger or report may show.

    It is no dataclass on purpose: what walks through dataclasses would open it.
    """

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.value == other.value

    def __hash__(self) -> int:
        return hash((Secret, self.value))

    def __repr__(self) -> str:
        return REDACTED

    __str__ = __repr__


@dataclass(frozen=True)
class Command:
    """What is to be executed; environment variables are added to those of the host."""

    argv: tuple[str, ...]
    env: Mapping[str, str | Secret] = field(default_factory=dict)
    cwd: str | None = None
    stdin: bytes | None = None

    def plain_env(self) -> dict[str, str]:
        """Return the environment with its secrets open, for the process itself."""
        return {
            name: value.value if isinstance(value, Secret) else value
            for name, value in self.env.items()
        }


@dataclass(frozen=True)
class Completed:
    """How a command ended, with all that it said."""

    command: Command
    exit_code: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether the command succeeded."""
        return self.exit_code == 0


def render(command: Command) -> str:
    """Return the line that a person could type into a shell; secrets stay hidden."""
    words = [f"{name}={shlex.quote(str(value))}" for name, value in sorted(command.env.items())]
    words += [shlex.quote(word) for word in command.argv]
    line = " ".join(words)
    if command.cwd is None:
        return line
    return f"cd {shlex.quote(command.cwd)} && {line}"
