"""The public Python API: everything that the command line can do, as functions."""

from __future__ import annotations

from paceline.api.advising import forecast
from paceline.api.baking import bake, baked_images, remove_image
from paceline.api.checks import calibrate, doctor, iam_policy
from paceline.api.counsel import advise_on, probe
from paceline.api.data import bring_data, fetch_data, known_datasets, verify_data
from paceline.api.detaching import study_detached
from paceline.api.notebooks import Notebook, notebook, stop_notebook
from paceline.api.reaching import copy, execute, shell
from paceline.api.renting import (
    clusters,
    down,
    reap,
    start,
    status,
    stop_cluster,
    strays,
    up,
)
from paceline.api.running import logs, run, runs, stop, train, wait
from paceline.api.studying import (
    StudyListing,
    compare,
    demo,
    demo_introduction,
    demo_spec,
    plan,
    report,
    save,
    studies,
    study,
    write_comparison,
    write_report,
)
from paceline.api.watching import watch
from paceline.api.wiring import SpecLike, load

__all__ = [
    "Notebook",
    "SpecLike",
    "StudyListing",
    "advise_on",
    "bake",
    "baked_images",
    "bring_data",
    "calibrate",
    "clusters",
    "compare",
    "copy",
    "demo",
    "demo_introduction",
    "demo_spec",
    "doctor",
    "down",
    "execute",
    "fetch_data",
    "forecast",
    "iam_policy",
    "known_datasets",
    "load",
    "logs",
    "notebook",
    "plan",
    "probe",
    "reap",
    "remove_image",
    "report",
    "run",
    "runs",
    "save",
    "shell",
    "start",
    "status",
    "stop",
    "stop_cluster",
    "stop_notebook",
    "strays",
    "studies",
    "study",
    "study_detached",
    "train",
    "up",
    "verify_data",
    "wait",
    "watch",
    "write_comparison",
    "write_report",
]
