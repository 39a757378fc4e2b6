"""A registry of images for the machines' engines, since nothing can be pulled from outside.

It holds one image under the usual names: this machine's Python with torch. It is packed when it
is first asked for, once for all machines of a rehearsal.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tarfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from shutil import copyfileobj
from typing import Any

from paceline.rehearsal.images import PATH
from paceline.rehearsal.machines.elsewhere import Service
from paceline.rehearsal.machines.rules import METADATA_ADDRESS, REGISTRY_PORT
from paceline.rehearsal.python_image import add_python

MIRROR = f"http://{METADATA_ADDRESS}:{REGISTRY_PORT}"
# With any tag: what people build on.
NAMES = ("library/python", "pytorch/pytorch")
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_BLOB = "application/octet-stream"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Packed:
    """The image as a registry gives it: its manifest, and what that names by digest."""

    manifest: bytes
    digest: str
    blobs: Mapping[str, Path | bytes]


class Stock:
    """The one image, packed at the first need."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._packed: Packed | None = None

    def image(self) -> Packed:
        """Return the image."""
        with self._lock:
            if self._packed is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                layer = self._folder / "layer.tar"
                with tarfile.open(layer, "w") as archive:
                    add_python(archive)
                self._packed = pack(layer)
            return self._packed


def pack(layer: Path) -> Packed:
    """Return the image that consists of one layer."""
    with layer.open("rb") as file:
        content = hashlib.sha256()
        while piece := file.read(1 << 20):
            content.update(piece)
    layer_digest = f"sha256:{content.hexdigest()}"
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Env": [f"PATH={PATH}"], "Cmd": ["python3"]},
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
            "history": [{"created_by": "the files of the machine that rehearses"}],
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _described(_CONFIG, len(config), _digest(config)),
            "layers": [_described(_LAYER, layer.stat().st_size, layer_digest)],
        }
    ).encode()
    return Packed(manifest, _digest(manifest), {layer_digest: layer, _digest(config): config})


def _described(kind: str, size: int, digest: str) -> dict[str, Any]:
    return {"mediaType": kind, "size": size, "digest": digest}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry(Service):
    """Answers the engines in the network of one router."""

    def __init__(self, namespace: str, stock: Stock) -> None:
        handler = type("Handler", (_Handler,), {"stock": stock})
        super().__init__(namespace, (METADATA_ADDRESS, REGISTRY_PORT), handler)


class _Handler(BaseHTTPRequestHandler):
    """One request of an engine."""

    stock: Stock
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Say what a question would be answered with."""
        self._answer(with_body=False)

    def do_GET(self) -> None:
        """Answer a question."""
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        name, _, rest = self.path.removeprefix("/v2/").partition("/manifests/")
        if self.path == "/v2/":
            self._send(b"{}", "application/json", "", with_body=with_body)
        elif rest and name in NAMES:
            image = self.stock.image()
            self._send(image.manifest, _MANIFEST, image.digest, with_body=with_body)
        elif "/blobs/" in self.path:
            digest = self.path.rpartition("/")[2]
            found = self.stock.image().blobs.get(digest)
            self._send(found, _BLOB, digest, with_body=with_body)
        else:
            self._send(None, "", "", with_body=with_body)

    def _send(
        self, content: Path | bytes | None, kind: str, digest: str, *, with_body: bool
    ) -> None:
        missing = content is None
        content = b'{"errors": [{"code": "NAME_UNKNOWN"}]}' if content is None else content
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        self.send_response(404 if missing else 200)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", kind or "application/json")
        self.send_header("Content-Length", str(size))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if not with_body:
            return
        if isinstance(content, Path):
            with content.open("rb") as file:
                copyfileobj(file, self.wfile, 1 << 20)
        else:
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's word
        """Say nothing."""
