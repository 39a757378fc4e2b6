"""The watch of a host over its own idleness: it ends by itself where nobody needs it any more.

It runs on the host, so it works when we never come back. A host is at work while a supervisor
touches the mark (`~/.paceline/active`, by whoever logs in), and while anybody is connected over
SSH: an open notebook, a shell, a study between two samples.
"""

from __future__ import annotations

import math

IDLE_SCRIPT = "/var/lib/cloud/scripts/per-boot/paceline-idle"
ACTIVE_MARK = ".paceline/active"

# /proc/net/tcp: the fourth column is the state (01: established), the second our own address and
# port (0016 is 22).
_SCRIPT = """\
#!/bin/sh
# Paceline: this host switches itself off once nobody has needed it for {idle_s} seconds.
# cloud-init runs this at every boot.
watch() {{
    last=$(date +%s)
    while sleep {every_s}; do
        now=$(date +%s)
        if cat /proc/net/tcp /proc/net/tcp6 2>/dev/null \\
            | awk '$4 == "01" && $2 ~ /:0016$/ {{ found = 1 }} END {{ exit !found }}'; then
            last=$now
        fi
        for mark in /root/{mark} /home/*/{mark}; do
            touched=$(stat -c %Y "$mark" 2>/dev/null) || continue
            [ "$touched" -gt "$last" ] && last=$touched
        done
        if [ $((now - last)) -ge {idle_s} ]; then
            shutdown -P now || poweroff
        fi
    done
}}
if [ "${{1:-}}" = watch ]; then watch; exit; fi
systemctl stop paceline-idle.service 2>/dev/null
systemd-run --unit=paceline-idle --collect "$0" watch 2>/dev/null && exit 0
setsid "$0" watch </dev/null >/dev/null 2>&1 &
"""


def idle_script(idle_s: float) -> str:
    """Return the script that lets a host end after so long without anybody at work."""
    whole = max(1, math.ceil(idle_s))
    return _SCRIPT.format(idle_s=whole, every_s=max(1, min(30, whole // 4)), mark=ACTIVE_MARK)
