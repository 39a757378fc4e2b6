"""What an engine is told for a spec: names, builds, options and mounts."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.model.command import Secret
from paceline.model.spec import Spec, load_spec
from paceline.planning.images import (
    build_command,
    build_place,
    container_options,
    image_name,
    mounts_for,
    tagged,
)


def spec_of(**runtime: Any) -> Spec:
    """Return a spec with such a docker runtime."""
    data = {"name": "My_Study", "runtime": {"kind": "docker", **runtime}}
    return load_spec(data, check_files=False)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        (None, "paceline/my-study:latest"),
        ("dist_dcgan", "dist_dcgan:latest"),
        ("registry:5000/team/x", "registry:5000/team/x:latest"),
        ("torch:2.13", "torch:2.13"),
    ],
)
def test_an_image_has_a_name_with_a_tag(image: str | None, name: str) -> None:
    """The spec's own, or one that is made of the spec's name."""
    assert image_name(spec_of(image=image, dockerfile="/p/Dockerfile")) == name


def test_an_image_is_told_apart_by_its_identity() -> None:
    """The tag that a job uses says which build it is."""
    assert tagged("a:5000/x:latest", "sha256:0123456789abcdef") == "a:5000/x:paceline-0123456789ab"


@pytest.mark.parametrize(
    ("provider", "said", "place"),
    [("ec2", None, "host"), ("ec2", "here", "here"), ("local", None, None)],
)
def test_rented_hosts_build_for_themselves(
    provider: str, said: str | None, place: str | None
) -> None:
    """Their line is better than ours, and what was baked is in their cache; a spec may differ."""
    runtime = {"kind": "docker", "dockerfile": "/p/Dockerfile"}
    data = {
        "cluster": {"provider": provider},
        "runtime": {**runtime, "build_on": said} if said else runtime,
    }
    assert build_place(load_spec(data, check_files=False)) == place


def test_a_build_keeps_its_arguments_off_the_line() -> None:
    """Values of build arguments travel in the environment, secrets among them, through sudo too."""
    spec = spec_of(
        dockerfile="/p/Dockerfile",
        build_args={"BASE": "x", "PIP_TOKEN": "sesame"},
        build_options=["--network=host"],
    )
    command = build_command(spec, ("sudo", "-n", "docker"), "x:latest", "/p", b"FROM x")
    assert command.argv == (
        "sudo", "--preserve-env=BASE,PIP_TOKEN", "-n", "docker", "build", "--tag", "x:latest",
        "--build-arg", "BASE", "--build-arg", "PIP_TOKEN", "--network=host", "--file", "-", "/p",
    )  # fmt: skip
    assert command.env == {"BASE": "x", "PIP_TOKEN": Secret("sesame")}
    assert command.stdin == b"FROM x"


def test_options_follow_the_host() -> None:
    """GPUs where there are some, the user who logs in unless it is root, the cache of data."""
    assert container_options(podman=False, user=None, gpus=False, cache="") == ()
    options = container_options(podman=False, user=(1000, 1001), gpus=True, cache="/c")
    assert options[:4] == ("--gpus", "all", "--user", "1000:1001")
    assert options[-2:] == ("--env=PACELINE_DATA=/c/data", "--env=PACELINE_CACHE=/c/prepared")
    podman = container_options(podman=True, user=None, gpus=True, cache="")
    assert podman == ("--device", "nvidia.com/gpu=all")


def test_mounts_are_not_laid_into_each_other() -> None:
    """Our package can be read, the folders of the job written; what lies in one is not repeated."""
    spec = load_spec({"data": {"dataset": "folder", "root": "/srv/data"}}, check_files=False)
    mounts = mounts_for(
        spec,
        workdir="/srv",
        script="/elsewhere/train.py",
        import_path="/pkg",
        package=None,
        cache="/home/me/.cache/paceline",
    )
    assert mounts == ("/pkg:ro", "/srv", "/home/me/.cache/paceline", "/elsewhere")
