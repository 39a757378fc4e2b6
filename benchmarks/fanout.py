"""`true` on many SSH hosts: Paceline's fan-out against fabric's ThreadingGroup.

python benchmarks/fanout.py [hosts] [rounds] [round trip in ms]

The hosts are addresses of 127.0.0.0/8, which one server process in C answers for (`sshd.c`): a
real key exchange, a real login and a real shell for each. It is made with `cc` and libssh (Debian:
gcc, libssh-dev). Both clients run in a process of their own, which says its time from the first
connection to the last result, and the most memory that it had.

Real hosts do not share the client's processor. These do, so that no client can be faster than
theirs and its own processor time, divided by the cores: that bound is printed too.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ab import conditions, in_turns, show, show_ratio
from paceline.measure.statistics import estimate

COMMAND = "true"


def addresses(count: int) -> list[str]:
    """Return so many addresses of this machine's loopback."""
    return [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(count)]


async def by_paceline(folder: Path, port: int, hosts: list[str]) -> None:
    """Run the command on all hosts the way that `paceline exec` does."""
    from paceline.app.fanout import run_everywhere  # noqa: PLC0415
    from paceline.model.command import Command  # noqa: PLC0415
    from paceline.model.host import Host, SshAccess  # noqa: PLC0415
    from paceline.transports.ssh import HostKeys, SshTransport  # noqa: PLC0415

    key = (folder / "host_key.pub").read_text().strip()
    access = SshAccess(user="root", port=port, key=str(folder / "user_key"), host_key=key)
    keys = HostKeys(own_file=folder / "known_hosts", user_files=())
    links = {name: SshTransport(Host(name, name, name, access), keys) for name in hosts}
    done = await run_everywhere(links, Command((COMMAND,)))
    assert all(result.ok for result in done), [item for item in done if not item.ok][:3]
    await asyncio.gather(*(link.close() for link in links.values()))


def by_fabric(folder: Path, port: int, hosts: list[str]) -> None:
    """Run the command on all hosts the way that fabric's documentation shows."""
    from fabric import ThreadingGroup  # type: ignore[import-untyped] # noqa: PLC0415

    options = {
        "key_filename": str(folder / "user_key"),
        "look_for_keys": False,
        "allow_agent": False,
    }
    with ThreadingGroup(
        *hosts, user="root", port=port, connect_timeout=600,
        connect_kwargs={**options, "banner_timeout": 600, "auth_timeout": 600},
    ) as group:  # fmt: skip
        done = group.run(COMMAND, hide=True)
    assert all(result.ok for result in done.values())


def client(who: str, folder: Path, port: int, count: int) -> None:
    """Be one of the two clients, and say what it took."""
    hosts = addresses(count)
    begun = time.perf_counter()
    if who == "paceline":
        asyncio.run(by_paceline(folder, port, hosts))
    else:
        by_fabric(folder, port, hosts)
    took_s = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_SELF)
    said = {
        "seconds": took_s,
        "processor_s": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
    }
    print(json.dumps(said))


@dataclass(frozen=True)
class Servers:
    """The servers' port, and the process that answers there."""

    port: int
    pid: int

    def processor_s(self) -> float:
        """Return the processor time of the servers and of the commands that they have run."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        # utime, stime, cutime and cstime are the fields 14 to 17; the rest begins with field 3.
        return sum(int(word) for word in words[11:15]) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(folder: Path, round_trip_ms: int) -> Iterator[Servers]:
    """Make the server, start it, and end it."""
    for name in ("host_key", "user_key"):
        words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        subprocess.run(words, check=True)
    program, source = str(folder / "sshd"), str(Path(__file__).with_name("sshd.c"))
    subprocess.run(("cc", "-O2", "-pthread", "-o", program, source, "-lssh"), check=True)
    keys = (str(folder / "host_key"), str(folder / "user_key.pub"))
    argv = (program, *keys, str(round_trip_ms))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield Servers(int(server.stdout.readline()), server.pid)
        finally:
            server.kill()


@dataclass
class Took:
    """What the runs of one client took: of its own processor time, of the servers', of memory."""

    client_s: list[float] = field(default_factory=list)
    servers_s: list[float] = field(default_factory=list)
    peak_bytes: int = 0


def measure(count: int, rounds: int, round_trip_ms: int) -> None:
    """Measure both in turns, and print their ratio."""
    took = {"paceline": Took(), "fabric": Took()}
    with tempfile.TemporaryDirectory() as name, serving(Path(name), round_trip_ms) as servers:

        def timed(who: str) -> float:
            words = ("client", who, name, str(servers.port), str(count))
            before = servers.processor_s()
            argv = [sys.executable, __file__, *words]
            done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True)
            said = json.loads(done.stdout)
            mine = took[who]
            mine.peak_bytes = max(mine.peak_bytes, said["peak_bytes"])
            mine.client_s.append(said["processor_s"])
            mine.servers_s.append(servers.processor_s() - before)
            return float(said["seconds"])

        ours, theirs = in_turns(lambda: timed("paceline"), lambda: timed("fabric"), rounds)
    show(f"paceline, `{COMMAND}` on {count} hosts", ours, "s")
    show(f"fabric.ThreadingGroup, `{COMMAND}` on {count} hosts", theirs, "s")
    show_ratio("fabric / paceline (aim: at least 5)", theirs, ours)
    show_division(took)


def show_division(took: dict[str, Took]) -> None:
    """Print who used the processor, which says the same on a machine that has other work to do."""
    clients = {}
    for who, mine in took.items():
        client, servers = estimate(mine.client_s[1:]), estimate(mine.servers_s[1:])
        assert client is not None
        assert servers is not None
        clients[who] = client
        show(f"processor time of {who}", client, "s")
        show(f"processor time of the hosts for {who}", servers, "s")
        cores = len(os.sched_getaffinity(0))
        bound_s = max(client.mean, (client.mean + servers.mean) / cores)
        print(f"{who}: not below {bound_s:.2f} s on {cores} cores that the hosts share")
    show_ratio("fabric / paceline, processor time", clients["fabric"], clients["paceline"])
    for who, mine in took.items():
        aim = " (aim: 500)" if who == "paceline" else ""
        print(f"{who}: at most {mine.peak_bytes / 1e6:.0f} MB{aim}")


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["client"]:
        client(words[1], Path(words[2]), int(words[3]), int(words[4]))
    else:
        conditions()
        given = [int(word) for word in words]
        measure(*given, *(1000, 3, 0)[len(given) :])


if __name__ == "__main__":
    main()
