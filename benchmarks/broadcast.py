"""170 MB to 8 hosts, every link shaped to 1 Gbit/s: the broadcast against one link, and 8 uploads.

python benchmarks/broadcast.py [rounds] [hosts]

The hosts are network namespaces with a real sshd each, so this needs root. The file lies on one
more host, as after a download there. One link is a plain copy through a bare connection, at its
best; the uploads are 8 such copies from that host at once, through its one link.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import paceline
from ab import conditions, show, show_ratio
from paceline.app.broadcast import HostFile, broadcast, require_delivered
from paceline.app.package import package_of, settle_on
from paceline.app.pairs import End
from paceline.measure.statistics import estimate
from paceline.model.host import Host, HostFacts, SshAccess
from paceline.rehearsal.hosts import SshHost, ssh_hosts
from paceline.rehearsal.network import plan_network
from paceline.transports.ssh import HostKeys, SshTransport

SIZE = 170_000_000
SUBNET = 101
TAKE = (
    "import socket, sys; s = socket.create_server((sys.argv[1], 7001));"
    "print('up', flush=True); c, _ = s.accept(); a = bytearray(1 << 20)\n"
    "f = open(sys.argv[2], 'wb')\n"
    "while n := c.recv_into(a): f.write(memoryview(a)[:n])"
)
GIVE = (
    "import socket, sys; c = socket.create_connection((sys.argv[1], 7001));"
    "c.sendfile(open(sys.argv[2], 'rb'))"
)


def by_copies(source: SshHost, file: Path, targets: Sequence[SshHost]) -> float:
    """Copy the file to each target through a connection of its own, all at once."""
    with ExitStack() as stack:
        takers = []
        for host in targets:
            argv = host.lab.inside((sys.executable, "-c", TAKE, host.address, str(file) + "-copy"))
            taker = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE))
            assert taker.stdout is not None
            assert taker.stdout.readline() == b"up\n"
            takers.append(taker)
        begun = time.perf_counter()
        for host in targets:
            argv = source.lab.inside((sys.executable, "-c", GIVE, host.address, str(file)))
            stack.enter_context(subprocess.Popen(argv))
        assert all(taker.wait() == 0 for taker in takers)
        return time.perf_counter() - begun


def by_broadcast(source: SshHost, file: Path, targets: Sequence[SshHost]) -> float:
    """Bring the file to all targets; the connections are there already."""

    async def work() -> float:
        links = [SshTransport(_noun(host), _keys(host.folder)) for host in (source, *targets)]
        try:
            package = package_of(Path(paceline.__file__).parent)
            homes = await asyncio.gather(*(settle_on(link, package, None) for link in links))
            ends = [
                End(link.host, link, HostFacts("", 1), sys.executable, home.import_path)
                for link, home in zip(links, homes, strict=True)
            ]
            places = {host.address: str(host.home / "file") for host in targets}
            places[source.address] = str(file)
            begun = time.perf_counter()
            require_delivered(await broadcast(ends, HostFile(source.address, str(file)), places))
            return time.perf_counter() - begun
        finally:
            await asyncio.gather(*(link.close() for link in links))

    took_s = asyncio.run(work())
    for host in targets:
        assert (host.home / "file").stat().st_size == SIZE
        (host.home / "file").unlink()
    return took_s


def _noun(host: SshHost) -> Host:
    access = SshAccess(key=str(host.user_key), host_key=host.host_key)
    return Host(host.address, host.address, host.address, access)


def _keys(folder: Path) -> HostKeys:
    return HostKeys(own_file=folder / "known_hosts", user_files=())


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    conditions()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        plan = plan_network(f"b{SUBNET}", count + 1, subnet=SUBNET, rate="1gbit")
        with ssh_hosts(plan, Path(name) / "lab") as (source, *targets):
            file = source.home / "file"
            file.write_bytes(os.urandom(SIZE))
            ways: dict[str, Callable[[], float]] = {
                "one link, plain": lambda: by_copies(source, file, targets[:1]),
                f"broadcast to {count} hosts": lambda: by_broadcast(source, file, targets),
                f"{count} uploads at once, plain": lambda: by_copies(source, file, targets),
            }
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, measure in ways.items():
                    times[way].append(measure())
    found = {way: estimate(values) for way, values in times.items()}
    one, ours, uploads = found.values()
    assert one is not None
    assert ours is not None
    assert uploads is not None
    for way, value in zip(found, (one, ours, uploads), strict=True):
        show(way, value, "s")
    show_ratio("broadcast / one link (aim: at most 1.3)", ours, one)
    show_ratio("uploads / one link", uploads, one)


if __name__ == "__main__":
    main()
