"""`paceline demo`: a small study of the built-in DCGAN on this machine."""

from __future__ import annotations

import typer

from paceline.cli import options, show


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Examples: paceline demo   |   paceline demo --name next-day")(demo)


def demo(
    name: options.Name = None,
    results: options.Results = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """See how DCGAN training scales on this machine, in minutes."""
    from paceline import api
    from paceline.cli.live import observer
    from paceline.cli.render_study import show_study

    spec = api.load(api.demo_spec(), options.overrides(None, name=name))
    if not quiet:
        show.say(api.demo_introduction(spec))
    with observer(quiet=quiet) as watcher:
        done = api.demo(spec, results=results, observer=watcher, on_interrupt=show.say_stopping)
    show_study(done, as_json=json)
