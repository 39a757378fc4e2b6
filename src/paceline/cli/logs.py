"""`paceline logs`: what the processes of a run say."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: paceline logs -f dcgan-4f9a1c")(logs)


def logs(
    run_id: options.RunId = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")
    ] = False,
    process: Annotated[
        Optional[str],
        typer.Option("--process", metavar="NAME", help="Only this one, such as rank-0."),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Only what they say, without who says it.")
    ] = False,
) -> None:
    """Show the output of a run, also while it goes on.

    Where several processes speak, each line bears who says it: the process, its ranks, its host.
    """
    from paceline import api

    said = False

    def pass_on(text: str) -> None:
        nonlocal said
        said = said or bool(text)
        show.out_raw(text)

    record = api.logs(run_id, follow=follow, process=process, marked=not plain, on_output=pass_on)
    if not said and record.failure is not None:
        from paceline.cli.render_run import failure_words

        show.say(f"{record.run_id} has no output to show; {failure_words(record.failure)}")
