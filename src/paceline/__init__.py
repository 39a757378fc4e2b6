"""Paceline: train a PyTorch model on many machines, and measure how the training scales.

    import paceline

    outcome = paceline.study("spec.yaml")
    print(outcome.text)

Everything that the command line can do is a function here. Importing the package itself costs
next to nothing, because it travels to the hosts: the functions are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.api import (
        SpecLike,
        StudyListing,
        advise_on,
        bake,
        baked_images,
        bring_data,
        calibrate,
        clusters,
        compare,
        copy,
        demo,
        demo_spec,
        doctor,
        down,
        execute,
        fetch_data,
        forecast,
        iam_policy,
        known_datasets,
        load,
        logs,
        notebook,
        plan,
        probe,
        reap,
        remove_image,
        report,
        run,
        runs,
        start,
        status,
        stop,
        stop_cluster,
        stop_notebook,
        strays,
        studies,
        study,
        study_detached,
        train,
        up,
        verify_data,
        wait,
        watch,
        write_comparison,
        write_report,
    )
    from paceline.errors import PacelineError
    from paceline.model.record import RunRecord, RunState
    from paceline.model.spec import Spec
    from paceline.model.summary import StudyOutcome, StudySummary

__all__ = [
    "PacelineError",
    "RunRecord",
    "RunState",
    "Spec",
    "SpecLike",
    "StudyListing",
    "StudyOutcome",
    "StudySummary",
    "advise_on",
    "bake",
    "baked_images",
    "bring_data",
    "calibrate",
    "clusters",
    "compare",
    "copy",
    "demo",
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

_HOMES = {
    "PacelineError": "paceline.errors",
    "RunRecord": "paceline.model.record",
    "RunState": "paceline.model.record",
    "Spec": "paceline.model.spec",
    "StudyOutcome": "paceline.model.summary",
    "StudySummary": "paceline.model.summary",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - this is the laziness itself

    return getattr(import_module(_HOMES.get(name, "paceline.api")), name)


def __dir__() -> list[str]:
    """Show the public names to those who explore."""
    return sorted(__all__)
