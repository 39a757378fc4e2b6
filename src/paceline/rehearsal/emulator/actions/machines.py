"""Instances: launch, look, stop, start, end, change."""

from __future__ import annotations

import base64
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import DryRunClientError, EC2ClientError

from paceline.rehearsal.emulator import views
from paceline.rehearsal.emulator.actions.base import RegionActions
from paceline.rehearsal.emulator.filters import page, select
from paceline.rehearsal.emulator.launching import launch, repeated
from paceline.rehearsal.emulator.nouns import Instance, Reservation
from paceline.rehearsal.emulator.ordering import read_order
from paceline.rehearsal.emulator.region import metadata_access

_PATHS = {
    "architecture": "Architecture",
    "availability-zone": "Placement.AvailabilityZone",
    "client-token": "ClientToken",
    "image-id": "ImageId",
    "instance-id": "InstanceId",
    "instance-lifecycle": "InstanceLifecycle",
    "instance-state-code": "State.Code",
    "instance-state-name": "State.Name",
    "instance-type": "InstanceType",
    "instance.group-id": "SecurityGroups.GroupId",
    "instance.group-name": "SecurityGroups.GroupName",
    "ip-address": "PublicIpAddress",
    "key-name": "KeyName",
    "network-interface.network-interface-id": "NetworkInterfaces.NetworkInterfaceId",
    "placement-group-name": "Placement.GroupName",
    "private-ip-address": "PrivateIpAddress",
    "reservation-id": "ReservationId",
    "root-device-name": "RootDeviceName",
    "spot-instance-request-id": "SpotInstanceRequestId",
    "subnet-id": "SubnetId",
    "tenancy": "Placement.Tenancy",
    "vpc-id": "VpcId",
}
_STATUS_PATHS = {
    "availability-zone": "AvailabilityZone",
    "instance-state-name": "InstanceState.Name",
    "instance-state-code": "InstanceState.Code",
    "instance-status.status": "InstanceStatus.Status",
    "system-status.status": "SystemStatus.Status",
}
_USER = ("Client.UserInitiatedShutdown", "User initiated shutdown")


class MachineActions(RegionActions):
    """The actions on instances."""

    def run_instances(self) -> ActionResult:
        """Launch; the same client token gets the same answer again."""
        region = self.ec2_backend
        known = repeated(region, self.words)
        order = None if known is not None else read_order(region, self.words)
        if self.words.get("DryRun"):
            raise DryRunClientError
        reservation = known or launch(region, order, self.words)  # type: ignore[arg-type]
        found = [region.machines[one] for one in reservation.instance_ids]
        return ActionResult(self._reservation(reservation, found))

    def _reservation(self, reservation: Reservation, items: list[Instance]) -> dict[str, Any]:
        region = self.ec2_backend
        return {
            "ReservationId": reservation.id,
            "OwnerId": region.account_id,
            "Groups": [],
            "Instances": [views.instance(region, item) for item in items],
        }

    def _named(self, key: str = "InstanceIds") -> list[Instance]:
        ids = self.words.get(key) or []
        if not ids:
            raise EC2ClientError("MissingParameter", "The request must contain instance ids")
        return self._known(ids)

    def _known(self, ids: list[str]) -> list[Instance]:
        for one in ids:
            if not one.startswith("i-"):
                raise EC2ClientError("InvalidInstanceID.Malformed", f'Invalid id: "{one}"')
        region = self.ec2_backend
        return region.find(region.machines, ids, "InvalidInstanceID.NotFound", "instance ID")

    def describe_instances(self) -> ActionResult:
        """Describe instances, by reservation."""
        region = self.ec2_backend
        ids = self.words.get("InstanceIds")
        if ids and self.words.get("MaxResults"):
            raise EC2ClientError(
                "InvalidParameterCombination",
                "The parameter instancesSet cannot be used with the parameter maxResults",
            )
        wanted = {item.id for item in self._known(ids)} if ids else None
        facts = []
        for reservation in region.launches.values():
            for one in reservation.instance_ids:
                if wanted is not None and one not in wanted:
                    continue
                if wanted is not None or region.seen(one):
                    described = views.instance(region, region.machines[one])
                    facts.append(described | {"ReservationId": reservation.id})
        chosen = select(facts, self.words.get("Filters") or (), _PATHS)
        shown, token = page(chosen, self.words)
        return ActionResult({"Reservations": self._by_reservation(shown), "NextToken": token})

    def _by_reservation(self, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        together: dict[str, list[dict[str, Any]]] = {}
        for item in facts:
            together.setdefault(item["ReservationId"], []).append(item)
        owner = self.ec2_backend.account_id
        return [
            {"ReservationId": key, "OwnerId": owner, "Groups": [], "Instances": items}
            for key, items in together.items()
        ]

    def describe_instance_status(self) -> ActionResult:
        """Describe the status checks; of running instances only, if nothing else is asked."""
        region = self.ec2_backend
        ids = self.words.get("InstanceIds")
        items = self._known(ids) if ids else list(region.machines.values())
        if not self.words.get("IncludeAllInstances"):
            items = [item for item in items if item.state == "running"]
        facts = [views.status(region, item) for item in items]
        return self.answer("InstanceStatuses", facts, _STATUS_PATHS)

    def terminate_instances(self) -> ActionResult:
        """End instances; all or none."""
        items = self._named()
        for item in items:
            if item.protected:
                raise EC2ClientError(
                    "OperationNotPermitted",
                    f"The instance '{item.id}' may not be terminated. Modify its "
                    "'disableApiTermination' instance attribute and try again.",
                )
        before = [item.state for item in items]
        for item in items:
            self.ec2_backend.terminate(item, *_USER)
        return ActionResult({"TerminatingInstances": _changes(items, before)})

    def stop_instances(self) -> ActionResult:
        """Switch instances off."""
        items = self._named()
        for item in items:
            if item.state not in {"running", "stopping", "stopped", "pending"}:
                raise _wrong_state(item, "stopped")
            if item.order.spot is not None and item.order.spot["type"] == "one-time":
                raise EC2ClientError(
                    "UnsupportedOperation",
                    f"You can't stop the Spot Instance '{item.id}' because it is associated with a "
                    "one-time Spot Instance request. You can only stop Spot Instances associated "
                    "with persistent Spot Instance requests.",
                )
        before = [item.state for item in items]
        for item in items:
            self.ec2_backend.stop(item, *_USER)
        return ActionResult({"StoppingInstances": _changes(items, before)})

    def start_instances(self) -> ActionResult:
        """Switch stopped instances on."""
        items = self._named()
        for item in items:
            if item.state not in {"stopped", "running", "pending"}:
                raise _wrong_state(item, "started")
        before = [item.state for item in items]
        for item in items:
            if item.state == "stopped":
                self.ec2_backend.start(item)
        return ActionResult({"StartingInstances": _changes(items, before)})

    def reboot_instances(self) -> ActionResult:
        """Switch instances off and on, without a change of state."""
        items = self._named()
        for item in items:
            if item.state != "running":
                raise _wrong_state(item, "rebooted")
        for item in items:
            self.ec2_backend.keeper.reboot(item.id)
        return EmptyResult()

    def get_console_output(self) -> ActionResult:
        """Return what an instance has written to its console."""
        (item,) = self._known([self.words["InstanceId"]])
        text = self.ec2_backend.keeper.console(item.id)
        output = base64.b64encode(text.encode()).decode()
        return ActionResult(
            {
                "InstanceId": item.id,
                "Output": output,
                "Timestamp": views.moment(item.launched_at),
            }
        )

    def describe_instance_attribute(self) -> ActionResult:
        """Return one attribute of an instance."""
        (item,) = self._known([self.words["InstanceId"]])
        name = self.words["Attribute"]
        values: dict[str, Any] = {
            "instanceType": item.instance_type,
            "userData": item.user_data or None,
            "instanceInitiatedShutdownBehavior": item.behaviour,
            "disableApiTermination": item.protected,
            "rootDeviceName": item.root_device,
            "sourceDestCheck": True,
            "ebsOptimized": False,
        }
        key = name[:1].upper() + name[1:]
        if name == "groupSet":
            return ActionResult(
                {"InstanceId": item.id, "Groups": [{"GroupId": one} for one in item.group_ids]}
            )
        if name not in values:
            raise EC2ClientError("InvalidParameterValue", f"Unknown attribute: {name}")
        return ActionResult({"InstanceId": item.id, key: {"Value": values[name]}})

    def modify_instance_attribute(self) -> ActionResult:
        """Change one attribute of an instance."""
        (item,) = self._known([self.words["InstanceId"]])
        stopped_only = {"InstanceType", "UserData"} & set(self.words)
        if stopped_only and item.state != "stopped":
            raise EC2ClientError(
                "IncorrectInstanceState", f"The instance '{item.id}' is not in the 'stopped' state."
            )
        if "InstanceType" in self.words:
            kind = self.words["InstanceType"]["Value"]
            self.ec2_backend.type_facts(kind)
            item.instance_type = kind
        if "UserData" in self.words:
            raw = self.words["UserData"].get("Value") or b""
            item.user_data = raw if isinstance(raw, str) else base64.b64encode(raw).decode()
        if "InstanceInitiatedShutdownBehavior" in self.words:
            item.behaviour = self.words["InstanceInitiatedShutdownBehavior"]["Value"]
        if "DisableApiTermination" in self.words:
            item.protected = self.words["DisableApiTermination"]["Value"]
        if self.words.get("Groups"):
            self._regroup(item, tuple(self.words["Groups"]))
        return EmptyResult()

    def _regroup(self, item: Instance, group_ids: tuple[str, ...]) -> None:
        for one in group_ids:
            if self.ec2_backend.get_security_group_from_id(one) is None:
                raise EC2ClientError("InvalidGroup.NotFound", f"The group '{one}' does not exist")
        item.group_ids = group_ids
        for interface in self.ec2_backend.interfaces_of(item.id):
            interface.group_ids = group_ids

    def modify_instance_metadata_options(self) -> ActionResult:
        """Change how an instance's metadata can be read."""
        (item,) = self._known([self.words["InstanceId"]])
        for key in item.metadata:
            if self.words.get(key) is not None:
                item.metadata[key] = self.words[key]
        self.ec2_backend.keeper.open_metadata(item.id, metadata_access(item))
        return ActionResult({"InstanceId": item.id, "InstanceMetadataOptions": item.metadata})


def _changes(items: list[Instance], before: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "InstanceId": item.id,
            "PreviousState": views.state(old),
            "CurrentState": views.state(item.state),
        }
        for item, old in zip(items, before, strict=True)
    ]


def _wrong_state(item: Instance, wish: str) -> EC2ClientError:
    return EC2ClientError(
        "IncorrectInstanceState",
        f"The instance '{item.id}' is not in a state from which it can be {wish}.",
    )
