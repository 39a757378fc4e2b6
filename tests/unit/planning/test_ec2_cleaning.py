"""What is taken off a builder before it becomes an image."""

from __future__ import annotations

import subprocess
from pathlib import Path

from paceline.planning.ec2.cleaning import clean

GOES = (
    "home/ubuntu/.ssh/authorized_keys",
    "root/.ssh/authorized_keys",
    "home/ubuntu/.bash_history",
    "home/ubuntu/.docker/config.json",
    "home/ubuntu/.aws/credentials",
    "home/ubuntu/.paceline/jobs/run-1/job.json",
    "home/ubuntu/.cache/pip/http/1",
    "etc/ssh/ssh_host_ed25519_key",
    "etc/ssh/ssh_host_ed25519_key.paceline.pub",
    "etc/sudoers.d/90-cloud-init-users",
    "var/lib/cloud/scripts/per-boot/paceline-expiry",
    "var/lib/cloud/instances/i-0/user-data.txt",
    "var/lib/systemd/random-seed",
    "var/lib/dbus/machine-id",
)
STAYS = (
    "home/ubuntu/.paceline/package-1/paceline/__init__.py",
    "home/ubuntu/.paceline/venvs/1/bin/python",
    "home/ubuntu/.ssh/config",
    "home/ubuntu/data set/cifar10",
    "home/ubuntu/.cache/paceline/data/cifar10/batches.meta",
    "etc/ssh/sshd_config",
    "etc/cloud/cloud.cfg",
    "var/lib/docker/image",
)
EMPTIED = ("etc/machine-id", "var/log/auth.log", "var/log/cloud-init.log")


def test_keys_history_and_the_last_boot_go_and_the_work_stays(tmp_path: Path) -> None:
    """The command itself is run, on a tree that stands for a host; twice is as once."""
    root = tmp_path / "a host"
    for name in (*GOES, *STAYS, *EMPTIED):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    command = clean(str(root))
    assert command.argv[:4] == ("sudo", "-n", "sh", "-s")
    for _ in range(2):
        done = subprocess.run(
            command.argv[2:], input=command.stdin, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert [name for name in GOES if (root / name).exists()] == []
        assert [name for name in STAYS if (root / name).read_text() != "secret"] == []
        assert [name for name in EMPTIED if (root / name).read_text()] == []
