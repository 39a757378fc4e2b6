"""What a study's samples tell about its machines and their prices, for the advice."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.advise.adaptive import NextStep, next_step
from paceline.advise.nouns import Machine
from paceline.advise.options import Evidence
from paceline.model.plan import PlannedSample, StudyPlan
from paceline.model.spec import Spec
from paceline.model.summary import Sample
from paceline.planning.ec2.wish import DEFAULT_TYPE
from paceline.planning.prices import DEFAULT_REGION, Market, PriceList, packaged_prices
from paceline.planning.variant import own_value


def evidence_of(
    spec: Spec,
    samples: Sequence[Sample],
    *,
    prices: PriceList | None = None,
    region: str | None = None,
    market: Market | None = None,
    items: int | None = None,
) -> Evidence:
    """Return what samples of a spec's study tell; region and market are the spec's own."""
    usual_type = DEFAULT_TYPE if spec.cluster.provider == "ec2" else None
    own_type = own_value(spec, "instance_type") or usual_type
    where = region or getattr(spec.cluster, "region", None) or DEFAULT_REGION
    how: Market = market or getattr(spec.cluster, "market", None) or "on-demand"
    known = (prices or packaged_prices()).in_region(where)
    machines = {
        price.instance_type: Machine(price.instance_type, price.vcpus, price.usd_per_hour(how))
        for price in known
    }
    return Evidence(samples, own_type, machines, items)


def next_of(
    spec: Spec, plan: StudyPlan, missing: Sequence[PlannedSample], taken: Sequence[Sample]
) -> NextStep:
    """Return the sample that an adaptive study takes next, or why it takes none."""
    return next_step(plan, missing, evidence_of(spec, taken))


def settled_plan(spec: Spec, plan: StudyPlan, taken: Sequence[Sample]) -> StudyPlan:
    """Return the plan of an adaptive study without the samples that it does without.

    As long as it would take another one, the plan is the whole.
    """
    if not spec.study.adaptive or not taken:
        return plan
    good = {sample.sample_id for sample in taken if sample.failed is None}
    tried = {sample.sample_id for sample in taken}
    missing = [item for item in plan.samples if item.sample_id not in tried]
    step = next_of(spec, plan, missing, taken)
    if step.sample is not None or not missing:
        return plan
    kept = tuple(item for item in plan.samples if item.sample_id in tried)
    note = (
        f"adaptive: {len(good)} of {len(plan.samples)} planned samples were taken, and then "
        f"{step.reason}"
    )
    return StudyPlan(
        plan.name, plan.baseline, plan.configurations, kept, plan.digest, (*plan.notes, note)
    )
