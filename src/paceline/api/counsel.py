"""Advice on a study: what to take for the real job, and what to measure to be surer; and probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.advise.advice import Advice, advise, neighbours
from paceline.advise.choosing import Limits
from paceline.advise.launches import ANY_HOST
from paceline.advise.nouns import Target, parse_target
from paceline.advise.options import Evidence
from paceline.api.advising import chosen_market, price_list
from paceline.api.completing import OnInterrupt
from paceline.api.studying import SPEC_FILE, find_study, publisher_for, study
from paceline.api.wiring import SpecLike, load, open_store
from paceline.app.evidence import evidence_of
from paceline.errors import NotFound, UsageError
from paceline.model.plan import Configuration
from paceline.model.record import StudyRecord
from paceline.model.spec import Spec
from paceline.model.summary import StudyOutcome
from paceline.planning.probe import probe_mapping
from paceline.ports import StudyObserver


@dataclass(frozen=True)
class Counsel:
    """Advice on one study, and what its words need: where the spec is, whose prices these are."""

    study: str
    spec_path: Path
    advice: Advice
    prices: str
    unit: str
    planned: tuple[Configuration, ...] = ()
    samples: int = 1


def advise_on(
    name: str | None = None,
    *,
    targets: Sequence[str] = (),
    types: Sequence[str] = (),
    epochs: float = 1.0,
    budget_usd: float | None = None,
    deadline_s: float | None = None,
    prices: Path | str | None = None,
    region: str | None = None,
    market: str | None = None,
    samples_per_epoch: int | None = None,
    results: Path | str | None = None,
) -> Counsel:
    """Return what a study's samples advise, for a job of so many epochs within these limits.

    Considered is what was planned, what lies within a doubling of it, and the targets and types
    that are named.
    """
    if epochs <= 0:
        raise UsageError("a job has more than zero epochs", hint="--epochs 25")
    store = open_store(results)
    if name is None and not store.studies():
        raise NotFound("there is no study yet", hint="`paceline probe` takes one; or --from FILE")
    record = find_study(store, name)
    publisher = publisher_for(store, record)
    samples = publisher.read_samples(store.runs(study=str(record.folder)))
    good = [sample for sample in samples if sample.failed is None]
    if not good:
        raise NotFound(
            f"the study {record.name} has no sample yet that counts",
            hint="`paceline study` or `paceline probe` takes some",
        )
    known = price_list(prices)
    evidence = evidence_of(
        publisher.spec, good, prices=known, region=region,
        market=chosen_market(market) if market else None, items=samples_per_epoch,
    )  # fmt: skip
    planned = publisher.plan.configurations
    considered = (
        *neighbours(planned, **_room(publisher.spec, record), types=types),
        *(_configuration(parse_target(words), planned[0], evidence) for words in targets),
    )
    limits = Limits(budget_usd, deadline_s)
    found = advise(evidence, tuple(dict.fromkeys(considered)), epochs=epochs, limits=limits)
    return Counsel(
        study=record.name,
        spec_path=record.folder / SPEC_FILE,
        advice=found,
        prices=_price_words(found, known.label, good[-1].price_source),
        unit=publisher.spec.job.unit,
        planned=planned,
        samples=publisher.spec.study.samples,
    )


def _price_words(found: Advice, label: str, said: str | None) -> str:
    if not any(option.cost_usd for option in found.options):
        return "no price is known, so host-hours stand in for money"
    return f"prices: {said or label}"


def _room(spec: Spec, record: StudyRecord) -> Mapping[str, Any]:
    """Return how far a study's hosts and cores reach, and how its batch is shared."""
    hosts = record.provenance.get("hosts")
    facts = list(hosts.values()) if isinstance(hosts, Mapping) else []
    cores = [fact["cores"] for fact in facts if isinstance(fact, Mapping) and "cores" in fact]
    limited = spec.cluster.provider in ("local", "hosts")
    return {
        "most_nodes": len(facts) if limited and facts else None,
        "most_procs": min(cores, default=None),
        "strong": spec.scaling == "strong",
    }


def _configuration(target: Target, like: Configuration, evidence: Evidence) -> Configuration:
    """Return a target as a configuration of the study, its other traits those of the first."""
    own = target.instance_type in (evidence.instance_type, ANY_HOST)
    return Configuration(
        target.nodes,
        target.procs_per_node,
        target.batch_size,
        args=like.args,
        instance_type=None if own else target.instance_type,
        runtime=like.runtime,
        launcher=like.launcher,
    )


def probe(
    spec: SpecLike = None,
    *,
    overrides: Sequence[str] = (),
    iterations: int = 20,
    types: Sequence[str] = (),
    nodes: Sequence[int] = (),
    results: Path | str | None = None,
    observer: StudyObserver | None = None,
    on_interrupt: OnInterrupt | None = None,
) -> StudyOutcome:
    """Run a few iterations on each candidate; the outcome is a study, for `advise_on`."""
    probing = probe_mapping(load(spec, overrides), iterations, types, nodes)
    return study(probing, results=results, observer=observer, on_interrupt=on_interrupt)
