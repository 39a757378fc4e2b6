"""The whole way as a user goes it, with nothing but `--rehearse` in front of the verbs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsing import skip_unless_possible

pytestmark = [pytest.mark.e2e, pytest.mark.torch]
SPEC = """\
name: tryout
cluster: {provider: ec2, region: eu-west-1, instance_type: m5.large, nodes: 2}
data: {dataset: fake}
job: {program: mlp, procs_per_node: 1, args: {iterations: 4}}
limits: {ttl: 1h}
"""


class User:
    """Somebody at a terminal, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def says(self, *words: str, code: int = 0) -> str:
        """Say a verb, which must end with a code; return its output."""
        # Without an address of their own they would need one that the rehearsal gives them.
        env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        done = subprocess.run(
            (sys.executable, "-m", "paceline", *words),
            cwd=self.folder, env={**env, "PACELINE_HOME": str(self.folder / "home")},
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr or done.stdout
        return done.stdout if code == 0 else done.stderr


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """Return a user with a rehearsal that is up."""
    skip_unless_possible()
    made = User(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC)
    assert "paceline rehearsal start" in made.says("--rehearse", "up", "spec.yaml", code=3)
    made.says("rehearsal", "start")
    yield made
    assert "none left" in made.says("rehearsal", "stop")


def test_up_train_down(user: User) -> None:
    """Two hosts are rented, train, are cut off and given back; the account is as before."""
    user.says("--rehearse", "up", "spec.yaml")
    status = json.loads(user.says("rehearsal", "status", "--json"))
    assert [one["name"] for one in status["machines"]] == ["node0", "node1"]
    assert [one["state"] for one in status["machines"]] == ["running"] * 2
    user.says("--rehearse", "train", "spec.yaml")
    (run,) = (user.folder / "paceline-results").glob("tryout-*")
    ranks = sorted(path.name for path in (run / "events").iterdir())
    assert len(ranks) == 2
    user.says("rehearsal", "fault", "cut", "node1")
    user.says("--rehearse", "down")
    status = json.loads(user.says("rehearsal", "status", "--json"))
    assert not any(status["account"].values())
    assert status["machines"] == []
    # What was rehearsed is not mixed with what is real.
    assert not (user.folder / "home/ledger.sqlite").exists()
