from __future__ import annotations

import os
from pathlib import Path

from paceline.supervisor import cgroup

CORES = len(os.sched_getaffinity(0))


def groups(root: Path, membership: str, **files: str) -> tuple[str, str]:
    """Make a tree of control groups; `__` stands for a slash and `_DOT_` for a dot."""
    (root / "membership").write_text(membership)
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root), str(root / "membership")


def test_without_limits_all_cores_are_usable(tmp_path: Path) -> None:
    """No control group, no limit but the affinity."""
    assert cgroup.usable_cores(*groups(tmp_path, "")) == CORES
    assert cgroup.usable_cores(str(tmp_path), str(tmp_path / "none")) == CORES


def test_a_quota_of_a_parent_holds(tmp_path: Path) -> None:
    """A limit may stand at any level above us; less than a core is still one."""
    where = groups(
        tmp_path, "0::/a/b\n", a__cpu_DOT_max="50000 100000\n", a__b__cpu_DOT_max="max 100000\n"
    )
    assert cgroup.usable_cores(*where) == 1


def test_a_quota_above_the_machine_changes_nothing(tmp_path: Path) -> None:
    """More than there is cannot be granted."""
    where = groups(tmp_path, "0::/a\n", a__cpu_DOT_max="99000000 100000\n")
    assert cgroup.usable_cores(*where) == CORES


def test_the_older_interface_is_read_too(tmp_path: Path) -> None:
    """In a container the path of the host is not there: the root stands for it."""
    where = groups(
        tmp_path,
        "4:memory:/host/path\n1:cpu,cpuacct:/host/path\n",
        **{
            "cpu,cpuacct__cpu_DOT_cfs_quota_us": "100000\n",
            "cpu,cpuacct__cpu_DOT_cfs_period_us": "100000\n",
            "memory__memory_DOT_limit_in_bytes": "1048576\n",
        },
    )
    assert cgroup.usable_cores(*where) == 1
    assert cgroup.usable_memory_bytes(*where) == 1048576


def test_an_absent_quota_of_the_older_interface_is_no_limit(tmp_path: Path) -> None:
    """-1 and a number beyond all memory mean "as much as there is"."""
    where = groups(
        tmp_path,
        "4:memory:/\n1:cpu:/\n",
        cpu__cpu_DOT_cfs_quota_us="-1\n",
        cpu__cpu_DOT_cfs_period_us="100000\n",
        memory__memory_DOT_limit_in_bytes="9223372036854771712\n",
    )
    assert cgroup.usable_cores(*where) == CORES
    assert cgroup.usable_memory_bytes(*where) == cgroup.usable_memory_bytes("/none", "/none")


def test_a_memory_limit_holds(tmp_path: Path) -> None:
    """A container has what it was given, not what the machine has."""
    where = groups(tmp_path, "0::/a\n", a__memory_DOT_max="2097152\n")
    assert cgroup.usable_memory_bytes(*where) == 2097152


def test_a_machine_may_be_said_to_be_another(tmp_path: Path) -> None:
    """What is declared counts; what is no declaration does not."""
    declared = tmp_path / "machine.json"
    declared.write_text('{"cores": 8, "memory_bytes": 1024}')
    assert cgroup.usable_cores(declared=str(declared)) == 8
    assert cgroup.usable_memory_bytes(declared=str(declared)) == 1024
    real = cgroup.usable_cores(declared=str(tmp_path / "none"))
    for text in ("", "{", '{"cores": 0}', '{"cores": "many"}'):
        declared.write_text(text)
        assert cgroup.usable_cores(declared=str(declared)) == real
