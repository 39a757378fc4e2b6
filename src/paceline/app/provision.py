"""Provision: bring a cluster up, or to its size; whatever goes wrong, what was made goes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline.app.fleet import cluster_noun
from paceline.app.launching import Launching
from paceline.app.meeting import Meeting, Patience
from paceline.app.needs import Needs
from paceline.app.renting import (
    Desk,
    closed,
    first_line,
    same_account,
    unbroken,
)
from paceline.app.survey import machines_of, survey
from paceline.app.teardown import remove_all
from paceline.errors import (
    PacelineError,
    PlanError,
)
from paceline.model.ec2 import (
    CloudPlan,
    Machine,
    Survey,
    Wish,
)
from paceline.model.host import Cluster
from paceline.model.ledger import ClusterEntry, EntryState
from paceline.planning.ec2 import requests, rules
from paceline.planning.ec2.hostkeys import HOST_KEY
from paceline.planning.ec2.identity import (
    expiry_of,
)
from paceline.planning.ec2.plan import plan_cloud, surplus_machines


async def plan_up(desk: Desk, wish: Wish) -> tuple[CloudPlan, int]:
    """Return what `up` would do, and the vCPUs of a host; PlanError if it cannot be done."""
    found = await survey(desk, wish)
    known = same_account(desk, wish.key, found.account)
    plan = plan_cloud(wish, found, _expiry(desk, wish, found, known))
    if plan.refusals:
        raise _refused(plan)
    return plan, found.types[plan.instance_type].vcpus


async def bring_up(
    desk: Desk, wish: Wish, patience: Patience | None = None, host_key: str = HOST_KEY
) -> Cluster:
    """Bring a cluster to what is wished; twice is the same as once.

    If anything fails, or we are cancelled, what this has made is removed again. `host_key` is
    where the hosts keep theirs.
    """
    with desk.ledger.lock(wish.key):
        found = await survey(desk, wish)
        known = same_account(desk, wish.key, found.account)
        expires_at = _expiry(desk, wish, found, known)
        plan = plan_cloud(wish, found, expires_at)
        if plan.refusals:
            raise _refused(plan)
        work = _Provision(
            desk, wish, found, plan, known, patience=patience or Patience(), host_key=host_key
        )
        return await work.run()


def _expiry(desk: Desk, wish: Wish, found: Survey, known: ClusterEntry | None) -> float:
    """Return when the cluster ends: a new one after its time to live, one that is up as it was."""
    living = found.held.living
    broken_off = any(entry.open and entry.is_launch for entry in desk.ledger.entries(wish.key))
    if broken_off and not living and known is not None and known.expires_at > desk.clock.now():
        return known.expires_at  # that launch is repeated as it was, token and all
    if living:
        told = known.expires_at if known is not None else expiry_of(living[0].tags)
        if told is not None:
            return told
    return float(int(desk.clock.now() + wish.ttl_s))


def _refused(plan: CloudPlan) -> PlanError:
    if len(plan.refusals) == 1:
        return PlanError(plan.refusals[0])
    lines = "\n".join(f"  {reason}" for reason in plan.refusals)
    return PlanError(f"this cannot be brought up:\n{lines}")


@dataclass
class _Provision(Launching, Needs):
    """One `up`, from the first request to the last host that answers."""

    patience: Patience = field(default_factory=Patience)
    host_key: str = HOST_KEY
    _began: bool = False

    async def run(self) -> Cluster:
        """Do it; and undo it if it fails."""
        try:
            return await self._run()
        except BaseException:
            if self._began:
                await unbroken(self._roll_back())
            raise

    async def _run(self) -> Cluster:
        self._write_cluster()
        await self._key_pair()
        group = await self._group()
        await self._rules(group)
        if (shut_out := rules.shut_out(self.wish, self.found.own_address)) is not None:
            self.desk.watcher.step(f"mind: {shut_out}")
        if self.wish.placement != "none":
            await self._placement()
        await self._renew_expiry()
        ids = await self._hosts(group)
        meeting = Meeting(self.desk, self.key, self.user, self.patience, self.host_key)
        machines = await meeting.hold(ids)
        machines = await self._shrink(machines)
        return self._settled(machines)

    def _write_cluster(self) -> None:
        self._began = True
        now = self.desk.clock.now()
        self.desk.ledger.write_cluster(
            ClusterEntry(
                key=self.key,
                created_at=self.known.created_at if self.known else now,
                expires_at=self.plan.expires_at,
                account=self.found.account,
                user=self.user,
                instance_type=self.plan.instance_type,
                market=self.wish.market,
                usd_per_host_hour=self.plan.price.usd_per_hour,
                price_source=self.plan.price.source,
                facts={} if self.known is None else self.known.facts,
            )
        )

    # --- too many hosts -------------------------------------------------------------------------

    async def _shrink(self, machines: Sequence[Machine]) -> tuple[Machine, ...]:
        surplus = surplus_machines(self.wish, machines)
        if surplus:
            self.desk.watcher.step(f"ending {len(surplus)} hosts that are too many")
            await self._end(surplus)
        return tuple(machines[: self.wish.nodes])

    async def _end(self, machines: Sequence[Machine]) -> None:
        ids = [machine.id for machine in machines]
        for start in range(0, len(ids), requests.MOST_IDS):
            part = ids[start : start + requests.MOST_IDS]
            await self.desk.cloud.call(requests.terminate(part))
        gone = {f"{self.key.region}/{one}" for one in ids}
        self.desk.ledger.write(
            *(
                closed(self.desk, entry, EntryState.GONE)
                for entry in self.desk.ledger.entries(self.key)
                if entry.id in gone
            )
        )

    def _settled(self, machines: Sequence[Machine]) -> Cluster:
        known = {entry.id for entry in self.desk.ledger.entries(self.key)}
        hosts = [self._host_entry(machine) for machine in machines]
        self.desk.ledger.write(*(entry for entry in hosts if entry.id not in known))
        return cluster_noun(self.desk, self.key, machines, self.user)

    # --- if it fails ------------------------------------------------------------------------------

    async def _roll_back(self) -> None:
        """Remove what this `up` has made; the first error counts, whatever happens here."""
        self.desk.watcher.step("removing again what was made")
        try:
            if not self.found.held.living:
                await remove_all(self.desk, self.key)
                return
            ours = [
                machine
                for machine in (await machines_of(self.desk, self.key)).living
                if machine.client_token in self._tokens
            ]
            if ours:
                await self._end(ours)
        except PacelineError as trouble:
            self.desk.watcher.step(
                f"not everything could be removed ({first_line(trouble)}): "
                f"`paceline down {self.key.name}` goes on with it"
            )
