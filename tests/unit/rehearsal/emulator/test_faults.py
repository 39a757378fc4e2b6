"""Faults strike at the call that they were set for, and do just what they say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from botocore.exceptions import ConnectionClosedError
from hypothesis import given
from hypothesis import strategies as st

from paceline.rehearsal.emulator import Call, Emulator, Fault, throttling
from tests.unit.rehearsal.emulator.conftest import Client, client, code_of

Launch = Callable[..., list[str]]


def call(number: int, action: str = "RunInstances") -> Call:
    """Return a call that came in."""
    return Call(number, "ec2", "us-east-1", action, {})


@given(at=st.integers(1, 20), times=st.integers(1, 20), calls=st.integers(0, 50))
def test_a_fault_strikes_from_the_kth_call_on(at: int, times: int, calls: int) -> None:
    """It strikes at the k-th call that it looks at, and at as many as it was set for."""
    fault = Fault("refuse", at=at, times=times)
    hits = [number for number in range(1, calls + 1) if fault.strikes(call(number))]
    assert hits == [number for number in range(at, at + times) if number <= calls]


def test_a_fault_looks_at_its_own_action_only() -> None:
    """Calls of other names are not counted; nor are those that only look, if so asked."""
    fault = Fault("refuse", action="CreateImage", at=2)
    assert [fault.strikes(call(1, name)) for name in ("CreateImage", "RunInstances")] == [False] * 2
    assert fault.strikes(call(3, "CreateImage"))
    changing = Fault("refuse", changing_only=True)
    assert not changing.strikes(call(1, "DescribeInstances"))
    assert changing.strikes(call(2, "RunInstances"))


def test_throttling_is_the_same_with_the_same_seed() -> None:
    """A share of the calls is refused, by the same dice for the same seed."""
    draws = [[throttling(0.3, seed=4).strikes(call(1)) for _ in range(1)] for _ in range(2)]
    assert draws[0] == draws[1]
    fault = throttling(0.3, seed=1)
    share = sum(fault.strikes(call(number)) for number in range(2000)) / 2000
    assert 0.25 < share < 0.35


def test_a_refused_call_does_nothing(emulator: Emulator, launch: Launch) -> None:
    """The caller gets the error, and nothing was launched."""
    emulator.faults.add(Fault("refuse", action="RunInstances", code="InternalError"))
    assert code_of(launch) == "InternalError"
    assert emulator.instances() == []
    assert len(launch()) == 1


def test_a_lost_reply_comes_after_the_deed(emulator: Emulator, launch: Launch) -> None:
    """The connection breaks, and the instance is there all the same."""
    emulator.faults.add(Fault("lose-reply", action="RunInstances"))
    with pytest.raises(ConnectionClosedError):
        launch()
    assert len(emulator.instances()) == 1
    assert [entry.outcome for entry in emulator.calls.changing()] == ["lose-reply"]


def test_a_cut_connection_comes_before_the_deed(emulator: Emulator, launch: Launch) -> None:
    """The connection breaks, and nothing has happened."""
    emulator.faults.add(Fault("cut", action="RunInstances"))
    with pytest.raises(ConnectionClosedError):
        launch()
    assert emulator.instances() == []


def test_botocore_tries_again_when_throttled(emulator: Emulator) -> None:
    """Two refusals for too many calls are not seen by a client that retries."""
    patient = client(emulator, attempts=4)
    emulator.faults.add(Fault("refuse", times=2, code="RequestLimitExceeded", status=503))
    assert patient.describe_vpcs()["Vpcs"]
    assert [entry.outcome for entry in emulator.calls.all()] == ["RequestLimitExceeded"] * 2 + [
        "ok"
    ]


_CHILD = """
import boto3, os
ec2 = boto3.client("ec2")
ec2.create_security_group(GroupName="g", Description="d")
print("alive")
"""


@pytest.mark.parametrize(("effect", "groups"), [("kill-before", 0), ("kill-after", 1)])
def test_the_caller_is_killed(emulator: Emulator, effect: str, groups: int) -> None:
    """The calling process is gone, before or after the deed, and this one is not."""
    emulator.faults.add(Fault(effect, action="CreateSecurityGroup"))  # type: ignore[arg-type]
    child = subprocess.run(
        (sys.executable, "-c", _CHILD),
        env={**os.environ, **emulator.environ},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert child.stdout == b""
    assert len(emulator.inventory()["security groups"]) == groups


def test_calls_are_numbered_and_told_apart(emulator: Emulator, ec2: Client) -> None:
    """The log has every call with its number, and knows which of them change something."""
    ec2.describe_vpcs()
    ec2.create_security_group(GroupName="g", Description="d")
    code_of(lambda: ec2.create_security_group(GroupName="g", Description="d"))
    shown = [(entry.number, entry.action, entry.outcome) for entry in emulator.calls.all()]
    assert shown == [
        (1, "DescribeVpcs", "ok"),
        (2, "CreateSecurityGroup", "ok"),
        (3, "CreateSecurityGroup", "InvalidGroup.Duplicate"),
    ]
    assert [entry.number for entry in emulator.calls.changing()] == [2, 3]
    assert emulator.calls.all()[1].parameters["GroupName"] == "g"
    emulator.calls.clear()
    ec2.describe_vpcs()
    assert emulator.calls.all()[0].number == 1
