"""A reader of notebooks: runs the cells of one by JupyterLab's own API, as the browser does."""

from __future__ import annotations

import http.client
import json
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import websocket

_ANSWER_S = 240.0


@dataclass
class Browser:
    """Somebody who has opened the address that `paceline notebook` prints."""

    url: str
    said: str = ""
    errors: list[str] = field(default_factory=list)

    def look(self, path: str, *, token: str | None = None) -> tuple[int, bytes]:
        """Ask for a page; without a token, as somebody who has none."""
        headers = {} if token is None else {"Authorization": f"token {token}"}
        return self._ask("GET", path, None, headers)

    def page(self) -> str:
        """Open the address itself."""
        parts = urlsplit(self.url)
        status, text = self._ask("GET", f"{parts.path}?{parts.query}", None, {})
        assert status == http.HTTPStatus.OK, status
        return text.decode()

    def run_all(self, notebook: str) -> None:
        """Open a notebook with a kernel of its own, and run its cells from the first to the last.

        What they print is added to `said`, what they raise to `errors`.
        """
        content = self._told("GET", f"/api/contents/{notebook}")["content"]
        wish = {"path": notebook, "name": notebook, "type": "notebook"}
        session = self._told("POST", "/api/sessions", {**wish, "kernel": {"name": "python3"}})
        kernel = f"/api/kernels/{session['kernel']['id']}/channels?token={self.token}"
        line = websocket.create_connection(f"ws://{self._place}{kernel}", timeout=_ANSWER_S)
        try:
            for cell in content["cells"]:
                if cell["cell_type"] == "code":
                    self._run(line, cell["source"])
        finally:
            line.close()

    @property
    def token(self) -> str:
        """What the address bears."""
        return parse_qs(urlsplit(self.url).query)["token"][0]

    @property
    def _place(self) -> str:
        return urlsplit(self.url).netloc

    def _run(self, line: websocket.WebSocket, source: str) -> None:
        """Run a cell, and listen until the kernel is idle again."""
        asked = uuid.uuid4().hex
        header = {"msg_id": asked, "msg_type": "execute_request", "session": "browser"}
        header |= {"username": "reader", "version": "5.3", "date": ""}
        wish = {"code": source, "silent": False, "stop_on_error": True}
        message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}}
        line.send(json.dumps({**message, "content": wish, "buffers": []}))
        while True:
            heard = json.loads(line.recv())
            kind, content = heard["msg_type"], heard["content"]
            if heard["parent_header"].get("msg_id") != asked:
                continue
            if kind == "stream":
                self.said += content["text"]
            elif kind == "error":
                self.errors.append(f"{content['ename']}: {content['evalue']}")
            elif kind == "status" and content["execution_state"] == "idle":
                return

    def _told(self, method: str, path: str, wish: Any = None) -> Any:
        headers = {"Authorization": f"token {self.token}"}
        status, text = self._ask(method, path, wish, headers)
        assert status in (http.HTTPStatus.OK, http.HTTPStatus.CREATED), text
        return json.loads(text)

    def _ask(self, method: str, path: str, wish: Any, headers: dict[str, str]) -> tuple[int, bytes]:
        line = http.client.HTTPConnection(self._place, timeout=60)
        try:
            line.request(method, path, None if wish is None else json.dumps(wish), headers)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()
