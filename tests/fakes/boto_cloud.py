"""The port `Cloud` on plain boto3, as small as tests of use cases need it."""

from __future__ import annotations

import asyncio
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from paceline.errors import AlreadyThere, CloudError, NotThere, StillInUse
from paceline.model.ec2 import Answer, Request
from paceline.rehearsal.emulator import Emulator


class BotoCloud:
    """Speaks to an emulator; a lost reply is asked for again, as botocore does."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    @property
    def region(self) -> str:
        """The region that is spoken to."""
        return self._emulator.region

    async def call(self, request: Request) -> Answer:
        """Carry a request out."""
        return await asyncio.to_thread(self._call, request)

    def _call(self, request: Request) -> Answer:
        client: Any = boto3.client(  # type: ignore[call-overload]
            request.service,
            endpoint_url=self._emulator.url,
            region_name=self.region,
            aws_access_key_id=self._emulator.key_id,
            aws_secret_access_key="any",
            config=Config(retries={"total_max_attempts": 3, "mode": "standard"}),
        )
        methods = {name: method for method, name in client.meta.method_to_api_mapping.items()}
        try:
            answer: Answer = getattr(client, methods[request.action])(**request.parameters)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            raise _kind(code)(str(error), code=code) from error
        return answer


def _kind(code: str) -> type[CloudError]:
    if code.endswith("Duplicate"):
        return AlreadyThere
    if code.endswith("NotFound"):
        return NotThere
    return StillInUse if code.endswith("InUse") else CloudError
