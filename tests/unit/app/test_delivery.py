"""Data on hosts: differences are named against the first that is known."""

from __future__ import annotations

import pytest

from paceline.app.delivery import HostData, can_be_fetched, digest_faults, require_same
from paceline.errors import DataError


def test_hosts_with_the_same_data_have_no_fault() -> None:
    """Nor has a host of which nothing was noted."""
    assert digest_faults({"a": "1234", "b": None, "c": "1234"}) == ()
    assert digest_faults({}) == ()


def test_other_data_are_named_with_both_hosts() -> None:
    """The first that is known is what the others are compared with."""
    (fault,) = digest_faults({"a": None, "b": "1" * 64, "c": "2" * 64})
    assert fault.host == "c"
    assert fault.text == f"the data set there is another one ({'2' * 12}) than on b ({'1' * 12})"


def test_all_hosts_that_differ_are_in_one_error() -> None:
    """With a way out."""
    found = [HostData(name, "/d", digest) for name, digest in (("a", "1"), ("b", "2"), ("c", "3"))]
    with pytest.raises(DataError) as caught:
        require_same("mnist", found)
    assert "  b: " in str(caught.value)
    assert "  c: " in str(caught.value)
    assert caught.value.hint is not None


def test_only_some_sets_can_be_fetched() -> None:
    """A folder of one's own has no source."""
    assert can_be_fetched("cifar10")
    assert not can_be_fetched("folder")
