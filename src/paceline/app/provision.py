"""Provision: bring a cluster up, or to its size; whatever goes wrong, what was made goes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from paceline.app.fleet import cluster_noun
from paceline.app.meeting import BOOT_KEY, USER_KEY, Meeting, Patience
from paceline.app.renting import (
    SETTLE_S,
    Desk,
    carry_out,
    closed,
    first_line,
    patiently,
    pause,
    same_account,
    unbroken,
)
from paceline.app.survey import machines_of, survey
from paceline.app.teardown import remove_all
from paceline.errors import (
    AlreadyThere,
    CloudError,
    Conflict,
    EnvironmentFault,
    NoCapacity,
    NotThere,
    PacelineError,
    PlanError,
    QuotaExceeded,
    TokenSpent,
)
from paceline.model.command import Secret
from paceline.model.ec2 import (
    Answer,
    Attempt,
    CloudPlan,
    ClusterKey,
    Kind,
    Machine,
    Request,
    Survey,
    Thing,
    Wish,
)
from paceline.model.host import Cluster
from paceline.model.ledger import ClusterEntry, Entry, EntryState
from paceline.model.plan import digest_of
from paceline.planning.ec2 import answers, questions, requests, rules
from paceline.planning.ec2.hostkeys import HOST_KEY
from paceline.planning.ec2.identity import (
    EXPIRY_TAG,
    belongs,
    client_token,
    expiry_of,
    expiry_word,
)
from paceline.planning.ec2.plan import launch_counts, plan_cloud, surplus_machines
from paceline.planning.ec2.userdata import user_data


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
        work = _Provision(desk, wish, found, plan, known, patience or Patience(), host_key)
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
class _Provision:
    """One `up`, from the first request to the last host that answers."""

    desk: Desk
    wish: Wish
    found: Survey
    plan: CloudPlan
    known: ClusterEntry | None
    patience: Patience
    host_key: str
    sitting: str = field(init=False)
    _tokens: list[str] = field(default_factory=list)
    _began: bool = False

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

    # --- what instances need ----------------------------------------------------------------------

    async def _key_pair(self) -> Thing:
        ours = self.desk.keyring.pair(self.key, USER_KEY).public
        held = next(iter(self.found.held.of("key pair")), None)
        if held is not None and not _same_key(held, ours):
            if self.found.held.living:
                raise EnvironmentFault(
                    f"the cluster {self.key} is up, and its private key is not on this machine",
                    hint=f"`paceline down {self.key.name}` ends it; then `up` makes a new one",
                )
            await self.desk.cloud.call(requests.remove(held))
            held = None
        request = requests.import_key(self.key, ours, self.plan.expires_at)
        return held or await self._made(request)

    async def _group(self) -> Thing:
        vpc = self.plan.attempts[0].subnet.vpc_id if self.plan.attempts else ""
        held = await self._held("security group", "VpcId", vpc)
        request = requests.create_group(self.key, vpc, self.plan.expires_at)
        return held or await self._made(request)

    async def _placement(self) -> Thing:
        strategy = self.wish.placement
        held = await self._held("placement group", "Strategy", strategy)
        request = requests.create_placement(self.key, strategy, self.plan.expires_at)
        return held or await self._made(request)

    async def _held(self, kind: Kind, fact: str, wanted: str) -> Thing | None:
        """Return what is there from an earlier time; what no longer fits is removed first."""
        held = next(iter(self.found.held.of(kind)), None)
        if held is None or self.found.held.living or held.facts.get(fact) in {None, wanted}:
            return held
        await self.desk.cloud.call(requests.remove(held))
        return None

    async def _rules(self, group: Thing) -> None:
        """Open what is wanted, and close what is open beyond it, as for yesterday's address."""
        present = rules.present_rules(group.facts.get("IpPermissions", ()))
        wanted = rules.wanted_rules(self.wish, self.found.own_address, group.id)
        missing = [rule for rule in wanted if rule not in present]
        surplus = [rule for rule in present if rule not in wanted]
        if missing:
            await patiently(self.desk, lambda: self._opened(group.id, missing))
        if surplus:
            await self.desk.cloud.call(requests.close_group(group.id, surplus))

    async def _opened(self, group_id: str, missing: Sequence[rules.Rule]) -> None:
        try:
            await self.desk.cloud.call(requests.open_group(group_id, missing))
        except AlreadyThere:
            # One of them is there, and AWS has then opened none: each for itself.
            for rule in missing:
                await self._opened_one(group_id, rule)

    async def _opened_one(self, group_id: str, rule: rules.Rule) -> None:
        try:
            await self.desk.cloud.call(requests.open_group(group_id, [rule]))
        except AlreadyThere:
            return

    async def _made(self, request: Request) -> Thing:
        """Make something that has a name of ours, or take over what bears it and is ours."""
        kind = request.makes or "instance"
        entry = self._entry(kind, request.subject)
        self.desk.watcher.step(f"making the {kind} {request.subject}")
        try:
            answer = await carry_out(self.desk, entry, request, self._as_made(request))
            return Thing(kind, answers.made_id(request, answer), request.subject)
        except AlreadyThere as error:
            return await self._adopted(entry, request, error)

    def _as_made(self, request: Request) -> Callable[[Entry, Answer], list[Entry]]:
        def settle(entry: Entry, answer: Answer) -> list[Entry]:
            made = answers.made_id(request, answer)
            return [closed(self.desk, entry, EntryState.MADE, made)]

        return settle

    async def _adopted(self, entry: Entry, request: Request, error: AlreadyThere) -> Thing:
        """Take over what an `up` before has made and nobody has written down."""
        kind, name = entry.kind, request.subject

        async def look() -> Thing:
            answer = await self.desk.cloud.call(questions.by_id(kind, [name]))
            vpc = request.parameters.get("VpcId")
            found = [
                thing
                for thing in answers.things(kind, answer)
                if vpc is None or thing.facts.get("VpcId") in {None, vpc}
            ]
            if not found:
                raise NotThere(f"the {kind} {name} cannot be seen yet")
            return found[0]

        thing = await patiently(self.desk, look)
        if not belongs(thing.tags, self.key):
            self.desk.ledger.write(closed(self.desk, entry, EntryState.VOID))
            raise Conflict(
                f"there is a {kind} {name} already, and it does not bear our tags",
                hint="give the spec another `name`, or remove it yourself if nobody needs it",
            ) from error
        self.desk.ledger.write(closed(self.desk, entry, EntryState.MADE, thing.id))
        return thing

    async def _renew_expiry(self) -> None:
        """Give what is left of an earlier time the expiry of the hosts that it is now for."""
        word = expiry_word(self.plan.expires_at)
        ids = [
            thing.id
            for thing in self.found.held.things
            if thing.tags.get(EXPIRY_TAG) != word and thing.kind in _OUTLIVING
        ]
        if ids:
            await self.desk.cloud.call(requests.tag(ids, {EXPIRY_TAG: word}))

    # --- the hosts --------------------------------------------------------------------------------

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


_OUTLIVING = ("key pair", "security group", "placement group")


def _same_key(held: Thing, ours: str) -> bool:
    told = str(held.facts.get("PublicKey") or "").split()
    return len(told) < 2 or told[1] == ours.split()[1]  # noqa: PLR2004 - type and key


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
