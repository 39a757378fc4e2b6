"""The use case in front of every run on hosts: what its ranks need is made ready on all of them.

Their code travels, their venv is made or their image brought. What is ready already is found, and
nothing is done twice.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paceline.app.here import Here
from paceline.app.images import foresee_docker, prepare_docker
from paceline.app.pairs import End
from paceline.app.sync import folder_name, sync
from paceline.app.tree import tree_of
from paceline.app.venvs import foresee_venv, prepare_venv
from paceline.app.workplace import Ground
from paceline.errors import EnvironmentFault
from paceline.model.spec import Spec

_WORTH_MENTIONING_BYTES = 8 << 20


async def prepare_runtime(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground], here: Here
) -> Mapping[str, Ground]:
    """Make ready on all hosts what the ranks of a spec need; return what then holds on each.

    The hosts are reached already (`ends`), and have our package (`grounds`).
    """
    placed = _with_codes(spec, ends, grounds)
    await _send_code(spec, ends, placed, here)
    if spec.runtime.kind == "venv":
        return await prepare_venv(spec, ends, placed, here)
    if spec.runtime.kind == "docker":
        return await prepare_docker(spec, ends, placed, here)
    return placed


async def foresee_runtime(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground]
) -> Mapping[str, Ground]:
    """Return what will hold on the hosts once they are ready, as far as that can be known."""
    placed = _with_codes(spec, ends, grounds)
    if spec.runtime.kind == "venv":
        return await foresee_venv(spec, ends, placed)
    if spec.runtime.kind == "docker":
        return await foresee_docker(spec, ends, placed)
    return placed


def _with_codes(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground]
) -> Mapping[str, Ground]:
    return {end.host.name: _with_code(spec, grounds[end.host.name], end) for end in ends}


def code_folders(spec: Spec) -> tuple[Path, ...]:
    """Return the folders here whose files the ranks of a spec need on their hosts.

    A built-in trainer needs none. A working folder that is not here is one of the hosts' own.
    """
    job = spec.job
    if job.program is not None or not job.sync:
        return ()
    folders = [Path(job.workdir)] if job.workdir and Path(job.workdir).is_dir() else []
    if job.script is not None and not any(_lies_in(job.script, folder) for folder in folders):
        folders.append(Path(job.script).parent)
    # Somebody's whole home, or whole disk, is no project.
    homes = (Path.home().resolve(), Path("/"))
    return tuple(folder for folder in folders if folder.resolve() not in homes)


def _lies_in(path: str, folder: Path) -> bool:
    return Path(path).resolve().is_relative_to(folder.resolve())


def _with_code(spec: Spec, ground: Ground, end: End) -> Ground:
    """Return a ground whose ranks start where the code will lie on that host."""
    if end.host.ssh is None:
        return ground
    folders = code_folders(spec)
    job = spec.job
    workdir = ground.workdir
    if job.workdir is not None and Path(job.workdir) in folders:
        workdir = _there(ground, Path(job.workdir))
    script = None
    if job.script is not None:
        home = next((item for item in folders if _lies_in(job.script, item)), None)
        if home is not None:
            name = Path(job.script).resolve().relative_to(home.resolve()).as_posix()
            script = posixpath.join(_there(ground, home), name)
    return replace(ground, workdir=workdir, script=script)


def _there(ground: Ground, folder: Path) -> str:
    return f"{ground.base}/work/{folder_name(folder)}"


async def _send_code(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground], here: Here
) -> None:
    remote = [end for end in ends if end.host.ssh is not None]
    if not remote:
        return
    _require_own_folder(spec, remote, grounds)
    for folder in code_folders(spec):
        targets = {end.host.name: _there(grounds[end.host.name], folder) for end in remote}
        tree = tree_of(folder, never=here.never)
        sent = await sync(remote, tree, targets, here.stock / "drafts")
        if sent.size_bytes >= _WORTH_MENTIONING_BYTES:
            here.say(f"sent {sent.files} files of {folder}: {sent.size_bytes >> 20} MiB")


def _require_own_folder(spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground]) -> None:
    """Make sure that a folder of the hosts' own, where nothing is sent, is on each of them."""
    job = spec.job
    if job.workdir is None or job.program is not None or code_folders(spec):
        return
    if job.sync and Path(job.workdir).is_dir():
        return  # somebody's home: not sent, and nothing in it is needed
    lacking = [end.host.name for end in ends if grounds[end.host.name].workdir != job.workdir]
    if lacking:
        raise EnvironmentFault(
            f"there is no folder {job.workdir} on {', '.join(lacking)}",
            hint="a working folder that is here is sent along, unless `job: {sync: false}`",
        )
