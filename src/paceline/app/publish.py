"""The files of a study: written again after each sample, so that a crash loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.app.results import pictures, read_sample, trained_on
from paceline.errors import UsageError
from paceline.measure.scaling import summarise
from paceline.model.plan import StudyPlan
from paceline.model.record import RunRecord, StudyRecord
from paceline.model.spec import Measurement, Spec
from paceline.model.summary import Sample, StudyOutcome, StudySummary
from paceline.ports import RunStore
from paceline.reporting import document, html, markdown, tables, text

REPORT_FILE = "report.html"
DOCUMENT_FILE = "study.json"
SAMPLES_FILE = "samples.csv"


@dataclass(frozen=True)
class Publisher:
    """Turns the runs of one study into its files."""

    store: RunStore
    study: StudyRecord
    plan: StudyPlan
    spec: Spec

    def publish(self, samples: Sequence[Sample], data: str | None = None) -> StudySummary:
        """Write what is cheap to write, and return the findings so far."""
        summary = self.summarise(samples, data)
        self._write(DOCUMENT_FILE, document.dumps(summary))
        self._write(SAMPLES_FILE, tables.tidy_csv(summary))
        for name, content in tables.configuration_files(summary).items():
            self._write(name, content)
        return summary

    def finish(self, records: Sequence[RunRecord]) -> StudyOutcome:
        """Write everything, the report included."""
        summary = self.publish(self.read_samples(records), _data_of(records))
        page = html.render(summary, pictures=pictures(records))
        return StudyOutcome(
            summary=summary,
            folder=self.study.folder,
            report_path=self.store.write_result(self.study, REPORT_FILE, page),
            text=text.render(summary),
            document=document.dumps(summary),
        )

    def render(self, records: Sequence[RunRecord], form: str) -> str:
        """Return the findings in one form; nothing is written."""
        forms: Mapping[str, Callable[[StudySummary], str]] = {
            "text": text.render,
            "markdown": markdown.render,
            "csv": tables.tidy_csv,
            "json": document.dumps,
            "html": lambda summary: html.render(summary, pictures=pictures(records)).decode(),
        }
        if form not in forms:
            raise UsageError(f"{form!r} is no form of a report", hint=f"one of {', '.join(forms)}")
        return forms[form](self.summarise(self.read_samples(records), _data_of(records)))

    def read_samples(self, records: Sequence[RunRecord]) -> tuple[Sample, ...]:
        """Return the samples that count, and the latest failure of those that have none."""
        taken: dict[str, Sample] = {}
        for record in sorted(records, key=lambda item: item.created_at):
            known = taken.get(record.sample_id or "")
            if record.sample_id and record.state.ended and (known is None or known.failed):
                taken[record.sample_id] = read_sample(record, self.spec)
        found = (taken.get(item.sample_id) for item in self.plan.samples)
        return tuple(sample for sample in found if sample is not None)

    def summarise(self, samples: Sequence[Sample], data: str | None) -> StudySummary:
        """Return the findings of these samples."""
        return summarise(
            self.plan,
            samples,
            unit=self.spec.job.unit,
            data=data or self.spec.data.dataset,
            measured=measured_words(self.spec.measurement),
            created_at=self.study.created_at,
            provenance={**self.study.provenance, "spec": dict(self.study.spec)},
        )

    def _write(self, name: str, content: str) -> None:
        self.store.write_result(self.study, name, content.encode())


def measured_words(measurement: Measurement) -> str:
    """Return what was timed, in words."""
    warmup = f", the first {measurement.warmup} left out" if measurement.warmup else ""
    if measurement.kind == "iterations" and measurement.total_iterations is not None:
        return f"{measurement.total_iterations} iterations{warmup}"
    if measurement.kind == "seconds":
        return f"the iterations of {measurement.amount:g} s{warmup}"
    return f"whole epochs; of the iterations{warmup}" if warmup else "whole epochs"


def _data_of(records: Sequence[RunRecord]) -> str | None:
    return next((found for record in records if (found := trained_on(record))), None)
