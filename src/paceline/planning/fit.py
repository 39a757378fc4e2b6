"""Whether what is asked for fits onto the hosts that are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from paceline.errors import PlanError
from paceline.model.host import HostFacts
from paceline.model.plan import Configuration

_FEWER_NODES = "ask for fewer nodes"
_FEWER_PROCESSES = (
    "lower procs_per_node, or set `job.oversubscribe: true` to let processes share cores "
    "(the figures then say little about scaling)"
)


@dataclass(frozen=True)
class _Misfit:
    """One thing that a configuration needs and the hosts do not have, and the way out."""

    what: str
    remedy: str


def require_fit(
    configurations: Iterable[Configuration], facts: Sequence[HostFacts], *, oversubscribe: bool
) -> None:
    """Raise one PlanError that names every configuration which the hosts cannot carry."""
    misfits = [
        (item, misfit)
        for item in configurations
        for misfit in _misfits(item, facts, oversubscribe=oversubscribe)
    ]
    if misfits:
        lines = [f"  {item.title}: {misfit.what}" for item, misfit in misfits]
        remedies = dict.fromkeys(misfit.remedy for _, misfit in misfits)
        raise PlanError(
            "what is asked for does not fit onto the hosts:\n" + "\n".join(lines),
            hint="; ".join(remedies),
        )


def crowded(configuration: Configuration, facts: Sequence[HostFacts]) -> bool:
    """Whether a configuration runs more processes on a host than it has cores."""
    used = facts[: configuration.nodes]
    return any(configuration.procs_per_node > host.cores for host in used)


def _misfits(
    configuration: Configuration, facts: Sequence[HostFacts], *, oversubscribe: bool
) -> Iterator[_Misfit]:
    nodes, processes = configuration.nodes, configuration.procs_per_node
    if nodes > len(facts):
        there = "is 1 host" if len(facts) == 1 else f"are {len(facts)} hosts"
        yield _Misfit(f"needs {nodes} hosts, and there {there}", _FEWER_NODES)
    if oversubscribe:
        return
    for host in facts[:nodes]:
        if processes > host.cores:
            cores = "1 core" if host.cores == 1 else f"{host.cores} cores"
            what = f"needs {processes} cores on each host, and {host.hostname} has {cores}"
            yield _Misfit(what, _FEWER_PROCESSES)
