"""Serving in another network namespace than our own."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUDPServer

from paceline.rehearsal.closing import Closing

Address = tuple[str, int]
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET


class Service(Closing):
    """Answers at an address of another namespace, in threads of this process."""

    def __init__(
        self,
        namespace: str,
        address: Address,
        handler: type[BaseRequestHandler],
        kind: type[ThreadingHTTPServer | ThreadingUDPServer] = ThreadingHTTPServer,
    ) -> None:
        self._server = kind(address, handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = bind_in(namespace, address, kind.socket_type)
        if kind.socket_type == socket.SOCK_STREAM:
            self._server.socket.listen(64)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


def bind_in(namespace: str, address: Address, kind: int) -> socket.socket:
    """Open a socket in another network namespace, where it stays."""
    made: list[socket.socket | OSError] = []

    def act() -> None:
        try:
            made.append(_enter_and_bind(namespace, address, kind))
        except OSError as error:
            made.append(error)

    # A namespace is entered by one thread alone; this one ends there.
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    (result,) = made
    if isinstance(result, OSError):
        raise result
    return result


def _enter_and_bind(namespace: str, address: Address, kind: int) -> socket.socket:
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(Path("/run/netns", namespace), os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(handle, _NEW_NETWORK) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), namespace)
    finally:
        os.close(handle)
    made = socket.socket(socket.AF_INET, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(address)
    return made
