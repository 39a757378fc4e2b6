"""What everybody who rents needs: the desk with its ports, and calls that nothing breaks off."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from paceline.errors import Conflict, NotThere, PacelineError
from paceline.model.ec2 import Answer, ClusterKey, Request
from paceline.model.host import Host
from paceline.model.ledger import ClusterEntry, Entry, EntryState
from paceline.planning.ec2 import answers, questions
from paceline.ports import Clock, Cloud, Keyring, Ledger, RentalObserver, Transport

T = TypeVar("T")
# How long EC2 may need until what it has made can be seen everywhere.
SETTLE_S = 30.0
_PAUSES_S = (0.5, 1.0, 2.0, 3.0, 5.0)


def _new_nonce() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Desk:
    """The ports that renting takes; `reach` prepares the way to a host, over SSH."""

    cloud: Cloud
    ledger: Ledger
    keyring: Keyring
    clock: Clock
    reach: Callable[[Host], Transport]
    find_address: Callable[[], Awaitable[str | None]]
    watcher: RentalObserver
    nonce: Callable[[], str] = field(default=_new_nonce)


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do something to its end even if we are cancelled meanwhile; only then give way."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            await asyncio.wait([task])
        raise


async def carry_out(
    desk: Desk, entry: Entry, request: Request, settle: Callable[[Entry, Answer], list[Entry]]
) -> Answer:
    """Write down what is meant, do it, write down what came of it; all of it or none.

    `settle` returns what to write down of an answer. An intent stays open where nobody knows
    whether it was carried out.
    """

    async def work() -> Answer:
        desk.ledger.write(entry)
        answer = await desk.cloud.call(request)
        desk.ledger.write(*settle(entry, answer))
        return answer

    return await unbroken(work())


async def patiently(
    desk: Desk, act: Callable[[], Coroutine[Any, Any, T]], *, patience_s: float = SETTLE_S
) -> T:
    """Do what may fail for a while because something that we made cannot be seen yet."""
    until, tries = desk.clock.monotonic() + patience_s, 0
    while True:
        try:
            return await act()
        except NotThere:
            if desk.clock.monotonic() >= until:
                raise
        await pause(desk.clock, tries)
        tries += 1


async def pause(clock: Clock, tries: int) -> None:
    """Wait before another look, the longer the more looks there were."""
    await clock.sleep(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])


def closed(desk: Desk, entry: Entry, state: EntryState, resource_id: str | None = None) -> Entry:
    """Return an entry as it stands after something became of it."""
    now = desk.clock.now()
    if state is EntryState.MADE:
        return replace(entry, state=state, made_at=now, resource_id=resource_id)
    return replace(entry, state=state, gone_at=now)


async def who_pays(desk: Desk) -> str | None:
    """Return the account that we speak for; None where it cannot be asked."""
    try:
        answer = await desk.cloud.call(questions.WHO_AM_I)
    except NotThere:
        return None
    return answers.account(answer)


async def require_same_account(desk: Desk, key: ClusterKey) -> ClusterEntry | None:
    """Ask whose account this is, and return what the ledger knows of a cluster in it."""
    return same_account(desk, key, await who_pays(desk))


def same_account(desk: Desk, key: ClusterKey, account: str | None) -> ClusterEntry | None:
    """Return what the ledger knows of a cluster; Conflict if it is another account's.

    Otherwise `down` would find nothing with somebody else's keys, and call that a success.
    """
    known = desk.ledger.cluster(key)
    if known is not None and None not in (known.account, account) and known.account != account:
        raise Conflict(
            f"the cluster {key} was made in the account {known.account}, and these credentials "
            f"are for {account}",
            hint="name the profile of that account with AWS_PROFILE",
        )
    return known


def first_line(error: PacelineError) -> str:
    """Return the first line of what an error says."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
