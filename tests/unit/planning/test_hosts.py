"""The hosts of a spec as nouns."""

from __future__ import annotations

import pytest

from paceline.errors import UsageError
from paceline.model.host import Host, SshAccess
from paceline.model.spec import ClusterSpec, load_spec
from paceline.planning.hosts import hosts_of


def test_a_list_becomes_hosts_in_its_order() -> None:
    """The first is the master; peers reach a host at its private address, if it has one."""
    cluster = ClusterSpec.model_validate(
        {"provider": "hosts", "hosts": ["a", {"address": "b", "private_address": "10.0.0.2"}]}
    )
    assert hosts_of(cluster) == (
        Host("a", "a", "a", SshAccess()),
        Host("b", "b", "10.0.0.2", SshAccess()),
    )


def test_hosts_behind_one_address_are_told_apart_by_port() -> None:
    """Several ports of one address are several hosts with names of their own."""
    cluster = ClusterSpec.model_validate({"provider": "hosts", "hosts": ["a:2201", "a:2202"]})
    assert [host.name for host in hosts_of(cluster)] == ["a:2201", "a:2202"]


def test_a_host_that_is_listed_twice_is_refused() -> None:
    """Two processes on a host are not two hosts."""
    cluster = ClusterSpec.model_validate({"provider": "hosts", "hosts": ["a", "b", "a"]})
    with pytest.raises(UsageError, match="a is listed twice") as caught:
        hosts_of(cluster)
    assert "procs_per_node" in str(caught.value.hint)


def test_a_file_lists_the_hosts() -> None:
    """Hostfile and inventory are read; names come from the inventory."""
    by_file = ClusterSpec.model_validate({"provider": "hosts", "hostfile": "h"})
    assert hosts_of(by_file, "10.0.0.1 slots=4\n")[0].slots == 4
    by_inventory = ClusterSpec.model_validate({"provider": "hosts", "inventory": "i"})
    assert hosts_of(by_inventory, "[g]\nn1 ansible_host=10.0.0.1\n") == (
        Host("n1", "10.0.0.1", "10.0.0.1", SshAccess()),
    )


def test_an_empty_list_is_refused() -> None:
    """A file without a host is named."""
    with pytest.raises(UsageError, match="h lists no host"):
        hosts_of(ClusterSpec.model_validate({"provider": "hosts", "hostfile": "h"}), "# none\n")


@pytest.mark.parametrize("text", ["10.0.0.1 10.0.0.2", "10.0.0.1:x", "me@you@10.0.0.1", "a:b:c"])
def test_what_can_be_no_address_is_refused_at_once(text: str) -> None:
    """A slip of the pen is not looked up as a name; IPv6 addresses are addresses."""
    cluster = load_spec({"cluster": {"provider": "hosts", "hosts": [text]}}).cluster
    with pytest.raises(UsageError, match="is no address"):
        hosts_of(cluster)
    good = load_spec({"cluster": {"provider": "hosts", "hosts": ["fe80::1%eth0", "[::1]:22"]}})
    assert [host.address for host in hosts_of(good.cluster)] == ["fe80::1%eth0", "::1"]
