"""`paceline rehearsal`: an EC2 on this machine, to try a spec before a dollar is spent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from paceline.cli import options, show

if TYPE_CHECKING:
    from paceline.api.rehearsing import RehearsalStatus

_FAULTS = (
    "spot-interruption HOST, no-capacity ZONE, cut HOST, kill HOST, throttle SHARE, "
    "slow-link HOST RATE"
)


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    group = typer.Typer(
        name="rehearsal",
        help="Start and stop an EC2 on this machine, with hosts that boot.",
        no_args_is_help=True,
        rich_markup_mode=None,
        epilog="Example: paceline rehearsal start; paceline --rehearse up spec.yaml; "
        "paceline rehearsal stop",
    )
    group.command(epilog="Example: paceline rehearsal start --bandwidth 1gbit")(start)
    group.command(epilog="Example: paceline rehearsal status")(status)
    group.command(epilog="Example: paceline rehearsal stop")(stop)
    group.command(
        epilog=f"Faults: {_FAULTS}.  Example: paceline rehearsal fault slow-link node1 50mbit",
    )(fault)
    group.command(epilog='Example: eval "$(paceline rehearsal env)"; aws ec2 describe-instances')(
        env
    )
    app.add_typer(group, name="rehearsal")


def start(
    bandwidth: Annotated[
        Optional[str],
        typer.Option(
            "--bandwidth",
            metavar="RATE",
            help="What every link carries, as in 1gbit; else a tenth of the type's network.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Start it.

    Root is needed. Everything that is made is taken away by `stop`.
    """
    from paceline.api import rehearsing

    found, new = rehearsing.rehearsal_start(bandwidth)
    if json:
        show.out_json(found)
        return
    show.out(f"{'up' if new else 'is up already'}: {found.url}, links: {found.bandwidth}")
    show.say("now: paceline --rehearse VERB …; at the end: paceline rehearsal stop")


def status(json: options.Json = False) -> None:
    """Show its machines, its faults, and what the account holds."""
    from paceline.api import rehearsing

    found = rehearsing.rehearsal_status()
    if json:
        show.out_json(found)
    elif found is None:
        show.out("no rehearsal is up; `paceline rehearsal start` starts one")
    else:
        show.out(render(found, time.time()))


def render(found: RehearsalStatus, now: float) -> str:
    """Return a status as text."""
    begun = show.age(found.started_at, now)
    lines = [
        f"started {begun}: {found.url}",
        f"links: {found.bandwidth}; your address there: {found.caller}",
    ]
    rows = [("NAME", "ID", "TYPE", "ZONE", "STATE", "PRIVATE", "PUBLIC", "NOTE")]
    rows += [
        (
            one["name"], one["id"], one["type"], one["zone"], one["state"],
            one["private_address"], one["public_address"] or "", _note(one),
        )
        for one in found.machines
    ]  # fmt: skip
    if found.machines:
        lines.append(show.columns(rows))
    held = ", ".join(
        f"{count} {kind.removesuffix('s') if count == 1 else kind}"
        for kind, count in found.account.items()
        if count
    )
    lines.append(f"the account holds: {held or 'nothing'}")
    lines += [f"in force: {one}" for one in found.faults]
    return "\n".join(lines)


def _note(machine: Mapping[str, Any]) -> str:
    if machine["trouble"]:
        return str(machine["trouble"])
    if machine["state"] == "running" and not machine["on"]:
        return "dead"
    if machine["interruption_at"] is not None:
        moment = time.strftime("%H:%M:%S", time.localtime(machine["interruption_at"]))
        return f"is taken back at {moment}"
    open_ends = ", ".join(machine["unlimited"])
    return f"no limit of: {open_ends}" if open_ends else ""


def stop(json: options.Json = False) -> None:
    """End it, and show that nothing is left.

    Exactly what it made is removed.
    """
    from paceline.api import rehearsing

    found = rehearsing.rehearsal_stop()
    if json:
        show.out_json(found)
        return
    for check in found:
        made = f"{check.made} made, " if check.made else ""
        show.out(f"{check.kind}: {made}none left")
    show.say(
        "the rehearsal is over" if found else "no rehearsal was up, and nothing is left of one"
    )


def fault(
    kind: Annotated[str, typer.Argument(metavar="FAULT", help="What goes wrong.")],
    words: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="[WORDS]", help="Where: a host's name, id or address; a zone."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let it go well again.")] = False,
    json: options.Json = False,
) -> None:
    """Let something go wrong, or well again."""
    from paceline.api import rehearsing

    said = rehearsing.rehearsal_fault(kind, words or (), undo=undo)
    if json:
        show.out_json({"said": said})
    else:
        show.out(said)


def env(json: options.Json = False) -> None:
    """Print what leads any tool for AWS to it."""
    from shlex import quote

    from paceline.api import rehearsing

    made, foreign = rehearsing.rehearsal_settings()
    if json:
        show.out_json(made)
        return
    # A profile or a token of the user's own would go before ours.
    for name in foreign:
        show.out(f"unset {name}")
    for name, value in sorted(made.items()):
        show.out(f"export {name}={quote(value)}")
