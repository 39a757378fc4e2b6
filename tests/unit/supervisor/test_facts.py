from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from paceline.supervisor import facts

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth1\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
vpn\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
"""
ZEROS = "0" * 32
ROUTES_6 = f"""\
fe80{"0" * 28} 40 {ZEROS} 00 {ZEROS} 00000100 00000001 00000000 00000001     eth0
{ZEROS} 00 {ZEROS} 00 fe80{"0" * 28} 00000400 00000001 00000000 00450003     eth0
{ZEROS} 00 {ZEROS} 00 {ZEROS} ffffffff 00000001 00000000 00200200       lo
"""


def test_the_facts_of_this_machine_are_plain_data() -> None:
    """Everything can be sent as JSON, and what every machine knows is there."""
    found = facts.collect(ports=3, folder="/")
    assert json.loads(json.dumps(found)) == found
    assert found["hostname"] == os.uname().nodename
    assert 1 <= found["cores"] <= (os.cpu_count() or 1)
    assert found["python_path"] == sys.executable
    assert found["memory_bytes"] > 2**20
    assert found["disk_free_bytes"] > 0
    assert len(set(found["free_ports"])) == 3
    assert found["free_port"] == found["free_ports"][0]


def test_the_default_route_with_the_lowest_metric_counts() -> None:
    """Neither a half-default of a VPN nor a local network is the way out."""
    assert facts.default_interface(ROUTES, "") == "eth1"


def test_ipv6_is_asked_where_there_is_no_other_way() -> None:
    """A machine without IPv4 has a way out too; an unreachable route is none."""
    assert facts.default_interface("Iface\n", ROUTES_6) == "eth0"
    assert facts.default_interface("", "") is None


def test_graphics_cards_are_read_as_listed() -> None:
    """A name may hold commas; a memory size that is not a number is not known."""
    lines = ["NVIDIA A10G, 23028", "Odd, Card, [N/A]", ""]
    assert list(facts.parse_gpus(lines)) == [
        {"name": "NVIDIA A10G", "memory_mib": 23028},
        {"name": "Odd, Card", "memory_mib": None},
    ]


def test_the_tool_of_the_graphics_driver_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nvidia-smi is on PATH, it is asked; where it fails, there is no card."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'Tesla T4, 15360'\n")
    tool.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert facts.collect()["gpus"] == [{"name": "Tesla T4", "memory_mib": 15360}]
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert facts.collect()["gpus"] == []


@pytest.mark.parametrize(
    ("record", "version"),
    [
        ("torch-2.13.0+cpu.dist-info", "2.13.0+cpu"),
        ("torch-2.1.0-py3.10.egg-info", "2.1.0"),
        ("torch_geometric-2.5.dist-info", None),
        ("torch", None),
    ],
)
def test_the_version_of_torch_is_read_off_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str, version: str | None
) -> None:
    """The first torch on the path is the one that a rank would import."""
    (tmp_path / "first" / record).mkdir(parents=True)
    (tmp_path / "second" / "torch-1.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", ["/nowhere", str(tmp_path / "first")])
    assert facts.collect()["torch_version"] == version
    if version is not None:
        sys.path.append(str(tmp_path / "second"))
        assert facts.collect()["torch_version"] == version


def test_only_telling_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thread counts and interfaces are facts; secrets and all the rest are not."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")
    monkeypatch.setenv("TORCH_HUB_TOKEN", "s3cret")
    monkeypatch.setenv("MY_OMP_NUM_THREADS", "3")
    found = facts.collect()["environment"]
    assert found["OMP_NUM_THREADS"] == "2"
    assert found["NCCL_SOCKET_IFNAME"] == "eth0"
    assert "TORCH_HUB_TOKEN" not in found
    assert "MY_OMP_NUM_THREADS" not in found


def test_a_folder_that_is_not_there_has_no_known_room() -> None:
    """Unknown is None, never zero."""
    assert facts.collect(folder="/no/such/folder")["disk_free_bytes"] is None
