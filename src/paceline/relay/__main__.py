"""`python -m paceline.relay survey|give|take`: told what to do by JSON on standard input.

    survey  {"source", "leave_out"}            the manifest of a file or a folder
    give    {"source", "manifest", "secret", "route"}   give it to the first of a route
    take    {"target", "manifest", "secret", "address"} take it, and give it on

Every line of the answer is a JSON object: `listening` at a port, `received` so many bytes, a peer
that was `skipped`, and at last `done` or an `error`.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading

from paceline.relay.give import Giving
from paceline.relay.line import Peer, listener
from paceline.relay.manifest import manifest_of, survey
from paceline.relay.stock import Stock
from paceline.relay.take import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TELL_EVERY_S = 0.5
_TELLING = threading.Lock()


def main(words: list[str]) -> int:
    """Carry out one command."""
    commands = {"survey": _survey, "give": _give, "take": _take}
    if len(words) != 1 or words[0] not in commands:
        _tell(error="say one of: survey, give, take")
        return 2
    try:
        commands[words[0]](json.load(sys.stdin))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _tell(error=f"{where}{error.strerror or error}", errno=error.errno)
    except ValueError as error:
        _tell(error=str(error))
    return 0


def _survey(wish: dict[str, Any]) -> None:
    _tell(manifest=survey(wish["source"], wish.get("leave_out", ())).to_dict())


def _give(wish: dict[str, Any]) -> None:
    stock = Stock(manifest_of(wish["manifest"]), wish["source"])
    stock.believe()
    route = [Peer(str(p["name"]), str(p["address"]), int(p["port"])) for p in wish["route"]]
    Giving(wish["secret"], _tell_skip).give(stock, route)
    _tell(done=True)


def _take(wish: dict[str, Any]) -> None:
    stock = Stock(manifest_of(wish["manifest"]), wish["target"])
    stock.look()
    stock.make_room()
    if stock.complete:
        stock.finish()
    else:
        taker = Taker(stock, Giving(wish["secret"], _tell_skip))
        with contextlib.closing(listener(wish["address"])) as server:
            _tell(listening=server.getsockname()[1], missing_bytes=stock.missing_bytes)
            with _telling_progress(stock):
                whole = taker.take(server)
            if not whole:
                _tell(error="no peer gave us anything any more", received=stock.received_bytes)
                return
            stock.finish()
            _tell(whole=True, received=stock.received_bytes)
            taker.finish()
    _tell(done=True, received=stock.received_bytes)


@contextlib.contextmanager
def _telling_progress(stock: Stock) -> Any:
    over = threading.Event()

    def tell() -> None:
        while not over.wait(_TELL_EVERY_S):
            _tell(received=stock.received_bytes)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell_skip(peer: Peer, trouble: str) -> None:
    _tell(skipped=peer.name, trouble=trouble)


def _tell(**message: Any) -> None:
    with _TELLING:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
