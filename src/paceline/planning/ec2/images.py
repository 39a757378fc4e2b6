"""Images by alias: the public parameters that name the newest, and how to find it without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

_CANONICAL = "099720109477"
_AMAZON = "137112412989"
_DEEP_LEARNING = "898082745236"
_DEBIAN_WORDS = {"x86_64": "amd64", "arm64": "arm64"}
# By what stands in an image's name: who logs in.
_USERS = (
    ("ubuntu", "ubuntu"),
    ("amazon linux", "ec2-user"),
    ("amzn2", "ec2-user"),
    ("al2023", "ec2-user"),
    ("debian", "admin"),
)


@dataclass(frozen=True)
class Alias:
    """Where the newest image of a family is named: parameters, the best first, or a pattern."""

    parameters: tuple[str, ...]
    owner: str
    pattern: str
    user: str
    architectures: tuple[str, ...] = ("x86_64", "arm64")


def aliases(architecture: str) -> Mapping[str, Alias]:
    """Return the images that can be asked for by name, for one architecture."""
    return {
        "ubuntu-24.04": _ubuntu("24.04", "noble", "gp3", architecture),
        "ubuntu-22.04": _ubuntu("22.04", "jammy", "gp2", architecture),
        "ubuntu-20.04": _ubuntu("20.04", "focal", "gp2", architecture),
        "amazon-linux-2023": Alias(
            (f"/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}",),
            _AMAZON, f"al2023-ami-2023.*-kernel-*-{architecture}", "ec2-user",
        ),
        "amazon-linux-2": Alias(
            (f"/aws/service/ami-amazon-linux-latest/amzn2-ami-hvm-{architecture}-gp2",),
            _AMAZON, f"amzn2-ami-*hvm-2.0.*-{architecture}-gp2", "ec2-user",
        ),
        "deep-learning": _deep_learning(
            ("base-oss-nvidia-driver-gpu-ubuntu-24.04", "base-oss-nvidia-driver-gpu-ubuntu-22.04"),
            "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu *",
        ),
        "deep-learning-pytorch": _deep_learning(
            tuple(
                f"oss-nvidia-driver-gpu-pytorch-{version}-ubuntu-{release}"
                for version in ("2.9", "2.8", "2.7", "2.6")
                for release in ("24.04", "22.04")
            ),
            "Deep Learning OSS Nvidia Driver AMI GPU PyTorch * (Ubuntu *",
        ),
    }  # fmt: skip


def _ubuntu(release: str, word: str, disk: str, architecture: str) -> Alias:
    arch = _DEBIAN_WORDS.get(architecture, architecture)
    base = "/aws/service/canonical/ubuntu/server"
    return Alias(
        (f"{base}/{release}/stable/current/{arch}/hvm/ebs-{disk}/ami-id",),
        _CANONICAL,
        f"ubuntu/images/hvm-ssd*/ubuntu-{word}-{release}-{arch}-server-*",
        "ubuntu",
    )


def _deep_learning(names: tuple[str, ...], pattern: str) -> Alias:
    base = "/aws/service/deeplearning/ami/x86_64"
    parameters = tuple(f"{base}/{name}/latest/ami-id" for name in names)
    return Alias(parameters, _DEEP_LEARNING, pattern, "ubuntu", ("x86_64",))


def nearest_alias(word: str) -> str | None:
    """Return the alias that a word may have been meant for."""
    near = get_close_matches(word.lower(), aliases("x86_64"), n=1, cutoff=0.75)
    return near[0] if near else None


def usual_user(name: str, owner_description: str = "") -> str | None:
    """Return who logs in to an image of this name; None if the name does not tell."""
    text = f"{name} {owner_description}".lower()
    return next((user for word, user in _USERS if word in text), None)
