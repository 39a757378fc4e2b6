"""Predictions: what was measured, what a probe tells, what scales, what is carried over.

A target is answered from the nearest source there is:

`measured`     whole epochs of this very configuration,
`probe`        its first iterations,
`scaled`       the same instance type with other hosts, processes or batches,
`transferred`  another instance type.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import pstdev

from paceline.advise.course import (
    Course,
    course_of,
    effective_iterations,
    epoch_s,
    items_of,
    likely_items,
)
from paceline.advise.credits import credits_of
from paceline.advise.groups import Group, geometric_mean, groups_of
from paceline.advise.intervals import Widths, around
from paceline.advise.noise import corrected, noise_of
from paceline.advise.nouns import Basis, Launch, Machine, Prediction, Regime, Target
from paceline.advise.priors import Priors
from paceline.advise.scaling import Model
from paceline.advise.straggling import excess_share, regime_of
from paceline.advise.transfer import busy_vcpus, carried, same_family

_NO_EPOCH = (
    "how many iterations an epoch has is not known: the file has no iterations_per_epoch for it; "
    "say --samples-per-epoch"
)
_BURST = (
    "the probe saw a burst, which is left out of what is to come; "
    "a probe of 50 iterations would tell more"
)
# Launches of one configuration that differ by more had something different about them.
_HIDDEN = 0.15
# Sources whose uncertainty is within this factor of the best are heard too.
_AS_GOOD = 1.2


@dataclass(frozen=True)
class Knowledge:
    """All that predictions rest on, made once from what was measured."""

    courses: tuple[Course, ...]
    groups: tuple[Group, ...]
    machines: Mapping[str, Machine] = field(default_factory=dict)
    priors: Priors = field(default_factory=Priors)
    items: int | None = None
    widths: Widths = field(default_factory=Widths)


@dataclass(frozen=True)
class _Guess:
    """A figure on the way to a prediction; `spread` is the half width of its interval."""

    basis: Basis
    regime: Regime
    model: Model
    iteration_s: float
    epoch_s: float
    spread: float
    doubt: float
    launches: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Source:
    """A group that a target can be predicted from, and what the way to its type costs."""

    group: Group
    model: Model
    extra: float


def know(
    launches: Sequence[Launch],
    *,
    machines: Mapping[str, Machine] | None = None,
    items: int | None = None,
    priors: Priors | None = None,
    widths: Widths | None = None,
) -> Knowledge:
    """Return what launches teach; `items` is the size of an epoch, where the user says it."""
    assumed = priors or Priors()
    by_study: dict[str, list[Launch]] = defaultdict(list)
    for launch in launches:
        by_study[launch.study].append(launch)
    courses = tuple(
        course_of(launch, _items(launch, own, items)) for own in by_study.values() for launch in own
    )
    groups = groups_of(courses, assumed)
    return Knowledge(courses, groups, machines or {}, assumed, items, widths or Widths())


def _items(launch: Launch, study: Sequence[Launch], said: int | None) -> int | None:
    """Return how many items an epoch of a launch has, by its own number of iterations."""
    own = items_of(launch)
    for candidate in (said, likely_items(study), likely_items([launch])):
        if candidate is not None and (own is None or candidate in own):
            return candidate
    return None


def predict(knowledge: Knowledge, target: Target) -> Prediction:
    """Return what is to be expected of a target, or the reason why nothing can be said."""
    same = [course for course in knowledge.courses if course.launch.target == target]
    guess = _from_same(knowledge, target, same) if same else _from_others(knowledge, target)
    if isinstance(guess, str):
        return Prediction(target, reason=guess)
    return _priced(knowledge, _with_credits(knowledge, target, guess))


def _from_same(knowledge: Knowledge, target: Target, same: Sequence[Course]) -> _Guess | str:
    """Return what launches of the very configuration tell, whole ones first."""
    whole = [course for course in same if course.launch.whole_epochs]
    chosen = whole or same
    known = [found for course in chosen if (found := _epoch_of(knowledge, course)) is not None]
    if not known:
        return _NO_EPOCH
    studies = {course.launch.study for course in chosen}
    regime = regime_of(target, chosen)
    burst = not whole and any(course.bursts for course in chosen)
    rest = knowledge.widths.of_rest("straggling" if burst else regime)
    groups = [group for group in _groups_of_type(knowledge, target) if group.study in studies]
    repeats = [known, *(times for group in groups for times in group.repeats(but=target))]
    launch = corrected(knowledge.widths.of_launch(regime, len(known)), noise_of(repeats))
    return _Guess(
        basis="measured" if whole else "probe",
        regime=regime,
        model=groups[0].model,
        iteration_s=geometric_mean([course.steady_s for course in chosen]),
        epoch_s=geometric_mean(known),
        spread=rest if not whole and len(chosen) == 1 else launch,
        doubt=math.hypot(rest if not whole else 0.0, launch / math.sqrt(len(known) + 1)),
        launches=len(known),
        notes=(*_hidden(known), *([_BURST] if burst else [])),
    )


def _hidden(seconds: Sequence[float]) -> list[str]:
    """Return a word on figures of the same thing that differ by more than noise does."""
    factor = max(seconds) / min(seconds)
    if factor < 1 + _HIDDEN:
        return []
    words = (
        f"launches of it differ by a factor of {factor:.2f}: they were disturbed, or something "
        "that is not written down, such as the number of threads, was not the same"
    )
    return [words]


def _epoch_of(knowledge: Knowledge, course: Course) -> float | None:
    """Return the time of an epoch; of the size that was asked for, if one was."""
    if knowledge.items is None or knowledge.items == course.items:
        return epoch_s(course)
    target = course.launch.target
    count = effective_iterations(knowledge.items, target.world_size, target.batch_size)
    return course.start_s + count * course.mean_s


def _groups_of_type(knowledge: Knowledge, target: Target) -> list[Group]:
    return [item for item in knowledge.groups if item.instance_type == target.instance_type]


def _from_others(knowledge: Knowledge, target: Target) -> _Guess | str:
    """Return what launches of other configurations tell, those of the same type first."""
    own = _groups_of_type(knowledge, target)
    sources = [_Source(group, group.model, 0.0) for group in own]
    sources = sources or _transferred(knowledge, target)
    if not sources:
        return _nothing_known(knowledge, target)
    items = knowledge.items or _usual_items([source.group for source in sources])
    if items is None:
        return _NO_EPOCH
    guesses = [_scaled(knowledge, source, target, items) for source in sources]
    return replace(_together(guesses), basis="scaled" if own else "transferred")


def _usual_items(groups: Sequence[Group]) -> int | None:
    """Return the size of an epoch that most groups have; of two, the larger."""
    sizes = Counter(group.items for group in groups if group.items is not None)
    return max(sizes, key=lambda size: (sizes[size], size), default=None)


def _nothing_known(knowledge: Knowledge, target: Target) -> str:
    known = ", ".join(sorted({group.instance_type for group in knowledge.groups}))
    return (
        f"nothing relates {target.instance_type} to what was measured ({known}); "
        "a probe of a few iterations on it would"
    )


def _transferred(knowledge: Knowledge, target: Target) -> list[_Source]:
    """Return the groups that tell something of another type, each with its model carried over."""
    found = []
    for group in knowledge.groups:
        model = carried(group, target.instance_type, knowledge.machines, knowledge.priors)
        if model is not None:
            alike = same_family(group.instance_type, target.instance_type)
            found.append(_Source(group, model, knowledge.widths.of_type(same_family=alike)))
    return found


def _scaled(knowledge: Knowledge, source: _Source, target: Target, items: int) -> _Guess:
    """Return what a group's model says of a target."""
    group, model, widths = source.group, source.model, knowledge.widths
    regime = regime_of(target, group.courses)
    iteration = model.iteration_s(target)
    disturbed = iteration * (1 + excess_share(target, group.courses, knowledge.priors))
    count = effective_iterations(items, target.world_size, target.batch_size)
    launch = corrected(widths.of_launch(regime), noise_of(group.repeats()))
    way = math.hypot(widths.of_gap(group.gap_to(target)), source.extra)
    return _Guess(
        basis="scaled",
        regime=regime,
        model=model,
        iteration_s=iteration,
        epoch_s=group.start_s + count * disturbed,
        spread=math.hypot(way, launch),
        doubt=math.hypot(way, launch / math.sqrt(2 * len(group.courses))),
    )


def _together(guesses: Sequence[_Guess]) -> _Guess:
    """Return one guess from several: those that are about as good as the best, averaged."""
    best = min(guess.spread for guess in guesses)
    # Who is not heard may still show that not all was the same: of its own type, within reason.
    near = [guess.epoch_s for guess in guesses if guess.spread <= _HIDDEN]
    heard = [guess for guess in guesses if guess.spread <= _AS_GOOD * best]
    times = [guess.epoch_s for guess in heard]
    apart = pstdev([math.log(seconds) for seconds in times])
    return replace(
        heard[0],
        notes=tuple(_hidden([*times, *near])),
        iteration_s=geometric_mean([guess.iteration_s for guess in heard]),
        epoch_s=geometric_mean(times),
        spread=math.hypot(best, apart),
        doubt=math.hypot(min(guess.doubt for guess in heard), apart),
    )


def _with_credits(knowledge: Knowledge, target: Target, guess: _Guess) -> Prediction:
    """Return the prediction, its epoch stretched where CPU credits will not last."""
    low, high = around(guess.epoch_s, guess.spread)
    plain = Prediction(
        target,
        basis=guess.basis,
        regime=guess.regime,
        iteration_s=guess.iteration_s,
        epoch_s=guess.epoch_s,
        epoch_s_low=low,
        epoch_s_high=high,
        notes=guess.notes,
        doubt=guess.doubt,
        launches=guess.launches,
    )
    allowance = credits_of(target.instance_type, _load(knowledge, target, guess.model))
    if guess.basis == "measured" or allowance is None or high <= allowance.lasts_s:
        return plain
    note = (
        f"a fresh {target.instance_type} uses up its CPU credits after about "
        f"{allowance.lasts_s / 60:.0f} min, and is {allowance.slower:.1f} times slower then"
    )
    # The low end stays that of a machine that came with credits to spare.
    return replace(
        plain,
        epoch_s=allowance.stretched(guess.epoch_s),
        epoch_s_high=allowance.stretched(high),
        notes=(*guess.notes, note),
    )


def _load(knowledge: Knowledge, target: Target, model: Model) -> float:
    """Return how many vCPUs of a host are busy on average; who waits for others uses half."""
    machine = knowledge.machines.get(target.instance_type)
    busy = busy_vcpus(model, target.instance_type, target.procs_per_node, machine, knowledge.priors)
    return busy * (1 - 0.5 * model.communication_s(target) / model.iteration_s(target))


def _priced(knowledge: Knowledge, found: Prediction) -> Prediction:
    machine = knowledge.machines.get(found.target.instance_type)
    if machine is None or machine.usd_per_hour is None or found.epoch_s is None:
        return found
    hours = found.target.nodes * found.epoch_s / 3600.0
    return replace(found, cost_usd=machine.usd_per_hour * hours)
