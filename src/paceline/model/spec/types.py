"""The kinds of value that a spec holds, each with its own words for what does not fit."""

from __future__ import annotations

import ipaddress
import math
import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from paceline.model.command import Secret
from paceline.model.plan import ArgValue
from paceline.model.spec.durations import DURATION_PATTERN, parse_duration

_LARGEST = 2**63 - 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", re.ASCII)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SECRET_ENDINGS = ("KEY", "KEYS", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "SECRETS")


def looks_secret(name: str) -> bool:
    """Whether the name of a variable says that its value is nobody else's business."""
    return any(part.endswith(_SECRET_ENDINGS) for part in name.upper().split("_"))


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError("must not hold half a surrogate pair") from error
    return value


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(
            "must be 1 to 63 letters, digits, dots, dashes or underscores, "
            "and begin with a letter or a digit"
        )
    return value


def _word(value: str) -> str:
    if value.startswith("-") and _WORD.fullmatch(value.lstrip("-")):
        raise ValueError(f"is written without its dashes: {value.lstrip('-')}")
    if not _WORD.fullmatch(value):
        raise ValueError("must be a word of letters, digits, underscores, dots or dashes")
    return value


def _env_name(value: str) -> str:
    if not _ENV_NAME.fullmatch(value):
        raise ValueError("must be a variable's name: letters, digits and underscores")
    return value


def _scalar(value: Any) -> ArgValue:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str(value))
    if isinstance(value, int):
        if abs(value) > _LARGEST:
            raise ValueError("must be a number that fits into 64 bits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("must be a finite number")
        return float(value)
    raise ValueError("must be a single value: text, a number, true or false")


def _argument_word(value: Any) -> str:
    if isinstance(value, bool):
        raise ValueError("must be a number, or text in quotes")  # noqa: TRY004
    return str(_scalar(value))


def _env_value(value: Any) -> str | Secret:
    return value if isinstance(value, Secret) else _argument_word(value)


def _hide_secrets(values: Mapping[str, str | Secret]) -> Mapping[str, str | Secret]:
    return {
        name: Secret(value) if isinstance(value, str) and looks_secret(name) else value
        for name, value in values.items()
    }


def _regex(value: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what may change in a later Python works today
            re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return value


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _network(value: str) -> str:
    if value.strip().lower() == "me":
        return "me"
    try:
        return str(ipaddress.ip_network(value.strip(), strict=True))
    except ValueError as error:
        if "host bits" in str(error):
            near = ipaddress.ip_network(value.strip(), strict=False)
            raise ValueError(f"is not where a network begins; did you mean {near}?") from error
        raise ValueError("must be me, or a network such as 203.0.113.0/24") from error


_SCALAR_TYPES = ["string", "integer", "number", "boolean"]

Name = Annotated[str, AfterValidator(_name)]
Word = Annotated[str, AfterValidator(_word)]
Text = Annotated[str, AfterValidator(_text), AfterValidator(_filled)]
PathText = Annotated[
    str,
    AfterValidator(_text),
    AfterValidator(_filled),
    WithJsonSchema({"type": "string", "format": "path"}),
]
Yes = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
Whole = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]
Few = Annotated[int, Field(strict=True, ge=1, le=10_000)]
Port = Annotated[int, Field(strict=True, ge=1, le=65_535)]
Usd = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": DURATION_PATTERN},
            ]
        }
    ),
]
Scalar = Annotated[ArgValue, PlainValidator(_scalar), WithJsonSchema({"type": _SCALAR_TYPES})]
ArgumentWord = Annotated[
    str, PlainValidator(_argument_word), WithJsonSchema({"type": _SCALAR_TYPES[:3]})
]
Arguments = Mapping[Word, Scalar]
EnvName = Annotated[str, AfterValidator(_env_name)]
EnvValue = Annotated[
    str | Secret,
    PlainValidator(_env_value),
    # Whoever dumps a spec gets the redacted word, whatever way it is dumped.
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": _SCALAR_TYPES[:3]}),
]
_ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Words = Annotated[
    tuple[Text, ...],
    Field(min_length=1),
    BeforeValidator(_one_or_more),
    WithJsonSchema(_ONE_OR_MORE),
]
Network = Annotated[str, AfterValidator(_network)]
Networks = Annotated[
    tuple[Network, ...],
    Field(min_length=1),
    BeforeValidator(_one_or_more),
    WithJsonSchema(_ONE_OR_MORE),
]
Environment = Annotated[Mapping[EnvName, EnvValue], AfterValidator(_hide_secrets)]
Regex = Annotated[Text, AfterValidator(_regex)]
