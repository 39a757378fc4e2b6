from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline.supervisor.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "exit_code", "word"),
    [
        ([], 2, "unknown command"),
        (["dance"], 2, "dance"),
        (["start"], 2, "one folder"),
        (["start", "/no/such/folder"], 8, "there is no job"),
        (["status", "/no/such/folder"], 8, "no job has been started"),
        (["stop", "/no/such/folder", "--grace"], 2, "needs a value"),
        (["stop", "/no/such/folder", "--grace", "soon"], 2, "needs a number"),
        (["stop", "/no/such/folder", "--grace", "-1"], 2, "cannot be"),
        (["stop", "/no/such/folder", "--grace", "1"], 8, "there is no job"),
        (["follow", "/no/such/folder", "--since", "{"], 2, "--since"),
        (["follow", "/no/such/folder", "--since", "[1]"], 2, "--since"),
        (["follow", "/no/such/folder", "--since", '{"a": -1}'], 2, "below 0"),
        (["follow", "/no/such/folder"], 8, "no job has been started"),
        (["facts", "please"], 2, "please"),
    ],
)
def test_a_mistake_is_an_error_in_json(
    arguments: list[str], exit_code: int, word: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever is wrong, the answer is one JSON object and the exit code of its kind."""
    assert main(arguments) == exit_code
    answer = json.loads(capfd.readouterr().out)
    assert answer["exit_code"] == exit_code
    assert word in answer["error"]


def test_what_the_system_refuses_is_an_error_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An error that nobody foresaw is still JSON and no traceback."""
    (tmp_path / "job.json").mkdir()
    assert main(["start", str(tmp_path)]) == 9
    assert "cannot be read" in json.loads(capfd.readouterr().out)["error"]


def test_facts_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """The number of ports is the caller's choice."""
    assert main(["facts", "--ports", "2"]) == 0
    assert len(json.loads(capfd.readouterr().out)["free_ports"]) == 2
