"""The least IAM policy: it has every action that we ever send, and touches only what is ours."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline.cli.main import main
from paceline.planning.ec2.rights import RIGHTS, policy

SOURCES = Path(paceline.__file__).parent
_REMOVES_OR_LOOKS = re.compile("(Delete|Cancel|Deregister|Describe)[A-Z][A-Za-z]+")
# It only lends its name to an error about the user's settings.
NEVER_SENT = {("ec2", "GetRegion")}
SERVICES = {"service-quotas": "servicequotas"}


def requested() -> set[tuple[str, str]]:
    """Return service and action of every request that our sources can make."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        if "rehearsal" not in path.parts:
            found |= set(_requests(ast.parse(path.read_text())))
    return found


def _requests(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Request", "_look"):
            words = [item.value for item in node.args if isinstance(item, ast.Constant)]
            service = next(
                (
                    item.value.value
                    for item in node.keywords
                    if item.arg == "service" and isinstance(item.value, ast.Constant)
                ),
                "ec2",
            )
            if words and isinstance(words[0], str):
                yield SERVICES.get(str(service), str(service)), words[0]
        # Tables of actions, such as those of removals, hold them as the first word of a row.
        if isinstance(node, ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant):
            word = node.elts[0].value
            if isinstance(word, str) and _REMOVES_OR_LOOKS.fullmatch(word):
                yield "ec2", word


def statements() -> list[dict[str, Any]]:
    """Return the statements of the policy as IAM would read them."""
    return list(json.loads(json.dumps(policy()))["Statement"])


def test_every_request_has_its_right() -> None:
    """What is not in the table would be refused to those who use our policy."""
    known = {(right.service, right.action) for right in RIGHTS}
    asked = requested() - NEVER_SENT
    assert ("ec2", "RunInstances") in asked
    assert ("ec2", "DeleteVolume") in asked
    assert asked <= known


def test_nothing_foreign_can_be_changed() -> None:
    """Every statement that changes something has a condition, but for what a host is made from."""
    for statement in statements():
        looks = all(
            word.partition(":")[2].startswith(("Describe", "Get")) for word in statement["Action"]
        )
        uses = statement["Sid"].endswith("From")
        assert looks or uses or statement["Condition"], statement["Sid"]
        assert "*" not in "".join(statement["Action"])
    uses = [item for item in statements() if item["Sid"].endswith("From")]
    assert {word for item in uses for word in item["Action"]} == {
        "ec2:CreateSecurityGroup", "ec2:RunInstances",
    }  # fmt: skip


def test_the_policy_is_printed(capsys: Any) -> None:
    """`doctor --iam` prints JSON and nothing else, and looks at nothing."""
    with pytest.raises(SystemExit) as end:
        main(["doctor", "--iam"])
    assert not end.value.code
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(json.dumps(policy()))
    # IAM takes managed policies of up to 6144 characters, blanks not counted.
    assert len("".join(json.dumps(printed).split())) < 6144
