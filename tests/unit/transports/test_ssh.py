"""What the SSH transport does beyond the contract of all transports, against a real sshd."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.errors import PacelineError, StorageError, TransportError
from paceline.model.command import Command, Secret
from paceline.model.host import Host, SshAccess
from paceline.rehearsal.hosts import SshHost
from paceline.transports.ssh import HostKeys, SshTransport
from tests.lab import host_noun, no_keys

pytestmark = pytest.mark.e2e
TRUE = Command(("true",))


def carried_out(
    host: Host, keys: HostKeys, work: Callable[[SshTransport], Awaitable[object]]
) -> None:
    """Do something with a transport and close it."""

    async def whole() -> None:
        transport = SshTransport(host, keys)
        try:
            await work(transport)
        finally:
            await transport.close()

    asyncio.run(whole())


def refusal(host: Host, keys: HostKeys) -> PacelineError:
    """Return the error that an attempt to run something brings."""
    with pytest.raises(PacelineError) as caught:
        carried_out(host, keys, lambda transport: transport.run(TRUE))
    assert caught.value.host == host.name
    assert caught.value.hint
    return caught.value


def unpinned(host: SshHost) -> Host:
    """Return a host of which nothing is known."""
    return replace(host_noun(host), ssh=SshAccess(key=str(host.user_key)))


def fingerprint(host: SshHost) -> str:
    """Return the fingerprint of a host's key, as people see it."""
    key = host.folder / "host_key.pub"
    done = subprocess.run(
        ("ssh-keygen", "-lf", str(key)), capture_output=True, text=True, check=True
    )
    return done.stdout.split()[1]


def test_an_unknown_host_is_refused_with_its_fingerprint(
    lab: tuple[SshHost, ...], tmp_path: Path
) -> None:
    """Nobody is trusted unseen; the refusal shows the key and what to do, and records nothing."""
    error = refusal(unpinned(lab[0]), no_keys(tmp_path))
    assert fingerprint(lab[0]) in str(error)
    assert "--accept-new-host-keys" in str(error.hint)
    assert list(tmp_path.iterdir()) == []


def test_an_accepted_host_is_known_from_then_on(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """Accepting new keys writes them into our own file, once, which later attempts read."""
    keys = no_keys(tmp_path / "ours")
    carried_out(unpinned(lab[0]), replace(keys, accept_new=True), lambda link: link.run(TRUE))
    carried_out(unpinned(lab[0]), replace(keys, accept_new=True), lambda link: link.run(TRUE))
    carried_out(unpinned(lab[0]), keys, lambda link: link.run(TRUE))
    lines = keys.own_file.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].split()[:2] == [lab[0].address, "ssh-ed25519"]
    assert keys.own_file.stat().st_mode & 0o777 == 0o600


def test_whoever_is_asked_decides(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """A person is shown address and fingerprint once; no means no and yes means from now on."""
    questions = []

    def answering(*, answer: bool) -> Callable[[str], Awaitable[bool]]:
        async def ask(question: str) -> bool:
            questions.append(question)
            return answer

        return ask

    keys = no_keys(tmp_path)
    refusal(unpinned(lab[0]), replace(keys, ask=answering(answer=False)))
    carried_out(
        unpinned(lab[0]), replace(keys, ask=answering(answer=True)), lambda link: link.run(TRUE)
    )
    carried_out(
        unpinned(lab[0]), replace(keys, ask=answering(answer=False)), lambda link: link.run(TRUE)
    )
    assert len(questions) == 2
    assert fingerprint(lab[0]) in questions[0]


def test_a_changed_host_key_is_always_refused(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """A key other than the known one is refused, even where new keys are accepted."""
    keys = replace(no_keys(tmp_path), accept_new=True)
    keys.own_file.write_text(f"{lab[0].address} {lab[1].host_key}\n")
    before = keys.own_file.read_text()
    error = refusal(unpinned(lab[0]), keys)
    assert "CHANGED" in str(error)
    assert fingerprint(lab[0]) in str(error)
    assert keys.own_file.read_text() == before


@pytest.mark.parametrize("form", ["key", "fingerprint"])
def test_a_pinned_key_is_the_only_one(lab: tuple[SshHost, ...], tmp_path: Path, form: str) -> None:
    """The right pin is enough; another one is refused whatever else is known."""
    pins = [host.host_key if form == "key" else fingerprint(host) for host in lab]
    keys = replace(no_keys(tmp_path), accept_new=True)
    keys.own_file.write_text(f"{lab[0].address} {lab[0].host_key}\n")
    host = unpinned(lab[0])
    assert host.ssh is not None
    right, wrong = (replace(host, ssh=replace(host.ssh, host_key=pin)) for pin in pins)
    carried_out(right, no_keys(tmp_path / "none"), lambda link: link.run(TRUE))
    assert "pinned" in str(refusal(wrong, keys))


def test_the_user_s_known_hosts_are_read(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """What the user knows already is trusted, and their file is not written."""
    theirs = tmp_path / "theirs"
    theirs.write_text(f"{lab[0].address} {lab[0].host_key}\n")
    theirs.chmod(0o400)
    keys = HostKeys(tmp_path / "ours", user_files=(theirs,), accept_new=True)
    carried_out(unpinned(lab[0]), keys, lambda link: link.run(TRUE))
    assert not keys.own_file.exists()


def test_a_key_that_the_host_does_not_know_is_named(
    lab: tuple[SshHost, ...], tmp_path: Path
) -> None:
    """A refused login speaks of keys, and no password is asked for."""
    host = host_noun(lab[0])
    stranger = replace(host, ssh=replace(host.ssh, key=str(lab[0].folder / "host_key")))  # type: ignore[type-var]
    assert "none of our keys" in str(refusal(stranger, no_keys(tmp_path)))
    missing = replace(host, ssh=replace(host.ssh, key="/no/such/key"))  # type: ignore[type-var]
    assert "/no/such/key" in str(refusal(missing, no_keys(tmp_path)))


def test_a_host_that_refuses_or_has_no_address_is_named(tmp_path: Path) -> None:
    """A closed port and an unknown name are told apart."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    closed = Host("closed", "127.0.0.1", "127.0.0.1", SshAccess(port=port))
    assert f"refuses connections at port {port}" in str(refusal(closed, no_keys(tmp_path)))
    nameless = Host("nameless", "no-such-host.invalid", "x", SshAccess())
    assert "address for this name" in str(refusal(nameless, no_keys(tmp_path)))


def test_what_is_no_ssh_server_is_named(tmp_path: Path) -> None:
    """A server of another kind gets an error in words and not an exception of a library."""

    async def whole() -> None:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            web = Host("web", "127.0.0.1", "127.0.0.1", SshAccess(port=port))
            with pytest.raises(TransportError, match="cannot be reached over SSH"):
                await SshTransport(web, no_keys(tmp_path)).run(TRUE)

    asyncio.run(whole())


def test_a_jump_host_leads_on(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """A host behind another is reached through it, and both keys are verified."""
    keys = no_keys(tmp_path)
    behind = host_noun(lab[1])
    through = replace(behind, ssh=replace(behind.ssh, jump=f"root@{lab[0].address}:22"))  # type: ignore[type-var]
    assert f"jump host {lab[0].address}" in str(refusal(through, keys))
    keys.own_file.write_text(f"{lab[0].address} {lab[0].host_key}\n")

    async def look(link: SshTransport) -> None:
        done = await link.run(Command(("sh", "-c", 'echo "$SSH_CONNECTION $HOME"')))
        caller, _, _, _, home = done.stdout.split()
        assert caller == lab[0].address
        assert home == str(lab[1].home)

    carried_out(through, keys, look)


def test_one_connection_serves_all_calls(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """Calls at the same time and one after another share a connection."""

    async def look(link: SshTransport) -> None:
        ask = Command(("sh", "-c", 'echo "$SSH_CONNECTION"'))
        done = await asyncio.gather(*(link.run(ask) for _ in range(30)))
        assert len({item.stdout for item in [*done, await link.run(ask)]}) == 1

    carried_out(host_noun(lab[0]), no_keys(tmp_path), look)


def test_a_broken_connection_is_an_error_and_then_made_anew(
    lab: tuple[SshHost, ...], tmp_path: Path
) -> None:
    """A command whose connection breaks fails with the host's name; the next call reconnects."""

    async def look(link: SshTransport) -> None:
        suicide = Command(("sh", "-c", "kill -9 $PPID; sleep 60"))
        with pytest.raises(TransportError, match="connection broke"):
            await link.run(suicide)
        assert (await link.run(TRUE)).ok

    carried_out(host_noun(lab[0]), no_keys(tmp_path), look)


def test_the_whole_group_ends_with_a_late_command(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """What a command has started ends with it, also if it is deaf to the polite request."""
    before = set(lab[0].processes())
    line = "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000"

    async def look(link: SshTransport) -> None:
        with pytest.raises(TransportError, match=r"longer than 0\.3 s"):
            await link.run(Command(("sh", "-c", line)), timeout_s=0.3)
        # Only the connection's own server is left.
        assert not _sleeping(set(lab[0].processes()) - before)

    carried_out(host_noun(lab[0]), no_keys(tmp_path), look)


def test_a_busy_host_keeps_nothing_of_a_late_command(
    lab: tuple[SshHost, ...], tmp_path: Path
) -> None:
    """A host that has become so busy that it takes seconds to start what ends a command ends it."""
    before = set(lab[0].processes())
    slow, busy = lab[0].home / ".bashrc", lab[0].home / "busy"
    slow.write_text(f"[ ! -e {busy} ] || sleep 3\n")
    try:

        async def look(link: SshTransport) -> None:
            line = f"trap '' TERM; touch {busy}; sleep 1000 & sleep 1000"
            with pytest.raises(TransportError, match="longer than 1 s"):
                await link.run(Command(("sh", "-c", line)), timeout_s=1.0)
            assert not _sleeping(set(lab[0].processes()) - before)

        carried_out(host_noun(lab[0]), no_keys(tmp_path), look)
    finally:
        slow.unlink()
        busy.unlink()


def _sleeping(pids: set[int]) -> list[int]:
    """Return those that sleep as long as our commands do."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if b"\0001000\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_a_chatty_login_does_not_spoil_the_output(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """What the user's own start-up files print is not taken for a command's output."""
    chatter = lab[0].home / ".bashrc"
    chatter.write_text("echo welcome; echo careful >&2\n")
    try:

        async def look(link: SshTransport) -> None:
            done = await link.run(Command(("sh", "-c", "echo out; echo err >&2")))
            assert (done.stdout, done.stderr) == ("out\n", "err\n")

        carried_out(host_noun(lab[0]), no_keys(tmp_path), look)
    finally:
        chatter.unlink()


def test_no_secret_stands_in_the_list_of_processes(
    lab: tuple[SshHost, ...], tmp_path: Path
) -> None:
    """Variables reach a command by its environment alone."""
    word = uuid.uuid4().hex
    held = Command(("sh", "-c", "ps -ww -e -o args"), env={"TOKEN": Secret(word)})

    async def look(link: SshTransport) -> None:
        done = await link.run(held)
        assert "ps -ww" in done.stdout
        assert word not in done.stdout

    carried_out(host_noun(lab[0]), no_keys(tmp_path), look)


def test_a_copy_that_is_cancelled_ends(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """A copy that takes too long ends at both ends and leaves no draft."""
    source = tmp_path / "large"
    with source.open("wb") as file:
        file.truncate(4 << 30)
    target = tmp_path / "there"
    target.mkdir()

    async def look(link: SshTransport) -> None:
        with pytest.raises(TransportError, match="copying"):
            await link.put(source, f"{target}/copy", timeout_s=0.3)
        with pytest.raises(TransportError, match="copying"):
            await link.get(str(source), tmp_path / "back" / "copy", timeout_s=0.3)

    carried_out(host_noun(lab[0]), no_keys(tmp_path), look)
    assert [item.name for item in target.iterdir()] == []
    assert [item.name for item in (tmp_path / "back").iterdir()] == []


def test_a_host_cannot_write_outside_of_the_folder(
    lab: tuple[SshHost, ...], tmp_path: Path
) -> None:
    """Links that lead out of a folder are left out when it is fetched."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "inside").write_text("x")
    (folder / "near").symlink_to("inside")
    (folder / "out").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")

    async def look(link: SshTransport) -> None:
        await link.get(str(folder), tmp_path / "back")

    carried_out(host_noun(lab[0]), no_keys(tmp_path), look)
    assert sorted(item.name for item in (tmp_path / "back").iterdir()) == ["inside", "near"]


def test_a_copy_that_the_host_refuses_says_why(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """The host's own words are in the error."""
    source = tmp_path / "source"
    source.write_bytes(b"x" * 5_000_000)

    async def look(link: SshTransport) -> None:
        with pytest.raises(StorageError, match=r"/proc/no/such.*") as caught:
            await link.put(source, "/proc/no/such/file")
        assert "mkdir" in str(caught.value)

    carried_out(host_noun(lab[0]), no_keys(tmp_path), look)


def test_an_address_that_nothing_has_is_named(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """The system's number for it is put in words."""
    address = f"{lab[0].address.rpartition('.')[0]}.250"
    nobody = Host("nobody", address, address, SshAccess())
    assert re.search(
        "no way leads to it: no route|does not answer", str(refusal(nobody, no_keys(tmp_path)))
    )


def test_a_full_disk_is_the_reason_that_is_named(lab: tuple[SshHost, ...], tmp_path: Path) -> None:
    """Of all that tar says, the reader is told what helps."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / name).write_bytes(b"x" * 3_000_000)
    small = tmp_path / "small"
    small.mkdir()
    server = str(lab[0].processes()[0])
    within = ("nsenter", "-t", server, "-m")
    subprocess.run((*within, "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small), check=True)

    async def look(link: SshTransport) -> None:
        with pytest.raises(StorageError, match="No space left on device") as caught:
            await link.put(folder, f"{small}/there")
        assert "Free some space" in str(caught.value.hint)

    try:
        carried_out(host_noun(lab[0]), no_keys(tmp_path), look)
    finally:
        subprocess.run((*within, "umount", str(small)), check=True)
