"""Options: every configuration that could be chosen, with its time and its cost for the job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from paceline.advise.intervals import around
from paceline.advise.launches import kind_of, launches_of_samples, setup_s, target_of
from paceline.advise.noise import corrected, noise_of
from paceline.advise.nouns import Launch, Machine, Prediction, Target
from paceline.advise.predict import Knowledge, know, predict
from paceline.advise.priors import Priors
from paceline.model.plan import Configuration
from paceline.model.summary import Sample

_S_PER_HOUR = 3600.0
# Half width for another run of a job that was only measured from outside, before it is repeated.
_USUAL_OUTSIDE = 0.10


@dataclass(frozen=True)
class Span:
    """A figure with its 90% interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Span:
        """Return it multiplied by a positive number."""
        return Span(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, offset: float) -> Span:
        """Return it with a number added."""
        return Span(self.value + offset, self.low + offset, self.high + offset)


@dataclass(frozen=True)
class Option:
    """One configuration, and what the whole job would take on it; without a figure, why.

    `time_s` includes the start of the job. `cost_usd` is None where no price is known;
    `host_hours` stand in for it. `measured` is how many samples there are of it, `in_epochs` the
    share of the time that goes into epochs and not into the start.
    """

    configuration: Configuration
    prediction: Prediction
    measured: int = 0
    time_s: Span | None = None
    host_hours: Span | None = None
    cost_usd: Span | None = None
    in_epochs: float = 1.0

    @property
    def money(self) -> Span | None:
        """What is to be saved: dollars, or host-hours where no price is known."""
        return self.cost_usd or self.host_hours

    @property
    def doubt(self) -> float:
        """The relative half width of the interval for the average of many such runs.

        The start of the job is not in doubt, so the shorter the job the smaller it is.
        """
        if self.time_s is None or self.prediction.doubt is None:
            return 0.0
        return self.prediction.doubt * self.in_epochs


@dataclass(frozen=True)
class Evidence:
    """What a study has measured, and what is known of its machines.

    `instance_type` is the spec's own. `items` is the size of an epoch, where the user says it;
    `outside` are wall times of jobs that tell no iterations.
    """

    samples: Sequence[Sample]
    instance_type: str | None = None
    machines: Mapping[str, Machine] = field(default_factory=dict)
    items: int | None = None
    priors: Priors | None = None

    def knowledge(self) -> Mapping[str, Knowledge]:
        """Return what each kind of configuration teaches."""
        kinds: dict[str, list[Launch]] = defaultdict(list)
        for launch in launches_of_samples(self.samples, self.instance_type):
            kinds[launch.study].append(launch)
        return {
            kind: know(own, machines=self.machines, items=self.items, priors=self.priors)
            for kind, own in kinds.items()
        }

    def price_of(self, target: Target) -> float | None:
        """Return what an hour of a host costs: as the samples say, else as the price list does."""
        paid = [
            sample.usd_per_host_hour
            for sample in self.samples
            if sample.usd_per_host_hour is not None
            and target_of(sample.configuration, self.instance_type).instance_type
            == target.instance_type
        ]
        if paid:
            return paid[-1]
        machine = self.machines.get(target.instance_type)
        return None if machine is None else machine.usd_per_hour


def options_of(
    evidence: Evidence, configurations: Sequence[Configuration], epochs: float = 1.0
) -> tuple[Option, ...]:
    """Return what each configuration would take, and cost, for so many epochs."""
    known = evidence.knowledge()
    starts = setup_s(evidence.samples, evidence.instance_type)
    usual_start = fmean(starts.values()) if starts else 0.0
    found = []
    for configuration in configurations:
        target = target_of(configuration, evidence.instance_type)
        own = [
            sample
            for sample in evidence.samples
            if sample.configuration == configuration and sample.failed is None
        ]
        knowledge = known.get(kind_of(configuration))
        prediction = _from_outside(evidence, target, own)
        if knowledge is not None:
            prediction = predict(knowledge, target)
        start_s = starts.get(target.instance_type, usual_start)
        option = Option(configuration, prediction, len(own))
        found.append(_costed(option, evidence.price_of(target), start_s, epochs))
    return tuple(found)


def _costed(option: Option, price: float | None, start_s: float, epochs: float) -> Option:
    prediction = option.prediction
    if prediction.epoch_s is None:
        return option
    low, high = prediction.epoch_s_low, prediction.epoch_s_high
    epoch = Span(prediction.epoch_s, low or prediction.epoch_s, high or prediction.epoch_s)
    time = epoch.times(epochs).plus(start_s)
    hours = time.times(option.configuration.nodes / _S_PER_HOUR)
    cost = None if price is None else hours.times(price)
    share = 1.0 - start_s / time.value
    return replace(option, time_s=time, host_hours=hours, cost_usd=cost, in_epochs=share)


def _from_outside(evidence: Evidence, target: Target, own: Sequence[Sample]) -> Prediction:
    """Return what samples without iterations tell: of their own configuration, its wall time."""
    figures = [_outer_s(sample) for sample in own]
    times = [seconds for seconds in figures if seconds]
    if not times:
        return Prediction(
            target, reason="it was not measured, and nothing of its kind tells of iterations"
        )
    repeats: dict[Configuration, list[float]] = defaultdict(list)
    for sample in evidence.samples:
        if sample.failed is None and (seconds := _outer_s(sample)):
            repeats[sample.configuration].append(seconds)
    width = corrected(_USUAL_OUTSIDE, noise_of(repeats.values()))
    low, high = around(fmean(times), width)
    return Prediction(
        target,
        basis="measured",
        regime="steady",
        epoch_s=fmean(times),
        epoch_s_low=low,
        epoch_s_high=high,
        doubt=width / (2 * len(times)) ** 0.5,
        launches=len(times),
        notes=("measured from outside: the whole job counts as one epoch",),
    )


def _outer_s(sample: Sample) -> float | None:
    return sample.epoch_s or sample.wall_s
