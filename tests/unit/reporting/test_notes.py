"""What changed between the runs of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.model.plan import Configuration
from paceline.model.record import Failure, RunRecord, RunState
from paceline.reporting.notes import failed_tries, provenance_notes

Hosts = Mapping[str, Mapping[str, object]]


def _run(hosts: Hosts | str, **more: object) -> RunRecord:
    return RunRecord(
        run_id="r",
        kind="sample",
        state=RunState.SUCCEEDED,
        configuration=Configuration(len(hosts), 1),
        folder=Path("r"),
        created_at=0.0,
        provenance={"hosts": hosts, **more},
    )


def _named(*names: str) -> RunRecord:
    return _run({name: {"hostname": name} for name in names})


@pytest.mark.parametrize(
    ("runs", "notes"),
    [
        ([], ()),
        ([_named("a"), _named("a")], ()),
        ([_named("a"), _named("a", "b"), _named("b", "a"), _named("a", "b", "c")], ()),
        ([_named("a"), _named("b")], ("samples were taken on different hosts: a, b",)),
        (
            [_named("a"), _named("b", "c")],
            ("samples were taken on different hosts: a, b, c",),
        ),
        (
            [_run({"localhost": {"hostname": "x"}}), _run({"localhost": {"hostname": "y"}})],
            ("samples were taken on different hosts: x, y",),
        ),
    ],
)
def test_hosts_are_named_where_runs_do_not_share_them(
    runs: list[RunRecord], notes: tuple[str, ...]
) -> None:
    """More hosts for larger runs are what a study is about; other hosts are worth a note."""
    assert provenance_notes(runs) == notes


def test_versions_and_hardware_that_differ_are_named() -> None:
    """Each fact that has two values among the hosts has a sentence of its own."""
    one = {"torch_version": "2.4", "cpu_model": "Xeon", "cores": 2, "python_version": "3.11"}
    two = {"torch_version": "2.5", "cpu_model": "EPYC", "cores": 16, "python_version": "3.11"}
    assert provenance_notes(
        [_run({"h": one}, paceline="0.1"), _run({"h": two}, paceline="0.2")]
    ) == (
        "samples were taken with different versions of Paceline: 0.1, 0.2",
        "samples were taken with different torch versions: 2.4, 2.5",
        "samples were taken with different processors: EPYC, Xeon",
        "samples were taken with different numbers of cores: 16, 2",
    )


def test_what_is_not_known_differs_from_nothing() -> None:
    """Runs without provenance, and hosts that did not say a fact, are no difference."""
    bare = RunRecord("r", "sample", RunState.SUCCEEDED, Configuration(1, 1), Path("r"), 0.0)
    odd = _run("unreadable")
    some = _run({"h": {"torch_version": "2.4"}})
    none = _run({"h": {"torch_version": None}})
    assert provenance_notes([bare, odd, some, none]) == ()


def test_a_try_that_failed_is_told_of_a_sample_that_worked_later() -> None:
    """With its reason; what was lost because somebody ended Paceline itself is no such try."""
    good = replace(_named("a"), run_id="good", sample_id="s1", sample_index=1)
    failed = replace(good, run_id="bad", state=RunState.FAILED, failure=Failure("out of memory"))
    lost = replace(failed, run_id="lost", state=RunState.LOST)
    (note,) = failed_tries([failed, lost, good], {"good"})
    assert note.endswith("sample 1: a try failed (out of memory), and it was taken again")
    assert failed_tries([failed], set()) == ()
