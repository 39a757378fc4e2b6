"""The ranks of a job: who this process is, and how it meets the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from paceline.errors import EnvironmentFault, PortBusy, TransportError
from paceline.events import Place

# How often torchrun has started the ranks again.
RESTARTS = "TORCHELASTIC_RESTART_COUNT"
_DEFAULT_PORT = "29500"
_OWN_ADDRESSES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class World:
    """This process among the others. A process alone has no process group."""

    place: Place
    connected: bool = False

    @property
    def rank(self) -> int:
        """Which rank this is."""
        return self.place.rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.place.world_size

    @property
    def leads(self) -> bool:
        """Whether this rank writes what is written once."""
        return self.place.rank == 0

    def largest(self, value: int) -> int:
        """Return the largest of the ranks' values."""
        if not self.connected:
            return value
        box = torch.tensor([value], dtype=torch.int64)
        dist.all_reduce(box, dist.ReduceOp.MAX)
        return int(box.item())

    def gathered(self, tensor: Tensor) -> Tensor | None:
        """Return what all ranks hold, a row each, on rank 0; None on the others."""
        rows = [torch.empty_like(tensor) for _ in range(self.size)] if self.leads else None
        dist.gather(tensor, rows, 0)
        return None if rows is None else torch.stack(rows)

    def broadcast(self, tensor: Tensor) -> None:
        """Fill a tensor with what rank 0 holds in it."""
        if self.connected:
            dist.broadcast(tensor, 0)


def place_from(environ: MutableMapping[str, str], local_rank: int | None) -> Place:
    """Read who we are; torch.distributed.launch may say the local rank by a flag only."""
    place = Place.from_environment(environ)
    if local_rank is not None and "LOCAL_RANK" not in environ:
        place = replace(place, local_rank=local_rank)
    alone_on_host = place.local_world_size == 1
    on_one_host = environ.get("MASTER_ADDR") in _OWN_ADDRESSES
    if alone_on_host and place.world_size > 1 and on_one_host and "LOCAL_WORLD_SIZE" not in environ:
        place = replace(place, local_world_size=place.world_size)
    if not 0 <= place.rank < place.world_size:
        raise EnvironmentFault(
            f"rank {place.rank} in a world of {place.world_size}",
            hint="set both RANK (from 0) and WORLD_SIZE, or neither",
        )
    return place


def prepare_environment(place: Place, environ: MutableMapping[str, str]) -> None:
    """Complete the variables that torch's rendezvous reads; EnvironmentFault if it cannot be."""
    environ.setdefault("RANK", str(place.rank))
    environ.setdefault("WORLD_SIZE", str(place.world_size))
    if "MASTER_ADDR" not in environ:
        if place.local_world_size < place.world_size:
            raise EnvironmentFault(
                "MASTER_ADDR is not set, and the ranks are on several hosts",
                hint="set it to the first host's address, such as `mpirun -x MASTER_ADDR=...`",
            )
        environ["MASTER_ADDR"] = "127.0.0.1"
    environ.setdefault("MASTER_PORT", _DEFAULT_PORT)


@contextmanager
def joined(place: Place, *, timeout_s: float) -> Iterator[World]:
    """Meet the other ranks, and part from them at the end."""
    if place.world_size == 1:
        yield World(place)
        return
    prepare_environment(place, os.environ)
    _connect(place, timeout_s)
    # After a failure the connections are left to the end of the process: the others must see
    # them break, and an orderly goodbye could wait for a rank that is gone.
    yield World(place, connected=True)
    dist.barrier()
    dist.destroy_process_group()


def _connect(place: Place, timeout_s: float) -> None:
    # gloo carries what is on the CPU (agreements, and gradients where there is no GPU), NCCL
    # what is on a GPU: so the ranks can meet before they agree on a device.
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
    meeting = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    timeout = timedelta(seconds=timeout_s)
    try:
        dist.init_process_group(
            backend,
            store=_meeting_store(place, timeout),
            rank=place.rank,
            world_size=place.world_size,
            timeout=timeout,
        )
    except (dist.DistNetworkError, dist.DistStoreError, RuntimeError) as error:
        raise _explained(error, place, meeting) from error


def _meeting_store(place: Place, timeout: timedelta) -> Store:
    """Return where the ranks leave their addresses, one drawer per attempt.

    torchrun keeps one store over all restarts: without that, a rank could find the address of a
    peer that is dead, and call it in vain.
    """
    store, _, _ = next(
        rendezvous("env://", rank=place.rank, world_size=place.world_size, timeout=timeout)
    )
    return PrefixStore(f"attempt-{os.environ.get(RESTARTS, '0')}", store)


def _explained(error: Exception, place: Place, meeting: str) -> Exception:
    text = str(error)
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return PortBusy(f"the meeting point {meeting} is taken", hint="choose another MASTER_PORT")
    first_line = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return TransportError(
        f"rank {place.rank} of {place.world_size} could not meet the others at {meeting}: "
        f"{first_line}",
        hint="check that all ranks were started, that MASTER_ADDR is rank 0's address, that "
        "MASTER_PORT is open, and that GLOO_SOCKET_IFNAME names the interface between the hosts",
    )
