from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from paceline.app.provision import bring_up
from paceline.app.teardown import take_down
from paceline.errors import LeftBehind, PacelineError
from paceline.providers.ec2 import Ec2Cloud
from paceline.rehearsal.emulator import Emulator, Fault, Inventory
from tests.fakes.rented import KEY, SshWorld, desk_at, wish

pytestmark = pytest.mark.e2e  # slower than a unit test
CHANGES = (
    "ImportKeyPair", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress",
    "CreatePlacementGroup", "RunInstances", "TerminateInstances", "DeleteSecurityGroup",
    "DeleteKeyPair", "DeletePlacementGroup", "DescribeInstances", "DescribeSecurityGroups",
)  # fmt: skip
REFUSALS = ("InternalError", "UnauthorizedOperation", "InsufficientInstanceCapacity",
            "InvalidGroup.NotFound", "DependencyViolation", "VcpuLimitExceeded")  # fmt: skip


def machine_for(  # noqa: C901 - one rule each
    emulator: Emulator, cloud: Ec2Cloud, before: Inventory
) -> type:
    """Return the machine that uses the verbs in any order while anything goes wrong."""

    class Verbs(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.folder = tempfile.TemporaryDirectory()
            self.desk = desk_at(cloud, Path(self.folder.name), world=SshWorld())
            self.hosts = 0

        @rule(nodes=st.integers(1, 4))
        def up(self, nodes: int) -> None:
            with contextlib.suppress(PacelineError):
                cluster = asyncio.run(bring_up(self.desk, wish(nodes)))
                assert len(cluster.hosts) == nodes
                assert len(self.ours()) == nodes

        @rule()
        def down(self) -> None:
            with contextlib.suppress(PacelineError):
                asyncio.run(take_down(self.desk, KEY))
                assert emulator.inventory() == before

        @rule(
            action=st.sampled_from(CHANGES),
            effect=st.sampled_from(["lose-reply", "cut", "refuse"]),
            code=st.sampled_from(REFUSALS),
            times=st.integers(1, 3),
        )
        def spoil(self, action: str, effect: str, code: str, times: int) -> None:
            emulator.faults.add(
                Fault(effect, action=action, code=code, times=times, status=400)  # type: ignore[arg-type]
            )

        @rule()
        def mend(self) -> None:
            emulator.faults.clear()

        @precondition(lambda self: len(self.ours()) > 0)
        @rule()
        def a_host_ends_by_itself(self) -> None:
            emulator.shut_down_from_inside(self.ours()[0])

        @rule()
        def the_ledger_is_lost(self) -> None:
            for path in Path(self.folder.name).glob("ledger*"):
                path.unlink()

        @rule(looks=st.integers(0, 2))
        def the_view_lags(self, looks: int) -> None:
            emulator.conditions.hidden_looks = looks

        def ours(self) -> list[str]:
            strangers = before["instances"]
            region = emulator.region
            return [
                item.id for item in emulator.instances() if f"{region}/{item.id}" not in strangers
            ]

        @invariant()
        def strangers_stay(self) -> None:
            now = emulator.inventory()
            for kind, items in before.items():
                assert items.items() <= now[kind].items(), kind

        def teardown(self) -> None:
            emulator.faults.clear()
            emulator.conditions.hidden_looks = 0
            with contextlib.suppress(LeftBehind):
                asyncio.run(take_down(self.desk, KEY))
            assert emulator.inventory() == before
            self.folder.cleanup()

    return Verbs


@pytest.mark.usefixtures("quick_retries")
def test_verbs_and_faults_in_any_order(
    emulator: Emulator, cloud: Ec2Cloud, strangers: Inventory
) -> None:
    """Whatever happens in whatever order, one `down` at the end leaves the account as it was."""
    run_state_machine_as_test(
        machine_for(emulator, cloud, strangers),
        settings=settings(
            max_examples=12,
            stateful_step_count=8,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
