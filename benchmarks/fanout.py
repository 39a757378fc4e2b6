"""`true` on many SSH hosts: Paceline's fan-out against fabric's ThreadingGroup.

python benchmarks/fanout.py [hosts] [rounds]

The hosts are addresses of 127.0.0.0/8, which one server process answers for: a real key exchange,
a real login and a real shell for each. Both clients run in a process of their own, which says its
time from the first connection to the last result, and the most memory that it had.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ab import conditions, in_turns, show, show_ratio
from paceline.measure.statistics import estimate

COMMAND = "true"


def addresses(count: int) -> list[str]:
    """Return so many addresses of this machine's loopback."""
    return [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(count)]


async def serve(folder: Path) -> None:
    """Answer at every address of the loopback; say the port, and go on until killed."""
    import asyncssh  # noqa: PLC0415 - each process takes what it needs, and its memory is counted

    async def handle(process: asyncssh.SSHServerProcess[bytes]) -> None:
        shell = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", process.command or "",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        await process.redirect(shell.stdin, shell.stdout, shell.stderr)
        process.exit(await shell.wait())

    server = await asyncssh.listen(
        "0.0.0.0",  # noqa: S104 - the loopback has many addresses, and all are this server's
        0,
        server_host_keys=[str(folder / "host_key")],
        authorized_client_keys=str(folder / "user_key.pub"),
        process_factory=handle,
        encoding=None,
        backlog=2000,
        login_timeout=300,
    )
    print(server.get_port(), flush=True)
    await asyncio.Event().wait()


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


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """Start the server, and end it."""
    for name in ("host_key", "user_key"):
        words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        subprocess.run(words, check=True)
    argv = [sys.executable, __file__, "serve", str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


def measure(count: int, rounds: int) -> None:
    """Measure both in turns, and print their ratio."""
    peaks: dict[str, int] = {}
    processor_s: dict[str, list[float]] = {"paceline": [], "fabric": []}
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as port:

        def timed(who: str) -> float:
            argv = [sys.executable, __file__, "client", who, name, str(port), str(count)]
            done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True)
            said = json.loads(done.stdout)
            peaks[who] = max(peaks.get(who, 0), said["peak_bytes"])
            processor_s[who].append(said["processor_s"])
            return float(said["seconds"])

        ours, theirs = in_turns(lambda: timed("paceline"), lambda: timed("fabric"), rounds)
    show(f"paceline, `{COMMAND}` on {count} hosts", ours, "s")
    show(f"fabric.ThreadingGroup, `{COMMAND}` on {count} hosts", theirs, "s")
    show_ratio("fabric / paceline (aim: at least 5)", theirs, ours)
    # Says the same on a machine that has other work to do, where wall times do not.
    used = {who: estimate(values) for who, values in processor_s.items()}
    mine, fabrics = used["paceline"], used["fabric"]
    assert mine is not None
    assert fabrics is not None
    show("processor time of paceline", mine, "s")
    show("processor time of fabric", fabrics, "s")
    show_ratio("fabric / paceline, processor time", fabrics, mine)
    for who, peak in peaks.items():
        print(f"{who}: at most {peak / 1e6:.0f} MB" + (" (aim: 500)" if who == "paceline" else ""))


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["serve"]:
        asyncio.run(serve(Path(words[1])))
    elif words[:1] == ["client"]:
        client(words[1], Path(words[2]), int(words[3]), int(words[4]))
    else:
        conditions()
        measure(int(words[0]) if words else 1000, int(words[1]) if len(words) > 1 else 3)


if __name__ == "__main__":
    main()
