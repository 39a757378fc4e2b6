"""What the ranks of a spec need on their hosts, and where they will find it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paceline.app.here import Here
from paceline.app.pairs import End
from paceline.app.preparing import code_folders, foresee_runtime, prepare_runtime
from paceline.app.sync import folder_name
from paceline.app.workplace import Ground, seen_by
from paceline.errors import EnvironmentFault
from paceline.model.host import Host, HostFacts, SshAccess
from paceline.model.spec import Spec, load_spec
from tests.fakes.transport import FakeTransport

BASE = "/home/me/.paceline"


def spec_of(project: Path, **sections: Any) -> Spec:
    """Return the spec that lies in a project's folder."""
    (project / "spec.yaml").write_text("")
    return load_spec({"job": {"workdir": str(project)}, **sections}, check_files=False)


def far(name: str = "far") -> End:
    """Return a host that is reached over SSH."""
    host = Host(name, "203.0.113.1", "10.0.0.1", SshAccess())
    return End(host, FakeTransport(host), HostFacts(name, cores=2), "python3", "/pkg")


def ground(workdir: str = BASE) -> Ground:
    """Return what holds on that host before."""
    return Ground("python3", "/pkg", f"{BASE}/jobs", workdir=workdir, base=BASE)


def foreseen(spec: Spec, end: End) -> Ground:
    """Return what will hold on a host."""
    found = asyncio.run(foresee_runtime(spec, [end], {end.host.name: ground()}))
    return found[end.host.name]


def test_a_script_is_found_where_it_is_sent(tmp_path: Path) -> None:
    """The ranks start in the folder that travels, and the script lies in it as it does here."""
    spec = spec_of(tmp_path, job={"workdir": str(tmp_path), "script": str(tmp_path / "a" / "t.py")})
    there = f"{BASE}/work/{folder_name(tmp_path)}"
    found = foreseen(spec, far())
    assert (found.workdir, found.script) == (there, f"{there}/a/t.py")


def test_a_script_from_elsewhere_brings_its_own_folder(tmp_path: Path) -> None:
    """Two folders travel where the script does not lie in the working folder."""
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    spec = spec_of(project, job={"workdir": str(project), "script": str(other / "t.py")})
    assert code_folders(spec) == (project, other)
    found = foreseen(spec, far())
    assert found.workdir == f"{BASE}/work/{folder_name(project)}"
    assert found.script == f"{BASE}/work/{folder_name(other)}/t.py"


def test_what_needs_no_code_sends_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in trainer, a shared disk, and somebody's home: nothing travels."""
    assert code_folders(spec_of(tmp_path, job={"program": "mlp"})) == ()
    shared = {"script": str(tmp_path / "t.py"), "workdir": str(tmp_path), "sync": False}
    assert code_folders(spec_of(tmp_path, job=shared)) == ()
    monkeypatch.setenv("HOME", str(tmp_path))
    command = {"command": ["true"], "workdir": str(tmp_path)}
    assert code_folders(spec_of(tmp_path, job=command)) == ()


def test_this_machine_needs_nothing_sent(tmp_path: Path) -> None:
    """Here, ranks start where the spec says."""
    host = Host("here", "127.0.0.1", "127.0.0.1")
    end = End(host, FakeTransport(host), HostFacts("here", cores=2), "python3", None)
    spec = spec_of(tmp_path, job={"workdir": str(tmp_path), "command": ["true"]})
    assert foreseen(spec, end) == ground()


def test_a_folder_of_the_hosts_own_must_be_there(tmp_path: Path) -> None:
    """Where nothing is sent, every host that lacks the folder is named."""
    job = {"command": ["true"], "workdir": "/srv/project", "sync": False}
    spec = spec_of(tmp_path, job=job)
    ends = [far("one"), far("two")]
    grounds = {"one": ground("/srv/project"), "two": ground()}
    here = Here(tmp_path, ends[0].link)
    with pytest.raises(EnvironmentFault, match="there is no folder /srv/project on two"):
        asyncio.run(prepare_runtime(spec, ends, grounds, here))


def test_a_container_is_foreseen(tmp_path: Path) -> None:
    """`plan` shows image, mounts and options without asking any engine."""
    spec = spec_of(
        tmp_path,
        job={"workdir": str(tmp_path), "command": ["true"]},
        runtime={"kind": "docker", "image": "x", "options": ["--shm-size=1g"]},
    )
    found = foreseen(spec, far())
    assert found.rank_python == "python3"
    assert found.container is not None
    assert found.container.image == "x:latest"
    assert found.container.mounts == ("/pkg:ro", f"{BASE}/work/{folder_name(tmp_path)}")
    assert found.container.options == ("--shm-size=1g",)


def test_facts_are_those_of_the_ranks_own_python() -> None:
    """Versions come from inside, addresses and GPUs from the host; no Python inside is no torch."""
    host = HostFacts("h", cores=8, torch_version="2.1", interface="ens5", python_path="/usr/p")
    inner = HostFacts("c", cores=4, torch_version="2.13", python_path="/usr/local/bin/python3")
    found = seen_by(host, inner)
    assert (found.hostname, found.interface, found.cores) == ("h", "ens5", 4)
    assert (found.torch_version, found.python_path) == ("2.13", "/usr/local/bin/python3")
    assert seen_by(host, None).torch_version is None
