"""What a host says of itself: asked over its transport, or straight away where we are on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from paceline.errors import EnvironmentFault
from paceline.model.command import Command, Completed
from paceline.model.host import Gpu, HostFacts
from paceline.model.plan import Container
from paceline.planning.containers import glance
from paceline.ports import Transport

_TIMEOUT_S = 30.0
_CONTAINER_TIMEOUT_S = 120.0
# What an engine says of a program that is not in the image, or is none; and of itself.
_NO_PROGRAM = (126, 127)
_NO_CONTAINER = 125
# The host's own PYTHONPATH stays as it is, because it is one of the facts.
_ASK = (
    "import json, sys\n"
    "sys.path[:0] = [path for path in sys.argv[1:] if path]\n"
    "from paceline.supervisor.facts import collect\n"
    "print(json.dumps(collect()))"
)


@runtime_checkable
class KnowsItself(Protocol):
    """What a transport can do in addition if its host is the machine that we are on."""

    async def own_facts(self, python: str) -> HostFacts | None:
        """Return the host's facts without starting `python`; None if that takes `python`."""
        ...


async def gather_facts(transport: Transport, python: str, import_path: str | None) -> HostFacts:
    """Return what a host is and has, as its interpreter `python` sees it.

    `import_path` is where that interpreter finds this package; None if it finds it by itself.
    """
    if isinstance(transport, KnowsItself):
        facts = await transport.own_facts(python)
        if facts is not None:
            return facts
    command = Command((python, "-c", _ASK, import_path or ""))
    return host_facts(
        _answer(await transport.run(command, timeout_s=_TIMEOUT_S), transport.host.name)
    )


async def inner_facts(
    transport: Transport, container: Container, python: str, import_path: str | None
) -> HostFacts | None:
    """Return the facts as the Python of an image sees them; None if there is no Python in it."""
    inside = glance(container, (python, "-c", _ASK, import_path or ""))
    done = await transport.run(inside, timeout_s=_CONTAINER_TIMEOUT_S)
    # podman says of devices that it does not know what it says of programs.
    if done.exit_code == _NO_CONTAINER or "unresolvable CDI devices" in done.stderr:
        raise _no_container(done, container, transport.host.name)
    if done.exit_code in _NO_PROGRAM:
        return None
    return host_facts(_answer(done, transport.host.name))


def _no_container(done: Completed, container: Container, host: str) -> EnvironmentFault:
    """Return what an engine says that starts no container; its last line may be advice only."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    said = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    hint = "`options` in `runtime` are its own words"
    if "--gpus" in container.options or "nvidia.com/gpu=all" in container.options:
        hint = "for the GPUs, NVIDIA's container toolkit must be installed there"
    engine = " ".join(container.engine)
    return EnvironmentFault(
        f"{engine} starts no container: {said or 'it said nothing'}", host=host, hint=hint
    )


def _answer(done: Completed, host: str) -> Mapping[str, Any]:
    try:
        data: Any = json.loads(done.stdout)
        if done.ok and isinstance(data, dict):
            return data
    except ValueError:
        pass
    said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    raise EnvironmentFault(
        f"{done.command.argv[0]} could not look at the machine "
        f"(exit code {done.exit_code}): {said[-1].strip() if said else 'it said nothing'}",
        host=host,
        hint="It takes Python 3.8 or newer. Name another interpreter with `runtime: {python: …}`.",
    )


def host_facts(data: Mapping[str, Any]) -> HostFacts:
    """Build the noun from what the supervisor's `facts` says; what is absent is not known."""
    return HostFacts(
        hostname=str(data["hostname"]),
        cores=int(data["cores"]),
        cpu_model=data.get("cpu_model"),
        memory_bytes=data.get("memory_bytes"),
        disk_free_bytes=data.get("disk_free_bytes"),
        gpus=tuple(Gpu(gpu["name"], gpu.get("memory_mib")) for gpu in data.get("gpus") or ()),
        platform=data.get("platform") or "",
        python_path=data.get("python_path") or "",
        python_version=data.get("python_version") or "",
        torch_version=data.get("torch_version"),
        interface=data.get("interface"),
        free_port=data.get("free_port"),
        environment=dict(data.get("environment") or {}),
        cpu_features=tuple(data.get("cpu_features") or ()),
    )
