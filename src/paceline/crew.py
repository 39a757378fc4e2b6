"""All hosts of a notebook at once: what a cell on the first host says, every rank does.

    from paceline import crew

    crew.run("train.py", "--epochs", "1")     # a script of this folder, as every rank
    crew.run("-m", "paceline.trainer", "--program", "mlp", "--epochs", "1")

    %load_ext paceline.crew
    %%ranks                                   (a cell that every rank executes)

Ranks find RANK, WORLD_SIZE, MASTER_ADDR and the like, as under any launcher. Interrupting the cell
ends all of them, and so does the failure of one.

On the other hosts `python -m paceline.crew serve PORT` waits for calls. A call bears a proof that
its maker knows the secret of this notebook; the secret itself never travels, and calls are not
encrypted, as the ranks' own traffic is not.

This module travels to the hosts: the standard library only, Python 3.8 or newer.
"""
# ruff: noqa: PTH119, PTH123
# Those rules ask for pathlib; names and files here are as plain as they can be.

from __future__ import annotations

import contextlib
import hmac
import json
import os
import queue
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.mpi import proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CREW_VARIABLE = "PACELINE_CREW"
SECRET_VARIABLE = "PACELINE_CREW_SECRET"  # noqa: S105 - the name, not the secret
_LOOK_UP_S = 0.5
_ANSWER_WITHIN_S = 20.0
_LONGEST_CALL_BYTES = 8 << 20
_GRACE_S = 3.0
_SHOWN_LINES = 20
# What belongs to the notebook's own job, and not to the ranks that its cells start.
_NOT_FOR_RANKS = ("PACELINE_EVENTS", "JUPYTER_TOKEN", CREW_VARIABLE, SECRET_VARIABLE)


class RanksFailed(Exception):
    """A rank failed; the message is its last words."""


@dataclass(frozen=True)
class Member:
    """One host of the crew; the first is the one that the notebook runs on, and has no port."""

    host: str
    address: str
    python: str
    cores: int
    procs: int
    port: int | None = None
    interface: str | None = None


@dataclass(frozen=True)
class _Rank:
    """One rank: where it runs, and what it runs."""

    number: int
    member: Member
    argv: tuple[str, ...]
    env: dict[str, str]
    files: dict[str, str]


def members() -> list[Member]:
    """Return the hosts that this notebook has, the first one first."""
    text = os.environ.get(CREW_VARIABLE)
    if text is None:
        raise RuntimeError("this is no notebook of `paceline notebook`: it has no crew")
    return [Member(**item) for item in json.loads(text)]


def run(
    *words: str, procs_per_node: int | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Let Python run these words as every rank, and print what the ranks say until all ended.

    A script of this folder is sent to the other hosts. RanksFailed is raised when a rank fails,
    and all others are ended then.
    """
    ranks = plan_ranks(members(), words, procs_per_node, dict(env or {}), _free_port())
    said: queue.Queue[tuple[int, str | int]] = queue.Queue()
    with contextlib.ExitStack() as stack:
        for rank in ranks:
            start = _here if rank.member.port is None else _there
            stack.enter_context(start(rank, said))
        _listen(said, {rank.number for rank in ranks})


def plan_ranks(
    crew: list[Member],
    words: tuple[str, ...],
    procs_per_node: int | None,
    env: Mapping[str, str],
    master_port: int,
) -> list[_Rank]:
    """Return every rank with its command and its variables. Pure but for reading the script."""
    if not words:
        raise ValueError("say what the ranks shall run: a script, or -m and a module")
    counts = [procs_per_node or member.procs for member in crew]
    alone = len(crew) == 1
    ranks = []
    for node, member in enumerate(crew):
        for local in range(counts[node]):
            number = sum(counts[:node]) + local
            place = {
                "RANK": str(number),
                "LOCAL_RANK": str(local),
                "WORLD_SIZE": str(sum(counts)),
                "LOCAL_WORLD_SIZE": str(counts[node]),
                "NODE_RANK": str(node),
                "GROUP_RANK": str(node),
                "MASTER_ADDR": "127.0.0.1" if alone else crew[0].address,
                "MASTER_PORT": str(master_port),
                "OMP_NUM_THREADS": str(max(1, member.cores // counts[node])),
                "PYTHONUNBUFFERED": "1",
                **_interface("lo" if alone else member.interface),
                **env,
            }
            files = _files(words) if node else {}
            ranks.append(_Rank(number, member, (member.python, *words), place, files))
    return ranks


def _interface(name: str | None) -> dict[str, str]:
    return {} if name is None else {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name}


def _files(words: tuple[str, ...]) -> dict[str, str]:
    """Return the script among the words, to be sent along, if it lies in this folder."""
    name = words[0]
    if not name.endswith(".py") or os.path.isabs(name) or not os.path.exists(name):  # noqa: PTH110,PTH117
        return {}
    with open(name, encoding="utf-8") as file:
        return {name: file.read()}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _listen(said: queue.Queue[tuple[int, str | int]], running: set[int]) -> None:
    """Print what the ranks say until all have ended, or one has failed."""
    last: dict[int, list[str]] = {}
    while running:
        number, word = said.get()
        if isinstance(word, str):
            sys.stdout.write(f"[{number}] {word}")
            last[number] = [*last.get(number, []), word][-_SHOWN_LINES:]
            continue
        running.discard(number)
        if word != 0:
            how = f"ended with exit code {word}" if word > 0 else f"was ended by signal {-word}"
            raise RanksFailed(f"rank {number} {how}\n" + "".join(last.get(number, [])))


@contextlib.contextmanager
def _here(rank: _Rank, said: queue.Queue[tuple[int, str | int]]) -> Iterator[None]:
    """Run a rank on this host."""
    with _group(rank.argv, rank.env) as process:

        def listen() -> None:
            for line in process.stdout or ():
                said.put((rank.number, line))
            said.put((rank.number, process.wait()))

        threading.Thread(target=listen, daemon=True).start()
        yield


@contextlib.contextmanager
def _there(rank: _Rank, said: queue.Queue[tuple[int, str | int]]) -> Iterator[None]:
    """Run a rank on another host; it ends when we hang up."""
    wish = {"argv": rank.argv, "env": rank.env, "files": rank.files}
    with _called(rank.member, json.dumps(wish)) as line:

        def listen() -> None:
            code = -signal.SIGHUP
            with contextlib.suppress(OSError, ValueError), line.makefile("rb") as words:
                for word in words:
                    message = json.loads(word)
                    if "out" in message:
                        said.put((rank.number, message["out"]))
                    else:
                        code = message["exit"]
                        break
            said.put((rank.number, code))

        threading.Thread(target=listen, daemon=True).start()
        yield


@contextlib.contextmanager
def _called(member: Member, wish: str) -> Iterator[socket.socket]:
    """Call a host and prove that we may."""
    place = (member.address, member.port or 0)
    with socket.create_connection(place, timeout=_ANSWER_WITHIN_S) as line:
        nonce = _line_of(line)
        shown = proof(os.environ[SECRET_VARIABLE], nonce, wish)
        line.sendall(json.dumps({"wish": wish, "proof": shown}).encode() + b"\n")
        if _line_of(line) != "ok":
            raise RanksFailed(f"{member.host} did not take the call")
        line.settimeout(None)
        try:
            yield line
        finally:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


def _line_of(line: socket.socket) -> str:
    """Read one short line, and nothing that comes after it."""
    words = b""
    while not words.endswith(b"\n") and len(words) < 200:  # noqa: PLR2004
        piece = line.recv(1)
        if not piece:
            break
        words += piece
    return words.decode("ascii", "replace").strip()


@contextlib.contextmanager
def _group(argv: tuple[str, ...], env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a group of its own, which ends with this context."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_RANKS}
    with subprocess.Popen(
        argv,
        env={**kept, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            # What it has left behind goes with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return


def serve(port: int, secret: str) -> None:
    """Take calls for ever; each runs one rank for as long as the caller stays."""
    folder = os.environ.get("PACELINE_OUT")
    if folder:
        os.chdir(folder)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", port))
        server.listen(64)
        # A signal that comes just before the wait begins does not end it: it is heard after it.
        server.settimeout(_LOOK_UP_S)
        while True:
            with contextlib.suppress(socket.timeout):
                caller, _ = server.accept()
                threading.Thread(target=_answer, args=(caller, secret), daemon=True).start()


def _answer(caller: socket.socket, secret: str) -> None:
    with caller, contextlib.suppress(OSError):
        wish = _heard(caller, secret)
        if wish is None:
            return
        for name, text in wish["files"].items():
            _write(os.path.basename(name), text)
        _carry_out(caller, tuple(wish["argv"]), wish["env"])
        # Closing alone would not be heard while a thread of ours still listens.
        caller.shutdown(socket.SHUT_RDWR)


def _write(name: str, text: str) -> None:
    """Write a script, whole or not at all: another rank may be reading it."""
    draft = f".{name}.{secrets.token_hex(4)}"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, name)  # noqa: PTH105


def _heard(caller: socket.socket, secret: str) -> dict[str, Any] | None:
    """Hear a caller out; None if it does not prove that it knows the secret."""
    nonce = secrets.token_hex(16)
    caller.settimeout(_ANSWER_WITHIN_S)
    caller.sendall(f"{nonce}\n".encode())
    try:
        with caller.makefile("rb") as words:
            message = json.loads(words.readline(_LONGEST_CALL_BYTES))
        text = str(message["wish"])
        known = hmac.compare_digest(str(message["proof"]), proof(secret, nonce, text))
        wish: dict[str, Any] = json.loads(text) if known else {}
    except (ValueError, KeyError, TypeError):
        known, wish = False, {}
    caller.sendall(b"ok\n" if known else b"no\n")
    caller.settimeout(None)
    return wish if known else None


def _carry_out(caller: socket.socket, argv: tuple[str, ...], env: dict[str, str]) -> None:
    """Run a rank and tell its caller what it says; a caller that hangs up ends it."""
    try:
        with _group(argv, env) as process:

            def mind() -> None:
                with contextlib.suppress(OSError):
                    while caller.recv(1):
                        pass
                _end(process)

            threading.Thread(target=mind, daemon=True).start()
            for line in process.stdout or ():
                caller.sendall(json.dumps({"out": line}).encode() + b"\n")
            answer = {"exit": process.wait()}
    except FileNotFoundError as error:
        caller.sendall(json.dumps({"out": f"{error}\n"}).encode() + b"\n")
        answer = {"exit": 127}
    caller.sendall(json.dumps(answer).encode() + b"\n")


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the magic `%%ranks`: the cell is executed by every rank."""

    def ranks(line: str, cell: str) -> None:
        name = "ranks_cell.py"
        with open(name, "w", encoding="utf-8") as file:
            file.write(cell)
        run(name, *line.split())

    shell.register_magic_function(ranks, "cell", "ranks")


def main(words: list[str]) -> int:
    """Carry out one command."""
    if len(words) == 2 and words[0] == "serve":  # noqa: PLR2004
        # A stop must end the ranks as well, and not only us.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        serve(int(words[1]), os.environ[SECRET_VARIABLE])
        return 0
    sys.stderr.write("say: serve PORT\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
