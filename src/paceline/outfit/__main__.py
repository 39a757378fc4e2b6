"""`python -m paceline.outfit look|settle|python|find|venv`: told by JSON on stdin.

    look    {"folder"}                            what a working folder holds, as it was sent
    settle  {"folder", "draft", "files", "links"} take over what was sent, and drop what is gone
    python  {}                                    which Python this is, for choosing wheels
    find    {"root", "wish"}                      which venv a wish leads to, and is it there
    venv    {"root", "wish", "wheels"}            make it, or find it made

The last line of the answer is a JSON object, with the key `error` where it could not be done.
"""

from __future__ import annotations

import json
import sys

from paceline.outfit import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(words: list[str]) -> int:
    """Carry out one command."""
    commands = {
        "look": _look,
        "settle": _settle,
        "python": _python,
        "find": _find,
        "venv": _venv,
    }
    if len(words) != 1 or words[0] not in commands:
        _tell({"error": f"say one of: {', '.join(commands)}"})
        return 2
    try:
        _tell(commands[words[0]](json.load(sys.stdin)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _tell({"error": f"{where}{error.strerror or error}"})
    return 0


def _look(wish: dict[str, Any]) -> dict[str, Any]:
    return folders.look(wish["folder"])


def _settle(wish: dict[str, Any]) -> dict[str, Any]:
    files = {str(name): (str(item[0]), int(item[1])) for name, item in wish["files"].items()}
    folders.settle(wish["folder"], wish["draft"], files, wish["links"])
    return {"settled": True}


def _python(wish: dict[str, Any]) -> dict[str, Any]:
    from paceline.outfit import venvs  # noqa: PLC0415 - the others are waited for

    del wish
    return venvs.describe_python()


def _find(wish: dict[str, Any]) -> dict[str, Any]:
    from paceline.outfit import venvs  # noqa: PLC0415

    return venvs.find(wish["root"], wish["wish"])


def _venv(wish: dict[str, Any]) -> dict[str, Any]:
    from paceline.outfit import venvs  # noqa: PLC0415

    return venvs.make(wish["root"], wish["wish"], wish.get("wheels"))


def _tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
