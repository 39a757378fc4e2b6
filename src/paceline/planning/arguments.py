"""Arguments of a job: from the mapping in a spec to words on a command line."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.model.plan import ArgValue, Configuration
from paceline.model.spec import Spec

_BATCH_SIZE_NAMES = ("batch_size", "batch-size")


def argument_words(arguments: Mapping[str, ArgValue]) -> tuple[str, ...]:
    """Return `batch_size: 16` as `--batch_size 16`, true as a bare flag, false as nothing."""
    words: list[str] = []
    for name, value in arguments.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name}"
        if value is True:
            words.append(flag)
        elif value is not False:
            words += _valued(flag, str(value))
    return tuple(words)


def batch_size_of(spec: Spec) -> int | None:
    """Return the batch size among the job's own arguments; None if it is not there."""
    for name in _BATCH_SIZE_NAMES:
        value = spec.job.args.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def merged_arguments(spec: Spec, configuration: Configuration) -> dict[str, ArgValue]:
    """Return the job's arguments with those of one configuration over them."""
    merged = {**spec.job.args, **dict(configuration.args)}
    if configuration.batch_size is not None:
        # Spelled as the user spelled it: some scripts know `--batch-size` only.
        known = [name for name in _BATCH_SIZE_NAMES if name in merged]
        for name in known or _BATCH_SIZE_NAMES[:1]:
            merged[name] = configuration.batch_size
    return merged


def _valued(flag: str, text: str) -> tuple[str, ...]:
    # A parser would take a separate word with a dash for another option.
    if text.startswith("-") and flag.startswith("--"):
        return (f"{flag}={text}",)
    return (flag, text)
