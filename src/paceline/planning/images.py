"""The words that an engine is told for a spec: names, builds, options and mounts."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

from paceline.datasets.places import CACHE_VARIABLE, DATA_VARIABLE
from paceline.model.command import Command, Secret
from paceline.model.spec import Spec
from paceline.planning.containers import keeping

_SHOWN_DIGITS = 12


def image_name(spec: Spec) -> str:
    """Return the name of a spec's image, with a tag."""
    words = re.sub(r"[^a-z0-9]+", "-", spec.name.lower()).strip("-") or "job"
    name = spec.runtime.image or f"paceline/{words}"
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def tagged(name: str, identity: str) -> str:
    """Return the name that says which image exactly is meant."""
    repository = name.rpartition(":")[0]
    return f"{repository}:paceline-{identity.rpartition(':')[2][:_SHOWN_DIGITS]}"


def build_place(spec: Spec) -> Literal["here", "host"] | None:
    """Return where an image is to be built; None leaves it to what engines there are.

    The line of a rented host is better than ours as a rule, and what was built while baking is
    in the host's own cache.
    """
    if spec.runtime.build_on is None and spec.cluster.provider == "ec2":
        return "host"
    return spec.runtime.build_on


def build_command(
    spec: Spec, engine: tuple[str, ...], name: str, context: str, dockerfile: bytes
) -> Command:
    """Return the command that builds a spec's image; the values of its arguments stay off it."""
    env: dict[str, str | Secret] = dict(spec.runtime.build_args)
    words = [word for argument in sorted(env) for word in ("--build-arg", argument)]
    return Command(
        (
            *keeping(engine, sorted(env)), "build", "--tag", name, *words,
            *spec.runtime.build_options, "--file", "-", context,
        ),
        env=env,
        stdin=dockerfile,
    )  # fmt: skip


def container_options(
    *, podman: bool, user: tuple[int, int] | None, gpus: bool, cache: str
) -> tuple[str, ...]:
    """Return what all containers of a host are told beside what each of them does."""
    words: list[str] = []
    if gpus:
        words += ["--device", "nvidia.com/gpu=all"] if podman else ["--gpus", "all"]
    if user is not None:
        # What the ranks write belongs to who logs in; the image need not know that user.
        words += ["--user", f"{user[0]}:{user[1]}", "--env=HOME=/tmp", "--env=USER=paceline"]
        words.append("--env=SHELL=/bin/sh")
    if cache:
        words.append(f"--env={DATA_VARIABLE}={cache}/data")
        words.append(f"--env={CACHE_VARIABLE}={cache}/prepared")
    return tuple(words)


def mounts_for(
    spec: Spec,
    *,
    workdir: str | None,
    script: str | None,
    import_path: str | None,
    package: str | None,
    cache: str,
) -> tuple[str, ...]:
    """Return what of a host lies inside as well, each at its own place."""
    mounts = [f"{path}:ro" for path in (import_path, package) if path]
    folders = [workdir, spec.data.root, cache]
    if script is not None:
        folders.append(str(PurePosixPath(script).parent))
    kept = [folder for folder in folders if folder]
    mounts += [
        folder
        for folder in dict.fromkeys(kept)
        if not any(folder.startswith(f"{other}/") for other in kept)
    ]
    return tuple(mounts)
