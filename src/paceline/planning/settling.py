"""A rented machine that has come to rest: its first boot is over, and nobody else works with apt.

A fresh Ubuntu is reached before it is done with itself, and for some minutes its own updates hold
apt's locks: a plain `sudo apt-get update` would fail there. Pure.
"""

from __future__ import annotations

from paceline.model.command import Command

# apt reads it; it is taken off with the rest before the builder becomes an image.
APT_WAITS_FILE = "/etc/apt/apt.conf.d/99paceline-waits"

# Whatever of this a machine does not know is left out, and what fails here is no reason to stop:
# the commands that follow say by themselves what is wrong. apt waits for the lock of the packages
# if it is told to, but never for that of the lists: so its timers are held off until the next
# boot, and what they have begun is waited for.
_SETTLE = f"""\
if command -v cloud-init >/dev/null 2>&1; then
    timeout 600 cloud-init status --wait >/dev/null 2>&1
fi
command -v apt-get >/dev/null 2>&1 || exit 0
echo 'DPkg::Lock::Timeout "600";' | sudo -n tee {APT_WAITS_FILE} >/dev/null 2>&1
command -v systemctl >/dev/null 2>&1 || exit 0
sudo -n systemctl stop apt-daily.timer apt-daily-upgrade.timer >/dev/null 2>&1
n=0
while systemctl is-active apt-daily.service apt-daily-upgrade.service 2>/dev/null |
    grep -q -x -e active -e activating -e deactivating
do
    n=$((n + 1))
    [ "$n" -lt 300 ] || break
    sleep 2
done
exit 0
"""


def settle() -> Command:
    """Return the command that waits until a machine has come to rest, 20 minutes at most."""
    return Command(("/bin/sh", "-s"), stdin=_SETTLE.encode())
