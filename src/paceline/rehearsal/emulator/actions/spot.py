"""The spot market: requests and prices."""

from __future__ import annotations

import time

from moto.core.responses import ActionResult

from paceline.rehearsal.emulator import views
from paceline.rehearsal.emulator.actions.base import RegionActions
from paceline.rehearsal.emulator.market import spot_price

_PATHS = {
    "instance-id": "InstanceId",
    "spot-instance-request-id": "SpotInstanceRequestId",
    "state": "State",
    "status-code": "Status.Code",
    "type": "Type",
}
_PRICE_PATHS = {
    "availability-zone": "AvailabilityZone",
    "instance-type": "InstanceType",
    "product-description": "ProductDescription",
}


class SpotActions(RegionActions):
    """The actions on the spot market."""

    def describe_spot_instance_requests(self) -> ActionResult:
        """Describe spot requests."""
        region = self.ec2_backend
        ids = self.words.get("SpotInstanceRequestIds")
        if ids:
            items = region.find(
                region.spot_requests, ids, "InvalidSpotInstanceRequestID.NotFound", "spot request"
            )
        else:
            items = [item for item in region.spot_requests.values() if region.seen(item.id)]
        facts = [views.spot_request(region, item) for item in items]
        return self.answer("SpotInstanceRequests", facts, _PATHS)

    def cancel_spot_instance_requests(self) -> ActionResult:
        """Cancel spot requests; their instances run on."""
        region = self.ec2_backend
        items = region.find(
            region.spot_requests, self.words.get("SpotInstanceRequestIds") or (),
            "InvalidSpotInstanceRequestID.NotFound", "spot request",
        )  # fmt: skip
        for item in items:
            item.state = "cancelled"
            item.status = "request-canceled-and-instance-running"
        cancelled = [{"SpotInstanceRequestId": item.id, "State": item.state} for item in items]
        return ActionResult({"CancelledSpotInstanceRequests": cancelled})

    def describe_spot_price_history(self) -> ActionResult:
        """Return today's price of each type in each zone that offers it."""
        region = self.ec2_backend
        kinds = self.words.get("InstanceTypes") or []
        wanted = {"instance-type": kinds} if kinds else {}
        offers = region.describe_instance_type_offerings("availability-zone", wanted)
        systems = self.words.get("ProductDescriptions") or ["Linux/UNIX"]
        zone = self.words.get("AvailabilityZone")
        now = views.moment(time.time())
        facts = [
            {
                "InstanceType": offer["InstanceType"],
                "AvailabilityZone": offer["Location"],
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": f"{spot_price(region, offer['InstanceType'], offer['Location']):.6f}",
                "Timestamp": now,
            }
            for offer in offers
            if zone in {None, offer["Location"]} and any("Linux" in word for word in systems)
        ]
        return self.answer("SpotPriceHistory", facts, _PRICE_PATHS)
