"""A home of its own for each test, small data sets of every format, and a small web host."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import re
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PIXELS = 3072


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a home, a working folder and a folder for temporary files of its own."""
    made = {name: tmp_path / name for name in ("home", "work", "tmp")}
    for folder in made.values():
        folder.mkdir()
    monkeypatch.setenv("HOME", str(made["home"]))
    monkeypatch.setattr(tempfile, "tempdir", str(made["tmp"]))
    monkeypatch.chdir(made["work"])
    for variable in ("PACELINE_DATA", "PACELINE_CACHE", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return made["home"]


def noise(length: int, seed: int = 0) -> bytes:
    """Return bytes that look random and are the same in every run."""
    return hashlib.shake_256(str(seed).encode()).digest(length)


def cifar_records(labels: Sequence[int], seed: int = 0) -> bytes:
    """Return records of one label byte and random pixels."""
    pixels = noise(len(labels) * PIXELS, seed)
    records = (
        bytes([label]) + pixels[index * PIXELS : (index + 1) * PIXELS]
        for index, label in enumerate(labels)
    )
    return b"".join(records)


@pytest.fixture
def write_cifar() -> Callable[..., Path]:
    """Return a writer of small folders in CIFAR-10's binary format."""

    def write(root: Path, *, batches: int = 2, per_batch: int = 6, test: int = 4) -> Path:
        root.mkdir(parents=True, exist_ok=True)
        for number in range(1, batches + 1):
            labels = [(number + index) % 10 for index in range(per_batch)]
            (root / f"data_batch_{number}.bin").write_bytes(cifar_records(labels, number))
        if test:
            (root / "test_batch.bin").write_bytes(cifar_records(range(test), 99))
        return root

    return write


def idx_bytes(sides: Sequence[int], body: bytes) -> bytes:
    """Return an IDX file of unsigned bytes."""
    return struct.pack(f">HBB{len(sides)}I", 0, 8, len(sides), *sides) + body


@pytest.fixture
def write_idx() -> Callable[..., Path]:
    """Return a writer of small folders in MNIST's format."""

    def write(
        root: Path,
        *,
        count: int = 12,
        side: int = 5,
        split: str = "train",
        zipped: bool = False,
        labelled: bool = True,
    ) -> Path:
        root.mkdir(parents=True, exist_ok=True)
        pixels = noise(count * side * side)
        files = {f"{split}-images-idx3-ubyte": idx_bytes((count, side, side), pixels)}
        if labelled:
            labels = bytes(index % 10 for index in range(count))
            files[f"{split}-labels-idx1-ubyte"] = idx_bytes((count,), labels)
        for name, content in files.items():
            if zipped:
                (root / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (root / name).write_bytes(content)
        return root

    return write


def picture(width: int, height: int, seed: int = 0, kind: str = "PNG", mode: str = "RGB") -> bytes:
    """Return an encoded picture of smooth colours."""
    image_module = pytest.importorskip("PIL.Image")
    small = image_module.frombytes(mode, (3, 3), noise(9 * len(mode), seed))
    out = io.BytesIO()
    small.resize((width, height), image_module.Resampling.BILINEAR).save(out, kind)
    return out.getvalue()


@pytest.fixture
def write_tree() -> Callable[..., Path]:
    """Return a writer of trees of pictures: class names and how many pictures each has."""

    def write(root: Path, classes: dict[str, int], *, size: tuple[int, int] = (20, 14)) -> Path:
        for order, (name, count) in enumerate(sorted(classes.items())):
            folder = root / name
            folder.mkdir(parents=True, exist_ok=True)
            for index in range(count):
                content = picture(*size, seed=100 * order + index)
                (folder / f"{index}.png").write_bytes(content)
        return root

    return write


@dataclass
class Reply:
    """How the web host answers one request: `cut` bytes are sent, then it hangs up."""

    body: bytes
    status: int = 200
    cut: int | None = None
    ranges: bool = True
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Host:
    """A web host whose replies to each path are given in order; the last one is repeated."""

    url: str
    replies: dict[str, list[Reply]]
    requests: list[tuple[str, str]] = field(default_factory=list)

    def serve(self, path: str, *replies: Reply | bytes) -> str:
        """Set the replies for a path and return its address."""
        self.replies[path] = [
            reply if isinstance(reply, Reply) else Reply(reply) for reply in replies
        ]
        return self.url + path


@pytest.fixture
def host() -> Iterator[Host]:
    """Return a web host on this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made.requests.append((self.path, self.headers.get("Range", "")))
            queue = made.replies.get(self.path)
            if queue is None:
                self.send_error(404)
                return
            self._answer(queue.pop(0) if len(queue) > 1 else queue[0])

        def _answer(self, reply: Reply) -> None:
            body, status, headers = reply.body, reply.status, dict(reply.headers)
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            if asked and reply.ranges and status == 200:
                start = int(asked[1])
                headers.setdefault("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
                body, status = body[start:], 206
            self.send_response(status)
            headers.setdefault("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # whoever has enough hangs up
                self.wfile.write(body if reply.cut is None else body[: reply.cut])
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Host(f"http://127.0.0.1:{server.server_address[1]}", {})
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Makers:
    """The functions above, for tests that need bytes and not folders."""

    cifar_records: Callable[..., bytes] = cifar_records
    idx_bytes: Callable[..., bytes] = idx_bytes
    picture: Callable[..., bytes] = picture
    noise: Callable[..., bytes] = noise
    sha256: Callable[[bytes], str] = sha256
    reply: type[Reply] = Reply


@pytest.fixture
def make() -> Makers:
    """Return the makers of bytes."""
    return Makers()
