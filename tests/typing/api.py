"""The types of the public API, checked by mypy: this file is never run."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import assert_type

import paceline
from paceline.api.data import DataListing
from paceline.api.detaching import DetachedStudy
from paceline.app.doctor import Check
from paceline.app.teardown import Removed
from paceline.datasets import FetchResult, Verification
from paceline.model.host import Cluster
from paceline.model.plan import PlanReport
from paceline.model.rented import ClusterStatus, Stray

spec = paceline.load("spec.yaml")
assert_type(spec, paceline.Spec)
assert_type(paceline.plan(spec), PlanReport)
assert_type(paceline.plan({"name": "x"}, overrides=("study.samples=5",)), PlanReport)
assert_type(paceline.up("spec.yaml"), Cluster)
assert_type(paceline.status("name"), ClusterStatus)
assert_type(paceline.clusters(), tuple[ClusterStatus, ...])
assert_type(paceline.down("name"), tuple[Removed, ...])
assert_type(paceline.strays(regions=("us-east-1",)), tuple[Stray, ...])
assert_type(paceline.reap(()), tuple[Removed, ...])
assert_type(paceline.train(Path("spec.yaml"), detach=True), paceline.RunRecord)
assert_type(paceline.run(["python", "x.py"]), paceline.RunRecord)
assert_type(paceline.wait("run"), paceline.RunRecord)
assert_type(paceline.stop("run"), paceline.RunRecord)
assert_type(paceline.runs(), tuple[paceline.RunRecord, ...])
assert_type(paceline.studies(), tuple[paceline.StudyListing, ...])
assert_type(paceline.study(), paceline.StudyOutcome)
assert_type(paceline.study().summary, paceline.StudySummary)
assert_type(paceline.study_detached("spec.yaml"), DetachedStudy)
assert_type(paceline.demo(), paceline.StudyOutcome)
assert_type(paceline.demo_spec(), paceline.Spec)
assert_type(paceline.report("demo", form="markdown"), str)
assert_type(paceline.write_report("demo"), Path)
assert_type(paceline.doctor(), tuple[Check, ...])
assert_type(paceline.fetch_data("cifar10"), FetchResult)
assert_type(paceline.verify_data("cifar10"), Verification)
assert_type(paceline.known_datasets(), tuple[DataListing, ...])
