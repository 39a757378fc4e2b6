"""A rented host made ready: its docker engine, the commands that the spec has for it, its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paceline.app.pairs import End
from paceline.app.workplace import Ground, all_or_named
from paceline.errors import DataError, EnvironmentFault
from paceline.model.command import Command, Completed, render
from paceline.model.spec import Spec
from paceline.planning.engine_setup import engine_facts, install_engine, look_for_engine

_INSTALL_WITHIN_S = 1800.0
_COMMAND_WITHIN_S = 3600.0
Say = Callable[[str], None]


async def ensure_engines(ends: Sequence[End], say: Say) -> None:
    """Give every host a docker engine that answers; those that have one are left alone."""
    await all_or_named(_ensure_engine(end, say) for end in ends)


async def _ensure_engine(end: End, say: Say) -> None:
    found = engine_facts((await end.link.run(look_for_engine())).stdout)
    commands = install_engine(found)
    if not commands:
        return
    say(f"{end.host.name}: installing a docker engine")
    for command in commands:
        _require(end, command, await end.link.run(command, timeout_s=_INSTALL_WITHIN_S))
    # Being in the group `docker` counts from the next login on.
    await end.link.close()


async def run_commands(ends: Sequence[End], lines: Sequence[str], say: Say) -> None:
    """Run the spec's own commands on every host, one after the other, through a shell."""
    for line in lines:
        say(f"running `{line}`")
        command = Command(("/bin/sh", "-c", line))
        done = await all_or_named(
            end.link.run(command, timeout_s=_COMMAND_WITHIN_S) for end in ends
        )
        for end, one in zip(ends, done, strict=True):
            _require(end, command, one)


async def fetch_data(
    spec: Spec, ends: Sequence[End], grounds: Mapping[str, Ground], say: Say
) -> None:
    """Let every host download the spec's data set, if the spec allows that."""
    name = spec.data.dataset
    if name == "fake" or spec.job.program is None or not spec.data.download:
        return
    say(f"fetching the data set {name}")
    for end in ends:
        ground = grounds[end.host.name]
        words = ("fetch", name, *(("--root", spec.data.root) if spec.data.root else ()))
        env = {"PYTHONPATH": ground.import_path} if ground.import_path else {}
        argv = (ground.python, "-m", "paceline.datasets", *words)
        done = await end.link.run(Command(argv, env), timeout_s=_COMMAND_WITHIN_S)
        if not done.ok:
            raise DataError(f"{name} cannot be fetched: {_last(done)}", host=end.host.name)


def _require(end: End, command: Command, done: Completed) -> None:
    if not done.ok:
        raise EnvironmentFault(
            f"`{render(command)}` failed with exit code {done.exit_code}: {_last(done)}",
            host=end.host.name,
        )


def _last(done: Completed) -> str:
    text = done.stderr.strip() or done.stdout.strip()
    return (text.splitlines()[-1:] or ["it said nothing"])[0]
