"""Which engine a spec's containers get on a host, and what that engine is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paceline.app.engines import EngineFound
from paceline.app.here import Here
from paceline.app.images import foresee_docker, prepare_docker
from paceline.app.pairs import End
from paceline.app.shipping import Engine, ship
from paceline.app.workplace import Ground
from paceline.errors import EnvironmentFault, MissingProgram
from paceline.model.command import render
from paceline.model.host import Gpu, Host, HostFacts, SshAccess
from paceline.model.plan import Container
from paceline.model.spec import Spec, load_spec
from tests.fakes.transport import FakeProcess, FakeTransport

HOST = Host("node-1", "192.0.2.1", "10.0.0.1", SshAccess())
T4 = (Gpu("T4", 15360),)
GROUND = Ground("python3", "/home/u/.paceline/package-1", "/home/u/.paceline/jobs", base="/home/u")


def spec(provider: str = "hosts") -> Spec:
    """Return a spec of containers."""
    cluster = {"provider": provider, **({"hosts": ["192.0.2.1"]} if provider == "hosts" else {})}
    return load_spec({"name": "x", "cluster": cluster, "runtime": {"kind": "docker", "image": "i"}})


def host_that_says(told: str, gpus: tuple[Gpu, ...] = ()) -> End:
    """Return a host on which the look for an engine ends so, and nothing else works."""

    async def shell(process: FakeProcess) -> int:
        is_look = process.argv[-1] in {"look", "make"}
        await process.say(told.encode() if is_look else b"")
        return 0 if is_look else 1

    link = FakeTransport(HOST)
    link.machine.programs["/bin/sh"] = shell
    return End(HOST, link, HostFacts("n", 8, gpus=gpus), "python3", None)


def container(told: str, gpus: tuple[Gpu, ...]) -> Container:
    """Return what a plan says of the containers of such a host."""
    end = host_that_says(told, gpus)
    found = asyncio.run(foresee_docker(spec(), [end], {HOST.name: GROUND}))[HOST.name].container
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("engine", "uid", "gpus", "user"),
    [
        ("docker", 1000, "--gpus all", "--user 1000:1001"),
        ("docker", 0, "--gpus all", ""),
        ("sudo -n docker", 1000, "--gpus all", "--user 1000:1001"),
        ("podman", 1000, "--device nvidia.com/gpu=all", ""),
        ("sudo -n podman", 1000, "--device nvidia.com/gpu=all", "--user 1000:1001"),
    ],
)
def test_a_plan_names_the_engine_that_there_is(engine: str, uid: int, gpus: str, user: str) -> None:
    """How it is spoken to, as whom ranks run inside, and GPUs in its own words, where there are."""
    told = f"who {uid} 1001 yes /home/u/.cache/paceline\nok {engine}\n"
    with_gpus, without = container(told, T4), container(told, ())
    assert with_gpus.engine == without.engine == tuple(engine.split())
    assert gpus in " ".join(with_gpus.options)
    assert gpus not in " ".join(without.options)
    assert ("--user" in with_gpus.options) == bool(user)
    assert user in " ".join(with_gpus.options)


def test_a_plan_goes_on_without_an_engine() -> None:
    """Where none is yet, the lines are those of docker."""
    assert container("who 1000 1001 yes /c\n", ()).engine == ("docker",)


@pytest.mark.parametrize(
    ("provider", "error"), [("hosts", MissingProgram), ("ec2", EnvironmentFault)]
)
def test_nothing_is_installed_on_machines_that_people_own(
    provider: str, error: type[Exception]
) -> None:
    """They are told what to type; on a rented host we look for a way to do it ourselves."""
    said: list[str] = []
    end = host_that_says("who 1000 1001 yes /c\n")
    here = Here(Path("/tmp"), end.link, say=said.append)
    with pytest.raises(error):
        asyncio.run(prepare_docker(spec(provider), [end], {HOST.name: GROUND}, here))
    assert isinstance(end.link, FakeTransport)
    asked = [render(command) for command in end.link.machine.history]
    assert any("manager=" in line for line in asked) == (provider == "ec2")
    assert said == []


def test_an_image_of_podman_gets_its_own_name_on_docker(tmp_path: Path) -> None:
    """Podman calls what is nobody's `localhost/…`, and docker takes that for a part of the name."""
    names = {"localhost/i:paceline-1"}
    end = host_that_says("")

    async def docker(process: FakeProcess) -> int:
        words = process.argv[1:]
        if words[0] == "tag":
            names.add(words[2])
        return int(words[:2] == ("image", "inspect") and words[-1] not in names)

    link = end.link
    assert isinstance(link, FakeTransport)
    link.machine.programs["docker"] = docker
    there = Engine(EngineFound(("docker",), 0, 0, ""), link, end)

    async def no_way(*_: object) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paceline.app.shipping._from_here", no_way)
        source = Engine(EngineFound(("podman",), 0, 0, ""), link)
        here = Here(tmp_path, link, say=lambda _: None)
        asyncio.run(ship("i:paceline-1", source, [there], {HOST.name: GROUND}, here))
    assert "i:paceline-1" in names
