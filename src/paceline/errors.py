"""Every error that Paceline raises on purpose, with its exit code and its advice.

    PacelineError                      1   something of ours went wrong
    ├── UsageError                     2   the words of a command do not fit
    │   └── SpecError                  2   the spec has mistakes (all of them, with lines)
    ├── EnvironmentFault               3   this machine or a host lacks something
    │   ├── MissingProgram             3   a program or module is not installed
    │   ├── DataError                  3   a data set is absent, unreadable or corrupt
    │   └── PortBusy                   3   the rendezvous port is taken
    ├── PlanError                      4   what is asked for cannot be done here
    ├── JobFailed                      5   the job started and ended badly
    ├── TransportError                 6   a host cannot be reached or spoken to
    │   └── HostRefuses                6   it is there, but its SSH server is not
    ├── Conflict                       7   somebody else is at work on it, or its name is taken
    ├── NotFound                       8   no run, study or host of that name
    ├── StorageError                   9   results cannot be written or read
    ├── CloudError                    10   the cloud refuses what is asked, or cannot do it
    │   ├── NotPermitted              10   the account lacks a right
    │   ├── QuotaExceeded             10   the account may not have so many
    │   ├── NoCapacity                10   the cloud has no room for so many hosts just now
    │   ├── AlreadyThere              10   something of that name exists
    │   ├── NotThere                  10   what is named does not exist, or not yet
    │   ├── StillInUse                10   something else still needs it
    │   └── TokenSpent                10   the same request was carried out before, differently
    ├── LeftBehind                    11   something that costs money could not be removed
    └── Interrupted                  130   Ctrl-C, or a deadline; state is kept

An error says what happened, on which host if there is one, and what to do next.
Only the standard library is used here: this module travels to the hosts.
"""

from __future__ import annotations

from typing import ClassVar


class PacelineError(Exception):
    """The root of the tree: a message, an optional hint, and an exit code."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, host: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.host = host

    def __str__(self) -> str:
        where = f"{self.host}: " if self.host else ""
        return f"{where}{self.message}"


class UsageError(PacelineError):
    """The words of a command do not fit together."""

    exit_code = 2


class SpecError(UsageError):
    """The spec has mistakes; `problems` holds all of them, one line each."""

    def __init__(self, source: str, problems: tuple[str, ...], *, hint: str | None = None) -> None:
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(f"{source}: {count}\n" + "\n".join(problems), hint=hint)
        self.source = source
        self.problems = problems


class EnvironmentFault(PacelineError):
    """This machine, or a host, lacks something that the work needs."""

    exit_code = 3


class MissingProgram(EnvironmentFault):
    """A program or a Python module is not installed where it is needed."""


class DataError(EnvironmentFault):
    """A data set is absent, unreadable, or not what it should be."""


class PortBusy(EnvironmentFault):
    """The port that the ranks should meet at is taken."""


class PlanError(PacelineError):
    """What is asked for is well said, but cannot be done with these hosts."""

    exit_code = 4


class JobFailed(PacelineError):
    """The job was started and ended badly; the message carries its own first words."""

    exit_code = 5


class TransportError(PacelineError):
    """A host cannot be reached, or a command on it could not be carried out."""

    exit_code = 6


class HostRefuses(TransportError):
    """A host answers, but nobody listens where its SSH server should: it may be back soon."""


class Conflict(PacelineError):
    """Another process of ours is at work on the same thing, or its name is taken by another."""

    exit_code = 7


class NotFound(PacelineError):
    """There is no run, study, host or cluster of that name."""

    exit_code = 8


class StorageError(PacelineError):
    """Results cannot be written or read: a full disk, a missing right, a broken file."""

    exit_code = 9


class CloudError(PacelineError):
    """The cloud refuses what is asked, or cannot do it; `code` is its own word for why."""

    exit_code = 10

    def __init__(
        self, message: str, *, hint: str | None = None, host: str | None = None, code: str = ""
    ) -> None:
        super().__init__(message, hint=hint, host=host)
        self.code = code


class NotPermitted(CloudError):
    """The account or the user of it lacks a right."""


class QuotaExceeded(CloudError):
    """The account may not have so many of these."""


class NoCapacity(CloudError):
    """The cloud has no room for so many hosts of this kind there just now."""


class AlreadyThere(CloudError):
    """Something of that name exists already."""


class NotThere(CloudError):
    """What is named does not exist, or cannot be seen yet."""


class StillInUse(CloudError):
    """It cannot be removed while something else needs it."""


class TokenSpent(CloudError):
    """A request with the same token was carried out before, and cannot be repeated."""


class LeftBehind(PacelineError):
    """Something that may cost money could not be removed; the message names all of it."""

    exit_code = 11


class Interrupted(PacelineError):
    """The user asked to stop; what was measured is kept and can be resumed."""

    exit_code = 130
