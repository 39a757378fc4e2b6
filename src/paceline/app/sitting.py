"""One `up` while it lasts: what is wished, what was found, and how it is written down."""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.app.renting import Desk
from paceline.model.ec2 import CloudPlan, ClusterKey, Kind, Machine, Survey, Wish
from paceline.model.ledger import ClusterEntry, Entry, EntryState


@dataclass
class Sitting:
    """What all parts of one `up` share."""

    desk: Desk
    wish: Wish
    found: Survey
    plan: CloudPlan
    known: ClusterEntry | None
    sitting: str = field(init=False)

    def __post_init__(self) -> None:
        """Give this `up` a name of its own."""
        self.sitting = self.desk.nonce()

    @property
    def key(self) -> ClusterKey:
        """The cluster."""
        return self.wish.key

    @property
    def user(self) -> str:
        """Who logs in."""
        return self.wish.user or self.plan.image.user

    def _host_entry(self, machine: Machine) -> Entry:
        return Entry(
            id=f"{self.key.region}/{machine.id}",
            key=self.key,
            kind="instance",
            name=machine.id,
            state=EntryState.MADE,
            meant_at=self.desk.clock.now(),
            resource_id=machine.id,
            sitting=self.sitting,
            made_at=machine.launched_at or self.desk.clock.now(),
            facts={"type": machine.instance_type, "zone": machine.zone},
        )

    def _entry(self, kind: Kind, name: str) -> Entry:
        return Entry(
            id=self.desk.nonce(),
            key=self.key,
            kind=kind,
            name=name,
            state=EntryState.MEANT,
            meant_at=self.desk.clock.now(),
            sitting=self.sitting,
        )
