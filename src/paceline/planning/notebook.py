"""A notebook as a run: JupyterLab on the first host, and a crew that waits on the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from paceline.crew import CREW_VARIABLE, SECRET_VARIABLE, Member
from paceline.errors import PlanError
from paceline.model.command import Command, Secret
from paceline.model.host import Cluster, HostFacts
from paceline.model.plan import Configuration, HostPlan, JobPlace, ProcessPlan, RunPlan
from paceline.model.spec import Spec
from paceline.planning.environment import host_environment

TOKEN_VARIABLE = "JUPYTER_TOKEN"  # noqa: S105 - the name, not the token
PROCESS = "jupyterlab"
LAUNCHER = "notebook"
EXAMPLE = "all-hosts.ipynb"
_LOOPBACK = "127.0.0.1"


def plan_notebook(
    spec: Spec,
    cluster: Cluster,
    facts: Mapping[str, HostFacts],
    places: Mapping[str, JobPlace],
    run_id: str,
    *,
    port: int,
    token: str,
    secret: str,
) -> RunPlan:
    """Return what every host does: serve notebooks to its own loopback, or wait for calls.

    `port` is free on the first host; `token` is what JupyterLab asks for, and `secret` what the
    hosts prove themselves to each other with.
    """
    hosts = cluster.hosts[: spec.cluster.nodes or len(cluster.hosts)]
    configuration = Configuration(len(hosts), spec.job.procs_per_node)
    crew = [_member(spec, cluster, facts, places, node) for node in range(len(hosts))]

    def process(node: int) -> ProcessPlan:
        host, place = hosts[node], places[hosts[node].name]
        env: dict[str, str | Secret] = host_environment(
            spec,
            configuration,
            facts[host.name],
            job_folder=place.job_folder,
            import_path=place.import_path,
            measured=False,
        )
        env[SECRET_VARIABLE] = Secret(secret)
        out = f"{place.job_folder}/out"
        if node == 0:
            env[TOKEN_VARIABLE] = Secret(token)
            env[CREW_VARIABLE] = json.dumps([asdict(member) for member in crew])
            return ProcessPlan(PROCESS, Command(_jupyter(_python(place), port, out), env), ())
        argv = (_python(place), "-m", "paceline.crew", "serve", str(crew[node].port))
        return ProcessPlan(f"crew-{node}", Command(argv, env), ())

    first = places[hosts[0].name]
    return RunPlan(
        run_id=run_id,
        configuration=configuration,
        launcher=LAUNCHER,
        hosts=tuple(
            HostPlan(host, node, (process(node),), places[host.name])
            for node, host in enumerate(hosts)
        ),
        master_address=_LOOPBACK,
        master_port=port,
        job_folder=first.job_folder,
        python=first.python,
        import_path=first.import_path,
    )


def _python(place: JobPlace) -> str:
    return place.rank_python or place.python


def _member(
    spec: Spec,
    cluster: Cluster,
    facts: Mapping[str, HostFacts],
    places: Mapping[str, JobPlace],
    node: int,
) -> Member:
    host = cluster.hosts[node]
    known = facts[host.name]
    if node and known.free_port is None:
        raise PlanError(f"{host.name}: no free port was found", hint="is the host full of servers?")
    return Member(
        host=host.name,
        address=host.peer_address,
        python=_python(places[host.name]),
        cores=known.cores,
        procs=spec.job.procs_per_node,
        port=known.free_port if node else None,
        interface=known.interface,
    )


def _jupyter(python: str, port: int, folder: str) -> tuple[str, ...]:
    """Return the line that starts JupyterLab; its token comes by the environment."""
    return (
        *(python, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        f"--ServerApp.ip={_LOOPBACK}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.use_redirect_file=False",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    )
