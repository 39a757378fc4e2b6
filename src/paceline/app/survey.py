"""What the region has for a wish: asked all at once, nothing changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from datetime import datetime, timezone
from typing import TypeVar

from paceline.app.renting import Desk, who_pays
from paceline.errors import CloudError, NotPermitted, PacelineError, TransportError
from paceline.model.ec2 import (
    ClusterKey,
    Holdings,
    HostPrice,
    ImageFacts,
    Kind,
    Machine,
    Request,
    Survey,
    Thing,
    TypeFacts,
    Wish,
)
from paceline.planning.ec2 import answers, questions, rules
from paceline.planning.ec2.identity import belongs
from paceline.planning.ec2.images import aliases
from paceline.planning.ec2.quotas import quota_of

T = TypeVar("T")
Recorded = Mapping[Kind, Iterable[str]]


async def survey(desk: Desk, wish: Wish) -> Survey:
    """Ask for everything that planning needs to know."""
    call = desk.cloud.call
    (kinds, zones, subnets, running), account, held, address = await asyncio.gather(
        _in_order(
            call(request)
            for request in (
                questions.types(wish.types),
                questions.zones(wish.types),
                questions.subnets(wish.subnet),
                questions.in_use(),
            )
        ),
        who_pays(desk),
        holdings(desk, wish.key),
        _own_address(desk, wish),
    )
    types = answers.types(kinds)
    offered = answers.zones(zones)
    codes = {quota_of(name, wish.market).code: name for name in types}
    images, prices, quotas, used = await asyncio.gather(
        _images(desk, wish, types),
        _prices(desk, wish, types, offered),
        _in_order(_or_unknown(_quota(desk, code)) for code in codes),
        _vcpus_in_use(desk, answers.machines(running), types),
    )
    return Survey(
        types=types,
        zones=offered,
        subnets=answers.subnets(subnets),
        images=images,
        prices=prices,
        quotas=dict(zip(codes, quotas, strict=True)),
        vcpus_in_use=used,
        account=account,
        own_address=address,
        held=held,
    )


async def _in_order(works: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*works))


async def _or_unknown(work: Awaitable[T | None]) -> T | None:
    """Return None for what the account may not ask, or what is not answered there."""
    try:
        return await work
    except (CloudError, TransportError):
        return None


async def _own_address(desk: Desk, wish: Wish) -> str | None:
    """Ask for our address also where the spec names networks: it may be in none of them."""
    return None if set(rules.ANYWHERE) & set(wish.ssh_from) else await desk.find_address()


# --- what the cluster holds -----------------------------------------------------------------------


async def holdings(desk: Desk, key: ClusterKey, recorded: Recorded | None = None) -> Holdings:
    """Return all that bears a cluster's tags, and what was recorded for it even without them."""
    found = await _ask_holdings(desk, questions.holdings(questions.of_cluster(key)))
    machines = {one.id: one for one in found.machines if belongs(one.tags, key)}
    things = {(one.kind, one.id): one for one in found.things if belongs(one.tags, key)}
    missing = {
        kind: sorted(set(ids) - {*machines, *(one for _, one in things)})
        for kind, ids in (recorded or {}).items()
    }
    asked = {kind: questions.by_id(kind, ids) for kind, ids in missing.items() if ids}
    if asked:
        more = await _ask_holdings(desk, asked)
        machines |= {one.id: one for one in more.machines if not one.ended}
        things |= {(one.kind, one.id): one for one in more.things}
    return Holdings(tuple(machines.values()), tuple(things.values()))


async def machines_of(desk: Desk, key: ClusterKey) -> Holdings:
    """Return the instances of a cluster and nothing else; some may have just ended."""
    asked = questions.machines(questions.of_cluster(key))
    machines = answers.machines(await desk.cloud.call(asked))
    return Holdings(tuple(one for one in machines if belongs(one.tags, key)))


async def owned(desk: Desk, owner: str) -> Holdings:
    """Return all that bears our tags and those of an owner, whatever cluster it belongs to."""
    return await _ask_holdings(desk, questions.holdings(questions.of_owner(owner)))


async def _ask_holdings(desk: Desk, asked: Mapping[Kind, Request]) -> Holdings:
    found = await _in_order(desk.cloud.call(request) for request in asked.values())
    machines: list[Machine] = []
    things: list[Thing] = []
    for kind, answer in zip(asked, found, strict=True):
        if kind == "instance":
            machines += answers.machines(answer)
        else:
            things += answers.things(kind, answer)
    return Holdings(tuple(machines), tuple(things))


# --- images ---------------------------------------------------------------------------------------


async def _images(
    desk: Desk, wish: Wish, types: Mapping[str, TypeFacts]
) -> Mapping[str, ImageFacts]:
    """Return the image for each architecture that the types have."""
    if wish.image.startswith("ami-"):
        found = answers.images(await desk.cloud.call(questions.images([wish.image])), wish.user)
        return {image.architecture: image for image in found[:1]}
    known_types = [facts.architectures[-1] for facts in types.values()]
    wanted = list(dict.fromkeys(known_types or ["x86_64"]))
    if wish.image in aliases("x86_64"):
        known = await _in_order(_by_alias(desk, wish, arch) for arch in wanted)
        return {image.architecture: image for image in known if image is not None}
    return await _baked(desk, wish)


async def _by_alias(desk: Desk, wish: Wish, architecture: str) -> ImageFacts | None:
    alias = aliases(architecture)[wish.image]
    if architecture not in alias.architectures:
        return None
    user = wish.user or alias.user
    try:
        answer = await desk.cloud.call(questions.parameters(alias.parameters))
        named = answers.parameters(answer)
        ids = [named[name] for name in alias.parameters if name in named]
    except (NotPermitted, TransportError):
        ids = []  # an account with rights for EC2 alone: the newest by name is the same image
    if ids:
        found = answers.images(await desk.cloud.call(questions.images(ids[:1])), user)
    else:
        pattern = questions.images_named(alias.owner, alias.pattern)
        found = answers.images(await desk.cloud.call(pattern), user)
    return next((image for image in found if image.architecture == architecture), None)


async def _baked(desk: Desk, wish: Wish) -> Mapping[str, ImageFacts]:
    found = answers.images(await desk.cloud.call(questions.images_baked(wish.image)), wish.user)
    if not found:
        named = questions.images_named("self", wish.image)
        found = answers.images(await desk.cloud.call(named), wish.user)
    newest: dict[str, ImageFacts] = {}
    for image in found:
        newest.setdefault(image.architecture, image)
    return newest


# --- prices and quotas ----------------------------------------------------------------------------


async def _prices(
    desk: Desk, wish: Wish, types: Mapping[str, TypeFacts], zones: Mapping[str, tuple[str, ...]]
) -> Mapping[str, HostPrice]:
    found = await _in_order(
        _or_unknown(_price(desk, wish, name, wish.zones or zones.get(name, ()))) for name in types
    )
    return {name: one for name, one in zip(types, found, strict=True) if one is not None}


async def _price(desk: Desk, wish: Wish, name: str, zones: tuple[str, ...]) -> HostPrice | None:
    now = desk.clock.now()
    today = datetime.fromtimestamp(now, tz=timezone.utc).date().isoformat()
    if wish.market == "spot":
        answer = await desk.cloud.call(questions.spot_price(name, now))
        return answers.spot_price(answer, zones, today)
    return answers.price(await desk.cloud.call(questions.price(name, wish.key.region)), today)


async def _quota(desk: Desk, code: str) -> float | None:
    return answers.quota(await desk.cloud.call(questions.quota(code)))


async def _vcpus_in_use(
    desk: Desk, running: Iterable[Machine], types: Mapping[str, TypeFacts]
) -> Mapping[str, int | None]:
    """Return how many vCPUs of each quota are in use by whatever runs in the account."""
    machines = list(running)
    unknown = sorted({one.instance_type for one in machines} - set(types))
    known = dict(types)
    if unknown:
        try:
            known |= answers.types(await desk.cloud.call(questions.types(unknown)))
        except PacelineError:
            return {}
    used: dict[str, int | None] = {}
    for one in machines:
        market = "spot" if one.spot_request_id else "on-demand"
        code = quota_of(one.instance_type, market).code
        facts = known.get(one.instance_type)
        used[code] = (used.get(code) or 0) + (facts.vcpus if facts is not None else 0)
    return used
