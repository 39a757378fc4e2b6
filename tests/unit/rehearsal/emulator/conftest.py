from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from paceline.rehearsal.emulator import Emulator

UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
Client = Any


def client(emulator: Emulator, service: str = "ec2", *, attempts: int = 1) -> Client:
    """Return a client of one service that tries so often."""
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=emulator.url,
        region_name="us-east-1",
        aws_access_key_id=emulator.key_id,
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": attempts, "mode": "standard"}),
    )


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    """Return an account that holds nothing."""
    with Emulator() as made:
        yield made


@pytest.fixture
def ec2(emulator: Emulator) -> Client:
    """Return a client of EC2 that tries once."""
    return client(emulator)


@pytest.fixture
def ubuntu(emulator: Emulator) -> str:
    """Return the id of the newest Ubuntu 24.04."""
    found = client(emulator, "ssm").get_parameter(Name=UBUNTU)
    return str(found["Parameter"]["Value"])


@pytest.fixture
def launch(ec2: Client, ubuntu: str) -> Callable[..., list[str]]:
    """Return a function that launches instances and returns their ids."""

    def act(count: int = 1, **words: Any) -> list[str]:
        asked = {"ImageId": ubuntu, "InstanceType": "m5.large", "MinCount": count}
        made = ec2.run_instances(**{**asked, "MaxCount": count, **words})
        return [item["InstanceId"] for item in made["Instances"]]

    return act


def code_of(act: Callable[[], object]) -> str:
    """Return the code of the error that a call ends with."""
    with pytest.raises(ClientError) as caught:
        act()
    return str(caught.value.response["Error"]["Code"])
