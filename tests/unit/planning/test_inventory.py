"""Lists of hosts that people have already: what they say is what we read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import PacelineError, UsageError
from paceline.planning.hostfile import parse_hostfile
from paceline.planning.inventory import parse_inventory

HOSTFILE = """\
# the machines in the cupboard
10.0.0.1 slots=4
10.0.0.2 slots=2 max_slots=8   # the small one

node3
10.0.0.2 slots=1
"""
INI = """\
; comments of both kinds
bastion ansible_host=192.0.2.9

[workers]
node[01:03] ansible_user=trainer
big ansible_host=10.0.0.9 private_address=172.31.0.9 ansible_port=2222

[gpu:children]
workers

[gpu:vars]
ansible_ssh_private_key_file=~/.ssh/gpu key
[all:vars]
ansible_user=ubuntu
"""
YAML = """\
all:
  vars: {ansible_user: ubuntu}
  children:
    workers:
      vars: {ansible_port: 2222}
      hosts:
        node1: {ansible_host: 10.0.0.1}
        node2: {ansible_host: 10.0.0.2, ansible_user: me}
"""


def test_a_hostfile_of_open_mpi_is_read() -> None:
    """Addresses come in order with their slots; the same host twice adds them up."""
    assert parse_hostfile(HOSTFILE) == (
        {"address": "10.0.0.1", "slots": 4},
        {"address": "10.0.0.2", "slots": 3},
        {"address": "node3"},
    )


def test_a_mistake_in_a_hostfile_has_its_line() -> None:
    """What is not understood is named with file and line."""
    with pytest.raises(UsageError, match="my-hosts: line 2: 'slots=four'"):
        parse_hostfile("10.0.0.1\n10.0.0.2 slots=four\n", "my-hosts")


def test_a_hostfile_s_other_words_are_read_as_open_mpi_does() -> None:
    """Users, ports and spaces around `=` count; limits that are not ours are passed over."""
    text = "me@10.0.0.1 slots = 2 max-slots=4\n10.0.0.2 user=you port=2222\nfe80::1 slots=1\n"
    assert parse_hostfile(text) == (
        {"address": "10.0.0.1", "user": "me", "slots": 2},
        {"address": "10.0.0.2", "user": "you", "port": 2222},
        {"address": "fe80::1", "slots": 1},
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [("10.0.0.1:4\n", "slots or a port"), ("+n0\n", "no address"), ("a lots=2\n", "lots=2")],
)
def test_a_hostfile_that_could_mean_several_things_is_refused(text: str, words: str) -> None:
    """Nobody is taken to the wrong port because `HOST:4` was meant to be slots."""
    with pytest.raises(UsageError, match=words):
        parse_hostfile(text)


def test_an_ini_inventory_is_read() -> None:
    """Ranges are counted out; a host's own words go over its groups', and those over all's."""
    entries = parse_inventory(INI)
    assert [entry["name"] for entry in entries] == ["bastion", "node01", "node02", "node03", "big"]
    assert entries[0] == {"name": "bastion", "address": "192.0.2.9", "user": "ubuntu"}
    assert entries[1]["user"] == "trainer"
    assert entries[4] == {
        "name": "big", "address": "10.0.0.9", "private_address": "172.31.0.9", "port": 2222,
        "user": "ubuntu", "key": "~/.ssh/gpu key",
    }  # fmt: skip


def test_a_yaml_inventory_is_read() -> None:
    """Variables are inherited from the outer groups to the inner ones and the hosts."""
    assert parse_inventory(YAML) == (
        {"name": "node1", "address": "10.0.0.1", "user": "ubuntu", "port": 2222},
        {"name": "node2", "address": "10.0.0.2", "user": "me", "port": 2222},
    )


@pytest.mark.parametrize(
    ("arguments", "jump"),
    [
        ("-o ProxyJump=me@gate:2022 -o StrictHostKeyChecking=no", "me@gate:2022"),
        ("-C -oProxyJump=gate", "gate"),
        ("-J a,b", "a,b"),
        ('-o ProxyCommand="ssh -W %h:%p -q -p 2022 me@gate"', "me@gate:2022"),
        ("-o 'ProxyCommand ssh -l me gate -W %h:%p'", "me@gate"),
        ("-o ControlMaster=auto -i ~/key", None),
        ("-o ProxyCommand=none", None),
    ],
)
def test_the_way_that_ssh_s_arguments_take_is_taken(arguments: str, jump: str | None) -> None:
    """Hosts behind a jump host are reached through it, however Ansible was told."""
    text = f"[all:vars]\nansible_ssh_common_args={arguments}\n[web]\nnode\n"
    (entry,) = parse_inventory(text)
    assert entry.get("jump") == jump


def test_what_ansible_knows_besides_is_read_as_it_does() -> None:
    """Steps of ranges, quoted variables, comments behind headers; this machine is left out."""
    text = (
        "[web]  # all of them\nn[1:5:2]\nlocalhost ansible_connection=local\n"
        "[web:vars] ; theirs\nansible_user = 'me'\n"
    )
    entries = parse_inventory(text)
    assert [entry["name"] for entry in entries] == ["n1", "n3", "n5"]
    assert {entry["user"] for entry in entries} == {"me"}
    as_json = '{"all": {"hosts": {"10.0.0.1": {"ansible_port": 2222}}}}'
    assert parse_inventory(as_json)[0]["port"] == 2222


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a ansible_port=abc", "ansible_port of a must be a number"),
        ("a ansible_port=70000", "ansible_port of a must be a number"),
        ("a ansible_host='{{ other }}'", "ansible_host of a is a template"),
        ("a ansible_ssh_common_args='-o ProxyCommand=nc'", "ansible_ssh_common_args of a"),
        ("[web\na", "line 1: '[web'"),
        ("all:\n  hosts: [a, b]\n", "`hosts` must hold"),
        ("node[1:99999999]", "more than"),
        ("node[a:9]", "from a number to a letter"),
        ("a user", "'user' is not NAME=VALUE"),
        ('a x="', "line 1"),
        ("all:\n  hosts: [\n", "line"),
    ],
)
def test_mistakes_in_an_inventory_are_named(text: str, words: str) -> None:
    """What is not understood is an error of ours, and no traceback."""
    with pytest.raises(UsageError, match="inventory: ") as caught:
        parse_inventory(text)
    assert words in str(caught.value)


@given(text=st.text(max_size=200))
def test_no_text_breaks_the_readers(text: str) -> None:
    """Any text is read or refused in words."""
    for read in (parse_hostfile, parse_inventory):
        try:
            entries = read(text)
        except PacelineError:
            continue
        assert all(entry["address"] for entry in entries)
