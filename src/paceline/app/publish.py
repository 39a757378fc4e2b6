"""The files of a study: written again after each sample, so that a crash loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.app.evidence import settled_plan
from paceline.app.results import pictures, read_sample, trained_on
from paceline.errors import StorageError, UsageError
from paceline.measure.measured import measured_notes, measured_words
from paceline.measure.scaling import summarise
from paceline.model.plan import StudyPlan
from paceline.model.record import RunRecord, StudyRecord, is_rehearsed
from paceline.model.spec import Spec
from paceline.model.summary import Sample, StudyOutcome, StudySummary
from paceline.ports import RunStore
from paceline.reporting import document, html, markdown, tables, text
from paceline.reporting.notes import failed_tries, provenance_notes

REPORT_FILE = "report.html"
DOCUMENT_FILE = "study.json"
SAMPLES_FILE = "samples.csv"
_REHEARSED_NOTE = (
    "this study was rehearsed: its times and throughputs are those of the rehearsal, "
    "not of rented machines"
)


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
        self._write_data(summary, document.dumps(summary))
        return summary

    def finish(self, records: Sequence[RunRecord]) -> StudyOutcome:
        """Write everything, the page last.

        What cannot be written is the outcome's `trouble`: its findings are not lost for that.
        """
        summary = self.findings(records)
        plain = document.dumps(summary)
        path = trouble = None
        try:
            self._write_data(summary, plain)
            page = html.render(summary, pictures=pictures(records))
            path = self.store.write_result(self.study, REPORT_FILE, page)
        except StorageError as error:
            trouble = f"{error} ({error.hint})" if error.hint else str(error)
        return StudyOutcome(
            summary=summary,
            folder=self.study.folder,
            report_path=path,
            text=text.render(summary),
            document=plain,
            trouble=trouble,
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
        return forms[form](self.findings(records))

    def findings(self, records: Sequence[RunRecord]) -> StudySummary:
        """Return what these runs found, with all that is known of them."""
        samples = self.read_samples(records)
        good = {sample.run_id for sample in samples if sample.failed is None}
        counting = [record for record in records if record.run_id in good]
        summary = self.summarise(samples, _data_of(counting or records))
        tries = failed_tries(records, good)
        return replace(summary, notes=(*summary.notes, *tries, *provenance_notes(counting)))

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
        summary = summarise(
            settled_plan(self.spec, self.plan, samples),
            samples,
            unit=self.spec.job.unit,
            data=data or self._planned_data(),
            measured=measured_words(self.spec.measurement, samples),
            created_at=self.study.created_at,
            provenance={**self.study.provenance, "spec": dict(self.study.spec)},
            scaling=self.spec.scaling,
        )
        notes = measured_notes(self.spec.measurement, samples)
        first = (_REHEARSED_NOTE,) if is_rehearsed(self.study.provenance) else ()
        return replace(summary, notes=(*first, *summary.notes, *notes))

    def _planned_data(self) -> str:
        # What a script of one's own reads is its own business, whatever `data` says.
        return self.spec.data.dataset if self.spec.job.program is not None else ""

    def _write_data(self, summary: StudySummary, plain: str) -> None:
        self._write(DOCUMENT_FILE, plain)
        self._write(SAMPLES_FILE, tables.tidy_csv(summary))
        for name, content in tables.configuration_files(summary).items():
            self._write(name, content)

    def _write(self, name: str, content: str) -> None:
        self.store.write_result(self.study, name, content.encode("utf-8", "replace"))


def _data_of(records: Sequence[RunRecord]) -> str | None:
    return next((found for record in records if (found := trained_on(record))), None)
