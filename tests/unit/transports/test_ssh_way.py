"""What the user's ssh config says of a host, and that it is followed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncssh
import pytest

from paceline.errors import TransportError
from paceline.model.command import Command
from paceline.model.host import Host, SshAccess
from paceline.rehearsal.hosts import SshHost
from paceline.transports.ssh import HostKeys, Jumps, SshTransport, as_peers_see, with_way
from paceline.transports.ssh.way import way_to
from tests.lab import no_keys

WriteConfig = Callable[[str], None]


def host(name: str, access: SshAccess | None = None, peer: str | None = None) -> Host:
    """Return a host as it is typed."""
    return Host(name, name, peer or name, access or SshAccess())


@pytest.fixture
def write_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteConfig:
    """Return what writes the ssh config of a user with an otherwise empty home."""
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)

    def write(text: str) -> None:
        (home / ".ssh" / "config").write_text(text)

    return write


def test_without_a_config_a_host_is_where_it_says(
    write_config: WriteConfig, tmp_path: Path
) -> None:
    """Address, port and jump host of the spec hold, and ssh's own default keys are meant."""
    del write_config
    way = way_to(host("node", SshAccess(port=2200, jump="gate")))
    assert (way.address, way.port, way.jump, way.keys) == ("node", 2200, "gate", None)
    assert not (tmp_path / "user" / ".ssh" / "config").exists()


def test_a_name_of_the_config_is_looked_up(write_config: WriteConfig) -> None:
    """Address, port, jump host and keys come from its section; what the spec says comes first."""
    write_config(
        "Host node\n  HostName 192.0.2.7\n  Port 2222\n  ProxyJump gate\n"
        "  IdentityFile ~/.ssh/config\n  IdentityFile ~/.ssh/missing\n"
    )
    way = way_to(host("node"))
    assert (way.address, way.port, way.jump) == ("192.0.2.7", 2222, "gate")
    # One that is missing is passed over, as ssh does.
    assert [Path(key).name for key in way.keys or ()] == ["config"]
    own = way_to(host("node", SshAccess(port=22, jump="other", key="/keys/mine")))
    assert (own.port, own.jump, own.keys) == (22, "other", ("/keys/mine",))


def test_peers_are_told_the_address_behind_a_name(write_config: WriteConfig) -> None:
    """Hosts do not know the names of our config; a private address of the spec stays."""
    write_config("Host node\n  HostName 192.0.2.7\n")
    assert as_peers_see(host("node")).peer_address == "192.0.2.7"
    assert as_peers_see(host("node", peer="10.0.0.7")).peer_address == "10.0.0.7"
    assert as_peers_see(host("192.0.2.8")).peer_address == "192.0.2.8"


@pytest.mark.parametrize(
    ("config", "jump"),
    [
        ("Host node\n  ProxyJump a@in\nHost in\n  ProxyJump out:2022\n", "out:2022,a@in"),
        ("Host *\n  ProxyJump gate\n", "gate"),
        ("Host node\n  ProxyJump none\nHost *\n  ProxyJump gate\n", None),
    ],
)
def test_all_hosts_on_the_way_are_named(
    write_config: WriteConfig, config: str, jump: str | None
) -> None:
    """The chain is followed to its beginning, and a jump host is not sent through itself."""
    write_config(config)
    access = with_way(host("node")).ssh
    assert access is not None
    assert access.jump == jump


@pytest.mark.parametrize("jump", ["me@gate:22", "gate:2022", "other@gate:2222"])
def test_another_port_or_user_of_an_address_is_another_host(
    write_config: WriteConfig, jump: str
) -> None:
    """A host behind a forwarded port is reached through the machine that has the port."""
    write_config("")
    found = with_way(host("gate", SshAccess(user="me", port=2222, jump=jump))).ssh
    assert found is not None
    assert found.jump == jump


@pytest.mark.parametrize("jump", ["me@node:2222", "node:2222", "me@node:2222,me@node:2222"])
def test_a_circle_of_the_spec_is_refused(
    write_config: WriteConfig, tmp_path: Path, jump: str
) -> None:
    """A way that is named is never left out in silence, neither by us nor before `ssh`."""
    write_config("Host *\n  ProxyJump gate\n")
    circle = host("node", SshAccess(user="me", port=2222, jump=jump))
    with pytest.raises(TransportError, match="leads in a circle, through"):
        with_way(circle)
    with pytest.raises(TransportError, match="leads in a circle, through"):
        asyncio.run(SshTransport(circle, no_keys(tmp_path)).run(Command(("true",))))


def test_a_config_that_cannot_be_read_is_named_with_its_line(write_config: WriteConfig) -> None:
    """Whoever made the mistake is shown file and line."""
    write_config("Host node\n  Port twenty\n")
    with pytest.raises(TransportError, match=r"\.ssh/config line 2") as caught:
        way_to(host("node"))
    assert caught.value.host == "node"


def look(links: list[SshTransport]) -> list[str]:
    """Ask hosts side by side from where they are spoken to, and at which address and port."""
    command = Command(("sh", "-c", 'echo "$SSH_CONNECTION"'))

    async def whole() -> list[str]:
        try:
            done = await asyncio.gather(*(link.run(command) for link in links))
        finally:
            await asyncio.gather(*(link.close() for link in links))
        return [item.stdout for item in done]

    return asyncio.run(whole())


def accepted(host: SshHost) -> int:
    """Return how many logins the sshd of a host has accepted."""
    return (host.folder / "sshd.log").read_text().count("Accepted publickey")


@pytest.mark.e2e
def test_a_host_known_by_the_config_alone_is_met_and_then_known(
    lab: tuple[SshHost, ...], write_config: WriteConfig, tmp_path: Path
) -> None:
    """Its key is taken down for the address behind the name, where the next attempt looks."""
    write_config(f"Host node\n  HostName {lab[1].address}\n  IdentityFile {lab[1].user_key}\n")
    keys = no_keys(tmp_path)
    with pytest.raises(TransportError, match="not known; it shows"):
        look([SshTransport(host("node"), keys)])
    look([SshTransport(host("node"), HostKeys(keys.own_file, (), accept_new=True))])
    assert look([SshTransport(host("node"), keys)])[0].split()[2] == lab[1].address
    assert keys.own_file.read_text().split()[0] == lab[1].address


@pytest.mark.e2e
def test_hosts_behind_one_jump_host_share_the_way(
    lab: tuple[SshHost, ...], write_config: WriteConfig, tmp_path: Path
) -> None:
    """One connection leads to all of them, its key is asked for once, and it ends with the last."""
    write_config(
        f"Host gate\n  HostName {lab[0].address}\n"
        f"Host n*\n  HostName {lab[1].address}\n  ProxyJump root@gate\n"
        f"Host *\n  IdentityFile {lab[0].user_key}\n"
    )
    asked: list[str] = []

    async def ask(question: str) -> bool:
        asked.append(question)
        await asyncio.sleep(0.2)
        return True

    keys, jumps = HostKeys(tmp_path / "known_hosts", (), ask=ask), Jumps()
    before = accepted(lab[0])
    said = look([SshTransport(host(f"n{index}"), keys, jumps) for index in range(6)])
    assert {line.split()[0] for line in said} == {lab[0].address}
    assert len(asked) == 2, asked
    # The first attempt ended at the key that nobody knew.
    assert accepted(lab[0]) == before + 1


@pytest.mark.e2e
def test_a_jump_through_the_same_address_is_taken(
    lab: tuple[SshHost, ...], write_config: WriteConfig, tmp_path: Path
) -> None:
    """A host at another port of its jump host is not called directly."""
    write_config("")
    inner = lab[0]
    keys = HostKeys(tmp_path / "known_hosts", (), accept_new=True)
    access = SshAccess(
        user="root", port=2222, key=str(inner.user_key), jump=f"root@{inner.address}:22"
    )
    before = accepted(inner)
    # Nobody listens at that port: what counts is that the way there led through the jump host.
    with pytest.raises(TransportError, match="cannot be reached over SSH"):
        look([SshTransport(host(inner.address, access), keys)])
    assert accepted(inner) > before


@pytest.mark.e2e
def test_a_jump_host_may_want_another_key(
    lab: tuple[SshHost, ...], write_config: WriteConfig, tmp_path: Path
) -> None:
    """`key` of the spec is the host's; the one on the way is opened by the user's own as well."""
    write_config("")
    own = tmp_path / "user" / ".ssh" / "id_ed25519"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(own))
    own.chmod(0o600)
    public = asyncssh.read_private_key(str(own)).export_public_key().decode()
    allowed = lab[0].folder / "authorized_keys"
    before = allowed.read_text()
    allowed.write_text(public)
    access = SshAccess(key=str(lab[1].user_key), jump=f"root@{lab[0].address}")
    try:
        keys = HostKeys(tmp_path / "known_hosts", (), accept_new=True)
        said = look([SshTransport(host(lab[1].address, access), keys)])
    finally:
        allowed.write_text(before)
    assert said[0].split()[0] == lab[0].address


def test_a_jump_host_that_does_not_answer_is_waited_for_once() -> None:
    """All hosts behind it fail with its name, and none of them tries it again by itself."""
    tries = 0

    async def opening() -> asyncssh.SSHClientConnection:
        nonlocal tries
        tries += 1
        await asyncio.sleep(0.1)
        raise TransportError("it is off", host="gate", hint="switch it on")

    async def whole(take: Callable[[], Awaitable[object]]) -> list[object]:
        return await asyncio.gather(*(take() for _ in range(5)), return_exceptions=True)

    jumps = Jumps()
    found = asyncio.run(whole(lambda: jumps.lease("gate", opening)))
    assert [str(error) for error in found] == ["gate: it is off"] * 5
    assert tries == 1
