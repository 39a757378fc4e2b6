from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.errors import Conflict, StorageError
from paceline.model.ec2 import ClusterKey
from paceline.model.ledger import ClusterEntry, Entry, EntryState
from paceline.store.ledger import SqliteLedger

KEY = ClusterKey("study", "ann@desk", "us-east-1")
ENTRY = Entry("e1", KEY, "key pair", "k", EntryState.MEANT, 5.0)
_HOLD = """
import sys, time
from pathlib import Path
from paceline.model.ec2 import ClusterKey
from paceline.store.ledger import SqliteLedger
with SqliteLedger(Path(sys.argv[1])).lock(ClusterKey("study", "ann@desk", "us-east-1")):
    print("held", flush=True)
    time.sleep(600)
"""


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """The ledger and what SQLite keeps beside it have mode 600."""
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.write(ENTRY)
    with ledger._open():
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("ledger.sqlite*")}
    assert modes == {0o600}


@pytest.mark.parametrize("how", ["all of it", "inside"])
def test_a_damaged_ledger_is_put_aside(tmp_path: Path, how: str) -> None:
    """Damage is found, the file is kept for whoever wants to look at it, and a new one begins."""
    path = tmp_path / "ledger.sqlite"
    ledger = SqliteLedger(path)
    for number in range(200):
        ledger.write(Entry(f"e{number}", KEY, "key pair", "k" * 100, EntryState.MEANT, 5.0))
    whole = path.read_bytes()
    broken = (
        b"garbage" * 100 if how == "all of it" else whole[:4096] + os.urandom(len(whole) - 4096)
    )
    path.write_bytes(broken)
    assert ledger.entries(KEY) == ()
    ledger.write(ENTRY)
    assert ledger.entries(KEY) == (ENTRY,)
    (kept,) = tmp_path.glob("ledger.sqlite.damaged-*")
    assert kept.read_bytes() == broken


def test_a_lock_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    """A process that was killed locks nobody out, and while it lives it is named."""
    path = tmp_path / "ledger.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        ledger = SqliteLedger(path)
        with pytest.raises(Conflict, match=f"process {holder.pid}"), ledger.lock(KEY):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with ledger.lock(KEY):
            pass


def test_a_ledger_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Where there can be no ledger, nothing is begun, and the words say what to do."""
    (tmp_path / "file").write_text("")
    ledger = SqliteLedger(tmp_path / "file" / "ledger.sqlite")
    with pytest.raises(StorageError):
        ledger.write_cluster(ClusterEntry(KEY, 1.0, 2.0))
