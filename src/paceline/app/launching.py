"""The launch: all hosts in one request, where there is room, and never twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from paceline.app.meeting import BOOT_KEY
from paceline.app.renting import (
    SETTLE_S,
    carry_out,
    closed,
    first_line,
    patiently,
    pause,
)
from paceline.app.sitting import Sitting
from paceline.app.survey import machines_of
from paceline.errors import CloudError, Conflict, NoCapacity, QuotaExceeded, TokenSpent
from paceline.model.command import Secret
from paceline.model.ec2 import Answer, Attempt, CloudPlan, Machine, Thing
from paceline.model.ledger import Entry, EntryState
from paceline.model.plan import digest_of
from paceline.planning.ec2 import answers, requests
from paceline.planning.ec2.identity import client_token
from paceline.planning.ec2.plan import launch_counts
from paceline.planning.ec2.userdata import user_data


@dataclass
class Launching(Sitting):
    """Launches what is lacking; the tokens of what it asked for are kept."""

    _tokens: list[str] = field(default_factory=list)

    async def _hosts(self, group: Thing) -> list[str]:
        """Launch what is lacking; return the ids of all hosts that are to be met."""
        living = self.found.held.living
        there = [machine.id for machine in living[: self.wish.nodes]]
        if len(living) >= self.wish.nodes:
            return there
        made = await self._launch(group)
        return [*there, *(machine.id for machine in made if machine.id not in there)]

    async def _launch(self, group: Thing) -> tuple[Machine, ...]:
        """Launch in the first place that has room, all hosts in one request."""
        await self._require_settled(group)
        trouble: list[CloudError] = []
        full: set[str] = set()
        for attempt in self.plan.attempts:
            if attempt.instance_type in full:
                continue
            try:
                return await patiently(self.desk, partial(self._try, attempt, group))
            except (NoCapacity, QuotaExceeded) as error:
                trouble.append(error)
                if isinstance(error, QuotaExceeded):
                    full.add(attempt.instance_type)
                where = f"{attempt.instance_type} in {attempt.subnet.zone}"
                self.desk.watcher.step(f"{where}: {first_line(error)}")
        raise _nowhere(self.plan, trouble)

    async def _try(self, attempt: Attempt, group: Thing) -> tuple[Machine, ...]:
        counts = launch_counts(self.wish, len(self.found.held.living))
        document = self._document()
        zone = attempt.subnet.zone
        self.desk.watcher.step(f"launching {counts[1]} x {attempt.instance_type} in {zone}")
        for _ in range(2):
            entry = self._intent(attempt, group)
            request = requests.launch(
                self.wish,
                attempt,
                user=self.user,
                counts=counts,
                group_id=group.id,
                token=entry.token or "",
                user_data=document,
                expires_at=self.plan.expires_at,
            )
            self._tokens.append(entry.token or "")
            try:
                answer = await carry_out(self.desk, entry, request, self._as_launched)
                return answers.launched(answer)
            except TokenSpent:
                self.desk.ledger.write(closed(self.desk, entry, EntryState.VOID))
            except (NoCapacity, QuotaExceeded):
                self.desk.ledger.write(closed(self.desk, entry, EntryState.VOID))
                raise
        raise CloudError("AWS takes every launch for one that it has seen before")

    async def _require_settled(self, group: Thing) -> None:
        """Wait for the hosts of a launch that was broken off and is not repeated as it was."""
        again = [self._facts(attempt, group) for attempt in self.plan.attempts]
        tries = 0
        for entry in self.desk.ledger.entries(self.key):
            if not (entry.open and entry.is_launch) or entry.facts in again:
                continue
            while self.desk.clock.now() - entry.meant_at < SETTLE_S:
                await pause(self.desk.clock, tries)
                tries += 1
            held = await machines_of(self.desk, self.key)
            if any(machine.client_token == entry.token for machine in held.living):
                raise Conflict(
                    f"hosts of an interrupted launch of {self.key} have come up meanwhile",
                    hint="the same command again takes them over",
                )
            self.desk.ledger.write(closed(self.desk, entry, EntryState.VOID))

    def _document(self) -> Secret:
        """Return what the hosts are told at their first boot."""
        boot_key = self.desk.keyring.pair(self.key, BOOT_KEY)
        return user_data(boot_key, self.plan.expires_at, self.wish.idle_s)

    def _facts(self, attempt: Attempt, group: Thing) -> dict[str, object]:
        """Return what two launches have in common that are the same."""
        document = self._document()
        return {
            "type": attempt.instance_type,
            "subnet": attempt.subnet.id,
            "image": attempt.image.id,
            "counts": list(launch_counts(self.wish, len(self.found.held.living))),
            "group": group.id,
            "digest": digest_of({"user data": document.value, "wish": repr(self.wish)}),
        }

    def _intent(self, attempt: Attempt, group: Thing) -> Entry:
        """Return the intent to launch; one that is open for just this launch keeps its token.

        A process that was killed around the call has left it: with the same token, AWS answers
        with the hosts that it has launched already, if it has.
        """
        facts = self._facts(attempt, group)
        for entry in self.desk.ledger.entries(self.key):
            if entry.open and entry.is_launch and entry.facts == facts:
                return replace(entry, sitting=self.sitting)
        count = launch_counts(self.wish, len(self.found.held.living))[1]
        entry = self._entry("instance", f"{count} hosts")
        nonce = self.desk.nonce()
        token = client_token(self.key, nonce, attempt.instance_type, attempt.subnet.id)
        return replace(entry, token=token, facts=facts)

    def _as_launched(self, entry: Entry, answer: Answer) -> list[Entry]:
        made = closed(self.desk, entry, EntryState.MADE)
        return [made, *(self._host_entry(machine) for machine in answers.launched(answer))]


def _nowhere(plan: CloudPlan, trouble: Sequence[CloudError]) -> CloudError:
    lines = "\n".join(
        f"  {attempt.instance_type} in {attempt.subnet.zone}: {first_line(error)}"
        for attempt, error in zip(plan.attempts, trouble, strict=False)
    )
    last = trouble[-1]
    return type(last)(
        f"there was no place for {plan.nodes - plan.there} hosts:\n{lines}",
        hint=last.hint,
        code=last.code,
    )
