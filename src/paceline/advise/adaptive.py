"""Which sample a study takes next, when it takes only those that its answer needs.

The baseline comes first. Then whatever the formula cannot tell is measured, and then whatever
would settle most, until the fastest and the cheapest configuration are clear, measured, and
something was measured twice, so that the noise of these machines is known and not supposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.advise.choosing import Choice, Limits, choose, surer_with
from paceline.advise.options import Evidence, Option, options_of
from paceline.model.plan import Configuration, PlannedSample, StudyPlan

# Where no sample says how long an epoch is, any length serves to compare.
_SOME_ITEMS = 100_000
# What is compared is the pace of training: over so many epochs a start hardly counts.
_EPOCHS = 1000


@dataclass(frozen=True)
class NextStep:
    """The sample to take next, or None at the end; and the reason in words."""

    sample: PlannedSample | None
    reason: str


def next_step(plan: StudyPlan, missing: Sequence[PlannedSample], evidence: Evidence) -> NextStep:
    """Return what to measure next, of what is missing, after what was measured."""
    if not missing:
        return NextStep(None, "every planned sample was taken")
    counts = dict.fromkeys(plan.configurations, 0)
    for sample in evidence.samples:
        if sample.failed is None and sample.configuration in counts:
            counts[sample.configuration] += 1
    if not counts[plan.baseline] and (first := _of(missing, plan.baseline)):
        return NextStep(first, "everything is compared with the baseline")
    options = _options(plan, evidence)
    unknown = (option for option in options if option.time_s is None)
    needed = (_of(missing, option.configuration) for option in unknown)
    if untold := next((item for item in needed if item is not None), None):
        return NextStep(untold, "nothing that was measured tells how long it takes")
    found = [choose(goal, options, Limits()) for goal in ("fastest", "cheapest")]
    choices = [choice for choice in found if choice is not None]
    return _unmeasured_leader(choices, missing) or _settling(choices, options, missing, counts)


def _options(plan: StudyPlan, evidence: Evidence) -> tuple[Option, ...]:
    options = options_of(evidence, plan.configurations, _EPOCHS)
    if any(option.time_s is not None for option in options):
        return options
    assumed = replace(evidence, items=_SOME_ITEMS)
    return options_of(assumed, plan.configurations, _EPOCHS)


def _unmeasured_leader(
    choices: Sequence[Choice], missing: Sequence[PlannedSample]
) -> NextStep | None:
    """Return the sample of an answer that rests on a prediction alone."""
    for choice in choices:
        sample = _of(missing, choice.option.configuration)
        if not choice.option.measured and sample is not None:
            return NextStep(sample, f"it is predicted to be the {choice.goal}")
    return None


def _settling(
    choices: Sequence[Choice],
    options: Sequence[Option],
    missing: Sequence[PlannedSample],
    counts: dict[Configuration, int],
) -> NextStep:
    """Return the sample that would settle most, or the end where all is clear."""
    to_come = [option for option in options if _of(missing, option.configuration)]
    useful = surer_with(choices, to_come)
    if useful is not None:
        sure = min(choice.sure for choice in choices)
        reason = f"it is in the race, known to {useful.doubt:.1%}; the answer is {sure:.0%} sure"
        return NextStep(_of(missing, useful.configuration), reason)
    if max(counts.values()) < 2:  # noqa: PLR2004 - repeated means twice
        again = [choice.option for choice in choices if choice.option in to_come]
        if again:
            reason = "nothing was measured twice yet, so nobody knows the noise"
            return NextStep(_of(missing, again[0].configuration), reason)
    clear = all(choice.clear for choice in choices)
    return NextStep(None, "the answer is clear" if clear else "no sample is left that would help")


def _of(missing: Sequence[PlannedSample], configuration: Configuration) -> PlannedSample | None:
    """Return the next missing sample of a configuration."""
    return next((item for item in missing if item.configuration == configuration), None)
