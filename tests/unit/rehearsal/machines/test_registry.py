"""The registry that engines pull from, as they ask it."""

from __future__ import annotations

import hashlib
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from paceline.rehearsal.machines.registry import Packed, Stock, _Handler, pack


class SmallStock(Stock):
    """A stock with a layer of a few bytes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        layer = folder / "layer.tar"
        layer.write_bytes(b"a layer")
        self._small = pack(layer)

    def image(self) -> Packed:
        """Return the small image."""
        return self._small


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """Return the address of a registry."""
    handler = type("Handler", (_Handler,), {"stock": SmallStock(tmp_path)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _get(url: str) -> tuple[bytes, str]:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own server
        return answer.read(), answer.headers.get("Docker-Content-Digest", "")


def test_an_image_is_pulled_by_its_digests(registry: str) -> None:
    """Every tag is the one image, and everything that it names has the content of its digest."""
    assert _get(f"{registry}/v2/")[0] == b"{}"
    text, digest = _get(f"{registry}/v2/library/python/manifests/3.12-slim")
    assert digest == f"sha256:{hashlib.sha256(text).hexdigest()}"
    assert _get(f"{registry}/v2/library/python/manifests/{digest}")[0] == text
    manifest = json.loads(text)
    for part in (manifest["config"], *manifest["layers"]):
        content, _ = _get(f"{registry}/v2/library/python/blobs/{part['digest']}")
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == part["digest"]
        assert len(content) == part["size"]
    config = json.loads(_get(f"{registry}/v2/x/blobs/{manifest['config']['digest']}")[0])
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]


@pytest.mark.parametrize("path", ["library/alpine/manifests/latest", "x/blobs/sha256:0", "nothing"])
def test_what_is_not_there(registry: str, path: str) -> None:
    """Other images and unknown digests are not found."""
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        _get(f"{registry}/v2/{path}")
    caught.value.close()
