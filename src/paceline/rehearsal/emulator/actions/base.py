"""What all actions share: the region that they act on, and the words of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from moto.core.responses import ActionResult
from moto.ec2.responses._base_response import EC2BaseResponse

from paceline.rehearsal.emulator.filters import Facts, page, select
from paceline.rehearsal.emulator.region import Region
from paceline.rehearsal.emulator.regions import Regions


class RegionActions(EC2BaseResponse):
    """Actions on one region of one account."""

    regions: Regions
    # Times and states of our own answers are as they should be already.
    RESPONSE_KEY_PATH_TO_TRANSFORMER = {  # noqa: RUF012 - moto declares it for its instances
        path: change
        for path, change in EC2BaseResponse.RESPONSE_KEY_PATH_TO_TRANSFORMER.items()
        if not path.startswith(("Image.", "RunInstances.", "CreateVolume", "Volume"))
    }

    @property
    def ec2_backend(self) -> Region:
        """The region that the caller has signed for; moto's own actions use it too."""
        return self.regions[self.region]

    @property
    def words(self) -> dict[str, Any]:
        """The parameters of the request, by their names in the API."""
        return cast("dict[str, Any]", self.params)

    def answer(self, key: str, items: Sequence[Facts], paths: Mapping[str, str]) -> ActionResult:
        """Return the items that pass the request's filters, a page at a time."""
        chosen = select(items, self.words.get("Filters") or (), paths)
        shown, token = page(chosen, self.words)
        return ActionResult({key: shown, "NextToken": token})
