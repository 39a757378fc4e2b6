"""The card of a rehearsal: who may read it, and what it makes of an environment."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from paceline.rehearsal.daemon.card import Card, read_card
from paceline.supervisor import procfs

CARD = Card(
    pid=os.getpid(), mark=procfs.mark_of(os.getpid()) or "", url="http://127.0.0.1:1",
    key_id="AKIA", region="us-east-1", caller="198.18.1.1", control="/run/x.sock",
    started_at=0.0, bandwidth="scaled", letters="abc123",
)  # fmt: skip


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    """It is for its user alone; what is no card is none."""
    path = tmp_path / "card.json"
    CARD.write(path)
    assert read_card(path) == CARD
    assert path.stat().st_mode & 0o077 == 0
    path.write_text("{}")
    assert read_card(path) is None


def test_another_process_with_the_same_number_is_not_the_daemon() -> None:
    """A daemon is told from a later process by when it began."""
    assert CARD.alive
    assert not replace(CARD, mark="elsewhere/1").alive


def test_nothing_leads_to_aws_any_more() -> None:
    """Keys, profiles and addresses of the user's own are gone; the region stays."""
    own = {
        "PATH": "/bin", "AWS_PROFILE": "work", "AWS_SESSION_TOKEN": "x",
        "AWS_ENDPOINT_URL_EC2": "https://ec2", "AWS_REGION": "eu-west-1",
    }  # fmt: skip
    made = CARD.environment(own, Path("/home"))
    assert made["AWS_ENDPOINT_URL"] == CARD.url
    assert made["AWS_DEFAULT_REGION"] == made["AWS_REGION"] == "eu-west-1"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_EC2"} & set(made)
    assert made["PATH"] == "/bin"
    assert (made["PACELINE_HOME"], made["PACELINE_MY_ADDRESS"]) == ("/home", "198.18.1.1")
