"""A plan as text: what would run, in which order, and the lines that one could type instead."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.cli.render_cloud import render_cloud
from paceline.model.command import REDACTED, Secret
from paceline.model.plan import PlanReport, RunPlan, StudyPlan
from paceline.planning.shell import shell_lines


def render_plan(planned: PlanReport) -> str:
    """Return the plan as text."""
    parts: list[str] = []
    if planned.cloud is not None:
        parts.append(render_cloud(planned.cloud))
    if planned.study is not None:
        parts.append("\n".join(_study_lines(planned.study)))
    for index, run in enumerate(planned.runs):
        what = "`paceline train`" if index == 0 else "a sample of the study"
        parts.append("\n".join(_run_lines(run, what)))
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


def _run_lines(run: RunPlan, what: str) -> Iterator[str]:
    yield f"{what}: {run.configuration.title}, launcher {run.launcher}; by hand it would be:"
    for host in run.hosts:
        yield f"  on {host.host.name} ({host.host.address}):"
        # Only the beginning is moved in: a quoted word may go over several lines.
        yield from (f"    {line}" for line in shell_lines(run, host))
    if _has_secrets(run):
        yield f"  note: {REDACTED} stands for a value that is not shown; by hand, put it in"
    for note in run.notes:
        yield f"  note: {note}"


def _has_secrets(run: RunPlan) -> bool:
    processes = (process for host in run.hosts for process in host.processes)
    return any(
        isinstance(value, Secret) for process in processes for value in process.command.env.values()
    )
