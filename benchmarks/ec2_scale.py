"""How `up` and `down` scale with the number of hosts, against an emulated EC2.

    python benchmarks/ec2_scale.py

Prints, for 1, 4, 100 and 1,000 hosts: calls that change something (must not grow with the hosts),
all calls, how long `up` and `down` take where hosts boot in no time (so: our own overhead), and
the most memory that the process of `up` has used. The API is the rehearsal's, over HTTP on the
loopback, in another process; the hosts answer at once and are not there.
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
from pathlib import Path

from paceline.rehearsal.emulator import Emulator

ROOT = Path(__file__).resolve().parent.parent
SIZES = (1, 4, 100, 1000)


def child(verb: str, nodes: int, folder: str) -> None:
    from paceline.app.provision import bring_up  # noqa: PLC0415 - only the child has the path
    from paceline.app.teardown import take_down  # noqa: PLC0415
    from paceline.providers.ec2 import Ec2Cloud  # noqa: PLC0415
    from tests.fakes.rented import KEY, desk_at, wish  # noqa: PLC0415

    desk = desk_at(Ec2Cloud("us-east-1"), Path(folder))
    begun = time.monotonic()
    if verb == "up":
        cluster = asyncio.run(bring_up(desk, wish(nodes)))
        assert len(cluster.hosts) == nodes
    else:
        asyncio.run(take_down(desk, KEY))
    took_s = time.monotonic() - begun
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"took_s": took_s, "memory_mib": memory_mib}))


def run(verb: str, nodes: int, folder: str, environ: dict[str, str]) -> dict[str, float]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, __file__, verb, str(nodes), folder],
        env={**os.environ, **environ, "PYTHONPATH": path}, check=True, capture_output=True,
        text=True, cwd=ROOT,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    print("hosts  changes  calls  up s  MiB  changes of down  calls of down  down s")
    for nodes in SIZES:
        with Emulator() as emulator, tempfile.TemporaryDirectory() as folder:
            before = emulator.inventory()
            up = run("up", nodes, folder, emulator.environ)
            counts = [len(emulator.calls.changing()), len(emulator.calls.all())]
            emulator.calls.clear()
            down = run("down", nodes, folder, emulator.environ)
            assert emulator.inventory() == before
            gone = [len(emulator.calls.changing()), len(emulator.calls.all())]
            print(
                f"{nodes:5}  {counts[0]:7}  {counts[1]:5}  {up['took_s']:4.1f}  "
                f"{up['memory_mib']:3.0f}  {gone[0]:15}  {gone[1]:13}  {down['took_s']:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main()
