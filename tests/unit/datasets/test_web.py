"""HTTP as downloads need it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from paceline.datasets.web import opener


def test_a_connection_waits_longer_once_it_is_made(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of connecting does not cut off a slow answer."""
    limits: list[float | None] = []

    class Recorded(socket.socket):
        def settimeout(self, value: float | None, /) -> None:
            limits.append(value)
            super().settimeout(value)

    monkeypatch.setattr(socket, "socket", Recorded)
    url = host.serve("/a", b"hello")
    with opener(connect_s=5.0).open(url, timeout=77.0) as response:
        assert response.read() == b"hello"
    assert limits == [5.0, 77.0]


def test_connecting_has_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host behind a wall that swallows packets is given up soon."""
    asked: list[Any] = []

    def swallow(_address: Any, timeout: Any = None, *_: Any, **__: Any) -> socket.socket:
        asked.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", swallow)
    for scheme in ("http", "https"):
        with pytest.raises(urllib.error.URLError, match="timed out"):
            opener(connect_s=3.0).open(f"{scheme}://127.0.0.1:9/a", timeout=77.0)
    assert asked == [3.0, 3.0]


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/a", "data:,hello"])
def test_nothing_but_http_is_opened(url: str) -> None:
    """Whatever a catalogue or a redirect says."""
    with pytest.raises(urllib.error.URLError, match="unknown url type"):
        opener(connect_s=1.0).open(url, timeout=1.0)


def test_a_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    """The official hosts are asked by TLS, and it is verified."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed here")
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate")]
    subprocess.run([*argv, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")

    def answer() -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            context.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            opener(connect_s=5.0).open(
                f"https://127.0.0.1:{listening.getsockname()[1]}/", timeout=5
            )
        thread.join()
