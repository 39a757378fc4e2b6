"""The spec: the user's file, as frozen data. Importing it imports pydantic and ruamel.yaml."""

from paceline.model.spec.durations import parse_duration
from paceline.model.spec.load import load_spec
from paceline.model.spec.schema import spec_json_schema
from paceline.model.spec.sections import (
    BaselineSpec,
    ClusterSpec,
    DataSpec,
    HostEntry,
    JobSpec,
    LimitsSpec,
    RuntimeSpec,
    StudySpec,
)
from paceline.model.spec.source import SpecSource
from paceline.model.spec.spec import Measurement, Spec, to_plain

__all__ = [
    "BaselineSpec",
    "ClusterSpec",
    "DataSpec",
    "HostEntry",
    "JobSpec",
    "LimitsSpec",
    "Measurement",
    "RuntimeSpec",
    "Spec",
    "SpecSource",
    "StudySpec",
    "load_spec",
    "parse_duration",
    "spec_json_schema",
    "to_plain",
]
