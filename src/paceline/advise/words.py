"""Advice in words: what to take, why, how sure that is, and the command that acts on it."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.advise.advice import Advice
from paceline.advise.choosing import Choice, Limits
from paceline.advise.options import Option, Span
from paceline.model.plan import Configuration

_MINUTE, _HOUR = 60.0, 3600.0
_MOST_NAMED = 3


def time_words(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.3g} s"
    return f"{seconds / _MINUTE:.3g} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.3g} h"


def time_span_words(span: Span) -> str:
    """Return a time with its interval."""
    low, high = time_words(span.low), time_words(span.high)
    return time_words(span.value) if low == high else f"{time_words(span.value)} ({low} to {high})"


def money_words(option: Option) -> str:
    """Return what an option costs, with its interval: dollars, else host-hours."""
    span, unit = option.cost_usd, "USD"
    if span is None:
        span, unit = option.host_hours, "host-hours"
    if span is None:
        return "unknown"
    return f"{span.value:.3g} {unit} ({span.low:.3g} to {span.high:.3g})"


def basis_words(option: Option) -> str:
    """Return what an option's figures rest on."""
    count, basis = option.measured, option.prediction.basis
    if count:
        return f"measured {count} time{'' if count == 1 else 's'}"
    return {"scaled": "predicted by scaling", "transferred": "carried over from another type"}.get(
        basis or "", "not known"
    )


def title_of(choice: Choice, limits: Limits) -> str:
    """Return what a choice is the answer to."""
    if choice.goal != "best":
        return choice.goal.capitalize()
    if limits.deadline_s is not None and limits.budget_usd is not None:
        return "Cheapest within deadline and budget"
    if limits.deadline_s is not None:
        return f"Cheapest within {time_words(limits.deadline_s)}"
    if limits.budget_usd is not None:
        return f"Fastest for at most {limits.budget_usd:g} USD"
    return "Best balance of time and money"


def reason_of(choice: Choice, advice: Advice) -> str:
    """Return why, in words: what it takes, how sure that is, and who may be as good."""
    option = choice.option
    time = "" if option.time_s is None else f"the job takes {time_span_words(option.time_s)}"
    parts = [f"{time} and {money_words(option)}; {basis_words(option)}."]
    if not choice.kept:
        parts.append("Its interval reaches beyond the limits: they may not hold.")
    if len(advice.options) > 1:
        parts.append(_sureness(choice))
    if choice.ties:
        parts.append(f"A tie, as far as can be told: {_named(choice.ties)}.")
    elif choice.contenders:
        parts.append(f"What may still be better: {_named(choice.contenders)}.")
    parts += [f"Mind: {note}." for note in option.prediction.notes]
    return " ".join(parts)


def _sureness(choice: Choice) -> str:
    if choice.clear:
        return f"It is clear ({choice.sure:.0%} sure to be the best or within 2% of it)."
    return f"It is not clear yet: {choice.sure:.0%} sure to be the best or within 2% of it."


def _named(options: Sequence[Option]) -> str:
    shown = [option.configuration.title for option in options[:_MOST_NAMED]]
    more = len(options) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def nothing_within(limits: Limits) -> str:
    """Return what to say where no option keeps within the limits."""
    asked = []
    if limits.deadline_s is not None:
        asked.append(f"{time_words(limits.deadline_s)}")
    if limits.budget_usd is not None:
        asked.append(f"{limits.budget_usd:g} USD")
    return f"Nothing that is known keeps within {' and '.join(asked)}."


def question_of(goals: Sequence[Choice], limits: Limits) -> str:
    """Return which questions one and the same option answers."""
    titles = [title_of(choice, limits) for choice in goals]
    return ", ".join([titles[0], *(title[0].lower() + title[1:] for title in titles[1:])])


def surer_words(advice: Advice) -> str | None:
    """Return which measurement would make the answers surer; None where they are clear."""
    option = advice.next
    if option is None:
        return None
    count = option.measured
    so_far = f"measured {count} time{'' if count == 1 else 's'}" if count else "not measured yet"
    return (
        f"To be surer, measure {option.configuration.title}: it is in the race, {so_far}, and "
        f"known to within {option.doubt:.0%} only."
    )


def grid_with(option: Option, known: Sequence[Configuration]) -> tuple[str, ...]:
    """Return what is to be set in the spec so that the study's grid holds an option too."""
    item = option.configuration
    if item in known:
        return ()
    settings = []
    for axis in ("nodes", "procs_per_node", "batch_size", "instance_type"):
        values = dict.fromkeys(getattr(other, axis) for other in (*known, item))
        if None not in values:
            settings.append(f"study.grid.{axis}=[{', '.join(map(str, values))}]")
    return tuple(settings)


def settings_of(option: Option) -> tuple[str, ...]:
    """Return what is to be set in the spec to run an option."""
    item = option.configuration
    settings = [f"cluster.nodes={item.nodes}", f"job.procs_per_node={item.procs_per_node}"]
    if item.batch_size is not None:
        settings.append(f"job.args.batch_size={item.batch_size}")
    places = {
        "instance_type": "cluster.instance_type",
        "runtime": "runtime.kind",
        "launcher": "job.launcher",
    }
    settings += [
        f"{places.get(name, f'job.args.{name}')}={value}"
        for name, value in item.traits
        if name != "batch_size"
    ]
    return tuple(settings)
