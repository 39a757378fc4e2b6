"""The first process of a machine: `python -m … SPEC`. When it ends, the machine is off.

Its exit code says why: 0 is a shutdown, 3 a reboot; anything else is a machine that died.
"""

from __future__ import annotations

import contextlib
import grp
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paceline.rehearsal.machines.inside.booting import Boot, say
from paceline.rehearsal.machines.inside.mounts import enter_root

POWER_OFF = signal.SIGRTMIN + 4  # as systemd has it
REBOOT = signal.SIGRTMIN + 5
REBOOT_CODE = 3
_ORDERS = "/run/rehearsal/orders"
_DOCKER_SOCKET = "/run/docker.sock"
_DOCKERD = "/usr/sbin/dockerd"
_ENDS_WITHIN_S = 5.0
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
}


class Init:
    """The services of a machine, and the end of it."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._spec = spec
        self._boot = Boot(spec)
        self._services: dict[int, str] = {}
        self._ended: dict[int, int] = {}
        self._outcome: int | None = None
        self._signals, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for one in (signal.SIGCHLD, POWER_OFF, REBOOT):
            signal.signal(one, lambda *_: None)
        self._orders = _make_orders()
        self._docker = _listen_for_docker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._signals, selectors.EVENT_READ, self._on_signals)
        self._selector.register(self._orders, selectors.EVENT_READ, self._on_orders)
        if self._docker is not None:
            self._selector.register(self._docker, selectors.EVENT_READ, self._start_docker)

    def run(self) -> int:
        """Boot, serve, and end; return the exit code."""
        early = self._fork(self._boot.before_services)
        while early not in self._ended and self._outcome is None:
            self._turn()
        self._start_sshd()
        self._fork(self._boot.after_services)
        while self._outcome is None:
            self._turn()
        _end_all()
        return self._outcome

    def _turn(self) -> None:
        for key, _ in self._selector.select():
            key.data()

    def _fork(self, act: Callable[[], None]) -> int:
        """Do something in a process of its own, so that this one can go on reaping."""
        pid = os.fork()
        if pid:
            return pid
        signal.set_wakeup_fd(-1)
        try:
            act()
        except BaseException:  # noqa: BLE001 - a boot goes on whatever the user data did
            say(f"cloud-init failed:\n{traceback.format_exc()}")
        os._exit(0)

    def _start(self, name: str, argv: tuple[str, ...], prepare: Callable[[], None]) -> None:
        pid = os.fork()
        if pid:
            self._services[pid] = name
            return
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            prepare()
            os.execve(argv[0], argv, os.environ)  # noqa: S606 - this is what it is for
        except BaseException as error:  # noqa: BLE001 - nothing of this process may go on
            say(f"{name}: {error}")
        os._exit(127)

    def _start_sshd(self) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        self._start("sshd", (self._spec["sshd"], "-D", "-e"), lambda: None)

    def _start_docker(self) -> None:
        """Start the engine at the first word to its socket, as systemd does."""
        if self._docker is None or "docker" in self._services.values():
            return
        self._selector.unregister(self._docker)
        handle = self._docker.fileno()

        def prepare() -> None:
            os.dup2(handle, 3)
            os.set_inheritable(3, True)  # noqa: FBT003 - it has no other form
            os.environ.update({"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())})
            log = os.open("/var/log/dockerd.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)

        self._start("docker", (_DOCKERD, "--host", "fd://"), prepare)

    def _on_signals(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for number in os.read(self._signals, 4096):
                if number == POWER_OFF:
                    self._outcome = 0
                elif number == REBOOT:
                    self._outcome = REBOOT_CODE
        self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._ended[pid] = status
            name = self._services.pop(pid, None)
            if name == "docker" and self._docker is not None:
                self._selector.register(self._docker, selectors.EVENT_READ, self._start_docker)
            elif name is not None:
                say(f"{name} ended with status {status}")

    def _on_orders(self) -> None:
        """Do what the machine's own `shutdown` and `systemctl` have asked for."""
        with contextlib.suppress(BlockingIOError):
            for line in os.read(self._orders, 4096).decode(errors="replace").splitlines():
                self._obey(line.strip())

    def _obey(self, order: str) -> None:
        if order == "poweroff":
            self._outcome = 0
        elif order == "reboot":
            self._outcome = REBOOT_CODE
        elif order == "start docker":
            self._start_docker()
        elif order == "stop docker":
            for pid, name in self._services.items():
                if name == "docker":
                    os.kill(pid, signal.SIGTERM)
        say(f"order: {order}")


def _make_orders() -> int:
    folder = Path(_ORDERS).parent
    folder.mkdir(mode=0o755)
    os.mkfifo(_ORDERS, 0o600)
    return os.open(_ORDERS, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def _listen_for_docker() -> socket.socket | None:
    if not os.access(_DOCKERD, os.X_OK):
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(_DOCKER_SOCKET)
    Path(_DOCKER_SOCKET).chmod(0o660)
    with contextlib.suppress(KeyError):
        os.chown(_DOCKER_SOCKET, 0, grp.getgrnam("docker").gr_gid)
    listener.listen(128)
    return listener


def _end_all() -> None:
    """Ask every process to end, wait a little, and end what is left."""
    say("powering down")
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGTERM)
    deadline = time.monotonic() + _ENDS_WITHIN_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def main() -> None:
    """Be the first process of the machine that a spec describes."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    socket.sethostname(spec["hostname"])
    enter_root(spec)
    os.environ.clear()
    os.environ.update(_ENVIRONMENT)
    os.umask(0o022)
    say(f"{spec['instance_id']} ({spec['instance_type']}) boots as {spec['hostname']}")
    outcome = Init(spec).run()
    sys.stdout.flush()
    os._exit(outcome)


if __name__ == "__main__":
    main()
