"""The port `Cloud` over boto3: the user's profile, region, SSO and endpoint, as AWS's tools do.

Every call runs in a thread, for boto3 waits. What AWS refuses becomes an error of ours here.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import Any

from paceline.model.command import Secret
from paceline.model.ec2 import Answer, Request
from paceline.planning.ec2.questions import PRICING_REGION
from paceline.providers.ec2.errors import load_boto, translated

# Ten attempts: with a third of all calls refused, one in a hundred thousand fails for good.
_ATTEMPTS = 10
_CONNECT_S, _READ_S = 10, 90
_CONNECTIONS = 16
# Services that stand in one place and answer for all regions.
_ELSEWHERE = {"pricing": PRICING_REGION}


class Ec2Cloud:
    """The port `Cloud`, for one region of the account that the user's settings lead to."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def region(self) -> str:
        """The region that is spoken to."""
        return self._region

    async def call(self, request: Request) -> Answer:
        """Carry a request out; pages are put together. CloudError says what was refused."""
        return await asyncio.to_thread(self._call, request)

    async def endpoint(self) -> str:
        """Return where EC2 is spoken to."""
        return await asyncio.to_thread(lambda: str(self._client("ec2").meta.endpoint_url))

    def _call(self, request: Request) -> Answer:
        load_boto()
        from botocore import xform_name  # noqa: PLC0415 - loaded already

        with translated(request, self._region):
            client = self._client(request.service)
            method = xform_name(request.action)
            words = opened(request.parameters)
            if client.can_paginate(method):
                pages = client.get_paginator(method).paginate(**words)
                return dict(pages.build_full_result())
            answer: dict[str, Any] = getattr(client, method)(**words)
            return answer

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._new_client(service)
            return self._clients[service]

    def _new_client(self, service: str) -> Any:
        load_boto()
        import boto3  # noqa: PLC0415 - loaded already
        from botocore.config import Config  # noqa: PLC0415

        config = Config(
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            max_pool_connections=_CONNECTIONS,
            user_agent_extra="paceline",
        )
        make: Any = boto3.Session().client
        return make(service, region_name=_ELSEWHERE.get(service, self._region), config=config)


def opened(value: Any) -> Any:
    """Return parameters with their secrets open, for AWS itself."""
    if isinstance(value, Secret):
        return value.value
    if isinstance(value, Mapping):
        return {key: opened(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [opened(item) for item in value]
    return value


def default_region() -> str | None:
    """Return the region of the user's own settings: AWS_REGION, or that of the profile."""
    named = os.environ.get("AWS_REGION")
    if named:
        return named
    with translated(Request("GetRegion"), ""):
        import boto3  # noqa: PLC0415 - loaded already

        return boto3.Session().region_name
