"""The study as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from paceline.model.plan import Configuration
from paceline.model.summary import ConfigurationSummary, RankSample, Sample, StudySummary
from paceline.reporting.tables import configuration_files, tidy_csv


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def _study(*samples: Sample) -> StudySummary:
    item = ConfigurationSummary(
        samples[0].configuration, is_baseline=True, planned=3, samples=samples
    )
    return StudySummary("s", "h", "img", (item,), 0.0, "", "")


def _epoch_sample(index: int, *times: float | None, failed: str | None = None) -> Sample:
    ranks = tuple(
        RankSample(rank, "h", first_epoch_s=value, first_epoch_whole=True)
        for rank, value in enumerate(times)
    )
    return Sample(
        f"s{index}", f"r{index}", Configuration(2, 1, 16), index, 180.5, ranks, failed=failed
    )


def test_one_line_per_rank_and_sample(study: StudySummary) -> None:
    """Three samples of 1, 2, 1 and 2 ranks make 18 lines, the failed one's included."""
    rows = _rows(tidy_csv(study))
    assert len(rows) == 18
    assert {(row["nodes"], row["procs_per_node"], row["batch_size"]) for row in rows} == {
        ("1", "1", "16"),
        ("1", "2", "16"),
        ("1", "1", "32"),
        ("1", "2", "32"),
    }
    assert {row["host"] for row in rows} == {"laptop"}
    assert [row["rank"] for row in rows[3:7]] == ["0", "1", "0", "1"]


def test_figures_are_those_of_the_sample(study: StudySummary) -> None:
    """A line holds the sample's throughput and the rank's own times, in seconds."""
    sample = study.configurations[0].samples[0]
    row = _rows(tidy_csv(study))[0]
    assert float(row["items_per_s"]) == pytest.approx(sample.items_per_s)
    assert float(row["wall_s"]) == pytest.approx(sample.wall_s)
    assert float(row["rank_measured_s"]) == pytest.approx(sum(sample.ranks[0].iteration_s))
    assert (row["rank_iterations"], row["rank_warmup_iterations"]) == ("20", "3")
    assert (row["rank_items"], row["metric.loss_d"]) == ("320", "0.96")
    assert (row["state"], row["baseline"], row["unit"]) == ("ok", "true", "img")


def test_missing_is_an_empty_cell_and_a_failure_is_a_line(study: StudySummary) -> None:
    """A failed sample has its reason and no figure; nothing missing is written as zero."""
    failed = [row for row in _rows(tidy_csv(study)) if row["state"] == "failed"]
    assert len(failed) == 2
    assert failed[0]["failed"] == "rank 1 was killed by signal 9 (out of memory?)"
    assert (failed[0]["items_per_s"], failed[0]["epoch_s"], failed[0]["cost_per_epoch_usd"]) == (
        "",
    ) * 3
    assert failed[0]["epoch0_complete"] == "false"


def test_sample_without_ranks_has_a_line_of_its_own() -> None:
    """A job measured from outside is not lost for having no ranks."""
    rows = _rows(tidy_csv(_study(Sample("s0", "r0", Configuration(1, 2), 0, 12.5))))
    assert len(rows) == 1
    assert (rows[0]["wall_s"], rows[0]["rank"], rows[0]["rank_iterations"]) == ("12.5", "", "")


def test_arguments_have_columns_of_their_own() -> None:
    """Each argument that any configuration has is a column; it is empty where it is not set."""
    one = Sample("s0", "r0", Configuration(1, 1, 16, (("bf16", True), ("lr", 1e-5))), 0, 1.0)
    row = _rows(tidy_csv(_study(one)))[0]
    assert (row["arg.bf16"], row["arg.lr"]) == ("true", "1e-05")


def test_empty_study_has_a_header() -> None:
    """Before the first sample there is a table without lines, not an empty file."""
    configuration = ConfigurationSummary(
        Configuration(1, 1), is_baseline=True, planned=3, samples=()
    )
    made = tidy_csv(StudySummary("s", "h", "img", (configuration,), 0.0, "", ""))
    assert made.startswith("study,sample_id,run_id,nodes,procs_per_node,world_size,batch_size")
    assert made.count("\n") == 1


def test_text_with_commas_and_breaks_survives() -> None:
    """A reason with commas, quotes and line breaks comes back as it was."""
    reason = 'RuntimeError: "a, b"\n  at x'
    made = tidy_csv(_study(_epoch_sample(0, 1.0, 1.0, failed=reason)))
    assert _rows(made)[0]["failed"] == reason


def test_files_of_old_habit() -> None:
    """Name, header, and one line per sample that counts: total, then each rank's epoch 0."""
    made = configuration_files(
        _study(
            _epoch_sample(0, 177.007, 178.5),
            _epoch_sample(1, 176.0, None),
            _epoch_sample(2, 1.0, 1.0, failed="no"),
        )
    )
    assert made == {
        "nnode-2_nproc-1_batch_size-16.csv": "total,t0,t1\n180.5,177.007,178.5\n180.5,176,\n"
    }


def test_files_of_old_habit_hold_the_epoch_so_far(study: StudySummary) -> None:
    """Where only iterations were measured, tK is the time that the rank spent in epoch 0."""
    made = configuration_files(study)
    assert sorted(made) == [
        "nnode-1_nproc-1_batch_size-16.csv",
        "nnode-1_nproc-1_batch_size-32.csv",
        "nnode-1_nproc-2_batch_size-16.csv",
        "nnode-1_nproc-2_batch_size-32.csv",
    ]
    lines = made["nnode-1_nproc-2_batch_size-16.csv"].splitlines()
    rank = study.configurations[1].samples[0].ranks[1]
    assert lines[0] == "total,t0,t1"
    assert float(lines[1].split(",")[2]) == pytest.approx(sum(rank.warmup_s + rank.iteration_s))
    assert len(made["nnode-1_nproc-2_batch_size-32.csv"].splitlines()) == 3


def test_configuration_without_a_good_sample_has_no_file(study: StudySummary) -> None:
    """A file of old habit with a header alone would look like a measurement."""
    item = study.configurations[0]
    broken = replace(item, samples=tuple(replace(one, failed="no") for one in item.samples))
    assert configuration_files(replace(study, configurations=(broken,))) == {}
