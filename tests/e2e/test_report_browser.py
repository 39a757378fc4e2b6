"""The report in a real browser: charts are drawn, nothing is asked of the network.

Chromium is driven through the two pipes that it offers for that, so that no library is needed
and no port is open: we write commands on its descriptor 3 and read answers on its 4.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from paceline.reporting.document import loads
from paceline.reporting.html import ReportPicture, render
from paceline.reporting.palette import dark, light

pytestmark = pytest.mark.e2e

DATA = Path(__file__).parents[1] / "data"
PICTURE = base64.b64decode("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=")
PATIENCE_S = 60.0
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


class Browser:
    """One Chromium with one tab; everything that it reports is kept in `heard`."""

    def __init__(self, program: str, profile: Path) -> None:
        their_in, self._out = os.pipe()
        self._in, their_out = os.pipe()
        silence = os.open(os.devnull, os.O_RDWR)
        moves = [(silence, 0), (silence, 1), (silence, 2), (their_in, 3), (their_out, 4)]
        self.pid = os.posix_spawn(
            program,
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            dict(os.environ),
            file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for source, target in moves],
            setpgroup=0,
        )
        for descriptor in (their_in, their_out, silence):
            os.close(descriptor)
        self.heard: list[dict[str, Any]] = []
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=tab, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Give a command and return its result."""
        self._count += 1
        message: dict[str, object] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._count:
            self.heard.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        options = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=script, **options)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Return the value of an expression as soon as it is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not (value := self.evaluate(script)):
            assert time.monotonic() < deadline, f"never true: {script}"
            time.sleep(0.05)
        return value

    def heard_of(self, method: str) -> list[dict[str, Any]]:
        """Return what was reported under a name."""
        return [event["params"] for event in self.heard if event.get("method") == method]

    def close(self) -> None:
        """End the browser and everything that it started."""
        os.close(self._out)
        os.close(self._in)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._in, 1 << 16)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A running Chromium, or a skip that says what is missing."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    profile = Path(tempfile.mkdtemp(prefix="paceline-chromium-"))
    made = Browser(program, profile)
    yield made
    made.close()
    shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the made-up study, as a file."""
    study = loads((DATA / "synthetic-study.json").read_text())
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_bytes(render(study, pictures=[ReportPicture("a grid", PICTURE, "image/gif")]))
    return path


def _open(browser: Browser, page: Path, *, width: int = 1200, scheme: str = "light") -> None:
    """Open the page anew, in a window of that width, and wait for its charts."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", media="", features=[feature])
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    browser.call("Page.navigate", url="about:blank")
    browser.wait_for("location.href === 'about:blank'")
    browser.heard.clear()
    browser.call("Page.navigate", url=page.as_uri())
    browser.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")
    browser.wait_for("document.documentElement.dataset.charts")


def _drawn(browser: Browser) -> int:
    """Return how many charts have something drawn in them."""
    script = (
        "[...document.querySelectorAll('[data-chart]')]"
        ".filter((chart) => chart.querySelector('svg.main-svg .cartesianlayer path')).length"
    )
    return int(browser.evaluate(script))


def test_charts_are_drawn_without_errors_or_requests(browser: Browser, page: Path) -> None:
    """Five charts stand there as pictures; the console is silent; nothing left the machine."""
    _open(browser, page)
    assert _drawn(browser) == 5
    assert browser.evaluate(
        "document.querySelectorAll('[data-chart=throughput] .bars path').length"
    )
    assert browser.heard_of("Runtime.exceptionThrown") == []
    assert browser.heard_of("Runtime.consoleAPICalled") == []
    assert browser.heard_of("Log.entryAdded") == []
    asked = [event["request"]["url"] for event in browser.heard_of("Network.requestWillBeSent")]
    assert asked
    assert [url for url in asked if not url.startswith((page.as_uri(), "data:"))] == []


def test_the_page_forbids_itself_the_network(browser: Browser, page: Path) -> None:
    """Even a script inside the page that tried to send something would not be let out."""
    _open(browser, page)
    tried = "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
    assert browser.evaluate(tried) == "refused"
    texts = " ".join(entry["entry"]["text"] for entry in browser.heard_of("Log.entryAdded"))
    assert "Content Security Policy" in texts


@pytest.mark.parametrize(("scheme", "colours"), [("light", light()), ("dark", dark())])
def test_page_and_charts_follow_the_readers_light(
    browser: Browser, page: Path, scheme: str, colours: dict[str, str]
) -> None:
    """In light and in dark, the page's ground and the letters in the charts fit each other."""
    _open(browser, page, scheme=scheme)
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    letters = browser.evaluate(
        "getComputedStyle(document.querySelector('[data-chart=throughput] .ytick text')).fill"
    )
    assert (_hexadecimal(ground), _hexadecimal(letters)) == (colours["page"], colours["ink"])


def test_charts_change_when_the_light_does(browser: Browser, page: Path) -> None:
    """A reader whose system goes dark at dusk need not load the page again."""
    _open(browser, page, scheme="light")
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    browser.call("Emulation.setEmulatedMedia", media="", features=[feature])
    ink = f"rgb({', '.join(str(int(dark()['ink'][i : i + 2], 16)) for i in (1, 3, 5))})"
    text = "document.querySelector('[data-chart=throughput] .ytick text')"
    browser.wait_for(f"getComputedStyle({text}).fill === '{ink}'")


def test_folded_timelines_are_drawn_when_opened(browser: Browser, page: Path) -> None:
    """A chart that was hidden is drawn in its right width as soon as somebody looks."""
    _open(browser, page)
    browser.evaluate("document.getElementById('timelines').open = true")
    browser.wait_for("document.documentElement.dataset.charts === '9'")
    assert _drawn(browser) == 9
    width = "document.querySelector('[data-chart=timeline-0] svg.main-svg').clientWidth"
    assert browser.evaluate(width) > 800


def test_folds_open_by_keyboard(browser: Browser, page: Path) -> None:
    """Every fold can take the focus, and Enter opens it."""
    _open(browser, page)
    browser.evaluate("document.querySelector('#timelines summary').focus()")
    for kind in ("keyDown", "keyUp"):
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        browser.call("Input.dispatchKeyEvent", type=kind, **key)
    assert browser.wait_for("document.getElementById('timelines').open") is True


def test_a_reader_clicks_through_all_of_it(browser: Browser, page: Path) -> None:
    """Every fold opens under the mouse and shows something; every chart is drawn; no complaint."""
    _open(browser, page)
    folds = int(browser.evaluate("document.querySelectorAll('details').length"))
    assert folds >= 5
    for number in range(folds):
        fold = f"document.querySelectorAll('details')[{number}]"
        there = "{block: 'center', behavior: 'instant'}"
        browser.evaluate(f"{fold}.querySelector('summary').scrollIntoView({there})")
        corner = f"{fold}.querySelector('summary').getBoundingClientRect()"
        place = {name: browser.evaluate(f"{corner}.{name} + 8") for name in ("x", "y")}
        for kind in ("mousePressed", "mouseReleased"):
            click = {**place, "button": "left", "clickCount": 1}
            browser.call("Input.dispatchMouseEvent", type=kind, **click)
        browser.wait_for(f"{fold}.open && {fold}.clientHeight > 80")
    browser.wait_for("document.documentElement.dataset.charts === '9'")
    assert _drawn(browser) == 9
    assert browser.heard_of("Runtime.exceptionThrown") == []


def test_phone_shows_everything_without_scrolling_sideways(browser: Browser, page: Path) -> None:
    """At 390 pixels nothing is wider than the screen, and charts are as wide as it allows."""
    _open(browser, page, width=390)
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    widths = browser.evaluate(
        "[...document.querySelectorAll('[data-chart] svg.main-svg')]"
        ".filter((svg) => !svg.closest('details')).map((svg) => svg.clientWidth)"
    )
    assert widths
    assert all(300 <= width <= 390 for width in widths)


def test_screenshot_is_not_blank(browser: Browser, page: Path) -> None:
    """What a reader sees has the colours of the bars in it."""
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    _open(browser, page)
    shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
    with image.open(BytesIO(base64.b64decode(shot))) as picture:
        pixels = picture.convert("RGB")
        colours = {colour for _, colour in pixels.getcolors(pixels.width * pixels.height)}
    bar = light()["bar-series-0"]
    assert tuple(int(bar[start : start + 2], 16) for start in (1, 3, 5)) in colours


def test_report_goes_onto_paper(browser: Browser, page: Path) -> None:
    """Printing makes a document of some pages, in light colours, with its charts narrowed."""
    _open(browser, page, scheme="dark")
    browser.evaluate(
        "window.seen = null;"
        "window.addEventListener('afterprint', () => {"
        " window.seen = document.querySelector('[data-chart=throughput] svg.main-svg')"
        ".getAttribute('width'); }, {capture: true})"
    )
    made = browser.call("Page.printToPDF", printBackground=True)["data"]
    document = base64.b64decode(made)
    assert document.startswith(b"%PDF-")
    assert document.count(b"/Type /Page\n") + document.count(b"/Type /Page/") >= 2
    assert float(browser.wait_for("window.seen")) == 660


def _hexadecimal(colour: str) -> str:
    """Turn the browser's `rgb(1, 2, 3)` into `#010203`."""
    parts = colour.removeprefix("rgb(").removesuffix(")").split(",")
    return "#" + "".join(f"{int(part):02x}" for part in parts)
