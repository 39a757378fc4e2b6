"""What a host is told at its first boot: its host key, and when it has to switch itself off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from paceline.model.command import Secret
from paceline.planning.ec2.idling import IDLE_SCRIPT, idle_script
from paceline.ports import KeyPair

EXPIRY_SCRIPT = "/var/lib/cloud/scripts/per-boot/paceline-expiry"
# A host that is started after its expiry lives long enough for somebody to look what it is.
_LEAST_LEFT_S = 60

_SCRIPT = """\
#!/bin/sh
# Paceline: this host switches itself off at its expiry, whether or not anybody comes back.
# cloud-init runs this at every boot; what was arranged before is replaced.
expires_at={expires_at}
left=$((expires_at - $(date +%s)))
[ "$left" -gt {least} ] || left={least}
systemctl stop paceline-expiry.timer 2>/dev/null
systemd-run --unit=paceline-expiry --on-active="${{left}}s" --timer-property=AccuracySec=1s \\
    /sbin/shutdown -P now 2>/dev/null && exit 0
shutdown -P "+$(((left + 59) / 60))" && exit 0
(sleep "$left"; shutdown -P now || poweroff) </dev/null >/dev/null 2>&1 &
"""


def expiry_script(expires_at: float) -> str:
    """Return the script that lets a host end at a time, in Unix seconds."""
    return _SCRIPT.format(expires_at=int(expires_at), least=_LEAST_LEFT_S)


def user_data(host_key: KeyPair, expires_at: float, idle_s: float | None = None) -> Secret:
    """Return the cloud-config document of the first boot; JSON is YAML, and needs no quoting."""
    document: Mapping[str, Any] = {
        "ssh_deletekeys": True,
        "ssh_keys": {
            "ed25519_private": host_key.private.value,
            "ed25519_public": host_key.public,
        },
        "ssh_pwauth": False,
        "write_files": [
            _script(EXPIRY_SCRIPT, expiry_script(expires_at)),
            *([] if idle_s is None else [_script(IDLE_SCRIPT, idle_script(idle_s))]),
        ],
    }
    return Secret("#cloud-config\n" + json.dumps(document, indent=1) + "\n")


def _script(path: str, content: str) -> dict[str, str]:
    return {"path": path, "content": content, "permissions": "0755", "owner": "root:root"}
