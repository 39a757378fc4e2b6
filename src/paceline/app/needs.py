"""What hosts need before they are launched: a key, a group with its rules, a placement group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline.app.meeting import USER_KEY
from paceline.app.renting import carry_out, closed, patiently
from paceline.app.sitting import Sitting
from paceline.errors import AlreadyThere, Conflict, EnvironmentFault, NotThere
from paceline.model.ec2 import Answer, Kind, Request, Thing
from paceline.model.ledger import Entry, EntryState
from paceline.planning.ec2 import answers, questions, requests, rules
from paceline.planning.ec2.identity import EXPIRY_TAG, belongs, expiry_word

_OUTLIVING = ("key pair", "security group", "placement group")


class Needs(Sitting):
    """Makes what hosts need, or takes over what is there of it."""

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


def _same_key(held: Thing, ours: str) -> bool:
    told = str(held.facts.get("PublicKey") or "").split()
    return len(told) < 2 or told[1] == ours.split()[1]  # noqa: PLR2004 - type and key
