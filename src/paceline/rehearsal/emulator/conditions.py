"""How this EC2 behaves: delays, capacity, quotas, rights. All of it may change while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

# Codes of Service Quotas, by market and by the first letters of the families that they count.
STANDARD = "L-1216C47A"
STANDARD_SPOT = "L-34B43A08"
QUOTA_NAMES = {
    STANDARD: "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "L-DB2E81BA": "Running On-Demand G and VT instances",
    "L-417A185B": "Running On-Demand P instances",
    "L-1945791B": "Running On-Demand Inf instances",
    "L-7295265B": "Running On-Demand X instances",
    "L-74FC7D96": "Running On-Demand F instances",
    STANDARD_SPOT: "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
    "L-3819A6DF": "All G and VT Spot Instance Requests",
    "L-7212CCBC": "All P Spot Instance Requests",
    "L-B5D1601B": "All Inf Spot Instance Requests",
    "L-E3A00192": "All X Spot Instance Requests",
    "L-88CF9481": "All F Spot Instance Requests",
}
_FAMILIES = {
    "g": ("L-DB2E81BA", "L-3819A6DF"),
    "vt": ("L-DB2E81BA", "L-3819A6DF"),
    "p": ("L-417A185B", "L-7212CCBC"),
    "inf": ("L-1945791B", "L-B5D1601B"),
    "x": ("L-7295265B", "L-E3A00192"),
    "f": ("L-74FC7D96", "L-88CF9481"),
}


@dataclass
class Conditions:
    """Delays in seconds, limits, and what the caller may not do."""

    boot_s: float = 0.0
    checks_s: float = 0.0
    stop_s: float = 0.0
    image_s: float = 0.0
    # After its creation, a resource cannot be seen by so many looks: EC2 is eventually consistent.
    hidden_looks: int = 0
    notice_s: float = 120.0
    denied_actions: set[str] = field(default_factory=set)
    vcpu_quotas: dict[str, float] = field(default_factory=lambda: dict.fromkeys(QUOTA_NAMES, 9e3))
    # How many more instances there is room for; `*` stands for every zone or type.
    capacity: dict[tuple[str, str], int] = field(default_factory=dict)

    def room(self, zone: str, instance_type: str) -> int | None:
        """Return how many instances a zone still has room for; None if nobody limits it."""
        keys = [(place, kind) for place in (zone, "*") for kind in (instance_type, "*")]
        found = [self.capacity[key] for key in keys if key in self.capacity]
        return min(found) if found else None

    def take(self, zone: str, instance_type: str, count: int) -> None:
        """Use up room."""
        for key in [(place, kind) for place in (zone, "*") for kind in (instance_type, "*")]:
            if key in self.capacity:
                self.capacity[key] -= count


def quota_code(instance_type: str, *, spot: bool) -> str:
    """Return the quota that counts the vCPUs of a type."""
    family = instance_type.partition(".")[0]
    letters = "".join(letter for letter in family[:3] if letter.isalpha())
    for length in (3, 2, 1):
        codes = _FAMILIES.get(letters[:length])
        if codes is not None:
            return codes[spot]
    return STANDARD_SPOT if spot else STANDARD
