"""What is written down of a rehearsal that is up: where it answers, and who may speak to it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from paceline.supervisor import procfs

_KEPT = ("AWS_REGION", "AWS_DEFAULT_REGION")


@dataclass(frozen=True)
class Card:
    """A rehearsal: its daemon, its addresses, its credentials."""

    pid: int
    mark: str
    url: str
    key_id: str
    region: str
    caller: str
    control: str
    started_at: float
    bandwidth: str
    letters: str
    # Whether it is about to end: nobody should begin to use it.
    ending: bool = False

    @property
    def alive(self) -> bool:
        """Whether its daemon lives: that very process, not a later one with its number."""
        return procfs.mark_of(self.pid) == self.mark

    def write(self, path: Path) -> None:
        """Put it down for others, all at once, and for this user alone."""
        draft = path.with_suffix(".part")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(asdict(self), file)
        draft.replace(path)

    def environment(self, environ: Mapping[str, str], home: Path) -> dict[str, str]:
        """Return an environment in which everything that speaks to AWS speaks to the rehearsal.

        Nothing of the user's own AWS settings is left in it, except the region.
        """
        kept = {
            name: value
            for name, value in environ.items()
            if not name.startswith("AWS_") or name in _KEPT
        }
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or self.region
        return {
            **kept,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": "rehearsal",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "PACELINE_HOME": str(home),
            "PACELINE_MY_ADDRESS": self.caller,
        }


def read_card(path: Path) -> Card | None:
    """Return what is written down; None if nothing is."""
    try:
        return Card(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
