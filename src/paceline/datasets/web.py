"""HTTP as downloads need it: nothing but HTTP, and little patience with hosts out of reach."""

from __future__ import annotations

import http.client
import urllib.request
from functools import partial
from typing import Any


class _Connection(http.client.HTTPConnection):
    """A connection that is given up sooner while it is made than while it is used."""

    def __init__(self, *address: Any, connect_s: float, **options: Any) -> None:
        super().__init__(*address, **options)
        self._connect_s = connect_s

    def connect(self) -> None:
        """Connect within the shorter time."""
        silence_s, self.timeout = self.timeout, self._connect_s
        super().connect()
        self.sock.settimeout(silence_s)


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    """The same with TLS."""


class _Handler(urllib.request.HTTPHandler):
    def __init__(self, connect_s: float) -> None:
        super().__init__()
        self._connect_s = connect_s

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Connection, connect_s=self._connect_s), req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def __init__(self, connect_s: float) -> None:
        super().__init__()
        self._connect_s = connect_s

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_SecureConnection, connect_s=self._connect_s), req)


def opener(connect_s: float) -> urllib.request.OpenerDirector:
    """Return an opener for HTTP and HTTPS alone: no redirect can lead to a file of ours."""
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Handler(connect_s),
        _SecureHandler(connect_s),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        made.add_handler(handler)
    return made
