"""The composition root: which adapters serve which spec."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from paceline.api.asking import question_asker
from paceline.app.here import Here
from paceline.app.package import package_of, settle_on
from paceline.app.pairs import End
from paceline.app.preparing import foresee_runtime, prepare_runtime
from paceline.app.workplace import Ground, Grounding, Preparing
from paceline.errors import UsageError
from paceline.model.host import Host
from paceline.model.plan import RunPlan
from paceline.model.record import REHEARSED
from paceline.model.spec import Spec, load_spec
from paceline.planning.hosts import hosts_of
from paceline.ports import Provider, Transport
from paceline.providers.hosts import HostsProvider
from paceline.providers.local import LocalProvider
from paceline.store.calibrations import CalibrationFiles
from paceline.store.files import storage_errors
from paceline.store.index import Index
from paceline.store.owners import hand_over, owner_under_sudo
from paceline.store.runs import FileRunStore
from paceline.transports.local import LocalTransport

if TYPE_CHECKING:
    from paceline.transports.ssh import HostKeys

# In whose environment this stands, AWS is the rehearsal of that folder.
REHEARSAL = "PACELINE_REHEARSAL"
LEDGER_FILE = "ledger.sqlite"
SpecLike = Union[Spec, str, Path, Mapping[str, Any], None]


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
    folder = results_folder(results)
    owner = owner_under_sudo(folder, os.environ, time.time())
    if owner is not None:
        # Whatever ends this process in order: an error, Ctrl-C, the end of the work.
        atexit.register(hand_over, owner)
    return FileRunStore(folder, index, SystemClock())


def rehearsal_mark() -> dict[str, object]:
    """Return what provenance says of a rehearsal; nothing where it is real."""
    return {REHEARSED: True} if os.environ.get(REHEARSAL) else {}


def open_calibrations() -> CalibrationFiles:
    """Return what was measured of hosts so far."""
    return CalibrationFiles(state_home() / "calibrations")


def load(spec: SpecLike, overrides: Sequence[str] = ()) -> Spec:
    """Return a spec from whatever the caller has: a file, a mapping, a Spec, or nothing."""
    if isinstance(spec, Spec) and not overrides:
        return spec
    return load_spec(spec, overrides)


@dataclass(frozen=True)
class Wiring:
    """The adapters that serve one spec.

    `prepare` makes its runtime ready on the hosts; `foresee` says what that will come to.
    """

    provider: Provider
    ground: Grounding
    prepare: Preparing
    foresee: Preparing


def wire(spec: Spec, results: Path | str | None = None) -> Wiring:
    """Choose the adapters for a spec; what lies in the results folder is not sent anywhere."""
    prepare, foresee = _preparing(spec, results)
    if spec.cluster.provider == "hosts":
        from paceline.transports.ssh import as_peers_see  # noqa: PLC0415 - it is heavy

        hosts = tuple(as_peers_see(host) for host in _listed(spec))
        provider = hosts_provider(hosts, accept_new=spec.cluster.accept_new_host_keys)
        return Wiring(provider, _remote_grounding(spec), prepare, foresee)
    if spec.cluster.provider == "ec2":
        from paceline.api.desks import rented_provider  # noqa: PLC0415 - it is heavy

        return Wiring(rented_provider(spec), _remote_grounding(spec), prepare, foresee)
    ground = Ground(
        python=_host_python(spec) or sys.executable,
        import_path=str(_import_folder()),
        # Without links: a container sees a job's folder at this very path.
        job_root=str((state_home() / "jobs").resolve()),
        base=str(state_home().resolve()),
    )

    async def here(link: Transport) -> Ground:
        del link
        return ground

    return Wiring(local_provider(), here, prepare, foresee)


def _host_python(spec: Spec) -> str | None:
    """Return the Python of the hosts that a spec names; with docker, it names the image's."""
    return None if spec.runtime.kind == "docker" else spec.runtime.python


def _preparing(spec: Spec, results: Path | str | None) -> tuple[Preparing, Preparing]:
    here = Here(
        stock=state_home(),
        link=LocalTransport(Host("here", "127.0.0.1", "127.0.0.1")),
        never=(results_folder(results), state_home()),
        say=say,
    )

    async def prepare(ends: Sequence[End], grounds: Mapping[str, Ground]) -> Mapping[str, Ground]:
        return await prepare_runtime(spec, ends, grounds, here)

    async def foresee(ends: Sequence[End], grounds: Mapping[str, Ground]) -> Mapping[str, Ground]:
        return await foresee_runtime(spec, ends, grounds)

    return prepare, foresee


def say(text: str) -> None:
    """Tell whoever sits here something that is not a result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _listed(spec: Spec) -> tuple[Host, ...]:
    cluster = spec.cluster
    path = cluster.hostfile or cluster.inventory
    if path is None:
        return hosts_of(cluster)
    try:
        hosts = hosts_of(cluster, Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return tuple(_with_key_beside(host, Path(path).parent) for host in hosts)


def _with_key_beside(host: Host, folder: Path) -> Host:
    """Return a host whose key is an absolute path, so that it is found from other folders too."""
    if host.ssh is None or host.ssh.key is None:
        return host
    return replace(host, ssh=replace(host.ssh, key=str(folder / Path(host.ssh.key).expanduser())))


def _remote_grounding(spec: Spec) -> Grounding:
    package = package_of(Path(__file__).resolve().parent.parent)
    workdir = spec.job.workdir

    async def there(link: Transport) -> Ground:
        home = await settle_on(link, package, workdir)
        return Ground(
            python=_host_python(spec) or "python3",
            import_path=home.import_path,
            job_root=f"{home.base}/jobs",
            base=home.base,
            workdir=workdir if home.has_workdir else home.base,
        )

    return there


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


def hosts_provider(hosts: tuple[Host, ...], *, accept_new: bool = False) -> Provider:
    """Return the provider of these hosts, which are reached over SSH."""
    from paceline.transports.ssh import Jumps, SshTransport  # noqa: PLC0415 - it is heavy

    keys, jumps = own_host_keys(accept_new=accept_new), Jumps()
    return HostsProvider(hosts, lambda host: SshTransport(host, keys, jumps))


def own_host_keys(*, accept_new: bool = False) -> HostKeys:
    """Return which host keys this user trusts."""
    from paceline.transports.ssh import HostKeys  # noqa: PLC0415 - it is heavy

    return HostKeys(state_home() / "known_hosts", accept_new=accept_new, ask=question_asker())


def provider_of(plan: RunPlan) -> Provider:
    """Return the provider that leads to the hosts of a run, as they are written down with it."""
    hosts = tuple(item.host for item in plan.hosts)
    if any(host.ssh is not None for host in hosts):
        return hosts_provider(hosts)
    return local_provider()
