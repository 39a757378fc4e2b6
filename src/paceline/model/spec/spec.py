"""The spec as a whole: the user's file, parsed and found to be free of mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from paceline.model.spec.rules import broken_rules
from paceline.model.spec.sections import (
    BakeSpec,
    ClusterSpec,
    DataSpec,
    JobSpec,
    LimitsSpec,
    RuntimeSpec,
    Section,
    StudySpec,
)
from paceline.model.spec.types import Name

RULES_ERROR = "spec_rules"
DEFAULT_ITERATIONS = 30
_EPOCH_ARGUMENTS = ("epochs", "num_epochs")


@dataclass(frozen=True)
class Measurement:
    """What is timed in a sample: `amount` iterations or seconds, or epochs where it is None."""

    kind: Literal["epoch", "iterations", "seconds"]
    amount: float | None
    warmup: int

    @property
    def total_iterations(self) -> int | None:
        """How many iterations a rank makes in all, warm-up included; None if that is open."""
        if self.kind != "iterations" or self.amount is None:
            return None
        return int(self.amount) + self.warmup


class Spec(Section):
    """What to run, on which hosts, with which data, and what to measure."""

    name: Name = Field("study", description="The name that results bear; else the file's own.")
    cluster: ClusterSpec = Field(default_factory=ClusterSpec, description="The hosts.")
    runtime: RuntimeSpec = Field(default_factory=RuntimeSpec, description="How processes start.")
    data: DataSpec = Field(default_factory=DataSpec, description="What a trainer learns from.")
    job: JobSpec = Field(default_factory=JobSpec, description="What runs on every host.")
    study: StudySpec = Field(
        default_factory=StudySpec, description="What is measured, and how often."
    )
    bake: BakeSpec = Field(
        default_factory=BakeSpec, description="What an image of `paceline bake` gets besides."
    )
    limits: LimitsSpec = Field(
        default_factory=LimitsSpec, description="What a study may cost and how long it may take."
    )

    @model_validator(mode="after")
    def _obey_rules(self) -> Spec:
        problems = [f"{problem.where}: {problem.text}" for problem in broken_rules(to_plain(self))]
        if problems:
            raise PydanticCustomError(RULES_ERROR, "{problems}", {"problems": "; ".join(problems)})
        return self

    @property
    def measurement(self) -> Measurement:
        """What a sample of this spec's study times."""
        study = self.study
        if study.seconds is not None:
            return Measurement("seconds", study.seconds, study.warmup)
        if study.iterations is not None:
            return Measurement("iterations", study.iterations, study.warmup)
        counts_epochs = any(name in self.job.args for name in _EPOCH_ARGUMENTS)
        if study.measure == "epoch" or self.job.program is None or counts_epochs:
            return Measurement("epoch", None, study.warmup)
        return Measurement("iterations", DEFAULT_ITERATIONS, study.warmup)

    @property
    def scaling(self) -> Literal["weak", "strong"]:
        """Whether the batch of each process stays the same, or that of all together."""
        named = self.study.baseline.global_batch_size is not None
        split = named or "global_batch_size" in (self.study.grid or {})
        return self.study.scaling or ("strong" if split else "weak")


def to_plain(spec: Spec) -> dict[str, Any]:
    """Return a spec as JSON data, with its secrets hidden."""
    return spec.model_dump(mode="json")


def to_data(spec: Spec) -> dict[str, Any]:
    """Return a spec as data that make the same spec again, its secrets included."""
    data = to_plain(spec)
    data["job"]["env"] = dict(spec.job.env)
    data["runtime"]["env"] = dict(spec.runtime.env)
    return data
