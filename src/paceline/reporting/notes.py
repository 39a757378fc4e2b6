"""What changed between the runs of a study, beside what the study varies on purpose."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from paceline.model.record import RunRecord, RunState

_VERSIONS = {"paceline": "versions of Paceline"}
_FACTS = {
    "torch_version": "torch versions",
    "python_version": "Python versions",
    "cpu_model": "processors",
    "cores": "numbers of cores",
    "zone": "zones",
    "placement": "placements",
    "image": "images",
    "market": "markets",
}


def provenance_notes(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """Return in a sentence each what differs between the runs that count, or between their hosts.

    Runs with more hosts than others are what a study is about: hosts are named only where one
    run had a host that a run of the same size or a larger one did without.
    """
    told = [record.provenance for record in records if record.provenance]
    runs = [hosts for provenance in told if (hosts := _hosts(provenance))]
    return (
        *_host_notes([frozenset(_name(key, facts) for key, facts in run.items()) for run in runs]),
        *_value_notes(_VERSIONS, told),
        *_value_notes(_FACTS, [facts for run in runs for facts in run.values()]),
    )


def failed_tries(records: Sequence[RunRecord], good: Collection[str]) -> tuple[str, ...]:
    """Return in a sentence each try that failed of a sample that worked in the end.

    `good` are the ids of the runs that count. A run that was lost or stopped because somebody
    ended Paceline itself is no try that failed.
    """
    mended = {record.sample_id for record in records if record.run_id in good}
    return tuple(
        f"{record.configuration.title}, sample {record.sample_index}: a try failed "
        f"({record.failure.reason}), and it was taken again"
        for record in records
        if record.state is RunState.FAILED
        and record.sample_id in mended
        and record.run_id not in good
        and record.failure is not None
    )


def _hosts(provenance: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    hosts = provenance.get("hosts")
    if not isinstance(hosts, Mapping):
        return {}
    return {str(key): facts for key, facts in hosts.items() if isinstance(facts, Mapping)}


def _name(key: str, facts: Mapping[str, object]) -> str:
    """Return a host's own name: `localhost` may be another machine every day."""
    return str(facts.get("hostname") or key)


def _host_notes(runs: Sequence[frozenset[str]]) -> list[str]:
    # In order of size, every run's hosts have to be among those of the next.
    ordered = sorted(set(runs), key=len)
    if all(small < large for small, large in pairwise(ordered)):
        return []
    return [f"samples were taken on different hosts: {_listed(frozenset().union(*ordered))}"]


def _value_notes(names: Mapping[str, str], told: Sequence[Mapping[str, object]]) -> list[str]:
    notes = []
    for name, words in names.items():
        values = {str(facts[name]) for facts in told if facts.get(name) is not None}
        if len(values) > 1:
            notes.append(f"samples were taken with different {words}: {_listed(values)}")
    return notes


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
