"""Trains on hosts with Fabric and docker alone, and writes a CSV for each configuration.

python3 experiment.py --hosts 10.0.0.1,10.0.0.2

The first host is the master. One process on it is the baseline; then all hosts train, with 1, 2
and 4 processes each. `--take 2x4` takes that configuration alone.

Paceline does all of this by itself (`paceline study`); this is for those who keep a script of
their own. The hosts need the image `dist_dcgan:latest`, and run.sh and the data in FOLDER; a run
of Paceline with `runtime: {kind: docker, dockerfile: Dockerfile, image: dist_dcgan}` leaves the
image on them, and so does `paceline bake`.
"""

import argparse
import csv
import re
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fabric import Connection

RUN = (
    "cd {folder} && docker run --env-file .env --rm --network=host -v=$(pwd):/root "
    "{image} ./run.sh {arguments}"
)
EPOCH = re.compile(r"\[rank: (\d+)\] Epoch 0 took: ([0-9.]+) seconds")


def main() -> None:
    """Take the samples of every configuration."""
    options = parse()
    hosts = options.hosts.split(",")
    keys = {"key_filename": options.key} if options.key else {}
    connections = [Connection(host, connect_kwargs=keys) for host in hosts]
    for nodes, nproc in options.take or usual(len(hosts)):
        name = f"nnode-{nodes}_nproc-{nproc}_batch_size-{options.batch_size}.csv"
        for sample in range(options.samples):
            write_env(connections[:nodes], nproc, options)
            begun = time.monotonic()
            times = train(connections[:nodes], options)
            total = time.monotonic() - begun
            append(Path(name), sample, total, times)
            print(f"{name}: total {total:.2f} s, epoch 0 of each rank: {times}", flush=True)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", required=True, help="addresses; the first is the master")
    parser.add_argument("--key", help="the private key, if the agent has none")
    parser.add_argument("--folder", default="~/fabric", help="the working directory there")
    parser.add_argument("--image", default="dist_dcgan:latest")
    parser.add_argument(
        "--take", type=configuration, nargs="+", help="hosts and processes on each, such as 2x4"
    )
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--port", type=int, default=1234)
    parser.add_argument("--env", action="append", default=[], help="more lines for .env")
    parser.add_argument(
        "--arguments", default="--dataset cifar10 --dataroot ./cifar10 --num_epochs 1"
    )
    return parser.parse_args()


def usual(hosts: int) -> list:
    """Return the baseline, one process alone, and all hosts with more and more processes."""
    return [(1, 1), *((hosts, nproc) for nproc in (1, 2, 4))]


def configuration(word: str) -> tuple:
    """Read a configuration, such as 2x4: two hosts, four processes on each."""
    nodes, nproc = word.split("x")
    return int(nodes), int(nproc)


def write_env(connections: list, nproc: int, options: argparse.Namespace) -> None:
    """Tell each host its rank, and all of them where to meet."""
    for rank, connection in enumerate(connections):
        lines = [
            f"NODE_RANK={rank}",
            f"NNODES={len(connections)}",
            f"NPROC={nproc}",
            f"MASTER_ADDR={connections[0].host}",
            f"MASTER_PORT={options.port}",
            *options.env,
        ]
        words = " ".join(shlex.quote(line) for line in lines)
        connection.run(f"printf '%s\\n' {words} > {options.folder}/.env")


def train(connections: list, options: argparse.Namespace) -> dict:
    """Run the containers on all hosts at once; return the seconds of epoch 0 by rank."""
    arguments = f"{options.arguments} --batch_size {options.batch_size}"
    line = RUN.format(folder=options.folder, image=options.image, arguments=arguments)
    with ThreadPoolExecutor(len(connections)) as pool:
        results = list(pool.map(lambda connection: connection.run(line, hide=True), connections))
    found = {}
    for result in results:
        found.update({int(rank): float(took) for rank, took in EPOCH.findall(result.stdout)})
    return dict(sorted(found.items()))


def append(path: Path, sample: int, total: float, times: dict) -> None:
    """Add a line to the CSV; the first sample writes its header."""
    with path.open("a" if sample else "w", newline="") as file:
        writer = csv.writer(file)
        if not sample:
            writer.writerow(["total", *(f"t{rank}" for rank in times)])
        writer.writerow([f"{total:.4f}", *times.values()])


if __name__ == "__main__":
    main()
