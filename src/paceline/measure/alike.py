"""Whether two configurations differ in their processes only, which is what scaling is about."""

from __future__ import annotations

from paceline.model.plan import Configuration


def batch_of(configuration: Configuration, scaling: str) -> int | None:
    """Return the batch that scaling keeps: of each process if weak, of all if strong."""
    if scaling == "strong":
        return configuration.global_batch_size
    return configuration.batch_size


def alike(one: Configuration, other: Configuration, scaling: str) -> bool:
    """Whether two configurations differ in nothing but the number and place of processes."""
    return not differences(one, other, scaling)


def differences(configuration: Configuration, baseline: Configuration, scaling: str) -> str:
    """Return in words what differs from the baseline apart from the processes."""
    words = []
    mine, theirs = batch_of(configuration, scaling), batch_of(baseline, scaling)
    if mine != theirs:
        what = "a global batch of" if scaling == "strong" else "batch"
        words.append(f"{what} {mine} instead of {theirs}")
    own, others = dict(configuration.traits), dict(baseline.traits)
    words += [
        f"{name} {own.get(name)} instead of {others.get(name)}"
        for name in sorted({*own, *others})
        if own.get(name) != others.get(name)
    ]
    return ", ".join(words)
