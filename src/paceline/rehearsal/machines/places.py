"""Where the parts of a rehearsal lie on this machine, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    """The folder and the letters of one rehearsal; no other has the same ones."""

    folder: Path
    letters: str

    @property
    def journal(self) -> Path:
        """What was made and not yet taken away."""
        return self.folder / "journal.jsonl"

    @property
    def base(self) -> Path:
        """What a new machine's disk holds above this machine's own files."""
        return self.folder / "base"

    @property
    def images(self) -> Path:
        """The disks of baked images."""
        return self.folder / "images"

    @property
    def machines(self) -> Path:
        """A folder for each machine."""
        return self.folder / "machines"

    @property
    def registry(self) -> Path:
        """The image for docker that all machines can pull."""
        return self.folder / "registry"

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that go away with the rehearsal."""
        return (self.base, self.images, self.machines, self.registry)

    def machine(self, instance_id: str) -> Path:
        """The folder of a machine: its disk, its console, its orders."""
        return self.machines / instance_id

    def namespace(self, index: int) -> str:
        """The name of a machine's network namespace."""
        return f"plr-{self.letters}-{index}"

    def router_namespace(self, region: str) -> str:
        """The name of a region's router."""
        return f"plr-{self.letters}-{region}"

    @property
    def control_group(self) -> str:
        """The name of the control group that holds all machines."""
        return f"paceline-{self.letters}"
