"""The public images, and the public parameters that name the newest of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from paceline.rehearsal.emulator.nouns import Disk, Image, Snapshot

CANONICAL = "099720109477"
AMAZON = "137112412989"
DEEP_LEARNING = "898082745236"
_MADE_AT = 1_755_820_800.0  # 2025-08-22
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}


@dataclass(frozen=True)
class PublicImage:
    """One entry: the image's name, its disk, and the parameters that point to it."""

    name: str
    owner_id: str
    architecture: str
    parameters: tuple[str, ...]
    root_device: str = "/dev/sda1"
    size_gib: int = 8
    disk_type: str = "gp2"
    user: str = "ubuntu"
    description: str = ""


def public_images() -> tuple[PublicImage, ...]:
    """Return the images that people start from: Ubuntu, Amazon Linux, Deep Learning AMIs."""
    return (*_ubuntu(), *_amazon_linux(), *_deep_learning())


def _ubuntu() -> list[PublicImage]:
    base = "/aws/service/canonical/ubuntu/server"
    releases = (
        ("20.04", "focal", "hvm-ssd", "gp2"),
        ("22.04", "jammy", "hvm-ssd", "gp2"),
        ("24.04", "noble", "hvm-ssd-gp3", "gp3"),
    )
    return [
        PublicImage(
            name=f"ubuntu/images/{folder}/ubuntu-{word}-{release}-{arch}-server-20250821",
            owner_id=CANONICAL,
            architecture=_ARCHITECTURES[arch],
            disk_type=disk,
            description=f"Canonical, Ubuntu, {release}, {arch} {word} image",
            parameters=tuple(
                f"{base}/{key}/stable/current/{arch}/hvm/ebs-{disk}/ami-id"
                for key in (release, word)
            ),
        )
        for release, word, folder, disk in releases
        for arch in _ARCHITECTURES
    ]


def _amazon_linux() -> list[PublicImage]:
    base = "/aws/service/ami-amazon-linux-latest"
    found = []
    for arch in _ARCHITECTURES.values():
        new = tuple(f"{base}/al2023-ami-kernel-{word}-{arch}" for word in ("default", "6.1"))
        old = tuple(f"{base}/amzn2-ami-{word}hvm-{arch}-gp2" for word in ("", "kernel-5.10-"))
        for name, parameters, disk in (
            (f"al2023-ami-2023.8.20250818.0-kernel-6.1-{arch}", new, "gp3"),
            (f"amzn2-ami-kernel-5.10-hvm-2.0.20250818.2-{arch}-gp2", old, "gp2"),
        ):
            found.append(
                PublicImage(
                    name,
                    AMAZON,
                    arch,
                    parameters,
                    root_device="/dev/xvda",
                    disk_type=disk,
                    user="ec2-user",
                    description="Amazon Linux AMI",
                )
            )
    return found


def _deep_learning() -> list[PublicImage]:
    base = "/aws/service/deeplearning/ami"
    systems = (
        ("ubuntu-22.04", "Ubuntu 22.04", "/dev/sda1", "ubuntu"),
        ("ubuntu-24.04", "Ubuntu 24.04", "/dev/sda1", "ubuntu"),
        ("amazon-linux-2023", "Amazon Linux 2023", "/dev/xvda", "ec2-user"),
    )
    kinds = [("base-oss-nvidia-driver-gpu", "Deep Learning Base OSS Nvidia Driver GPU AMI")]
    kinds += [
        (
            f"oss-nvidia-driver-gpu-pytorch-{version}",
            f"Deep Learning OSS Nvidia Driver AMI GPU PyTorch {version}",
        )
        for version in ("2.5", "2.6", "2.7", "2.8")
    ]
    return [
        PublicImage(
            name=f"{title} ({label}) 20250820",
            owner_id=DEEP_LEARNING,
            architecture="x86_64",
            parameters=(f"{base}/x86_64/{kind}-{system}/latest/ami-id",),
            root_device=device,
            size_gib=75,
            disk_type="gp3",
            user=user,
            description=title,
        )
        for kind, title in kinds
        for system, label, device, user in systems
    ]


def image_id(region: str, name: str) -> str:
    """Return the id of a public image, the same in every rehearsal, another in each region."""
    return f"ami-{hashlib.sha256(f'{region} {name}'.encode()).hexdigest()[:17]}"


def parameters_of(region: str) -> dict[str, str]:
    """Return the public parameters of a region."""
    return {
        parameter: image_id(region, entry.name)
        for entry in public_images()
        for parameter in entry.parameters
    }


def stock(region: str) -> tuple[dict[str, Image], dict[str, Snapshot]]:
    """Return the public images of a region, and the snapshots behind them."""
    images, snapshots = {}, {}
    for entry in public_images():
        ami = image_id(region, entry.name)
        snapshot = f"snap-{ami[4:]}"
        disk = Disk(entry.size_gib, entry.disk_type, snapshot_id=snapshot)
        snapshots[snapshot] = Snapshot(
            snapshot, "vol-ffffffff", entry.size_gib, encrypted=False, owner_id=entry.owner_id,
            created_at=_MADE_AT, ready_at=_MADE_AT,
        )  # fmt: skip
        images[ami] = Image(
            ami, entry.name, entry.owner_id, entry.architecture, entry.root_device,
            {entry.root_device: disk}, _MADE_AT, _MADE_AT, entry.description,
            owner_alias="amazon", public=True, user=entry.user,
        )  # fmt: skip
    return images, snapshots
