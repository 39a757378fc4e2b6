"""Verbs that nobody asked for are known by name and sentence only.

What typer works out for a verb (its types, its options) takes longer than all else that the
start of a verb needs, and grows with every verb that there is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import typer

_COMPLETING = "_PACELINE_COMPLETE"  # set by the shell, which may ask for the words of any verb


def spare(app: typer.Typer, words: Sequence[str]) -> None:
    """Empty every verb of the app but the one that the words name."""
    if _COMPLETING in os.environ:
        return
    wanted = next((word for word in words if not word.startswith("-")), None)
    for command in app.registered_commands:
        if command.callback is not None and _name(command.name, command.callback) != wanted:
            command.callback = _empty(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None and group.name != wanted:
            group.typer_instance.registered_commands.clear()


def _name(given: str | None, callback: Callable[..., object]) -> str:
    return given or callback.__name__.replace("_", "-")


def _empty(callback: Callable[..., object]) -> Callable[[], None]:
    def emptied() -> None:
        raise AssertionError(f"{callback.__name__} was not asked for")

    emptied.__name__, emptied.__doc__ = callback.__name__, callback.__doc__
    return emptied
