"""Hosts that answer to SSH, for tests: network namespaces with a real sshd each.

Where a test needs it, each has a docker engine as well.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from paceline.model.host import Host, SshAccess
from paceline.rehearsal.engine import Engine, engine
from paceline.rehearsal.hosts import SshHost, ssh_hosts
from paceline.rehearsal.images import load_machine_image
from paceline.rehearsal.network import plan_network
from paceline.transports.ssh import HostKeys

_SUBNETS = range(82, 100)


def missing() -> str | None:
    """Return why no lab can be made here; None if one can."""
    if os.geteuid() != 0:
        return "hosts on this machine need root"
    programs = ("ip", "tc", "ssh-keygen")
    lacking = [name for name in programs if shutil.which(name) is None]
    if shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        lacking.append("sshd")
    return f"not installed: {', '.join(lacking)}" if lacking else None


@contextmanager
def lab_of(count: int, folder: Path) -> Iterator[tuple[SshHost, ...]]:
    """Make hosts in a subnet that no other lab of the tests has; skip where we cannot."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with _own_subnet() as subnet:
        plan = plan_network(f"s{subnet}", count, subnet=subnet)
        with ssh_hosts(plan, folder) as hosts:
            yield hosts


def skip_without_dockerd() -> None:
    """Skip where there is no docker engine to start."""
    if shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        pytest.skip("not installed: dockerd")


@contextmanager
def engines_of(hosts: tuple[SshHost, ...]) -> Iterator[tuple[Engine, ...]]:
    """Start a docker engine on each host, with the image of this machine in it."""
    skip_without_dockerd()
    with ExitStack() as stack:
        made = tuple(stack.enter_context(engine(host.lab, host.folder)) for host in hosts)
        for one in made:
            load_machine_image(one)
        yield made


@contextmanager
def _own_subnet() -> Iterator[int]:
    """Hold a subnet for as long as this process lives, against other test runs too."""
    for subnet in _SUBNETS:
        with (Path(tempfile.gettempdir()) / f"paceline-lab-{subnet}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # A test run that was killed may have left its network behind.
            if not Path(f"/sys/class/net/pls{subnet}br").exists():
                yield subnet
                return
    pytest.skip("every subnet of the tests is taken")


def host_noun(host: SshHost) -> Host:
    """Return a host of the lab as a host of a cluster, its key pinned."""
    access = SshAccess(key=str(host.user_key), host_key=host.host_key)
    return Host(host.address, host.address, host.address, access)


def no_keys(folder: Path) -> HostKeys:
    """Return the trust of somebody who knows no host yet."""
    return HostKeys(own_file=folder / "known_hosts", user_files=())


def cluster_text(hosts: tuple[SshHost, ...]) -> str:
    """Return the `cluster` section of a spec that names these hosts, their keys pinned."""
    entries = "".join(
        f"    - {{address: {host.address}, key: {host.user_key}, host_key: {host.host_key}}}\n"
        for host in hosts
    )
    return f"cluster:\n  provider: hosts\n  hosts:\n{entries}"
