"""A plan as text: what would run, in which order, and the lines that one could type instead."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.model.command import render
from paceline.model.plan import PlanReport, RunPlan, StudyPlan


def render_plan(planned: PlanReport) -> str:
    """Return the plan as text."""
    parts: list[str] = []
    if planned.study is not None:
        parts.append("\n".join(_study_lines(planned.study)))
    parts += ["\n".join(_run_lines(run)) for run in planned.runs]
    parts += [f"note: {note}" for note in planned.notes]
    return "\n\n".join(parts)


def _study_lines(study: StudyPlan) -> Iterator[str]:
    count = len(study.configurations)
    yield (
        f"study {study.name}: {count} configuration{'s' if count != 1 else ''}, "
        f"{len(study.samples)} samples"
    )
    for configuration in study.configurations:
        mark = "  (baseline)" if configuration == study.baseline else ""
        yield f"  {configuration.title}{mark}"
    yield "in this order, so that a drift of the machine does not look like an effect:"
    yield "  " + ", ".join(sample.sample_id for sample in study.samples)
    for note in study.notes:
        yield f"note: {note}"


def _run_lines(run: RunPlan) -> Iterator[str]:
    yield f"{run.configuration.title}, launcher {run.launcher}; by hand it would be:"
    for host in run.hosts:
        yield f"  on {host.host.name} ({host.host.address}):"
        for process in host.processes:
            yield f"    {render(process.command)}"
    for note in run.notes:
        yield f"  note: {note}"
