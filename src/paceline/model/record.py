"""Records: what happened. A failed run is a record too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from paceline.model.plan import Configuration

REHEARSED = "rehearsed"


def is_rehearsed(provenance: Mapping[str, object]) -> bool:
    """Whether something was run against the rehearsal, and says nothing of rented machines."""
    return bool(provenance.get(REHEARSED))


class RunState(str, Enum):
    """Where a run stands."""

    PLANNED = "planned"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"
    INTERRUPTED = "interrupted"  # its machine was taken back (spot): nothing was wrong with it
    UNREADABLE = "unreadable"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the run."""
        return self not in (RunState.PLANNED, RunState.RUNNING)


@dataclass(frozen=True)
class Failure:
    """Why a run failed: the process that failed first, and its own first words."""

    reason: str
    process: str | None = None
    host: str | None = None
    exit_code: int | None = None
    excerpt: str = ""
    hint: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """One run, from intent to outcome. Times are Unix seconds; `wall_s` is measured by us."""

    run_id: str
    kind: str
    state: RunState
    configuration: Configuration
    folder: Path
    created_at: float
    launcher: str = "direct"
    study: str | None = None
    sample_id: str | None = None
    sample_index: int | None = None
    attempt: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    wall_s: float | None = None
    failure: Failure | None = None
    hosts: tuple[str, ...] = ()
    provenance: Mapping[str, object] = field(default_factory=dict)
    tidied: bool = False

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be done about the run: it ended and left its hosts clean."""
        return self.state.ended and self.tidied


@dataclass(frozen=True)
class StudyRecord:
    """One study: its folder, the spec as it was read, and when it was begun."""

    name: str
    folder: Path
    created_at: float
    digest: str
    spec: Mapping[str, object]
    provenance: Mapping[str, object] = field(default_factory=dict)
