"""The composition root: which adapters serve which spec, and how a use case is run to its end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, Union

from paceline.app.workplace import Ground
from paceline.errors import Interrupted
from paceline.model.spec import Spec, load_spec
from paceline.ports import Provider
from paceline.providers.local import LocalProvider
from paceline.store.files import storage_errors
from paceline.store.index import Index
from paceline.store.runs import FileRunStore
from paceline.transports.local import LocalTransport

SpecLike = Union[Spec, str, Path, Mapping[str, Any], None]
T = TypeVar("T")


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def state_home(environ: Mapping[str, str] | None = None) -> Path:
    """Return where Paceline keeps its own state: $PACELINE_HOME, else the XDG state folder."""
    env = os.environ if environ is None else environ
    if env.get("PACELINE_HOME"):
        return Path(env["PACELINE_HOME"]).expanduser().absolute()
    if env.get("XDG_STATE_HOME"):
        return Path(env["XDG_STATE_HOME"]) / "paceline"
    return Path.home() / ".local" / "state" / "paceline"


def results_folder(chosen: Path | str | None) -> Path:
    """Return where results go, as an absolute path."""
    return Path(chosen or "paceline-results").expanduser().absolute()


def open_store(results: Path | str | None = None) -> FileRunStore:
    """Return the run store of this user."""
    index = Index(state_home() / "index.sqlite")
    return FileRunStore(results_folder(results), index, SystemClock())


def load(spec: SpecLike, overrides: Sequence[str] = ()) -> Spec:
    """Return a spec from whatever the caller has: a file, a mapping, a Spec, or nothing."""
    if isinstance(spec, Spec) and not overrides:
        return spec
    return load_spec(spec, overrides)


@dataclass(frozen=True)
class Wiring:
    """The adapters that serve one spec."""

    provider: Provider
    ground: Ground


def wire(spec: Spec) -> Wiring:
    """Choose the adapters for a spec."""
    python = str(spec.runtime.python) if spec.runtime.python else sys.executable
    ground = Ground(
        python=python,
        import_path=str(_import_folder()),
        job_root=str(state_home() / "jobs"),
    )
    return Wiring(provider=PROVIDERS[spec.cluster.provider](), ground=ground)


def _import_folder() -> Path:
    """Return a folder that holds this package and nothing else.

    Our own site-packages in front of another interpreter's path would hide its torch.
    """
    package = Path(__file__).resolve().parent.parent
    folder = state_home() / "import" / hashlib.sha256(str(package).encode()).hexdigest()[:12]
    link = folder / "paceline"
    if not link.is_symlink():
        with storage_errors(link):
            folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another process of ours was quicker
                link.symlink_to(package, target_is_directory=True)
    return folder


def local_provider() -> Provider:
    """Return the provider of this machine."""
    return LocalProvider(LocalTransport)


PROVIDERS: Mapping[str, Callable[[], Provider]] = {"local": local_provider}


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a use case to its end; Ctrl-C lets it clean up first and then raises Interrupted."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_interruptible(work))
    # Inside a notebook a loop is running already, and ours gets a thread of its own.
    return _in_thread(work)


async def _interruptible(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    on_main_thread = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if on_main_thread else ()
    for number in signals:
        # Cancelling once is enough: a second Ctrl-C must not cut the cleaning up short.
        loop.add_signal_handler(number, _cancel_once(task))
    try:
        return await task
    except asyncio.CancelledError as error:
        raise Interrupted(
            "interrupted; everything that was started has been stopped",
            hint="what was measured is kept: the same command again goes on from there",
        ) from error
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _cancel_once(task: asyncio.Future[Any]) -> Callable[[], None]:
    asked = False

    def cancel() -> None:
        nonlocal asked
        if not asked:
            asked = True
            task.cancel()

    return cancel


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    outcome: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(asyncio.run(_interruptible(work)))
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=body, name="paceline")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
