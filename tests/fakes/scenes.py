"""What a child does that is killed: bring a cluster up, take it down."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from paceline.app.provision import bring_up
from paceline.app.teardown import take_down
from paceline.providers.ec2 import Ec2Cloud
from tests.fakes.rented import KEY, desk_at, wish


def warm_cloud() -> Ec2Cloud:
    """Return the way to EC2 with everything loaded that takes time, and nothing spoken yet."""
    cloud = Ec2Cloud(os.environ.get("AWS_REGION", "us-east-1"))
    for service in ("ec2", "sts", "ssm", "pricing", "service-quotas"):
        cloud._client(service)
    return cloud


CLOUD = warm_cloud() if "AWS_ENDPOINT_URL" in os.environ else None


def up(folder: str, nodes: int = 2) -> None:
    """Bring a cluster up."""
    assert CLOUD is not None
    asyncio.run(bring_up(desk_at(CLOUD, Path(folder)), wish(nodes)))


def down(folder: str) -> None:
    """Take it down."""
    assert CLOUD is not None
    asyncio.run(take_down(desk_at(CLOUD, Path(folder)), KEY))
