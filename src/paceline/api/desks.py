"""The desk at which we rent: the adapters behind the use cases of EC2."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

from paceline.api.wiring import LEDGER_FILE, SystemClock, state_home
from paceline.app.fleet import find_cluster
from paceline.app.observers import Unwatched
from paceline.app.renting import Desk
from paceline.model.ec2 import ClusterKey, Wish
from paceline.model.host import Host
from paceline.model.spec import Spec
from paceline.planning.ec2.identity import owner_word
from paceline.planning.ec2.wish import DEFAULT_REGION, wish_of
from paceline.ports import Provider, RentalObserver, Transport
from paceline.store.files import storage_errors
from paceline.store.keyring import FileKeyring
from paceline.store.ledger import SqliteLedger

OWNER = "PACELINE_OWNER"


def owner() -> str:
    """Return whose clusters are ours: the user and this machine, or as the environment says.

    It is written down when it is first used, so that a machine that is given another name still
    finds what it has rented.
    """
    told = os.environ.get(OWNER)
    if told:
        return owner_word(told)
    path = state_home() / "owner"
    with storage_errors(path):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(owner_word(f"{_user()}@{socket.gethostname()}") + "\n")
        return owner_word(path.read_text(encoding="utf-8").strip())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return str(os.getuid())


def open_ledger() -> SqliteLedger:
    """Return the ledger of this user."""
    return SqliteLedger(state_home() / LEDGER_FILE)


def region_of(spec: Spec | None = None) -> str:
    """Return the region that a spec means, or the user's own settings."""
    from paceline.providers.ec2 import default_region  # noqa: PLC0415 - it is heavy

    named = None if spec is None else spec.cluster.region
    return named or default_region() or DEFAULT_REGION


def wish_for(spec: Spec) -> Wish:
    """Return what a spec asks of EC2, for us."""
    return wish_of(spec, owner(), region_of(spec))


def key_of(name: str, region: str | None = None) -> ClusterKey:
    """Return the cluster of ours that has a name: as the ledger knows it, else where we are."""
    whose = owner()
    known = [
        entry.key
        for entry in open_ledger().clusters()
        if entry.key.name == name and entry.key.owner == whose
    ]
    for key in known:
        if region in {None, key.region}:
            return key
    return ClusterKey(name, whose, region or region_of())


def open_desk(region: str, watcher: RentalObserver | None = None) -> Desk:
    """Return the desk for a region."""
    from paceline.providers.ec2 import Ec2Cloud, find_own_address  # noqa: PLC0415 - it is heavy
    from paceline.transports.ssh import HostKeys, SshTransport, make_key  # noqa: PLC0415 - too

    cloud = Ec2Cloud(region)
    # Only the key that is pinned will do for a rented host, whatever anybody's files say.
    keys = HostKeys(Path(os.devnull), user_files=())

    def reach(host: Host) -> Transport:
        return SshTransport(host, keys)

    async def find_address() -> str | None:
        return await find_own_address(await cloud.endpoint())

    return Desk(
        cloud=cloud,
        ledger=open_ledger(),
        keyring=FileKeyring(state_home() / "clusters", make_key),
        clock=SystemClock(),
        reach=reach,
        find_address=find_address,
        watcher=watcher or Unwatched(),
    )


def rented_provider(spec: Spec) -> Provider:
    """Return the provider of the cluster that a spec has rented and that is up."""
    from paceline.providers.ec2 import Ec2Provider  # noqa: PLC0415 - it is heavy

    key = wish_for(spec).key
    desk = open_desk(key.region)
    return Ec2Provider(lambda: find_cluster(desk, key), desk.reach)
