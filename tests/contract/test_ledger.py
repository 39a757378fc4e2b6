"""The contract of a ledger; every ledger, real or fake, has to pass it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.errors import Conflict
from paceline.model.ec2 import ClusterKey
from paceline.model.ledger import ClusterEntry, Entry, EntryState
from paceline.ports import Ledger
from paceline.store.ledger import SqliteLedger
from tests.fakes.ledger import FakeLedger

KEY = ClusterKey("study", "ann@desk", "us-east-1")
OTHER = ClusterKey("study", "bob@desk", "us-east-1")
MEANT = Entry(
    "e1", KEY, "instance", "2 hosts", EntryState.MEANT, 5.0, token="paceline-1", sitting="s1"
)


@pytest.fixture(params=["file", "fake"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    """Return the ledger under test."""
    return FakeLedger() if request.param == "fake" else SqliteLedger(tmp_path / "l" / "ledger.db")


def test_what_was_meant_is_there_before_it_is_made(ledger: Ledger) -> None:
    """An intent is kept with its token, and is replaced by what became of it."""
    ledger.write(MEANT)
    assert ledger.entries(KEY) == (MEANT,)
    assert MEANT.open
    assert MEANT.is_launch
    made = replace(MEANT, state=EntryState.MADE, made_at=6.0)
    host = Entry("e2", KEY, "instance", "i-1", EntryState.MADE, 5.0, "i-1", facts={"zone": "a"})
    ledger.write(made, host)
    assert ledger.entries(KEY) == (made, host)


def test_clusters_of_one_name_are_told_apart(ledger: Ledger) -> None:
    """Owner and region are part of a cluster's identity."""
    ledger.write(MEANT, replace(MEANT, id="e9", key=OTHER))
    assert [entry.id for entry in ledger.entries(OTHER)] == ["e9"]
    ledger.write_cluster(ClusterEntry(KEY, 1.0, 9.0, usd_per_host_hour=0.1, price_source="list"))
    assert ledger.cluster(OTHER) is None
    found = ledger.cluster(KEY)
    assert found is not None
    assert (found.usd_per_host_hour, found.price_source) == (0.1, "list")


def test_a_cluster_that_is_gone_is_not_listed(ledger: Ledger) -> None:
    """What is gone is out of the way, and the newest stands first."""
    older, newer = ClusterEntry(KEY, 1.0, 9.0), ClusterEntry(OTHER, 2.0, 9.0)
    ledger.write_cluster(older)
    ledger.write_cluster(newer)
    assert ledger.clusters() == (newer, older)
    ledger.write_cluster(replace(newer, gone_at=3.0))
    assert ledger.clusters() == (older,)
    assert ledger.cluster(OTHER) is None


def test_two_tools_at_once(ledger: Ledger) -> None:
    """One wins, the other says so; a cluster of another owner is not concerned."""
    with ledger.lock(KEY):
        with pytest.raises(Conflict, match="at work on"), ledger.lock(KEY):
            pass
        with ledger.lock(OTHER):
            pass
    with ledger.lock(KEY):
        pass
