"""The door: HTTP on the loopback, the faults behind it, and behind them the services."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any
from xml.sax.saxutils import escape

from moto.core.exceptions import ServiceException
from moto.core.request import Request
from werkzeug.exceptions import HTTPException
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler
from werkzeug.wrappers import Response

from paceline.rehearsal.emulator.api import Ec2Api
from paceline.rehearsal.emulator.callers import end_caller
from paceline.rehearsal.emulator.calls import Call, CallLog, parse_action, parse_credential
from paceline.rehearsal.emulator.faults import Fault, Faults
from paceline.rehearsal.emulator.regions import Regions
from paceline.rehearsal.emulator.services import ServiceError, Services, caller_identity

_CODE = re.compile(r"<Code>([^<]+)</Code>")
_XML = "text/xml"
_JSON = "application/x-amz-json-1.1"


class Door:
    """The WSGI application: one request in, one answer or one fault out."""

    def __init__(self, regions: Regions, calls: CallLog, faults: Faults, key_id: str) -> None:
        self.regions = regions
        self.calls = calls
        self.faults = faults
        self.key_id = key_id
        self.lock = threading.RLock()
        self._services = Services(regions)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        body = request.get_data()
        scope = parse_credential(request.headers.get("Authorization", ""))
        if scope is None or scope[0] != self.key_id:
            refused = refusal("AuthFailure", "AWS was not able to validate the credentials", 401)
            return refused(environ, start_response)
        _, region, service = scope
        target = request.headers.get("X-Amz-Target", "")
        action, words = parse_action(target, body)
        call = self.calls.begin(service, region, action, words)
        fault = self.faults.striking(call)
        reply = self._answer(request, call, fault, as_json=bool(target))
        if reply is None:
            _hang_up(environ)
            return []
        return reply(environ, start_response)

    def _answer(
        self, request: Request, call: Call, fault: Fault | None, *, as_json: bool
    ) -> Response | None:
        """Act, unless a fault forbids it; None stands for a connection that breaks."""
        if fault is not None and fault.effect in {"refuse", "cut", "kill-before"}:
            self.calls.end(call, fault.code if fault.effect == "refuse" else fault.effect)
            if fault.effect == "refuse":
                return refusal(fault.code, fault.message, fault.status, as_json=as_json)
            if fault.effect == "kill-before":
                end_caller(fault.pid, request.environ)
            return None
        with self.lock:
            answer = self._act(request, call)
        if fault is None:
            self.calls.end(call, _outcome(answer))
            return answer
        self.calls.end(call, fault.effect)
        if fault.effect == "kill-after":
            end_caller(fault.pid, request.environ)
        return None

    def _act(self, request: Request, call: Call) -> Response:
        if call.service == "ec2":
            return self._ec2(request)
        if call.service == "sts" and call.action == "GetCallerIdentity":
            return Response(caller_identity(), content_type=_XML)
        try:
            found = self._services.answer(call.service, call.region, call.action, call.parameters)
        except ServiceError as error:
            return refusal(error.code, error.message, 400, as_json=call.service != "sts")
        return Response(json.dumps(found), content_type=_JSON)

    def _ec2(self, request: Request) -> Response:
        try:
            status, headers, text = Ec2Api(self.regions)._dispatch(request)  # noqa: SLF001
        except ServiceException as error:
            return refusal(error.code, error.message, 400)
        except HTTPException as error:
            return Response(error.get_description(), error.code, content_type=_XML)
        except NotImplementedError as error:
            return refusal("InvalidAction", f"The rehearsal has no such action: {error}", 400)
        kept = {name: str(value) for name, value in headers.items() if name.lower() != "status"}
        return Response(text, status, kept)


def refusal(code: str, message: str, status: int, *, as_json: bool = False) -> Response:
    """Return an error in one of AWS's two dialects."""
    if as_json:
        text = json.dumps({"__type": code, "message": message})
        return Response(text, status, content_type=_JSON)
    text = (
        f"<Response><Errors><Error><Code>{escape(code)}</Code>"
        f"<Message>{escape(message)}</Message></Error></Errors>"
        "<RequestID>rehearsal</RequestID></Response>"
    )
    return Response(text, status, content_type=_XML)


def _outcome(answer: Response) -> str:
    if answer.status_code < 400:  # noqa: PLR2004 - the border between success and failure
        return "ok"
    text = answer.get_data(as_text=True)
    found = _CODE.search(text)
    if found is not None:
        return found.group(1)
    with contextlib.suppress(ValueError, KeyError):
        return str(json.loads(text)["__type"])
    return str(answer.status_code)


def _hang_up(environ: dict[str, Any]) -> None:
    """Break the connection, so that the caller never learns what happened."""
    connection = environ.get("werkzeug.socket")
    if isinstance(connection, socket.socket):
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class _QuietHandler(WSGIRequestHandler):
    """A handler that keeps connections and writes no log: the call log knows more."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's word
        """Say nothing."""


class _Quiet(ThreadedWSGIServer):
    """A server that writes what went wrong inside it to stderr."""

    daemon_threads = True
    request_queue_size = 128

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's word
        """Write failures down, and nothing else."""
        if type == "error":
            sys.stderr.write(message % args + "\n")


class Listener:
    """The server on its port, in a thread of its own."""

    def __init__(self, application: Any, address: str = "127.0.0.1", port: int = 0) -> None:
        self._server = _Quiet(address, port, application, _QuietHandler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
