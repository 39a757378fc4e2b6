"""One run as data: the exact command lines of every host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from paceline.errors import PlanError
from paceline.model.command import Secret
from paceline.model.host import Cluster, Host, HostFacts
from paceline.model.plan import Configuration, HostPlan, JobPlace, RunPlan, Vigil
from paceline.model.spec import Spec
from paceline.planning.containers import contained
from paceline.planning.fit import crowded, require_fit
from paceline.planning.launch import Launch, rendezvous_of
from paceline.planning.launchers import LAUNCHERS
from paceline.planning.variant import variant_of
from paceline.supervisor.job import Lookout

_LOOPBACK_ADDRESS = "127.0.0.1"


def plan_run(
    spec: Spec,
    configuration: Configuration,
    cluster: Cluster,
    facts: Mapping[str, HostFacts],
    run_id: str,
    *,
    job_folder: str,
    python: str,
    import_path: str | None,
    port: int,
    measured: bool,
    places: Mapping[str, JobPlace] | None = None,
    secret: str = "",
    vigil_port: int | None = None,
) -> RunPlan:
    """Return what every host does for one run of a configuration.

    `facts` are those of the cluster's hosts, by their names. `job_folder` is where the job lives
    on each of them, `python` the one that runs Paceline's own parts there (and the job, unless
    the spec names another), `port` is free on the master. `measured` is a sample of a study; a
    run that is not measured goes on as long as the job's own arguments say. `places` says for
    each host where the job lives there, where that differs between them. `secret` is what the
    hosts of this run prove themselves to each other with, and `vigil_port`, free on the master as
    well, where the supervisors of several hosts watch over each other.
    """
    spec = variant_of(spec, configuration)
    known = _in_order(cluster, facts)
    require_fit((configuration,), known, oversubscribe=spec.job.oversubscribe)
    common = JobPlace(job_folder, python, import_path)
    alone = configuration.nodes == 1
    launch = Launch(
        spec=spec,
        configuration=configuration,
        cluster=cluster,
        facts=known[: configuration.nodes],
        places=_places(cluster.hosts[: configuration.nodes], places, common),
        master_address=_LOOPBACK_ADDRESS if alone else cluster.master.peer_address,
        master_port=spec.job.master_port or port,
        measured=measured,
        secret=secret,
    )
    return RunPlan(
        run_id=run_id,
        configuration=configuration,
        launcher=spec.job.launcher,
        hosts=_placed(run_id, LAUNCHERS[spec.job.launcher](launch), places),
        master_address=launch.master_address,
        master_port=launch.master_port,
        job_folder=job_folder,
        python=python,
        import_path=import_path,
        timeout_s=spec.job.timeout,
        hang_timeout_s=spec.job.hang_timeout,
        notes=tuple(_notes(spec, configuration, launch.facts)),
        lookout=None if cluster.notices_at is None else Lookout(cluster.notices_at),
        vigil=None if alone or not vigil_port else Vigil(vigil_port, Secret(secret)),
    )


def _places(
    hosts: Sequence[Host], places: Mapping[str, JobPlace] | None, common: JobPlace
) -> tuple[JobPlace, ...]:
    return tuple((places or {}).get(host.name, common) for host in hosts)


def _placed(
    run_id: str, plans: tuple[HostPlan, ...], places: Mapping[str, JobPlace] | None
) -> tuple[HostPlan, ...]:
    return tuple(
        contained(run_id, replace(plan, place=(places or {}).get(plan.host.name))) for plan in plans
    )


def _in_order(cluster: Cluster, facts: Mapping[str, HostFacts]) -> tuple[HostFacts, ...]:
    unknown = [host.name for host in cluster.hosts if host.name not in facts]
    if unknown:
        raise PlanError(f"nothing is known of these hosts: {', '.join(unknown)}")
    return tuple(facts[host.name] for host in cluster.hosts)


def _notes(spec: Spec, configuration: Configuration, facts: Sequence[HostFacts]) -> Iterator[str]:
    if crowded(configuration, facts):
        yield "more processes than cores; they take turns"
    if spec.job.program is None and spec.job.max_restarts and rendezvous_of(spec) == "static":
        yield (
            "a static rendezvous keeps one store for all attempts, in which ranks that are started "
            "again may find the address of a dead one; `rendezvous: c10d` makes one for each"
        )
    if configuration.nodes > 1:
        for host in facts:
            if host.interface is None:
                yield f"{host.hostname}: its interface is not known; torch chooses one"
