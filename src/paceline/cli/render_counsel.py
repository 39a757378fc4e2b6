"""Advice on a study, on the terminal and as JSON."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paceline.advise.choosing import Choice
from paceline.advise.options import Option, Span
from paceline.advise.words import (
    basis_words,
    grid_with,
    money_words,
    nothing_within,
    question_of,
    reason_of,
    settings_of,
    surer_words,
    time_span_words,
)
from paceline.api.counsel import Counsel
from paceline.cli import show
from paceline.model.plan import Configuration

_HEADER = ("", "CONFIGURATION", "TIME", "COST", "KNOWN BY")


def show_counsel(found: Counsel, *, as_json: bool) -> None:
    """Print the advice."""
    if as_json:
        show.out_json(counsel_document(found))
        return
    advice = found.advice
    epochs = f"{advice.epochs:g} epoch{'' if advice.epochs == 1 else 's'}"
    show.out(f"Advice on {found.study}, for {epochs} (90% intervals; {found.prices})")
    for choices in _by_option(advice.choices):
        show.out("")
        least = min(choices, key=lambda choice: choice.sure)
        question = question_of(choices, advice.limits)
        show.out(f"{question}: {least.option.configuration.title}")
        show.out(_wrapped(reason_of(least, advice)))
        show.out(f"  {command_of(found, least.option)}")
    if advice.limits.any and advice.choice("best") is None:
        show.out("\n" + nothing_within(advice.limits))
    show.out("")
    show.out(show.columns([_HEADER, *(_cells(found, option) for option in advice.options)]))
    show.out("\n* nothing else is both faster and cheaper")
    surer = surer_words(advice)
    if surer is not None:
        show.out(_wrapped(surer, ""))
        show.out(f"  {measuring_command(found)}")


def command_of(found: Counsel, option: Option) -> str:
    """Return the line that acts on a choice."""
    words = ["paceline", "train", _shown(found.spec_path)]
    for setting in settings_of(option):
        words += ["-s", setting]
    if found.advice.epochs != 1:
        words += ["--epochs", f"{found.advice.epochs:g}"]
    return shlex.join(words)


def measuring_command(found: Counsel) -> str | None:
    """Return the line that takes the measurement that would make the advice surer."""
    option = found.advice.next
    if option is None:
        return None
    words = ["paceline", "study", _shown(found.spec_path), "--adaptive"]
    if option.measured >= found.samples:
        words += ["--samples", str(option.measured + 2)]
    for setting in grid_with(option, found.planned):
        words += ["-s", setting]
    results = found.spec_path.parent.parent
    if results != Path.cwd() / "paceline-results":
        words += ["--results", _shown(results)]
    return shlex.join(words)


def _by_option(choices: Sequence[Choice]) -> list[list[Choice]]:
    """Return the choices that fall on the same option together."""
    found: dict[Configuration, list[Choice]] = {}
    for choice in choices:
        found.setdefault(choice.option.configuration, []).append(choice)
    return list(found.values())


def _wrapped(text: str, indent: str = "  ") -> str:
    return textwrap.fill(text, 96, initial_indent=indent, subsequent_indent=indent)


def _shown(path: Path) -> str:
    """Return a path as it is shortest from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _cells(found: Counsel, option: Option) -> tuple[str, ...]:
    title = option.configuration.title
    if option.time_s is None:
        return ("", title, "", "", f"not known: {option.prediction.reason}")
    mark = "*" if option in found.advice.front else ""
    return (mark, title, time_span_words(option.time_s), money_words(option), basis_words(option))


def counsel_document(found: Counsel) -> dict[str, Any]:
    """Return the advice as the plain data that `--json` prints."""
    advice = found.advice
    return {
        "study": found.study,
        "epochs": advice.epochs,
        "budget_usd": advice.limits.budget_usd,
        "deadline_s": advice.limits.deadline_s,
        "prices": found.prices,
        "confidence": 0.90,
        "choices": [_choice(found, choice) for choice in advice.choices],
        "options": [_option(found, option) for option in advice.options],
        "measure_next": None if advice.next is None else advice.next.configuration.label,
        "measure_command": measuring_command(found),
    }


def _choice(found: Counsel, choice: Choice) -> dict[str, Any]:
    return {
        "goal": choice.goal,
        "configuration": choice.option.configuration.label,
        "sure": choice.sure,
        "clear": choice.clear,
        "within_limits": choice.kept,
        "ties": [option.configuration.label for option in choice.ties],
        "contenders": [option.configuration.label for option in choice.contenders],
        "reason": reason_of(choice, found.advice),
        "command": command_of(found, choice.option),
    }


def _option(found: Counsel, option: Option) -> dict[str, Any]:
    item = option.configuration
    return {
        "configuration": item.label,
        "title": item.title,
        "nodes": item.nodes,
        "procs_per_node": item.procs_per_node,
        "batch_size": item.batch_size,
        "basis": option.prediction.basis,
        "samples": option.measured,
        "time_s": _span(option.time_s),
        "cost_usd": _span(option.cost_usd),
        "host_hours": _span(option.host_hours),
        "on_front": option in found.advice.front,
        "reason": option.prediction.reason,
        "notes": list(option.prediction.notes),
    }


def _span(span: Span | None) -> dict[str, float] | None:
    return None if span is None else {"value": span.value, "low": span.low, "high": span.high}
