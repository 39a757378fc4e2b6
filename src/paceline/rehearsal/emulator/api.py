"""The EC2 API: the actions that are ours, over those of moto."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DryRunClientError, EC2ClientError
from moto.ec2.responses import EC2Response

from paceline.rehearsal.emulator.actions.disks import DiskActions
from paceline.rehearsal.emulator.actions.groups import GroupActions
from paceline.rehearsal.emulator.actions.images import ImageActions
from paceline.rehearsal.emulator.actions.machines import MachineActions
from paceline.rehearsal.emulator.actions.spot import SpotActions
from paceline.rehearsal.emulator.regions import Regions

# These would make moto's own instances, which have no body here.
_NOT_HERE = (
    "CreateFleet",
    "RequestSpotFleet",
    "RequestSpotInstances",
    "RegisterImage",
    "CopyImage",
    "CopySnapshot",
    "ImportImage",
    "ModifyVolume",
    "CreateNatGateway",
)


class Ec2Api(MachineActions, DiskActions, ImageActions, GroupActions, SpotActions, EC2Response):
    """One request to EC2."""

    def __init__(self, regions: Regions) -> None:
        super().__init__()
        self.regions = regions

    def call_action(self) -> Any:
        """Settle what is due, refuse what may not be, then act."""
        self.ec2_backend.settle()
        refusal = self._refusal()
        if refusal is None:
            answer = super().call_action()
            self.ec2_backend.let_groups_have_effect()
            return answer
        return self.serialized(ActionResult(refusal))

    def _authenticate_and_authorize_normal_action(self, resource: str = "*") -> None:
        """Leave this to the server, which knows who may speak to it."""
        del resource

    def _refusal(self) -> EC2ClientError | None:
        action = self._get_action()
        if action in self.ec2_backend.conditions.denied_actions:
            return EC2ClientError(
                "UnauthorizedOperation",
                "You are not authorized to perform this operation. User: "
                f"arn:aws:iam::{self.ec2_backend.account_id}:user/rehearsal is not authorized to "
                f"perform: ec2:{action}",
            )
        if action in _NOT_HERE:
            return EC2ClientError("UnsupportedOperation", f"The rehearsal has no {action}.")
        # RunInstances looks at the request first, and then says that it would have done it.
        if self.params.get("DryRun") and action != "RunInstances":
            return DryRunClientError()
        return None
