"""One run as data: the exact command lines and environments of every host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from paceline.errors import PlanError
from paceline.model.command import Command, Secret
from paceline.model.host import Cluster, Host, HostFacts
from paceline.model.plan import Configuration, HostPlan, ProcessPlan, RunPlan, Vigil
from paceline.model.spec import Spec, load_spec
from paceline.planning.launch import _group_ranks
from paceline.planning.run import plan_run

ALPHA = Host("alpha", "203.0.113.1", "10.0.0.1")
BETA = Host("beta", "203.0.113.2", "10.0.0.2")
PAIR = Cluster("pair", "hosts", (ALPHA, BETA))
FACTS = {
    "alpha": HostFacts("alpha", cores=8, interface="ens5"),
    "beta": HostFacts("beta", cores=4, interface="eth1"),
}
PYTHON = "/opt/venv/bin/python"
JOB = "/var/jobs/r1"
TRAINER = ("-m", "paceline.trainer", "--program", "dcgan", "--dataset", "fake")
OUT = ("--out_folder", f"{JOB}/out")
SHARED = {
    "PACELINE_EVENTS": f"{JOB}/events",
    "PACELINE_OUT": f"{JOB}/out",
    "PYTHONUNBUFFERED": "1",
    "PYTHONPATH": "/opt/paceline",
}


def spec_of(**job: Any) -> Spec:
    """Return a spec with such a job."""
    return load_spec({"job": {"workdir": "/srv", **job}}, check_files=False)


def plan(
    spec: Spec,
    configuration: Configuration,
    *,
    cluster: Cluster = PAIR,
    facts: dict[str, HostFacts] | None = None,
    measured: bool = False,
) -> RunPlan:
    """Return the plan of one run on the two hosts."""
    return plan_run(
        spec,
        configuration,
        cluster,
        FACTS if facts is None else facts,
        "r1",
        job_folder=JOB,
        python=PYTHON,
        import_path="/opt/paceline",
        port=29500,
        measured=measured,
    )


def only(run: RunPlan) -> Command:
    """Return the command of the first process of the first host."""
    return run.hosts[0].processes[0].command


def test_direct_starts_every_rank_by_itself() -> None:
    """Two hosts, two ranks each: argv, environment and folder of all four, to the letter."""
    run = plan(spec_of(args={"epochs": 1}), Configuration(2, 2, 16))

    def rank(number: int, local: int, node: int, threads: int, interface: str) -> ProcessPlan:
        env = {
            **SHARED,
            "OMP_NUM_THREADS": str(threads),
            "GLOO_SOCKET_IFNAME": interface,
            "NCCL_SOCKET_IFNAME": interface,
            "RANK": str(number),
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": "4",
            "LOCAL_WORLD_SIZE": "2",
            "NODE_RANK": str(node),
            "GROUP_RANK": str(node),
            "MASTER_ADDR": "10.0.0.1",
            "MASTER_PORT": "29500",
        }
        argv = (PYTHON, *TRAINER, *OUT, "--epochs", "1", "--batch_size", "16")
        return ProcessPlan(f"rank-{number}", Command(argv, env, "/srv"), (number,))

    assert run == RunPlan(
        run_id="r1",
        configuration=Configuration(2, 2, 16),
        launcher="direct",
        hosts=(
            HostPlan(ALPHA, 0, (rank(0, 0, 0, 4, "ens5"), rank(1, 1, 0, 4, "ens5"))),
            HostPlan(BETA, 1, (rank(2, 0, 1, 2, "eth1"), rank(3, 1, 1, 2, "eth1"))),
        ),
        master_address="10.0.0.1",
        master_port=29500,
        job_folder=JOB,
        python=PYTHON,
        import_path="/opt/paceline",
        hang_timeout_s=1800.0,
    )
    assert run.world_size == 4


def test_torchrun_is_started_once_per_host() -> None:
    """Two hosts, two ranks each: one torchrun on each host, to the letter."""
    spec = spec_of(launcher="torchrun", max_restarts=3, rendezvous="static", timeout="1h")
    run = plan(spec, Configuration(2, 2))

    def host(host: Host, node: int, threads: int, interface: str) -> HostPlan:
        argv = (
            *(PYTHON, "-m", "torch.distributed.run"),
            *("--nnodes", "2", "--node-rank", str(node), "--nproc-per-node", "2"),
            *("--master-addr", "10.0.0.1", "--master-port", "29500"),
            *("--rdzv-conf", "timeout=120", "--max-restarts", "3"),
            *("--log-dir", f"{JOB}/torchrun"),
            *(*TRAINER, *OUT),
        )
        env = {
            **SHARED,
            "OMP_NUM_THREADS": str(threads),
            "GLOO_SOCKET_IFNAME": interface,
            "NCCL_SOCKET_IFNAME": interface,
            "NODE_RANK": str(node),
        }
        ranks = (2 * node, 2 * node + 1)
        process = ProcessPlan(f"torchrun-{node}", Command(argv, env, "/srv"), ranks)
        return HostPlan(host, node, (process,))

    assert run.hosts == (host(ALPHA, 0, 4, "ens5"), host(BETA, 1, 2, "eth1"))
    assert run.launcher == "torchrun"
    assert run.timeout_s == 3600.0


def test_c10d_gathers_the_hosts_at_the_first() -> None:
    """Each torchrun is told who keeps the store and which address is its own."""
    hosts = plan(spec_of(launcher="torchrun", rendezvous="c10d"), Configuration(2, 2)).hosts
    for node, address in enumerate(("10.0.0.1", "10.0.0.2")):
        argv = hosts[node].processes[0].command.argv
        words = (
            *("--nnodes", "2", "--nproc-per-node", "2", "--rdzv-backend", "c10d"),
            *("--rdzv-endpoint", "10.0.0.1:29500", "--rdzv-id", "paceline-29500"),
            *("--rdzv-conf", f"join_timeout=120,is_host={int(node == 0)}"),
            *("--local-addr", address),
        )
        assert argv[3 : 3 + len(words)] == words
        assert hosts[node].processes[0].ranks == (2 * node, 2 * node + 1)


@pytest.mark.parametrize(
    ("rendezvous", "restarts", "own"),
    [
        ("c10d", 2, True),
        ("c10d", 0, False),
        ("static", 2, False),
        (None, 2, True),
        (None, 0, False),
    ],
)
def test_attempts_of_c10d_share_no_store(
    rendezvous: str | None, restarts: int, *, own: bool
) -> None:
    """Where ranks may be started again, none finds the address of a dead one, unless asked for."""
    spec = spec_of(launcher="torchrun", rendezvous=rendezvous, max_restarts=restarts)
    run = plan(spec, Configuration(2, 2))
    command = run.hosts[1].processes[0].command
    assert ("TORCH_DISABLE_SHARE_RDZV_TCP_STORE" in command.env) == own
    assert ("c10d" in command.argv) == (rendezvous == "c10d" or own)


@pytest.mark.parametrize(
    ("job", "told"),
    [
        ({"rendezvous": "static", "max_restarts": 1, "script": "t.py"}, True),
        ({"rendezvous": "static", "max_restarts": 1}, False),  # our trainers part them
        ({"max_restarts": 1, "script": "t.py"}, False),
        ({"rendezvous": "static", "script": "t.py"}, False),
    ],
)
def test_a_store_that_attempts_share_is_told(job: dict[str, object], *, told: bool) -> None:
    """Who insists on a static rendezvous is told what other programs may find there."""
    notes = plan(spec_of(launcher="torchrun", **job), Configuration(2, 1)).notes
    assert any("address of a dead one" in note for note in notes) == told


def test_c10d_numbers_hosts_by_address() -> None:
    """Where the list is in another order, so are the ranks that are expected of each host."""
    launch = SimpleNamespace(
        configuration=Configuration(3, 1),
        spec=spec_of(launcher="torchrun", rendezvous="c10d"),
        cluster=Cluster("c", "hosts", tuple(Host(a, a, a) for a in ("10.0.0.9", "10.0.0.1", "1"))),
        master_address="10.0.0.9",
    )
    assert _group_ranks(cast("Any", launch)) == [2, 1, 0]


def test_a_host_that_is_alone_stays_on_its_loopback() -> None:
    """One host needs no network: loopback address and interface, whatever it has."""
    run = plan(spec_of(launcher="torchrun"), Configuration(1, 2))
    assert run.master_address == "127.0.0.1"
    assert only(run).env["GLOO_SOCKET_IFNAME"] == "lo"
    assert only(run).argv == (
        *(PYTHON, "-m", "torch.distributed.run"),
        *("--nnodes", "1", "--node-rank", "0", "--nproc-per-node", "2"),
        *("--master-addr", "127.0.0.1", "--master-port", "29500"),
        *("--log-dir", f"{JOB}/torchrun"),
        *(*TRAINER, *OUT),
    )
    assert [item.host for item in run.hosts] == [ALPHA]


@pytest.mark.parametrize(
    ("job", "direct", "torchrun"),
    [
        (
            {"script": "/srv/train.py", "args": {"lr": 0.1}},
            (PYTHON, "/srv/train.py", "--lr", "0.1"),
            ("/srv/train.py", "--lr", "0.1"),
        ),
        (
            {"command": ["./train", "-x", 3, "$$a"], "args": {"price": "$5 ${local_rank}"}},
            ("./train", "-x", "3", "$$a", "--price", "$5 ${local_rank}"),
            ("--no-python", "./train", "-x", "3", "$$$$a", "--price", "$$5 $${local_rank}"),
        ),
        (
            {"program": "mlp"},
            (PYTHON, "-m", "paceline.trainer", "--program", "mlp", "--dataset", "fake", *OUT),
            ("-m", "paceline.trainer", "--program", "mlp", "--dataset", "fake", *OUT),
        ),
    ],
)
def test_what_runs_is_worded_for_its_launcher(
    job: dict[str, Any], direct: tuple[str, ...], torchrun: tuple[str, ...]
) -> None:
    """Scripts, commands and built-in trainers; torchrun's own templates do not touch them."""
    assert only(plan(spec_of(**job), Configuration(1, 1))).argv == direct
    argv = only(plan(spec_of(launcher="torchrun", **job), Configuration(1, 1))).argv
    assert argv[-len(torchrun) :] == torchrun
    assert argv[-len(torchrun) - 1] == f"{JOB}/torchrun"


def test_the_data_reach_the_trainer() -> None:
    """The data set's folder, and whether to fetch it, are flags of the trainer."""
    spec = load_spec({"data": {"dataset": "cifar10", "root": "/data/c10", "download": True}})
    assert only(plan(spec, Configuration(1, 1))).argv == (
        *(PYTHON, "-m", "paceline.trainer", "--program", "dcgan"),
        *("--dataset", "cifar10", "--dataroot", "/data/c10", "--download", *OUT),
    )


@pytest.mark.parametrize(
    ("study", "arguments", "words"),
    [
        ({"iterations": 20}, {}, ("--iterations", "23")),
        ({"iterations": 20, "warmup": 0}, {"lr": 1}, ("--iterations", "20", "--lr", "1")),
        ({"iterations": 20}, {"iterations": 99, "seconds": 9}, ("--iterations", "23")),
        ({"seconds": "1m"}, {"iterations": 99}, ("--seconds", "60.0")),
        ({"measure": "epoch"}, {}, ("--epochs", "1")),
        ({"measure": "epoch"}, {"num_epochs": 2}, ("--num_epochs", "2")),
        ({}, {"epochs": 2}, ("--epochs", "2")),
        ({}, {}, ("--iterations", "33")),
    ],
)
def test_a_sample_ends_when_it_is_measured(
    study: dict[str, Any], arguments: dict[str, Any], words: tuple[str, ...]
) -> None:
    """A built-in trainer is told when to stop: the warm-up comes on top of the iterations."""
    spec = load_spec({"job": {"args": arguments}, "study": study})
    argv = only(plan(spec, Configuration(1, 1), measured=True)).argv
    assert argv == (PYTHON, *TRAINER, *OUT, *words)


def test_a_training_goes_on_as_long_as_the_job_says() -> None:
    """What a study measures does not shorten a run that is none of its samples."""
    spec = load_spec({"job": {"args": {"epochs": 9}}, "study": {"iterations": 20}})
    command = only(plan(spec, Configuration(1, 1), measured=False))
    assert command.argv == (PYTHON, *TRAINER, *OUT, "--epochs", "9")
    assert "PACELINE_ITERATIONS" not in command.env


def test_a_script_is_offered_the_length_of_a_sample() -> None:
    """Scripts cannot be told, but may ask."""

    def offered(**study: Any) -> dict[str, str]:
        spec = load_spec({"job": {"command": ["x"]}, "study": study})
        env = only(plan(spec, Configuration(1, 1), measured=True)).env
        names = ("PACELINE_WARMUP", "PACELINE_ITERATIONS", "PACELINE_SECONDS")
        return {name: str(env[name]) for name in names if name in env}

    assert offered(iterations=20) == {"PACELINE_WARMUP": "3", "PACELINE_ITERATIONS": "23"}
    assert offered(seconds=9) == {"PACELINE_WARMUP": "3", "PACELINE_SECONDS": "9.0"}
    assert offered() == {"PACELINE_WARMUP": "3"}


@pytest.mark.parametrize(
    ("job", "procs", "threads"),
    [
        ({}, 1, "8"),
        ({}, 3, "2"),
        ({}, 8, "1"),
        ({"oversubscribe": True}, 9, "1"),
        ({"threads": 5}, 2, "5"),
        ({"env": {"OMP_NUM_THREADS": 6}}, 2, "6"),
    ],
)
def test_cores_are_shared_between_processes(job: dict[str, Any], procs: int, threads: str) -> None:
    """Threads are cores / processes, at least one, unless the spec says otherwise."""
    assert only(plan(spec_of(**job), Configuration(1, procs))).env["OMP_NUM_THREADS"] == threads


def test_the_specs_variables_go_over_ours() -> None:
    """The job's go over the runtime's, both over ours; secrets stay secrets."""
    spec = load_spec(
        {
            "runtime": {"env": {"A": 1, "B": 1, "PYTHONUNBUFFERED": ""}},
            "job": {"env": {"B": 2, "HF_TOKEN": "s3cret", "GLOO_SOCKET_IFNAME": "eth7"}},
        }
    )
    env = only(plan(spec, Configuration(1, 1))).env
    names = ("A", "B", "PYTHONUNBUFFERED", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    assert [env[name] for name in names] == ["1", "2", "", "eth7", "lo"]
    assert env["HF_TOKEN"] == Secret("s3cret")


def test_our_import_path_stands_in_front() -> None:
    """What the spec, or else the host, has on PYTHONPATH is kept behind ours."""
    facts = {**FACTS, "alpha": HostFacts("alpha", 8, environment={"PYTHONPATH": "/theirs"})}
    one = Configuration(1, 1)
    given = spec_of(env={"PYTHONPATH": "/mine"})
    assert only(plan(given, one)).env["PYTHONPATH"] == "/opt/paceline:/mine"
    assert only(plan(spec_of(), one, facts=facts)).env["PYTHONPATH"] == "/opt/paceline:/theirs"
    assert only(plan(given, one, facts=facts)).env["PYTHONPATH"] == "/opt/paceline:/mine"


def test_the_specs_port_and_python_win() -> None:
    """A port and a Python that are named are used for the job; ours still runs our own parts."""
    spec = load_spec({"runtime": {"python": "python3.12"}, "job": {"master_port": 1234}})
    run = plan(spec, Configuration(1, 1))
    assert (run.master_port, only(run).env["MASTER_PORT"]) == (1234, "1234")
    assert (only(run).argv[0], run.python) == ("python3.12", PYTHON)


def test_an_unknown_interface_is_left_to_torch_and_noted() -> None:
    """What is not known is not guessed."""
    facts = {**FACTS, "beta": HostFacts("beta", 4)}
    run = plan(spec_of(), Configuration(2, 1), facts=facts)
    assert "GLOO_SOCKET_IFNAME" not in run.hosts[1].processes[0].command.env
    assert run.notes == ("beta: its interface is not known; torch chooses one",)


def test_what_does_not_fit_is_refused() -> None:
    """A run is checked like a study."""
    with pytest.raises(PlanError, match="needs 3 hosts, and there are 2 hosts"):
        plan(spec_of(), Configuration(3, 1))
    with pytest.raises(PlanError, match="needs 5 cores on each host, and beta has 4 cores"):
        plan(spec_of(), Configuration(2, 5))
    crowded = plan(spec_of(oversubscribe=True), Configuration(2, 5))
    assert crowded.notes == ("more processes than cores; they take turns",)


def test_hosts_without_facts_are_named() -> None:
    """A run is not planned on hosts that nobody has looked at."""
    with pytest.raises(PlanError, match="nothing is known of these hosts: beta"):
        plan(spec_of(), Configuration(1, 1), facts={"alpha": FACTS["alpha"]})


def test_only_several_hosts_watch_over_each_other() -> None:
    """They get a port and the run's secret; one host, or a plan without a port, has none of it."""
    words = {"job_folder": JOB, "python": PYTHON, "import_path": None, "port": 29500}

    def vigil(nodes: int, port: int | None) -> Vigil | None:
        return plan_run(
            spec_of(), Configuration(nodes, 1), PAIR, FACTS, "r1",
            **words, measured=False, secret="s3", vigil_port=port,  # type: ignore[arg-type]
        ).vigil  # fmt: skip

    assert vigil(2, 30000) == Vigil(30000, Secret("s3"))
    assert vigil(1, 30000) is None
    assert vigil(2, None) is None
