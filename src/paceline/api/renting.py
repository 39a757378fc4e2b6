"""Rented clusters: up, down, status, the list of them, and what nobody minds any more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paceline.api.completing import OnInterrupt, complete
from paceline.api.desks import key_of, open_desk, open_ledger, owner, region_of, wish_for
from paceline.api.wiring import SpecLike, SystemClock, load
from paceline.app import fleet
from paceline.app.pausing import start_again, switch_off
from paceline.app.provision import bring_up, plan_up
from paceline.app.teardown import Removed, take_down
from paceline.errors import Interrupted, NotFound, UsageError
from paceline.model.ec2 import CloudPlan, ClusterKey
from paceline.model.host import Cluster, HostFacts
from paceline.model.plan import PlanReport
from paceline.model.rented import ClusterStatus, Stray
from paceline.model.spec import Spec
from paceline.planning.ec2.plan import host_name
from paceline.planning.engine_setup import engine_note
from paceline.planning.study import plan_study
from paceline.ports import Provider, RentalObserver


def up(
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    watcher: RentalObserver | None = None,
    on_interrupt: OnInterrupt | None = None,
) -> Cluster:
    """Bring the cluster of a spec up, or to its size; twice is the same as once."""
    wish = wish_for(_rented(load(spec, overrides)))
    desk = open_desk(wish.key.region, watcher)

    def interrupted() -> Interrupted:
        there = desk.ledger.cluster(wish.key)
        if there is None:
            return Interrupted("interrupted; what had been made has been removed again")
        return Interrupted(
            f"interrupted; the cluster {wish.key.name} is as it was before",
            hint=f"`paceline status {wish.key.name}` shows it, `paceline down` ends it",
        )

    return complete(bring_up(desk, wish), interrupted=interrupted, on_interrupt=on_interrupt)


def plan_rented(spec: Spec) -> PlanReport:
    """Return what a spec would rent, and the study that it would take there; nothing is made."""
    wish = wish_for(_rented(spec))
    cloud, vcpus = complete(plan_up(open_desk(wish.key.region), wish))
    facts = [HostFacts(hostname=host_name(number), cores=vcpus) for number in range(wish.nodes)]
    note = (
        f"processes per host were held against the {vcpus} vCPUs of {cloud.instance_type}; the "
        "command lines are known when the hosts are up"
    )
    notes = (note, *_engine_notes(spec), *_study_price(cloud, spec.limits.budget_usd))
    return PlanReport(study=plan_study(spec, facts), runs=(), notes=notes, cloud=cloud)


def _engine_notes(spec: Spec) -> tuple[str, ...]:
    note = engine_note(spec)
    return () if note is None else (note,)


def _study_price(cloud: CloudPlan, budget_usd: float | None) -> tuple[str, ...]:
    """Say what the study costs at most: nobody knows how long it takes before it was begun."""
    limits = [usd for usd in (cloud.most_usd, budget_usd) if usd is not None]
    if cloud.usd_per_hour is None or not limits:
        return ()
    what = "limits.budget_usd" if min(limits) == budget_usd else "the hosts' time to live"
    text = (
        f"the study costs {cloud.usd_per_hour:.2f} USD for each hour that it takes, and at most "
        f"{min(limits):.2f} USD: {what} ends it"
    )
    return (text,)


def down(
    cluster: str | Path | None = None,
    *,
    everything: bool = False,
    region: str | None = None,
    watcher: RentalObserver | None = None,
) -> tuple[Removed, ...]:
    """Take a cluster down, by its name or its spec; or all that the ledger knows of."""
    keys = _all_keys() if everything else (_key(cluster, region),)

    async def work() -> tuple[Removed, ...]:
        return tuple([await take_down(open_desk(key.region, watcher), key) for key in keys])

    return complete(work(), interrupted=lambda: _half_way("`paceline down` again goes on"))


def status(cluster: str | Path | None = None, *, region: str | None = None) -> ClusterStatus:
    """Return how a cluster stands, as EC2 itself sees it."""
    key = _key(cluster, region)
    return complete(fleet.status_of(open_desk(key.region), key))


def stop_cluster(
    cluster: str | Path | None = None,
    *,
    region: str | None = None,
    watcher: RentalObserver | None = None,
) -> int:
    """Switch the hosts of a cluster off, to be started again; return how many there are."""
    key = _key(cluster, region)
    return complete(
        switch_off(open_desk(key.region, watcher), key),
        interrupted=lambda: _half_way(f"`paceline stop --cluster {key.name}` again goes on"),
    )


def start(
    cluster: str | Path | None = None,
    *,
    region: str | None = None,
    watcher: RentalObserver | None = None,
) -> Cluster:
    """Switch the hosts of a stopped cluster on and wait until they answer, at new addresses."""
    key = _key(cluster, region)
    return complete(
        start_again(open_desk(key.region, watcher), key),
        interrupted=lambda: _half_way(f"`paceline start {key.name}` again goes on"),
    )


def provider_named(cluster: str | Path | None = None, *, region: str | None = None) -> Provider:
    """Return the provider of a cluster that is up, by its name; without one, of the only one."""
    from paceline.providers.ec2 import Ec2Provider  # noqa: PLC0415 - it is heavy

    key = _key(cluster, region)
    desk = open_desk(key.region)
    return Ec2Provider(lambda: fleet.find_cluster(desk, key), desk.reach)


def clusters() -> tuple[ClusterStatus, ...]:
    """Return the clusters that this machine has rented, as the ledger knows them."""
    return fleet.listed(open_ledger(), SystemClock().now())


def strays(*, regions: Sequence[str] = ()) -> tuple[Stray, ...]:
    """Return what bears our tags and has expired, or is not known here; nothing is changed."""

    async def work() -> tuple[Stray, ...]:
        found: list[Stray] = []
        for region in regions or _known_regions():
            found += await fleet.find_strays(open_desk(region), owner())
        return tuple(found)

    return complete(work())


def reap(found: Sequence[Stray], *, watcher: RentalObserver | None = None) -> tuple[Removed, ...]:
    """Take strays down."""

    async def work() -> tuple[Removed, ...]:
        removed: list[Removed] = []
        for stray in found:
            removed += await fleet.reap(open_desk(stray.key.region, watcher), [stray])
        return tuple(removed)

    return complete(work(), interrupted=lambda: _half_way("`paceline reap` again goes on"))


def _half_way(hint: str) -> Interrupted:
    return Interrupted("interrupted; something may be left", hint=hint)


def _rented(spec: Spec) -> Spec:
    if spec.cluster.provider != "ec2":
        raise UsageError(
            f"the hosts of {spec.name} are not rented: its provider is {spec.cluster.provider}",
            hint="`cluster: {provider: ec2, nodes: 2}` rents two from Amazon",
        )
    return spec


def _all_keys() -> tuple[ClusterKey, ...]:
    return tuple(entry.key for entry in open_ledger().clusters())


def _known_regions() -> list[str]:
    known = [key.region for key in _all_keys()]
    return list(dict.fromkeys([region_of(), *known]))


def _key(cluster: str | Path | None, region: str | None) -> ClusterKey:
    """Return the cluster that a word means: a name, the path of a spec, or the only one."""
    if cluster is None:
        known = _all_keys()
        if len(known) == 1:
            return known[0]
        names = ", ".join(key.name for key in known)
        if known:
            raise UsageError("which cluster?", hint=f"there are: {names}")
        raise NotFound("no cluster is up", hint="`paceline up SPEC` brings one up")
    if isinstance(cluster, Path) or str(cluster).endswith((".yaml", ".yml")):
        return wish_for(_rented(load(Path(cluster)))).key
    return key_of(cluster, region)
