"""A rented host made ready: its docker engine, the commands that the spec has for it, its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline.app.delivery import bring_data
from paceline.app.pairs import End
from paceline.app.workplace import all_or_named
from paceline.errors import EnvironmentFault
from paceline.model.command import Command, Completed, render
from paceline.model.spec import Spec
from paceline.planning.engine_setup import engine_facts, install_engine, look_for_engine
from paceline.planning.settling import settle

_INSTALL_WITHIN_S = 1800.0
_COMMAND_WITHIN_S = 3600.0
_AT_REST_WITHIN_S = 1800.0
Say = Callable[[str], None]


async def ensure_engines(ends: Sequence[End], say: Say) -> None:
    """Give every host a docker engine that answers; those that have one are left alone."""
    await all_or_named(ensure_engine(end, say) for end in ends)


async def ensure_engine(end: End, say: Say) -> None:
    """Give a host a docker engine that answers, unless it has one."""
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
    """Run the spec's own commands on every host, one after the other, through a shell.

    The hosts are rented and fresh: what they still do by themselves would be in the way.
    """
    if lines:
        say("waiting until its own first work is done")
        await all_or_named(end.link.run(settle(), timeout_s=_AT_REST_WITHIN_S) for end in ends)
    for line in lines:
        say(f"running `{line}`")
        command = Command(("/bin/sh", "-c", line))
        done = await all_or_named(
            end.link.run(command, timeout_s=_COMMAND_WITHIN_S) for end in ends
        )
        for end, one in zip(ends, done, strict=True):
            _require(end, command, one)


async def have_data(spec: Spec, ends: Sequence[End], say: Say) -> None:
    """Have the spec's data set on every host, if the spec allows that: ours, or downloaded."""
    name = spec.data.dataset
    if name == "fake" or spec.job.program is None or not spec.data.download:
        return
    say(f"bringing the data set {name}")
    await bring_data(ends, name, spec.data.root)


def _require(end: End, command: Command, done: Completed) -> None:
    if not done.ok:
        raise EnvironmentFault(
            f"`{render(command)}` failed with exit code {done.exit_code}: {_last(done)}",
            host=end.host.name,
        )


def _last(done: Completed) -> str:
    text = done.stderr.strip() or done.stdout.strip()
    return (text.splitlines()[-1:] or ["it said nothing"])[0]
