from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

import paceline
from paceline.app.facts import gather_facts, host_facts, inner_facts
from paceline.errors import EnvironmentFault, MissingProgram
from paceline.model.host import Gpu, Host, HostFacts
from paceline.model.plan import Container
from paceline.supervisor.facts import collect
from paceline.transports.local import LocalTransport
from tests.fakes.transport import FakeProcess, FakeTransport

HOST = Host("node-1", "192.0.2.1", "10.0.0.1")
NO_DRIVER = "docker: Error response from daemon: could not select device driver"
NO_CDI = "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"
IMPORT_PATH = str(Path(paceline.__file__).parent.parent)


def fake_with(answer: bytes, exit_code: int = 0, errors: str = "") -> FakeTransport:
    """Return a host whose interpreter says this."""

    async def python(process: FakeProcess) -> int:
        await process.say(answer)
        process.complain(errors)
        return exit_code

    transport = FakeTransport(HOST)
    transport.machine.programs["/opt/python"] = python
    return transport


def test_a_host_is_asked_by_its_own_interpreter() -> None:
    """The question is one command, and its answer becomes the noun."""
    data = {"hostname": "n", "cores": 8, "gpus": [{"name": "T4", "memory_mib": 15360}]}
    transport = fake_with(json.dumps(data).encode())
    facts = asyncio.run(gather_facts(transport, "/opt/python", "/opt/lib"))
    assert facts == HostFacts("n", 8, gpus=(Gpu("T4", 15360),))
    (command,) = transport.machine.history
    assert (command.argv[0], command.argv[-1]) == ("/opt/python", "/opt/lib")
    assert "PYTHONPATH" not in command.env, "the host's own is one of the facts"


def test_everything_that_is_collected_arrives() -> None:
    """No fact is lost between the supervisor and the noun."""
    data = collect(ports=1)
    facts = host_facts(json.loads(json.dumps(data)))
    for name in set(data) - {"gpus", "free_ports", "cpu_features"}:
        assert getattr(facts, name) == data[name], name
    assert facts.cpu_features == tuple(data["cpu_features"])


@pytest.mark.parametrize(
    ("options", "code", "said", "hint"),
    [
        (("--gpus", "all"), 125, NO_DRIVER, "container toolkit"),
        (("--device", "nvidia.com/gpu=all"), 126, NO_CDI, "container toolkit"),
        (("--ulimit", "x"), 125, "docker: Error response: bad", "options"),
    ],
)
def test_an_engine_that_starts_nothing_is_quoted(
    options: tuple[str, ...], code: int, said: str, hint: str
) -> None:
    """Its reason is what counts, not the advice that it ends with."""

    async def docker(process: FakeProcess) -> int:
        process.complain(f"{said}\n\nRun --help")
        return code

    transport = FakeTransport(HOST)
    transport.machine.programs["docker"] = docker
    container = Container(("docker",), "i:1", (), options)
    with pytest.raises(EnvironmentFault, match=f": {said}$") as caught:
        asyncio.run(inner_facts(transport, container, "python3", None))
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("answer", "exit_code", "errors", "words"),
    [
        (b"", 1, "Traceback\n  x\nNo module named paceline\n", "No module named paceline"),
        (b"{}", 1, "", "exit code 1"),
        (b"Python 2.7\n", 0, "", "Python 2.7"),
        (b"", 0, "", "it said nothing"),
    ],
)
def test_an_interpreter_that_cannot_look_is_named(
    answer: bytes, exit_code: int, errors: str, words: str
) -> None:
    """The last words of the interpreter, the host, and what to do: no traceback."""
    transport = fake_with(answer, exit_code, errors)
    with pytest.raises(EnvironmentFault, match=words) as caught:
        asyncio.run(gather_facts(transport, "/opt/python", None))
    assert caught.value.host == "node-1"
    assert "/opt/python" in caught.value.message
    assert caught.value.hint


def test_a_missing_interpreter_is_missing() -> None:
    """The transport's own error says it best."""
    with pytest.raises(MissingProgram, match="/no/python"):
        asyncio.run(gather_facts(FakeTransport(HOST), "/no/python", None))


def test_both_ways_to_the_facts_of_this_machine_agree(tmp_path: Path) -> None:
    """Asked in this process or through another interpreter, the machine is the same."""
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    local = LocalTransport(HOST)
    near = asyncio.run(gather_facts(local, sys.executable, IMPORT_PATH))
    far = asyncio.run(gather_facts(local, str(other), IMPORT_PATH))
    assert near.hostname == far.hostname == os.uname().nodename
    assert (near.cores, near.memory_bytes, near.interface) == (
        far.cores,
        far.memory_bytes,
        far.interface,
    )
    assert far.python_version == near.python_version
