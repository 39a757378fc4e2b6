"""Which hosts and paths words mean, and the exact line for the ssh client."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import pairwise

import pytest

from paceline.errors import NotFound, UsageError
from paceline.model.host import Host, SshAccess
from paceline.planning.carrying import Carrying, plan_carrying
from paceline.planning.picking import pick, pick_some
from paceline.planning.ssh_line import Trust, ssh_argv

HOSTS = (
    Host("one", "192.0.2.1", "10.0.0.1", SshAccess()),
    Host("192.0.2.2:2222", "192.0.2.2", "10.0.0.2", SshAccess(port=2222)),
)
TRUST = Trust("/state/pins/ab", "/state/known_hosts", ("/home/me/.ssh/known_hosts",))


@pytest.mark.parametrize(
    ("word", "number"),
    [(None, 0), ("one", 0), ("10.0.0.2", 1), ("192.0.2.2", 1), ("192.0.2.2:2222", 1), ("1", 1)],
)
def test_a_host_is_meant_by_name_address_or_number(word: str | None, number: int) -> None:
    """Without a word it is the master."""
    assert pick(HOSTS, word) == HOSTS[number]


def test_an_unknown_host_is_answered_with_those_that_are_there() -> None:
    """The hint lists numbers and names."""
    with pytest.raises(NotFound) as caught:
        pick(HOSTS, "2")
    assert "0 one, 1 192.0.2.2:2222" in str(caught.value.hint)


def test_some_hosts_come_once_and_in_order() -> None:
    """However often and in whatever order they are named; no name means all."""
    assert pick_some(HOSTS, ["1", "one", "192.0.2.2"]) == HOSTS
    assert pick_some(HOSTS, ["1"]) == HOSTS[1:]
    assert pick_some(HOSTS, []) == HOSTS


@pytest.mark.parametrize(
    ("source", "target", "plan"),
    [
        ("a", "one:b", Carrying(HOSTS[:1], outwards=True, local="a", remote="b")),
        ("a", "all:~/b/", Carrying(HOSTS, outwards=True, local="a", remote="b/")),
        ("a", "one:", Carrying(HOSTS[:1], outwards=True, local="a", remote="./")),
        (
            "192.0.2.2:2222:/x:y",
            ".",
            Carrying(HOSTS[1:], outwards=False, local=".", remote="/x:y"),
        ),
        ("./a:b", "1:c", Carrying(HOSTS[1:], outwards=True, local="./a:b", remote="c")),
        ("all:log", "logs", Carrying(HOSTS, outwards=False, local="logs", remote="log")),
    ],
)
def test_words_of_cp(source: str, target: str, plan: Carrying) -> None:
    """A word with a colon before any slash lies on a host; what is not absolute, in its home."""
    assert plan_carrying(HOSTS, source, target) == plan


@pytest.mark.parametrize(("source", "target"), [("a", "b"), ("one:a", "1:b")])
def test_just_one_end_of_a_copy_is_a_host(source: str, target: str) -> None:
    """Copies from here to here, and from host to host, are refused."""
    with pytest.raises(UsageError):
        plan_carrying(HOSTS, source, target)


def options(argv: tuple[str, ...]) -> dict[str, str]:
    """Return the `-o` options of a line."""
    return dict(word.split("=", 1) for flag, word in pairwise(argv) if flag == "-o")


def test_the_ssh_client_is_told_key_user_port_and_pin() -> None:
    """Our key alone is offered, the pinned key alone is accepted, nothing is forwarded."""
    host = Host("x", "192.0.2.9", "10.0.0.9", SshAccess("ubuntu", 2200, "/keys/a b"))
    argv = ssh_argv(host, TRUST, config="none")
    assert argv[:9] == (
        "ssh", "-F", "none", "-p", "2200", "-l", "ubuntu", "-i", "/keys/a b",
    )  # fmt: skip
    assert argv[-2:] == ("--", "192.0.2.9")
    given = options(argv)
    assert given["UserKnownHostsFile"] == "/state/pins/ab"
    assert given["GlobalKnownHostsFile"] == "/dev/null"
    assert given["StrictHostKeyChecking"] == "yes"
    assert given["IdentitiesOnly"] == "yes"
    assert given["ForwardAgent"] == given["ForwardX11"] == given["UpdateHostKeys"] == "no"


def test_a_command_reaches_the_far_program_word_for_word() -> None:
    """What the far shell makes of the last word is what was typed here."""
    words = ("printf", "%s|", "a b", "$HOME", "it's", "")
    assert shlex.split(ssh_argv(HOSTS[0], TRUST, words)[-1]) == list(words)


def test_jump_hosts_obey_the_same_rules() -> None:
    """Each is reached by a line of its own, and only our own known hosts could be written."""
    host = Host("x", "192.0.2.9", "10.0.0.9", SshAccess(jump="a@gate:2022,b@inner"))
    through = options(ssh_argv(host, TRUST))["ProxyCommand"]
    words = shlex.split(through)
    assert words[:3] == ["ssh", "-l", "b"]
    assert words[-4:] == ["-W", "[%h]:%p", "--", "inner"]
    files = options(tuple(words))["UserKnownHostsFile"].split()
    assert files[0] == "/state/known_hosts"
    outer = shlex.split(options(tuple(words))["ProxyCommand"])
    assert outer[:5] == ["ssh", "-p", "2022", "-l", "a"]


def test_a_jump_host_is_opened_by_the_user_s_own_keys_too() -> None:
    """The host's key alone opens the host; the one on the way may want another, and be IPv6."""
    host = Host("x", "192.0.2.9", "10.0.0.9", SshAccess(key="/keys/x", jump="[fe80::1]:2022"))
    trust = replace(TRUST, keys=("/home/u/.ssh/id_rsa",))
    words = shlex.split(options(ssh_argv(host, trust))["ProxyCommand"])
    assert words[:7] == ["ssh", "-p", "2022", "-i", "/home/u/.ssh/id_rsa", "-i", "/keys/x"]
    assert "IdentitiesOnly" not in options(tuple(words))
    assert words[-1] == "fe80::1"
