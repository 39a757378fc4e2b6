"""HTML that escapes by default: text is text, and only `Html` is markup."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable

_VOID = frozenset({"img", "meta", "br", "hr"})
# In a script element the parser looks for these; in JSON strings they may be written so.
_JSON_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, *children: Html | str | None, **attributes: str | int | bool | None) -> Html:
    """Return an element; children are escaped unless they are Html, None is left out.

    Attribute names are written with `_` for `-`, and `class_` for `class`; True makes an
    attribute without a value, False and None none at all.
    """
    opening = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(children)}</{name}>")


def join(children: Iterable[Html | str | None], separator: str = "") -> Html:
    """Return the children one after the other, escaped unless they are Html."""
    return Html(separator.join(_escaped(child) for child in children if child is not None))


def json_script(name: str, value: object) -> Html:
    """Return data for the page's script, in an element that nothing in it can break out of."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character, escape in _JSON_ESCAPES.items():
        text = text.replace(character, escape)
    return Html(f'<script type="application/json" id="{html.escape(name)}">{text}</script>')


def _escaped(child: Html | str) -> str:
    return str(child) if isinstance(child, Html) else html.escape(child)


def _attribute(key: str, value: str | int | bool | None) -> str:  # noqa: FBT001 - as in HTML
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'
