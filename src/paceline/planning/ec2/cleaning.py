"""What is taken off a host before it becomes an image: keys, history, and its own first boot.

Whoever starts from the image must find nothing of whoever made it, and must boot as if for the
first time, with keys, a name and a time to live of its own.
"""

from __future__ import annotations

from paceline.model.command import Command
from paceline.planning.settling import APT_WAITS_FILE

_CLEAN = """\
set -u
root=${1%/} waits=$2
for home in "$root/root" "$root"/home/*; do
    [ -d "$home" ] || continue
    rm -rf -- "$home/.ssh/authorized_keys" "$home/.ssh/authorized_keys2" "$home/.ssh/known_hosts" \\
        "$home/.bash_history" "$home/.zsh_history" "$home/.python_history" "$home/.lesshst" \\
        "$home/.viminfo" "$home/.wget-hsts" "$home/.aws" "$home/.netrc" "$home/.git-credentials" \\
        "$home/.docker/config.json" "$home/.sudo_as_admin_successful" \\
        "$home/.paceline/jobs"
    # The data sets are there to stay: they are a part of what the image is made for.
    [ -d "$home/.cache" ] &&
        find "$home/.cache" -mindepth 1 -maxdepth 1 ! -name paceline -exec rm -rf -- {} +
done
rm -f -- "$root"/etc/ssh/ssh_host_* "$root"/etc/sudoers.d/90-cloud-init-users
rm -f -- "$root"/var/lib/systemd/random-seed "$root"/var/lib/dbus/machine-id
rm -rf -- "$root"/var/lib/paceline "$root$waits"
[ -z "$root" ] && command -v cloud-init >/dev/null 2>&1 && cloud-init clean --logs --seed \\
    >/dev/null 2>&1
# Also where there was no cloud-init to do so: nothing of the last boot must act at the next.
for part in instance instances scripts sem data handlers; do
    rm -rf -- "$root/var/lib/cloud/$part"
done
[ -e "$root/etc/machine-id" ] && : > "$root/etc/machine-id"
find "$root/var/log" -xdev -type f -exec sh -c 'for each; do : > "$each"; done' sh {} + 2>/dev/null
[ -z "$root" ] && command -v apt-get >/dev/null 2>&1 && apt-get clean
[ -z "$root" ] && sync
exit 0
"""


def clean(root: str = "/") -> Command:
    """Return the command that takes all of it off the file system below `root`.

    Afterwards nobody can log in any more: it is the last thing that is said to a host.
    """
    return Command(("sudo", "-n", "sh", "-s", "--", root, APT_WAITS_FILE), stdin=_CLEAN.encode())
