"""What all machines of a rehearsal stand on: places, the journal, control groups, settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.rehearsal.machines.grouping import Hierarchy, hierarchies
from paceline.rehearsal.machines.images import ImageShelf
from paceline.rehearsal.machines.journal import Journal
from paceline.rehearsal.machines.places import Places
from paceline.rehearsal.machines.wires import network_gbit

# This machine's processors are shared by all hosts; a tenth of EC2's links keeps the proportion.
_SCALE = 0.1


@dataclass(frozen=True)
class Ground:
    """The parts that machines share."""

    places: Places
    journal: Journal
    images: ImageShelf
    bandwidth_mbit: float | None = None
    trees: tuple[Hierarchy, ...] = field(default_factory=hierarchies)

    def rate_mbit(self, performance: str) -> float:
        """Return what a machine's link carries, given EC2's words for its type's network."""
        if self.bandwidth_mbit is not None:
            return self.bandwidth_mbit
        return network_gbit(performance) * 1000 * _SCALE
