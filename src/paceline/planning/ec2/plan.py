"""What `up` would do with a wish: pure, from what the region has for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from paceline.model.command import Secret
from paceline.model.ec2 import (
    Attempt,
    CloudPlan,
    HostPrice,
    ImageFacts,
    Machine,
    PlannedThing,
    Request,
    Subnet,
    Survey,
    Wish,
)
from paceline.planning.ec2 import requests, rules
from paceline.planning.ec2.identity import resource_name
from paceline.planning.ec2.quotas import exceeded, quota_of
from paceline.planning.prices import packaged_prices

SPREAD_PER_ZONE = 7
# Where a plan stands for something that exists only after a request before it.
_TOKEN = "(chosen before the call and written down)"  # noqa: S105 - words, not a token
_NO_IMAGE = ImageFacts("", "", "", "/dev/sda1", 0, "")


def plan_cloud(wish: Wish, survey: Survey, expires_at: float) -> CloudPlan:
    """Return resources, requests, price and doubts; with refusals, it cannot be done."""
    attempts = attempts_for(wish, survey)
    living = survey.held.living
    kind = (
        living[0].instance_type
        if living
        else (attempts[0].instance_type if attempts else wish.types[0])
    )
    image = attempts[0].image if attempts else next(iter(survey.images.values()), _NO_IMAGE)
    return CloudPlan(
        key=wish.key,
        nodes=wish.nodes,
        there=len(living),
        instance_type=kind,
        image=image,
        expires_at=expires_at,
        ttl_s=wish.ttl_s,
        price=price_of(wish, survey, kind),
        attempts=attempts,
        things=tuple(planned_things(wish, kind, image)),
        looks=(),
        requests=tuple(planned_requests(wish, survey, attempts, expires_at)),
        zones={name: survey.zones.get(name, ()) for name in wish.types},
        refusals=tuple(refusals(wish, survey, attempts)),
        notes=tuple(_notes(wish, survey, kind)),
    )


def attempts_for(wish: Wish, survey: Survey) -> tuple[Attempt, ...]:
    """Return where to launch, in order: each zone of the first type, then those of the next.

    A cluster that is there grows where it stands: its hosts are alike and close together.
    """
    living = survey.held.living
    found = []
    for name in [living[0].instance_type] if living else wish.types:
        image = image_for(name, survey)
        if image is None or _unplaceable(wish, survey, name):
            continue
        offered = survey.zones.get(name, ())
        for subnet in _in_order(wish, survey.subnets):
            stands = not living or subnet.zone == living[0].zone
            if subnet.zone in offered and stands:
                found.append(Attempt(name, subnet, image))
    return tuple(found)


def _in_order(wish: Wish, subnets: Sequence[Subnet]) -> list[Subnet]:
    if not wish.zones:
        return list(subnets)
    return [subnet for zone in wish.zones for subnet in subnets if subnet.zone == zone]


def image_for(instance_type: str, survey: Survey) -> ImageFacts | None:
    """Return the image for the architecture of a type."""
    facts = survey.types.get(instance_type)
    if facts is None:
        return None
    return next(
        (survey.images[arch] for arch in facts.architectures if arch in survey.images), None
    )


def _unplaceable(wish: Wish, survey: Survey, instance_type: str) -> bool:
    facts = survey.types.get(instance_type)
    placed = wish.placement != "none"
    return placed and facts is not None and wish.placement not in facts.placement_strategies


def price_of(wish: Wish, survey: Survey, instance_type: str) -> HostPrice:
    """Return what a host costs: as AWS says today, else as the packaged list says, with its day."""
    live = survey.prices.get(instance_type)
    if live is not None:
        return live
    listed = packaged_prices()
    price = listed.find(instance_type, wish.key.region)
    spot = wish.market == "spot"
    hourly = None if price is None else price.usd_per_hour("spot" if spot else "on-demand")
    return HostPrice(hourly, f"{listed.label}{', mean of the spot market' if spot else ''}")


def planned_things(wish: Wish, kind: str, image: ImageFacts) -> Iterator[PlannedThing]:
    """Return every resource by name."""
    name = resource_name(wish.key)
    size = requests.disk_size_gib(wish, image)
    disk = f"{size} GiB {wish.disk.type}, {'encrypted' if wish.disk.encrypted else 'NOT encrypted'}"
    yield PlannedThing("key pair", name, "your key for these hosts, made here and kept here")
    yield PlannedThing("security group", name, "who may reach the hosts")
    if wish.placement != "none":
        yield PlannedThing("placement group", name, f"strategy {wish.placement}")
    for number in range(wish.nodes):
        yield PlannedThing("instance", host_name(number), f"{kind}, {wish.market}, {image.name}")
    for number in range(wish.nodes):
        yield PlannedThing("volume", f"the disk of {host_name(number)}", disk)


def host_name(number: int) -> str:
    """Return what the n-th host of a cluster is called, from 0."""
    return f"node{number}"


def planned_requests(
    wish: Wish, survey: Survey, attempts: Sequence[Attempt], expires_at: float
) -> Iterator[Request]:
    """Return every request that changes something, in order; what is there already is left out."""
    held, name = survey.held, resource_name(wish.key)
    if not held.of("key pair"):
        yield requests.import_key(wish.key, "(the public half of the key)", expires_at)
    group = next(iter(held.of("security group")), None)
    group_id = group.id if group is not None else f"(the id of {name})"
    if group is None:
        vpc = attempts[0].subnet.vpc_id if attempts else "(the default network)"
        yield requests.create_group(wish.key, vpc, expires_at)
    present = rules.present_rules(group.facts.get("IpPermissions", ())) if group else ()
    wanted = rules.wanted_rules(wish, survey.own_address, group_id)
    missing = [rule for rule in wanted if rule not in present]
    surplus = [rule for rule in present if rule not in wanted]
    if missing:
        yield requests.open_group(group_id, missing)
    if surplus:
        yield requests.close_group(group_id, surplus)
    if wish.placement != "none" and not held.of("placement group"):
        yield requests.create_placement(wish.key, wish.placement, expires_at)
    lacking = wish.nodes - len(held.living)
    if lacking > 0 and attempts:
        yield requests.launch(
            wish,
            attempts[0],
            user=wish.user or attempts[0].image.user,
            counts=launch_counts(wish, len(held.living)),
            group_id=group_id,
            token=_TOKEN,
            user_data=Secret("host key and expiry"),
            expires_at=expires_at,
        )
    if lacking < 0:
        yield requests.terminate([machine.id for machine in surplus_machines(wish, held.living)])


def launch_counts(wish: Wish, there: int) -> tuple[int, int]:
    """Return how many hosts a launch asks for, at least and at most."""
    most = wish.nodes - there
    return (max(1, wish.min_nodes - there), most)


def surplus_machines(wish: Wish, living: Sequence[Machine]) -> Sequence[Machine]:
    """Return the hosts that are too many: the last ones, so that the others keep their names."""
    return living[wish.nodes :]


def refusals(wish: Wish, survey: Survey, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Return why it cannot be done, all reasons at once."""
    for name in wish.types:
        yield from _about_type(wish, survey, name)
    if not survey.images:
        yield f"no image {wish.image} was found in {wish.key.region}"
    elif wish.user is None and not all(image.user for image in survey.images.values()):
        yield f"nobody knows who logs in to {wish.image}: say so with `cluster: {{user: …}}`"
    if wish.placement == "spread" and wish.nodes > SPREAD_PER_ZONE:
        yield (
            f"a spread placement group holds at most {SPREAD_PER_ZONE} hosts in a zone, and "
            f"{wish.nodes} are asked for"
        )
    if "me" in wish.ssh_from and survey.own_address is None:
        yield (
            "our own address could not be found out, so that SSH cannot be opened to it alone: "
            "say where you come from with `cluster: {ssh_from: [203.0.113.7/32]}`"
        )
    yield from _about_disk(wish, survey)
    yield from _about_network(wish, survey, attempts)
    yield from _about_quota(wish, survey, attempts)
    yield from _about_hosts(wish, survey)


def _about_type(wish: Wish, survey: Survey, name: str) -> Iterator[str]:
    facts = survey.types.get(name)
    if facts is None:
        known = [price.instance_type for price in packaged_prices().in_region()]
        near = get_close_matches(name, known, n=1)
        guess = f"; did you mean {near[0]}?" if near else ""
        yield f"EC2 has no instance type {name} in {wish.key.region}{guess}"
        return
    if _unplaceable(wish, survey, name):
        can = ", ".join(facts.placement_strategies) or "none at all"
        yield (
            f"{name} cannot be in a placement group of the strategy {wish.placement} "
            f"(it can be in: {can})"
        )
    if survey.images and image_for(name, survey) is None:
        has = ", ".join(survey.images)
        yield f"{name} is {'/'.join(facts.architectures)}, and {wish.image} is for {has}"


def _about_disk(wish: Wish, survey: Survey) -> Iterator[str]:
    least = max((image.size_gib for image in survey.images.values()), default=0)
    if wish.disk.size_gib is not None and wish.disk.size_gib < least:
        yield (
            f"the image needs a disk of at least {least} GiB, and cluster.disk.size_gib is "
            f"{wish.disk.size_gib}"
        )


def _about_network(wish: Wish, survey: Survey, attempts: Sequence[Attempt]) -> Iterator[str]:
    if not survey.subnets:
        missing = "has no default network" if wish.subnet is None else f"has no {wish.subnet}"
        yield (
            f"the account {missing} in {wish.key.region}: name a subnet with `cluster: {{subnet: "
            "subnet-…}`, or make one with `aws ec2 create-default-vpc`"
        )
    elif not attempts and survey.images and all(name in survey.types for name in wish.types):
        for name in wish.types:
            where = ", ".join(survey.zones.get(name, ())) or "no zone"
            if not _unplaceable(wish, survey, name) and image_for(name, survey) is not None:
                yield f"{name} is offered in {where}, which is nowhere that the spec allows"


def _about_quota(wish: Wish, survey: Survey, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Refuse only if no type of the list fits: the others are passed over."""
    more = wish.min_nodes - len(survey.held.living)
    names = list(dict.fromkeys(attempt.instance_type for attempt in attempts))
    reasons = []
    for name in names:
        quota = quota_of(name, wish.market)
        limit, used = survey.quotas.get(quota.code), survey.vcpus_in_use.get(quota.code)
        reason = exceeded(quota, limit, used, survey.types[name].vcpus, max(0, more))
        if reason is not None:
            reasons.append(f"{reason}; ask AWS for more, or take fewer or smaller hosts")
    if reasons and len(reasons) == len(names):
        yield from dict.fromkeys(reasons)


def _about_hosts(wish: Wish, survey: Survey) -> Iterator[str]:
    living = survey.held.living
    if any(machine.state in {"stopping", "stopped"} for machine in living):
        yield (
            f"hosts of the cluster are switched off: `paceline start {wish.key.name}` switches "
            f"them on, `paceline down {wish.key.name}` ends them"
        )
    kinds = sorted({machine.instance_type for machine in living})
    if living and not set(kinds) & set(wish.types):
        yield (
            f"the cluster is up with {len(living)} hosts of {', '.join(kinds)}, and "
            f"{', '.join(wish.types)} is asked for: `paceline down {wish.key.name}` first"
        )


def _notes(wish: Wish, survey: Survey, kind: str) -> Iterator[str]:
    if any(network in rules.ANYWHERE for network in wish.ssh_from):
        yield "SSH is open to the whole internet, because the spec says so"
    shut_out = rules.shut_out(wish, survey.own_address)
    if shut_out is not None:
        yield shut_out
    if not wish.disk.encrypted:
        yield "the disks are not encrypted, because the spec says so"
    if survey.quotas.get(quota_of(kind, wish.market).code) is None:
        yield "the account may not ask for its quotas, so that they were not looked at"
    yield (
        "not in the price: disks, traffic to the internet, and public addresses, which AWS bills "
        "apart"
    )
