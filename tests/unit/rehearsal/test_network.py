"""Networks of namespaces: the plan names all that is made, and removal leaves none of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from paceline.errors import EnvironmentFault
from paceline.rehearsal.network import leftovers, network, plan_network, remove_recorded

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2"
)


def test_every_name_fits_the_kernel() -> None:
    """Link names keep within the kernel's 15 letters, even with the longest id."""
    plan = plan_network("abcdefgh", 200)
    assert max(len(host.link) for host in plan.hosts) <= 15
    assert len(plan.bridge) <= 15
    assert len({host.address for host in plan.hosts}) == 200


@pytest.mark.parametrize("lab_id", ["", "a-b", "ninechars", "a/b"])
def test_an_id_that_could_name_something_else_is_refused(lab_id: str) -> None:
    """Ids that do not fit into names are refused before anything is made."""
    with pytest.raises(ValueError, match="id"):
        plan_network(lab_id, 1)


def test_a_plan_shapes_links_only_if_asked() -> None:
    """Without a rate, no traffic control is planned; with one, it is for every host."""
    assert not [command for command in plan_network("t", 2).build() if command[0] == "tc"]
    shaped = [command for command in plan_network("t", 2, rate="1gbit").build() if "tbf" in command]
    assert len(shaped) == 2


@pytest.mark.e2e
@needs_root
def test_hosts_reach_each_other_and_nothing_is_left(tmp_path: Path) -> None:
    """A shaped network of two hosts carries traffic, counts it, and is gone afterwards."""
    import subprocess

    plan = plan_network(f"t{os.getpid() % 9999}", 2, rate="1gbit", subnet=78)
    with network(plan, tmp_path / "lab.json"):
        first, second = plan.hosts
        before = first.sent_bytes()
        script = (
            "import socket,sys; s=socket.create_connection((sys.argv[1], 22222)); "
            "s.sendall(b'x'*100000); s.close()"
        )
        listen = "import socket; s=socket.create_server(('', 22222)); print(1, flush=True); "
        listen += "c=s.accept()[0]; n=0\nwhile d:=c.recv(65536): n+=len(d)\nprint(n)"
        server = subprocess.Popen(
            second.inside(("python3", "-c", listen)), stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        server.stdout.readline()
        subprocess.run(first.inside(("python3", "-c", script, second.address)), check=True)
        assert server.communicate()[0].strip() == "100000"
        assert first.sent_bytes() - before >= 100_000
        assert len(leftovers(plan)) == 5
    assert leftovers(plan) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.e2e
@needs_root
def test_a_half_made_network_is_taken_away(tmp_path: Path) -> None:
    """When making a network fails in the middle, what was made of it goes again."""
    plan = plan_network(f"h{os.getpid() % 9999}", 2, rate="nonsense", subnet=79)
    with pytest.raises(EnvironmentFault), network(plan, tmp_path / "lab.json"):
        pass
    assert leftovers(plan) == ()


@pytest.mark.e2e
@needs_root
def test_what_a_killed_process_left_can_be_removed(tmp_path: Path) -> None:
    """The record is enough to take away a network whose maker is gone."""
    plan = plan_network(f"k{os.getpid() % 9999}", 1, subnet=80)
    record = tmp_path / "lab.json"
    maker = network(plan, record)
    maker.__enter__()
    assert leftovers(plan)
    remove_recorded(record)
    assert leftovers(plan) == ()
    # The maker's own way out finds its record gone; that is the killed process' place.
    with pytest.raises(FileNotFoundError):
        maker.__exit__(None, None, None)
