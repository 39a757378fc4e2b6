"""From the command to the first training step on 2 hosts, over starting the same ranks by hand.

python benchmarks/first_step_hosts.py [rounds]

The hosts are network namespaces with a real sshd each, so this needs root. By hand means: one
rank on each host, started there with its variables set, without SSH. One thread each: both hosts
share the cores of this machine. Cold is a whole `paceline train`; warm is a run on hosts that are
connected already, as within a study.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ab import conditions, show
from first_step import FLAGS, PACELINE, first_iteration_t
from paceline.api.wiring import SystemClock, load, open_store, wire
from paceline.app.launch import begin_run, finish_run
from paceline.app.preflight import preflight
from paceline.app.workplace import Workplace, open_workplace, plan_for
from paceline.measure.statistics import estimate
from paceline.model.plan import Configuration
from paceline.model.record import RunRecord, RunState
from paceline.model.spec import Spec
from paceline.rehearsal.hosts import SshHost, ssh_hosts
from paceline.rehearsal.network import plan_network

SUBNET = 102
PORT = "29511"


def by_hand(hosts: Sequence[SshHost]) -> float:
    """Start one rank on each host with its variables, as a person would who sits at both."""
    folder = Path(tempfile.mkdtemp())
    argv = ["-m", "paceline.trainer", "--program", "dcgan", "--dataset", "fake"]
    argv += [word for name, value in FLAGS.items() for word in (f"--{name}", str(value))]
    begun = time.time()
    ranks = [
        subprocess.Popen(
            host.lab.inside((sys.executable, *argv, "--out_folder", str(folder))),
            stdout=subprocess.DEVNULL,
            env={
                **os.environ, "RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2",
                "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": hosts[0].address, "MASTER_PORT": PORT,
                "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1",
                "PACELINE_EVENTS": str(folder), "RES_OPTIONS": "timeout:1 attempts:1",
            },
        )
        for rank, host in enumerate(hosts)
    ]  # fmt: skip
    assert all(rank.wait() == 0 for rank in ranks)
    took = first_iteration_t(folder) - begun
    shutil.rmtree(folder)
    return took


def cold(spec: Path) -> float:
    """Start the same ranks with `paceline train`."""
    folder = Path(tempfile.mkdtemp())
    begun = time.time()
    argv = [PACELINE, "train", str(spec), "--results", str(folder)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = first_iteration_t(folder) - begun
    shutil.rmtree(folder)
    return took


async def warm(place: Workplace, spec: Spec) -> float:
    """Start the same ranks on hosts that are connected already."""
    begun = time.time()
    plan = await plan_for(
        place, spec, Configuration(2, 1), f"warm-{secrets.token_hex(3)}", measured=False
    )
    record = RunRecord(
        plan.run_id, "train", RunState.PLANNED, plan.configuration,
        place.pad.store.folder_for_run(plan.run_id), begun,
        hosts=tuple(item.host.name for item in plan.hosts),
    )  # fmt: skip
    running = await begin_run(place.pad, plan, record)
    ended = await finish_run(place.pad, plan, running, lambda _: None)
    assert ended.state is RunState.SUCCEEDED, ended.failure
    return first_iteration_t(ended.folder) - begun


def spec_of(hosts: Sequence[SshHost], folder: Path) -> Path:
    """Write the spec that names the hosts."""
    entries = "".join(
        f"    - {{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}\n"
        for host in hosts
    )
    flags = ", ".join(f"{name}: {value}" for name, value in FLAGS.items())
    path = folder / "spec.yaml"
    path.write_text(
        f"cluster:\n  provider: hosts\n  hosts:\n{entries}"
        f"runtime: {{python: {sys.executable}}}\n"
        f"job: {{program: dcgan, threads: 1, args: {{{flags}}}}}\n"
    )
    return path


async def measure(
    hosts: Sequence[SshHost], path: Path, results: Path, rounds: int
) -> dict[str, list[float]]:
    """Measure the three ways in turns; the first round is lost."""
    times: dict[str, list[float]] = {"by hand": [], "cold": [], "warm": []}
    spec = load(path)
    wiring = wire(spec)
    store = open_store(results)
    async with open_workplace(wiring.provider, wiring.ground, store, SystemClock()) as place:
        await preflight(place, spec)
        for number in range(rounds + 1):
            found = {
                "by hand": await asyncio.to_thread(by_hand, hosts),
                "cold": await asyncio.to_thread(cold, path),
                "warm": await warm(place, spec),
            }
            for way, took in found.items():
                times[way] += [took] if number else []
    return times


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    conditions()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PACELINE_HOME"] = str(folder / "state")
        plan = plan_network(f"f{SUBNET}", 2, subnet=SUBNET)
        with ssh_hosts(plan, folder / "lab") as hosts:
            path = spec_of(hosts, folder)
            times = asyncio.run(measure(hosts, path, folder / "results", rounds))
    found = {way: estimate(values) for way, values in times.items()}
    for way, value in found.items():
        assert value is not None
        show(f"first step on 2 hosts, {way}", value, "s")
    hand, ours, warmed = (value.mean for value in found.values() if value is not None)
    print(f"cold over by hand: {ours - hand:.2f} s (aim: at most 1.5)")
    print(f"warm over by hand: {warmed - hand:.2f} s (aim: at most 0.5)")


if __name__ == "__main__":
    main()
