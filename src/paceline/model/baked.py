"""An image that was baked: a name, and what it costs to keep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BakedImage:
    """One image of ours; `size_gib` is what its snapshots are billed for at most.

    It is not `whole` as long as it would go away with its builder.
    """

    name: str
    id: str
    region: str
    state: str
    created_at: str = ""
    size_gib: int = 0
    user: str = ""
    snapshots: tuple[str, ...] = ()
    whole: bool = True
