"""The provider `ec2`: machines rented from Amazon. Nothing outside this room imports boto3."""

from __future__ import annotations

from paceline.providers.ec2.address import find_own_address
from paceline.providers.ec2.cloud import Ec2Cloud, default_region
from paceline.providers.ec2.provider import Ec2Provider

__all__ = ["Ec2Cloud", "Ec2Provider", "default_region", "find_own_address"]
