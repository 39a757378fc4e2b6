"""What is waited for on a fresh machine before the commands of a spec begin there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from paceline.planning.ec2.cleaning import clean
from paceline.planning.settling import APT_WAITS_FILE, settle

BOOT_IS_OVER = "timeout 600 cloud-init status --wait"
HELD_OFF = "sudo -n systemctl stop apt-daily.timer apt-daily-upgrade.timer"
ASKED = "systemctl is-active apt-daily.service apt-daily-upgrade.service"
CONFIGURED = f"sudo -n tee {APT_WAITS_FILE}"


def said_on(machine: Path, **programs: str) -> list[str]:
    """Run the command on a machine that has these programs alone; return what it asked of them."""
    machine.mkdir()
    (machine / "grep").symlink_to(shutil.which("grep") or "")
    for name, script in programs.items():
        path = machine / name.replace("_", "-")
        path.write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >> "{machine}/said"\n{script}\n')
        path.chmod(0o755)
    done = subprocess.run(
        settle().argv,
        input=settle().stdin,
        env={"PATH": str(machine)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    said = machine / "said"
    return said.read_text().splitlines() if said.exists() else []


def test_a_fresh_ubuntu_is_waited_for(tmp_path: Path) -> None:
    """The boot first; apt is told to wait; its timers are held off, and what goes on may end."""
    busy = 'n=0; while read -r _; do n=$((n + 1)); done < "${0%/*}/said"\n'
    said = said_on(
        tmp_path / "ubuntu",
        cloud_init="",
        apt_get="",
        timeout="",
        sudo='[ "$2" = tee ] && { read -r line; echo "$line" >> "${0%/*}/said"; }; exit 0',
        systemctl=f'{busy}if [ "$n" -lt 8 ]; then echo inactive; echo activating; exit 3; fi\n'
        "echo inactive; echo failed; exit 3",
        sleep="",
    )
    assert said[:4] == [BOOT_IS_OVER, CONFIGURED, 'DPkg::Lock::Timeout "600";', HELD_OFF]
    assert said[4:] == [ASKED, "sleep 2", ASKED, "sleep 2", ASKED]


def test_what_fails_or_is_not_there_keeps_nobody(tmp_path: Path) -> None:
    """A boot with errors, no rights, no apt, no systemd: the spec's commands come all the same."""
    assert said_on(tmp_path / "bare") == []
    amazon = said_on(tmp_path / "amazon", cloud_init="", timeout="exit 2", systemctl="exit 1")
    assert amazon == [BOOT_IS_OVER]
    debian = said_on(tmp_path / "debian", apt_get="", sudo="exit 1", systemctl="exit 4")
    assert debian == [CONFIGURED, HELD_OFF, ASKED]


def test_one_that_never_rests_is_not_waited_for_without_end(tmp_path: Path) -> None:
    """Ten minutes, and the spec's commands try their luck."""
    said = said_on(tmp_path / "busy", apt_get="", sudo="", systemctl="echo active", sleep="")
    assert said.count("sleep 2") == 299


def test_the_image_does_not_keep_what_apt_was_told(tmp_path: Path) -> None:
    """It goes with the other traces of the builder."""
    file = tmp_path / APT_WAITS_FILE.lstrip("/")
    file.parent.mkdir(parents=True)
    file.write_text("")
    command = clean(str(tmp_path))
    subprocess.run(command.argv[2:], input=command.stdin, check=True)
    assert not file.exists()
    assert file.parent.exists()
