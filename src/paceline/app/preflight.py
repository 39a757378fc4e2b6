"""Before the first run: everything that would make it fail, named within seconds."""

from __future__ import annotations

import contextlib
import json

from paceline.app.alike import host_faults
from paceline.app.delivery import bring_data, can_be_fetched, digest_faults, places_of
from paceline.app.pairs import End, Fault, raise_faults, require_pairs
from paceline.app.workplace import (
    Workplace,
    all_or_named,
    chosen_interface,
    ends_of,
    meeting_port,
)
from paceline.errors import DataError, MissingProgram, PortBusy
from paceline.model.command import Command, Completed
from paceline.model.spec import Spec


async def preflight(place: Workplace, spec: Spec) -> None:
    """Fail before the first run if something that it needs is missing."""
    if spec.job.program is not None:
        _require_torch(place, spec.runtime.kind)
        await _require_data(place, spec)
    if spec.job.master_port is not None:
        await _require_free_port(place, spec.job.master_port)
    remote = {host.name: place.facts[host.name] for host in place.cluster.hosts if host.ssh}
    raise_faults(host_faults(remote, ours=spec.job.command is None))
    if len(place.cluster.hosts) > 1:
        await require_pairs(
            ends_of(place),
            meeting_port(place, spec),
            chosen_interface(spec),
            same_torch=spec.job.command is None,
        )


async def _require_free_port(place: Workplace, port: int) -> None:
    master = place.cluster.master
    attempt = f"import socket; socket.create_server(('', {port})).close()"
    command = Command(argv=(place.grounds[master.name].python, "-c", attempt))
    done = await place.pad.links[master.name].run(command, timeout_s=30.0)
    if not done.ok:
        said = done.stderr.strip().splitlines()[-1:] or ["no reason was given"]
        raise PortBusy(
            f"the ranks cannot meet at port {port}: {said[0]}",
            host=master.name,
            hint="leave job.master_port out, and a free port is found for each run",
        )


async def _require_data(place: Workplace, spec: Spec) -> None:
    """Look for the data set on every host, at a glance; the trainer looks closer.

    What may be downloaded is brought to all hosts, once. Alone on this machine, the trainer does.
    """
    name, root, ends = spec.data.dataset, spec.data.root, ends_of(place)
    if name == "fake":
        return
    remote = [end for end in ends if end.host.ssh is not None]
    if not spec.data.download:
        await all_or_named(_require_data_on(end, name, root) for end in ends)
    elif remote and can_be_fetched(name):
        places = await places_of(ends, name, root)
        if any(found.root is None for found in places.values()):
            await bring_data(ends, name, root)
            return
    if len(ends) > 1:
        noted = await places_of(ends, name, root)
        raise_faults(_about(name, digest_faults({k: v.digest for k, v in noted.items()})))


def _about(name: str, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    return tuple(Fault(item.host, item.text, item.hint.replace("NAME", name)) for item in faults)


async def _require_data_on(end: End, name: str, root: str | None) -> None:
    words = (name,) if root is None else (name, "--root", root)
    env = {"PYTHONPATH": end.import_path} if end.import_path else {}
    argv = (end.python, "-m", "paceline.datasets", "locate", *words)
    done = await end.link.run(Command(argv=argv, env=env))
    if done.ok:
        return
    reason, hint = _reason(done)
    brings = "brings it to all hosts" if end.host.ssh is not None else "downloads it"
    where = " --hosts …" if end.host.ssh is not None else ""
    raise DataError(
        f"the data set {name} cannot be read: {reason}",
        host=end.host.name,
        hint=hint
        or f"`paceline data fetch {name}{where}` {brings}, `data.download: true` does so before a "
        "run, and `data.dataset: fake` needs none",
    )


def _reason(done: Completed) -> tuple[str, str | None]:
    """Return why our package on a host could not do what it was asked for, and its advice."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        said = json.loads(done.stdout)
        return str(said["message"]), said.get("hint")
    return (done.stderr.strip().splitlines()[-1:] or ["it said nothing"])[0], None


def _require_torch(place: Workplace, kind: str) -> None:
    for name, facts in place.facts.items():
        if facts.torch_version is None:
            ground = place.grounds[name]
            where = "" if ground.container is None else f" in {ground.container.image}"
            python = facts.python_path or ground.rank_python or ground.python
            raise MissingProgram(
                f"{python}{where} has no torch", host=name, hint=_TORCH_HINTS[kind]
            )


_TORCH_HINTS = {
    "bare": "install it there (`pip install torch`), or name an interpreter that has it: "
    "`runtime: {python: /path/to/python}`; `runtime: {kind: venv}` installs it for you",
    "venv": "add torch to what is required: `runtime: {packages: [torch]}`",
    "docker": "install torch in the image, or name the Python of it that has torch: "
    "`runtime: {python: /opt/conda/bin/python}`",
}
