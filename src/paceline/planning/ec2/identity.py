"""Whose a thing is: the names, tags and tokens that tell our resources from everybody else's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timezone

from paceline.model.ec2 import ClusterKey

CLUSTER_TAG = "paceline:cluster"
OWNER_TAG = "paceline:owner"
EXPIRY_TAG = "paceline:expires"
MANAGED_TAG = "paceline:managed-by"
IMAGE_TAG = "paceline:image"
USER_TAG = "paceline:user"
MANAGED_BY = "paceline"

_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9 _.:/=+@-]+")
_TOKEN_CHARS = 48


def owner_word(text: str) -> str:
    """Return the name of an owner in letters that tags may have."""
    return _NOT_IN_TAGS.sub("-", text).strip("-")[:120] or "somebody"


def resource_name(key: ClusterKey) -> str:
    """Return the name that a cluster's group, key and placement group bear: the same every time.

    Two owners may have clusters of one name in one account, so the owner is in it.
    """
    digest = hashlib.sha256(f"{key.owner}\n{key.name}".encode()).hexdigest()[:8]
    return f"paceline-{key.name}-{digest}"


def tags_of(key: ClusterKey, expires_at: float) -> dict[str, str]:
    """Return the tags of everything that belongs to a cluster."""
    return {
        "Name": resource_name(key),
        CLUSTER_TAG: key.name,
        OWNER_TAG: key.owner,
        EXPIRY_TAG: expiry_word(expires_at),
        MANAGED_TAG: MANAGED_BY,
    }


def belongs(tags: Mapping[str, str], key: ClusterKey) -> bool:
    """Whether something bears the tags of this cluster of this owner."""
    return tags.get(CLUSTER_TAG) == key.name and tags.get(OWNER_TAG) == key.owner


def expiry_word(expires_at: float) -> str:
    """Return a time as it stands in tags: `2026-08-22T14:00:00Z`."""
    return datetime.fromtimestamp(expires_at, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def expiry_of(tags: Mapping[str, str]) -> float | None:
    """Return the time that a tag says; None where it says none."""
    try:
        return datetime.strptime(
            f"{tags.get(EXPIRY_TAG, '')}+0000", "%Y-%m-%dT%H:%M:%SZ%z"
        ).timestamp()
    except ValueError:
        return None


def client_token(key: ClusterKey, nonce: str, *parts: str) -> str:
    """Return the token of one request: the same nonce and parts give the same token again."""
    text = "\n".join((key.owner, key.name, key.region, nonce, *parts))
    return f"paceline-{hashlib.sha256(text.encode()).hexdigest()[:_TOKEN_CHARS]}"
