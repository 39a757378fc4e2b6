"""Open MPI without ssh between the hosts: `python -m paceline.mpi COMMAND …`.

    serve PORT       wait for one call from the master, and run what it says: Open MPI's daemon
    call HOST WORD…  make that call; mpirun uses this in the place of ssh
    rank             become the rank's own command, with the variables that torch reads

mpirun starts a daemon on every other host, as a rule through ssh, for which the hosts would need
keys to each other. Here each host's supervisor waits for that call instead: the daemon and its
ranks then belong to the supervisor, which ends them, and have the variables of their own host.
A call bears a proof that its maker knows the run's secret, and the secret itself never travels.

This module travels to the hosts: the standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECRET_VARIABLE = "PACELINE_MPI_SECRET"  # noqa: S105 - the name, not the secret
PORTS_VARIABLE = "PACELINE_MPI_PORTS"
ARGV_VARIABLE = "PACELINE_MPI_ARGV"
WORKDIR_VARIABLE = "PACELINE_MPI_WORKDIR"
_CALLED_WITHIN_S = 120.0
_ANSWER_WITHIN_S = 10.0
_LISTENS_WITHIN_S = 60.0  # containers take their time, and mpirun is up before the last of them
_ASK_AGAIN_S = 0.1
_LONGEST_CALL_BYTES = 1 << 20
_NAMES = (
    ("RANK", "OMPI_COMM_WORLD_RANK"),
    ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)


def proof(secret: str, nonce: str, line: str) -> str:
    """Return what only somebody who knows the secret can say of a line."""
    return hmac.new(secret.encode(), f"{nonce}\n{line}".encode(), "sha256").hexdigest()


def rank_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that torch reads, from those that Open MPI has set."""
    found = {ours: env[theirs] for ours, theirs in _NAMES if theirs in env}
    if "NODE_RANK" in env:
        found["GROUP_RANK"] = env["NODE_RANK"]
    return found


def serve(port: int, secret: str) -> int:
    """Run the one line that the master calls for; strangers are turned away."""
    with _listener(port) as server:
        server.settimeout(_CALLED_WITHIN_S)
        while True:
            try:
                caller, _ = server.accept()
            except (socket.timeout, TimeoutError):
                sys.stderr.write(f"mpirun did not call within {_CALLED_WITHIN_S:g} s\n")
                return 1
            with caller:
                line = _heard(caller, secret)
                if line is not None:
                    break
    # The shell is what ssh would have given it, and `exec` keeps it out of the way.
    subprocess.run(("/bin/sh", "-c", line), stdin=subprocess.DEVNULL, check=False)
    # How the job went is for mpirun to say.
    return 0


def _listener(port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("", port))
    server.listen(8)
    return server


def _heard(caller: socket.socket, secret: str) -> str | None:
    """Hear a caller out; None if it does not prove that it knows the secret."""
    nonce = secrets.token_hex(16)
    try:
        caller.settimeout(_ANSWER_WITHIN_S)
        caller.sendall(f"{nonce}\n".encode())
        with caller.makefile("rb") as words:
            message = json.loads(words.readline(_LONGEST_CALL_BYTES))
        line, shown = str(message["line"]), str(message["proof"])
        known = hmac.compare_digest(shown, proof(secret, nonce, line))
        caller.sendall(b"ok\n" if known else b"no\n")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return line if known else None


def call(
    host: str, port: int, secret: str, line: str, *, patience_s: float = _LISTENS_WITHIN_S
) -> int:
    """Ask a host to run a line; one that does not listen yet is given some time."""
    try:
        with contextlib.ExitStack() as stack:
            caller = stack.enter_context(_connected((host, port), patience_s))
            words = stack.enter_context(caller.makefile("rb"))
            nonce = words.readline(_LONGEST_CALL_BYTES).decode().strip()
            message = {"line": line, "proof": proof(secret, nonce, line)}
            caller.sendall(json.dumps(message).encode() + b"\n")
            answer = words.readline(8)
    except OSError as error:
        sys.stderr.write(f"{host} cannot be called at port {port}: {error}\n")
        return 1
    if answer != b"ok\n":
        sys.stderr.write(f"{host} did not take the call at port {port}\n")
        return 1
    return 0


def _connected(place: tuple[str, int], patience_s: float) -> socket.socket:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_connection(place, timeout=_ANSWER_WITHIN_S)
        except ConnectionRefusedError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_ASK_AGAIN_S)


def _become_rank(env: dict[str, str]) -> None:
    argv = json.loads(env[ARGV_VARIABLE])
    if env.get(WORKDIR_VARIABLE):
        os.chdir(env[WORKDIR_VARIABLE])
    hidden = (SECRET_VARIABLE, PORTS_VARIABLE, ARGV_VARIABLE, WORKDIR_VARIABLE)
    kept = {name: value for name, value in env.items() if name not in hidden}
    os.execvpe(argv[0], argv, {**kept, **rank_variables(env)})  # noqa: S606 - no shell is meant


def main(words: list[str]) -> int:
    """Carry out one command."""
    env = dict(os.environ)
    command, *rest = words or [""]
    if command == "rank":
        _become_rank(env)
    if command == "serve" and len(rest) == 1:
        return serve(int(rest[0]), env[SECRET_VARIABLE])
    if command == "call" and len(rest) > 1:
        port = json.loads(env[PORTS_VARIABLE])[rest[0]]
        return call(rest[0], port, env[SECRET_VARIABLE], " ".join(rest[1:]))
    sys.stderr.write("say one of: serve PORT, call HOST WORD…, rank\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
