"""What the ledger holds: clusters, and for each what was meant, made and removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from paceline.model.ec2 import ClusterKey, Kind


class EntryState(Enum):
    """How far a thing is: meant before the call, made after it, gone when it was removed.

    `VOID` is an intent that came to nothing.
    """

    MEANT = "meant"
    MADE = "made"
    GONE = "gone"
    VOID = "void"


@dataclass(frozen=True)
class Entry:
    """One thing that we meant to make. Nothing secret is ever in it.

    For instances, an entry of kind `instance` without an id stands for one launch, with its
    client token; each instance that came of it gets an entry of its own.
    """

    id: str
    key: ClusterKey
    kind: Kind
    name: str
    state: EntryState
    meant_at: float
    resource_id: str | None = None
    token: str | None = None
    sitting: str = ""
    made_at: float | None = None
    gone_at: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether nobody knows what became of it."""
        return self.state is EntryState.MEANT

    @property
    def is_launch(self) -> bool:
        """Whether it stands for a launch and not for one instance."""
        return self.kind == "instance" and self.token is not None


@dataclass(frozen=True)
class ClusterEntry:
    """One cluster: whose it is, until when it lives, and what a host of it costs."""

    key: ClusterKey
    created_at: float
    expires_at: float
    account: str | None = None
    user: str = ""
    instance_type: str = ""
    market: str = "on-demand"
    usd_per_host_hour: float | None = None
    price_source: str = ""
    gone_at: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gone(self) -> bool:
        """Whether it was taken down."""
        return self.gone_at is not None
