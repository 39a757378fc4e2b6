"""What a host and its links can do, measured: `python -m paceline.gauge COMMAND …`, JSON on stdout.

    memory THREADS                    how fast memory is copied, by one thread and by all
    serve ADDRESS SECONDS             let peers measure the way to us; says its port first
    dial SOURCE ADDRESS:PORT SECONDS  measure the way to a peer that serves

The receiving end counts, and only what comes after the first part of the time: a connection
starts slowly, and what the sender's buffers have swallowed has not arrived.

This module travels to the hosts: the standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_COPY_BYTES = 64 << 20  # far more than a cache holds
_COPY_S = 0.3
_PINGS = 40
_BLOCK = bytes(1 << 18)
_SETTLING = 0.25  # the part of the time that is not counted
_PING, _FLOW = b"p", b"f"
_PATIENCE_S = 5.0


def memory(threads: int) -> dict[str, Any]:
    """Return the bytes that are read and written each second while memory is copied."""
    return {
        "memory_gb_per_s_one": _copying(1),
        "memory_gb_per_s_all": _copying(max(1, threads)),
    }


def _copying(threads: int) -> float:
    """Copy in so many threads at once; `memmove` lets go of the interpreter's lock."""
    import ctypes  # noqa: PLC0415 - the other commands start quicker without it

    size = _COPY_BYTES // threads
    areas = [(ctypes.create_string_buffer(size), ctypes.create_string_buffer(size))
             for _ in range(threads)]  # fmt: skip
    for source, target in areas:  # touched once, so that its pages are there
        ctypes.memset(source, 1, size)
        ctypes.memmove(target, source, size)
    begun = time.perf_counter()
    rounds = [0] * threads

    def work(number: int) -> None:
        source, target = areas[number]
        while time.perf_counter() - begun < _COPY_S:
            ctypes.memmove(target, source, size)
            rounds[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    took_s = time.perf_counter() - begun
    return 2 * size * sum(rounds) / took_s / 1e9


def serve(address: str, seconds: float) -> dict[str, Any]:
    """Answer peers that measure, one after the other, until the time is over."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    until = time.monotonic() + seconds
    with socket.socket(family, socket.SOCK_STREAM) as server:
        try:
            server.bind((address, 0))
            server.listen(8)
        except OSError as error:
            return {"port": None, "error": error.strerror or str(error)}
        _print({"port": server.getsockname()[1], "error": None})
        server.settimeout(0.2)
        # Closing our output is how we are told that we are wanted no more.
        while time.monotonic() < until and os.getppid() != 1:
            with contextlib.suppress(OSError):
                caller, _ = server.accept()
                with caller:
                    caller.settimeout(_PATIENCE_S)
                    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    _answer(caller)
    return {"ended": True}


def _answer(caller: socket.socket) -> None:
    kind = caller.recv(1)
    if kind == _PING:
        while word := caller.recv(1):
            caller.sendall(word)
    elif kind == _FLOW:
        count, took_s = _received(caller, float(caller.recv(8).decode()))
        caller.sendall(json.dumps({"bytes": count, "seconds": took_s}).encode() + b"\n")


def _received(caller: socket.socket, settling_s: float) -> tuple[int, float]:
    """Take what comes to its end; return how much came, in which time, once it had settled."""
    area = bytearray(1 << 20)
    begun = time.perf_counter()
    since, last, count = begun, begun, 0
    while size := caller.recv_into(area):
        last = time.perf_counter()
        if last - begun < settling_s:
            since, count = last, 0
        else:
            count += size
    return count, last - since


def dial(source: str, place: tuple[str, int], seconds: float) -> dict[str, Any]:
    """Measure the way to a peer: the median of its answers' times, and what flows."""
    try:
        with _connection(source, place) as line:
            round_trip_s = _round_trip_s(line)
        with _connection(source, place) as line:
            flow = _flow(line, seconds)
    except (OSError, ValueError) as error:
        return {"gbit_per_s": None, "round_trip_ms": None, "trouble": str(error)}
    took_s = flow["seconds"]
    return {
        "gbit_per_s": flow["bytes"] * 8 / took_s / 1e9 if took_s > 0 else None,
        "round_trip_ms": round_trip_s * 1e3,
        "trouble": None if took_s > 0 else "too little arrived to measure",
    }


def _connection(source: str, place: tuple[str, int]) -> socket.socket:
    origin = (source, 0) if source else None
    line = socket.create_connection(place, timeout=_PATIENCE_S, source_address=origin)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def _round_trip_s(line: socket.socket) -> float:
    line.sendall(_PING)
    times = []
    for _ in range(_PINGS):
        begun = time.perf_counter()
        line.sendall(b".")
        if not line.recv(1):
            raise OSError("the peer hung up")
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2]


def _flow(line: socket.socket, seconds: float) -> dict[str, float]:
    line.sendall(_FLOW + f"{seconds * _SETTLING:8.5f}".encode())
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        line.sendall(_BLOCK)
    line.shutdown(socket.SHUT_WR)
    with line.makefile("rb") as words:
        answer: dict[str, float] = json.loads(words.readline(1 << 12))
    return answer


def _print(data: dict[str, Any]) -> None:
    print(json.dumps(data), flush=True)  # noqa: T201 - its caller reads it


def main(words: list[str]) -> int:
    """Carry out one command."""
    command, *rest = words or [""]
    if command == "memory" and len(rest) == 1:
        _print(memory(int(rest[0])))
    elif command == "serve" and len(rest) == 2:  # noqa: PLR2004
        _print(serve(rest[0], float(rest[1])))
    elif command == "dial" and len(rest) == 3:  # noqa: PLR2004
        address, _, port = rest[1].rpartition(":")
        _print(dial(rest[0], (address, int(port)), float(rest[2])))
    else:
        _print({"error": "say one of: memory, serve, dial"})
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
