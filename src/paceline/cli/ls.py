"""`paceline ls`: the rented clusters, studies and runs that are known."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(name="ls", epilog="Example: paceline ls --all")(ls)


def ls(
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Also the runs that belong to studies.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List rented clusters, studies and runs, newest first."""
    from paceline import api
    from paceline.cli.render_cloud import cluster_table

    clusters = api.clusters()
    studies = api.studies()
    runs = [record for record in api.runs() if everything or record.study is None]
    if json:
        show.out_json({"clusters": clusters, "studies": studies, "runs": runs})
        return
    if not clusters and not studies and not runs:
        show.say("nothing yet; `paceline demo` makes a first study, `paceline train` a first run")
        return
    now = time.time()
    if clusters:
        show.out(cluster_table(clusters, now) + ("\n" if studies or runs else ""))
    if not studies and not runs:
        return
    rows = [("WHAT", "NAME", "STATE", "BEGUN", "FOLDER")]
    rows += [
        ("study", item.record.name, item.state, show.age(item.record.created_at, now),
         str(item.record.folder))
        for item in studies
    ]  # fmt: skip
    rows += [
        ("run", item.run_id, item.state.value, show.age(item.created_at, now), str(item.folder))
        for item in runs
    ]
    show.out(show.columns(rows))
