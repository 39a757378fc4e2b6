"""One machine: its disk, its wire, its control groups, and the process that is its life."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paceline.errors import EnvironmentFault
from paceline.rehearsal.emulator.keeper import Machine
from paceline.rehearsal.hosts import find_sshd
from paceline.rehearsal.machines import grouping
from paceline.rehearsal.machines.base import python_folders
from paceline.rehearsal.machines.commands import attempt, run, run_all
from paceline.rehearsal.machines.ground import Ground
from paceline.rehearsal.machines.images import DOCKER, UPPER
from paceline.rehearsal.machines.inside import init
from paceline.rehearsal.machines.journal import Item
from paceline.rehearsal.machines.names import domain_of
from paceline.rehearsal.machines.sweeping import clear
from paceline.rehearsal.machines.userdata import read_user_data
from paceline.rehearsal.machines.wires import Wire
from paceline.supervisor import procfs

_INIT = "paceline.rehearsal.machines.inside.init"
_OFF_WITHIN_S = 10.0
# A shell joins the control groups before anything is started in them. If they are gone already,
# everything else of the machine is, too: nobody would ever end what is started now.
_JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done; shift; exec "$@"'


class Body:
    """A machine of the emulator on this machine. What it is told happens one after the other."""

    def __init__(
        self,
        machine: Machine,
        index: int,
        router: str,
        ground: Ground,
        on_shutdown: Callable[[str], None],
    ) -> None:
        self.machine = machine
        self.interruption_at: float | None = None
        self._ground = ground
        self._on_shutdown = on_shutdown
        self.folder = ground.places.machine(machine.instance_id)
        self.wire = Wire(
            ground.places.namespace(index), router, f"m{index}", machine.private_address,
            machine.subnet,
        )  # fmt: skip
        self.trouble: str | None = None
        self.unlimited: tuple[str, ...] = ()
        self._made = False
        self._rate_mbit: float | None = None
        self._life: subprocess.Popen[bytes] | None = None
        self._meant_to_end = False
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    # --- orders: they return at once --------------------------------------------------------------

    def boot(self, machine: Machine) -> None:
        """Switch it on, as what it is now."""
        self.machine = machine
        self._orders.put(self._boot)

    def power_off(self) -> None:
        """Switch it off in order."""
        self._orders.put(self._power_off)

    def reboot(self) -> None:
        """Switch it off and on."""
        self._orders.put(self._power_off)
        self._orders.put(self._boot)

    def keep(self, image_id: str) -> None:
        """Copy its disk into an image."""
        self._ground.images.begin(image_id)
        self._orders.put(lambda: self._ground.images.fill(image_id, self.folder))

    def remove(self) -> None:
        """Take it away with its disk."""
        self._orders.put(self._remove)
        self._orders.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait until it is gone."""
        self._worker.join(timeout_s)
        return not self._worker.is_alive()

    # --- what can be asked and done at once -------------------------------------------------------

    @property
    def on(self) -> bool:
        """Whether its first process lives."""
        return self._life is not None and self._life.poll() is None

    def console(self) -> str:
        """Return what it has written to its console."""
        path = self.folder / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self) -> None:
        """End it without a word, as a broken machine ends; EC2 does not notice for a while."""
        self._kill()

    def cut(self) -> None:
        """Cut it off from everybody."""
        self._require_wire()
        run(self.wire.plug(into=False))

    def mend(self) -> None:
        """Connect it again."""
        run(self.wire.plug(into=True))
        run(self.wire.restore())

    def shape(self, rate_mbit: float | None) -> None:
        """Let its link carry so much, over reboots, too; None is what its type promises."""
        self._require_wire()
        self._rate_mbit = rate_mbit
        run_all(self.wire.shape(self._rate()))

    def _rate(self) -> float:
        promised = self._ground.rate_mbit(self.machine.network)
        return promised if self._rate_mbit is None else self._rate_mbit

    def _require_wire(self) -> None:
        if not self._made:
            raise EnvironmentFault(
                f"{self.machine.instance_id} has no link yet: it is booting",
                hint="try again in a moment",
            )

    # --- the work ---------------------------------------------------------------------------------

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            self._obey(order)

    def _obey(self, order: Callable[[], None]) -> None:
        try:
            order()
        except Exception as error:  # noqa: BLE001 - one machine's trouble is not the others'
            self.trouble = str(error)
            self._write(f"this machine cannot do that: {error}\n{traceback.format_exc()}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError), (self.folder / "console.log").open("a") as file:
            file.write(f"{text}\n")

    def _items(self) -> tuple[Item, ...]:
        groups = grouping.folders_of(self._group, self._ground.trees)
        return (
            Item("folder", str(self.folder)),
            Item("namespace", self.wire.namespace),
            *(Item("control group", str(folder)) for folder in groups),
        )

    @property
    def _group(self) -> str:
        return f"{self._ground.places.control_group}/{self.machine.instance_id}"

    def _boot(self) -> None:
        if self.on:
            return
        if not self._made:
            self._ground.journal.add(self._items())
            self._make_disk()
            run_all(self.wire.build())
            self._made = True
        machine = self.machine
        run_all(self.wire.shape(self._rate()))
        limits = grouping.Limits(machine.vcpus, machine.memory_mib << 20)
        self.unlimited = grouping.make_group(self._group, limits, self._ground.trees)
        (self.folder / "spec.json").write_text(json.dumps(self._spec()))
        self._start()

    def _make_disk(self) -> None:
        self.folder.mkdir(parents=True)
        for name in ("work", "root"):
            (self.folder / name).mkdir()
        self._ground.images.give(self.machine.image_id, self.folder)

    def _start(self) -> None:
        groups = grouping.folders_of(self._group, self._ground.trees)
        command = (
            "/bin/sh", "-c", _JOIN, "sh", *(f"{group}/cgroup.procs" for group in groups), "--",
            "nsenter", f"--net=/run/netns/{self.wire.namespace}",
            "unshare", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork", "--kill-child",
            sys.executable, "-m", _INIT, str(self.folder / "spec.json"),
        )  # fmt: skip
        self._meant_to_end = False
        with (self.folder / "console.log").open("ab") as console:
            self._life = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                start_new_session=True, cwd="/", env=_environment(),
            )  # fmt: skip
        threading.Thread(target=self._mourn, args=(self._life,), daemon=True).start()

    def _mourn(self, life: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a life, and find out what it means."""
        code = life.wait()
        if self._meant_to_end or life is not self._life:
            return
        if code == 0:
            self._on_shutdown(self.machine.instance_id)
        elif code == init.REBOOT_CODE:
            self._orders.put(self._boot)
        else:
            self._write(f"the machine died (exit code {code})")

    def _power_off(self) -> None:
        life = self._life
        if life is None or life.poll() is not None:
            return
        self._meant_to_end = True
        first = _first_process(life.pid)
        if first is not None:
            procfs.send(first, init.POWER_OFF)
            with contextlib.suppress(subprocess.TimeoutExpired):
                life.wait(_OFF_WITHIN_S)
        self._kill()

    def _kill(self) -> None:
        life = self._life
        if life is None:
            return
        first = _first_process(life.pid)
        if first is not None:
            procfs.send(first, signal.SIGKILL)
        elif life.poll() is None:
            life.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            life.wait(_OFF_WITHIN_S)

    def _remove(self) -> None:
        self._meant_to_end = True
        self._kill()
        attempt(("ip", "-n", self.wire.router, "link", "del", self.wire.link))
        clear(self._ground.journal, self._items())

    # --- what its first process is told -----------------------------------------------------------

    def _spec(self) -> Mapping[str, Any]:
        machine = self.machine
        return {
            "instance_id": machine.instance_id,
            "instance_type": machine.instance_type,
            "hostname": f"ip-{machine.private_address.replace('.', '-')}",
            "domain": domain_of(machine.region),
            "address": machine.private_address,
            "user": machine.user,
            "authorised_keys": machine.authorised_keys,
            "user_data": read_user_data(machine.user_data),
            "facts": {"cores": machine.vcpus, "memory_bytes": machine.memory_mib << 20},
            "root": str(self.folder / "root"),
            "upper": str(self.folder / UPPER),
            "work": str(self.folder / "work"),
            "binds": [
                *({"from": str(path), "to": str(path), "writable": False}
                  for path in python_folders()),
                {"from": str(self.folder / DOCKER), "to": "/var/lib/docker", "writable": True},
            ],
            "control_groups": [
                {"name": tree.name, "version": tree.version, "options": tree.options}
                for tree in self._ground.trees
            ],
            "sshd": find_sshd(),
        }  # fmt: skip


def _first_process(launcher: int) -> procfs.ProcessEntry | None:
    """Return the first process of a machine: the only child of the one that made its spaces."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        try:
            words = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
        except OSError:
            return None
        if words:
            return procfs.entry_of(int(words[0]))
        time.sleep(0.02)
    return None


def _environment() -> dict[str, str]:
    package = Path(init.__file__).resolve().parents[4]
    return {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(package)}
