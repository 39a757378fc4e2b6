"""Peers that give and take over the loopback: whole, verified, resumed, around those that fail."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paceline.relay import line as wire
from paceline.relay.give import Giving
from paceline.relay.line import Peer, listener
from paceline.relay.manifest import Manifest, survey
from paceline.relay.stock import Stock
from paceline.relay.take import Taker

SECRET = "s3cret"
PIECES = 4
JOIN_S = 60.0


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a file of several pieces."""
    path = tmp_path / "source"
    path.write_bytes(os.urandom((PIECES - 1) * (1 << 20) + 5))
    return path


@dataclass
class Node:
    """One host that takes, as threads of this process."""

    peer: Peer
    stock: Stock
    server: socket.socket
    taker: Taker
    skipped: list[str]
    thread: threading.Thread
    outcome: list[bool] = field(default_factory=list)

    def join(self) -> bool:
        """Wait for its end; return whether it got everything."""
        self.thread.join(JOIN_S)
        return self.outcome == [True]


Start = Callable[..., Node]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return what starts a node that takes a manifest, under a name that is its target's too."""
    with contextlib.ExitStack() as stack:

        def begin(
            name: str, manifest: Manifest, *, idle_s: float = 20.0, secret: str = SECRET
        ) -> Node:
            stock = Stock(manifest, str(tmp_path / name))
            stock.look()
            stock.make_room()
            skipped: list[str] = []
            giving = Giving(secret, lambda peer, why: skipped.append(f"{peer.name}: {why}"))
            server = stack.enter_context(listener("127.0.0.1"))
            peer = Peer(name, "127.0.0.1", server.getsockname()[1])
            taker = Taker(stock, giving, idle_s)
            node = Node(peer, stock, server, taker, skipped, threading.Thread())

            def work() -> None:
                whole = taker.take(server)
                if whole:
                    stock.finish()
                    taker.finish()
                node.outcome.append(whole)

            node.thread = threading.Thread(target=work, daemon=True)
            node.thread.start()
            return node

        yield begin


def given(source: Path, manifest: Manifest, route: list[Peer], secret: str = SECRET) -> list[str]:
    """Give a source to a route; return who was passed over."""
    stock = Stock(manifest, str(source))
    stock.believe()
    skipped: list[str] = []
    Giving(secret, lambda peer, why: skipped.append(f"{peer.name}: {why}")).give(stock, route)
    return skipped


def dead_peer(name: str) -> Peer:
    """Return a peer that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Peer(name, "127.0.0.1", server.getsockname()[1])


def test_a_chain_gets_everything(source: Path, start: Start, tmp_path: Path) -> None:
    """Each host has the file, with its mode, and has received it once; no draft is left."""
    source.chmod(0o754)
    manifest = survey(str(source))
    nodes = [start(name, manifest) for name in ("a", "b", "c", "d")]
    assert given(source, manifest, [node.peer for node in nodes]) == []
    assert all(node.join() for node in nodes)
    for node in nodes:
        path = tmp_path / node.peer.name
        assert path.read_bytes() == source.read_bytes()
        assert path.stat().st_mode & 0o777 == 0o754
        assert node.stock.received_bytes == manifest.size_bytes
        assert node.skipped == []
    assert list(tmp_path.glob(".*")) == []


def test_a_folder_arrives_with_its_small_and_empty_files(start: Start, tmp_path: Path) -> None:
    """Files below folders, empty ones and ones of several pieces."""
    folder = tmp_path / "folder"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "large").write_bytes(os.urandom(2_500_000))
    (folder / "deep" / "small").write_bytes(b"small")
    (folder / "empty").write_bytes(b"")
    manifest = survey(str(folder))
    nodes = [start(name, manifest) for name in ("a", "b")]
    assert given(folder, manifest, [node.peer for node in nodes]) == []
    assert all(node.join() for node in nodes)
    for node in nodes:
        there = tmp_path / node.peer.name
        found = {p.relative_to(there): p.read_bytes() for p in there.rglob("*") if p.is_file()}
        assert found == {
            p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()
        }


def test_dead_peers_are_passed_over(source: Path, start: Start) -> None:
    """Whoever meets a dead peer gives to the one after it, and says so."""
    manifest = survey(str(source))
    one, two = start("one", manifest), start("two", manifest)
    route = [dead_peer("x"), one.peer, dead_peer("y"), dead_peer("z"), two.peer]
    assert given(source, manifest, route) == ["x: refused"]
    assert one.join()
    assert two.join()
    assert one.skipped == ["y: refused", "z: refused"]


def test_a_peer_that_fails_in_the_middle_is_passed_over(source: Path, start: Start) -> None:
    """One that takes a little and hangs up, again and again, does not keep the others waiting."""
    manifest = survey(str(source))
    last = start("last", manifest)
    with listener("127.0.0.1") as server:
        threading.Thread(target=_hang_up, args=(server,), daemon=True).start()
        broken = Peer("broken", "127.0.0.1", server.getsockname()[1])
        assert given(source, manifest, [broken, last.peer]) == ["broken: it hung up"]
    assert last.join()


def _hang_up(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            line, _ = server.accept()
            with line:
                wire.say(line, {"nonce": "n"})
                line.recv(10)


def test_what_an_earlier_attempt_left_is_not_sent_again(
    source: Path, start: Start, tmp_path: Path
) -> None:
    """A draft keeps its good pieces; a damaged one is fetched anew."""
    manifest = survey(str(source))
    early = Stock(manifest, str(tmp_path / "host"))
    early.look()
    early.make_room()
    data = source.read_bytes()
    for index in (0, 2):
        piece = early.pieces[index]
        part = memoryview(data[piece.offset : piece.offset + piece.size])
        assert early.add(index, part, piece.digest)
    draft = next(tmp_path.glob(".*.part"))
    with draft.open("r+b") as file:
        file.write(b"damaged")
    node = start("host", manifest)
    assert given(source, manifest, [node.peer]) == []
    assert node.join()
    assert node.stock.received_bytes == manifest.size_bytes - early.pieces[2].size
    assert (tmp_path / "host").read_bytes() == data


def test_who_has_it_is_sent_nothing(source: Path, tmp_path: Path) -> None:
    """The same content in its place is recognised, and other content of that size is not."""
    manifest = survey(str(source))
    (tmp_path / "same").write_bytes(source.read_bytes())
    (tmp_path / "other").write_bytes(os.urandom(manifest.size_bytes))
    for name, missing in (
        ("same", 0),
        ("other", manifest.size_bytes),
        ("none", manifest.size_bytes),
    ):
        stock = Stock(manifest, str(tmp_path / name))
        stock.look()
        assert stock.missing_bytes == missing


def test_a_damaged_piece_is_not_taken(source: Path, start: Start, tmp_path: Path) -> None:
    """A source that has changed since it was surveyed reaches nobody."""
    manifest = survey(str(source))
    source.write_bytes(os.urandom(manifest.size_bytes))
    node = start("host", manifest, idle_s=0.5)
    assert given(source, manifest, [node.peer]) != []
    assert not node.join()
    assert not (tmp_path / "host").exists()


def test_a_stranger_gets_and_gives_nothing(source: Path, start: Start) -> None:
    """Without the secret, nothing is taken from a giver, and a taker learns nothing."""
    manifest = survey(str(source))
    node = start("host", manifest, idle_s=0.5)
    assert given(source, manifest, [node.peer], secret="another") != []
    assert not node.join()
    assert node.stock.received_bytes == 0
    other = start("other", manifest, idle_s=0.5, secret="another")
    assert given(source, manifest, [other.peer]) != []


def test_a_disk_that_is_too_small_is_named(tmp_path: Path, source: Path) -> None:
    """Nothing is begun that cannot be brought to its end."""
    file = survey(str(source)).files[0]
    size = 1 << 60
    huge = Manifest((type(file)("", size, 0o644, size, ("0",)),))
    with pytest.raises(OSError, match="are free"):
        Stock(huge, str(tmp_path / "huge")).make_room()


def test_the_command_speaks_json(source: Path, tmp_path: Path) -> None:
    """`survey`, `take` and `give` as processes: from one place to another, whole."""
    manifest = _relay("survey", {"source": str(source)})[-1]["manifest"]
    wish = {"manifest": manifest, "secret": SECRET}
    taking = _start("take", {**wish, "target": str(tmp_path / "t"), "address": "127.0.0.1"})
    assert taking.stdout is not None
    listening = json.loads(taking.stdout.readline())
    assert listening["missing_bytes"] == source.stat().st_size
    peer = {"name": "t", "address": "127.0.0.1", "port": listening["listening"]}
    assert _relay("give", {**wish, "source": str(source), "route": [peer]}) == [{"done": True}]
    out, _ = taking.communicate(timeout=JOIN_S)
    assert json.loads(out.splitlines()[-1]) == {"done": True, "received": source.stat().st_size}
    again = _relay("take", {**wish, "target": str(tmp_path / "t"), "address": "127.0.0.1"})
    assert again == [{"done": True, "received": 0}]
    assert "No such file" in _relay("survey", {"source": "/no/such"})[-1]["error"]


def _start(verb: str, wish: dict[str, Any]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        (sys.executable, "-m", "paceline.relay", verb),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json.dumps(wish))
    process.stdin.close()
    process.stdin = None
    return process


def _relay(verb: str, wish: dict[str, Any]) -> list[dict[str, Any]]:
    out, _ = _start(verb, wish).communicate(timeout=JOIN_S)
    return [json.loads(line) for line in out.splitlines()]
