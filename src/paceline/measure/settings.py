"""Settings that were not the same in runs that are compared, and CPU time that was stolen.

A thread setting that nobody wrote down can move a result by half; so what the ranks really had
is compared wherever the study did not change it on purpose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from paceline.model.summary import Sample

# Below this, stolen time is lost in the noise of any machine.
_WORTH_A_NOTE = 0.01


def hidden_differences(samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return in a sentence each setting that differs between runs with as many processes a host.

    With other numbers of processes, each has other threads on purpose. What is an argument of
    the study is no secret either.
    """
    found: dict[tuple[int, str | None, str], dict[str, list[Sample]]] = defaultdict(dict)
    for sample in samples:
        item = sample.configuration
        varied = {name for name, _ in item.traits}
        for name, value in _settings(sample).items():
            if name not in varied:
                key = (item.procs_per_node, item.instance_type, name)
                found[key].setdefault(value, []).append(sample)
    return tuple(
        f"{name} was not the same in runs with {_processes(procs)} per host: {_listed(values)}"
        for (procs, _, name), values in found.items()
        if len(values) > 1
    )


def stolen(sample: Sample) -> tuple[str, ...]:
    """Return a sentence where a hypervisor gave much of a host's time to others."""
    shares = {rank.host: rank.steal for rank in sample.ranks if rank.steal is not None}
    return tuple(
        f"sample {sample.index}: {share:.0%} of the CPU time of {host or 'its host'} was stolen: "
        "other machines on the same hardware were served meanwhile"
        for host, share in shares.items()
        if share >= _WORTH_A_NOTE
    )


def _settings(sample: Sample) -> dict[str, str]:
    """Return the settings of a sample's ranks; where they differ among ranks, all of them."""
    values: dict[str, set[str]] = defaultdict(set)
    for rank in sample.ranks:
        for name, value in rank.settings.items():
            values[name].add(str(value))
    return {name: " and ".join(sorted(own)) for name, own in values.items()}


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _listed(values: dict[str, list[Sample]]) -> str:
    return ", ".join(f"{value} in {_runs(own)}" for value, own in sorted(values.items()))


def _runs(samples: Sequence[Sample]) -> str:
    titles = list(dict.fromkeys(sample.configuration.title for sample in samples))
    count = f"{len(samples)} run{'' if len(samples) == 1 else 's'}"
    return f"{count} ({titles[0]}{' and others' if len(titles) > 1 else ''})"
