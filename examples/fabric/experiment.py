"""Trains on hosts with Fabric and docker alone, and writes a line per sample into a CSV.

python experiment.py --hosts 10.0.0.1,10.0.0.2 --nodes 2 --nproc 2

Paceline does all of this by itself (`paceline study`); this is for those who keep a script of
their own. The hosts need the image `dist_dcgan:latest` and this folder's run.sh in FOLDER; a run
of Paceline with `runtime: {kind: docker, dockerfile: Dockerfile, image: dist_dcgan}` leaves the
image on them.
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
    """Take the samples of one configuration."""
    options = parse()
    hosts = options.hosts.split(",")[: options.nodes]
    keys = {"key_filename": options.key} if options.key else {}
    connections = [Connection(host, connect_kwargs=keys) for host in hosts]
    name = f"nnode-{options.nodes}_nproc-{options.nproc}_batch_size-{options.batch_size}.csv"
    for sample in range(options.samples):
        write_env(connections, hosts, options)
        begun = time.monotonic()
        times = train(connections, options)
        total = time.monotonic() - begun
        append(Path(name), sample, total, times)
        print(f"sample {sample}: total {total:.2f} s, epoch 0 of each rank: {times}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", required=True, help="addresses; the first is the master")
    parser.add_argument("--key", help="the private key, if the agent has none")
    parser.add_argument("--folder", default="~/dist_dcgan", help="the working directory there")
    parser.add_argument("--image", default="dist_dcgan:latest")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--nproc", type=int, default=1, help="processes on each host")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--port", type=int, default=1234)
    parser.add_argument("--env", action="append", default=[], help="more lines for .env")
    parser.add_argument(
        "--arguments", default="--dataset cifar10 --dataroot ./cifar10 --num_epochs 1"
    )
    return parser.parse_args()


def write_env(connections: list, hosts: list, options: argparse.Namespace) -> None:
    """Tell each host its rank, and all of them where to meet."""
    for rank, connection in enumerate(connections):
        lines = [
            f"NODE_RANK={rank}",
            f"NNODES={len(hosts)}",
            f"NPROC={options.nproc}",
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
