"""Arguments of a job: from the mapping in a spec to words on a command line."""

from __future__ import annotations

import argparse
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.plan import ArgValue, Configuration
from paceline.model.spec import load_spec
from paceline.planning.arguments import argument_words, batch_size_of, merged_arguments


def test_arguments_are_spelled_as_the_user_spells_them() -> None:
    """Names keep their underscores and dashes; one letter has one dash."""
    words = argument_words({"batch_size": 16, "learning-rate": 2e-4, "b": 8, "data": "a b"})
    assert words == (
        *("--batch_size", "16"),
        *("--learning-rate", "0.0002"),
        *("-b", "8"),
        *("--data", "a b"),
    )


def test_true_is_a_bare_flag_and_false_is_nothing() -> None:
    """Switches are given or left out."""
    assert argument_words({"cuda": True, "quality": False, "v": True}) == ("--cuda", "-v")


def test_a_value_with_a_dash_is_not_taken_for_an_option() -> None:
    """A negative number or a dashed word stands behind an equals sign."""
    assert argument_words({"shift": -1, "name": "-x"}) == ("--shift=-1", "--name=-x")


names = st.text(string.ascii_lowercase + "_", min_size=2, max_size=8).filter(
    lambda name: name.strip("_") == name and name != "help"
)
values = st.one_of(
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=10),
)


@settings(deadline=None)
@given(st.dictionaries(names, values, max_size=5))
def test_argparse_reads_back_what_was_meant(arguments: dict[str, ArgValue]) -> None:
    """A script that parses its arguments in the usual way gets every value."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, value in arguments.items():
        parser.add_argument(f"--{name}", type=type(value))
    assert vars(parser.parse_args(argument_words(arguments))) == arguments


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"batch_size": 16, "lr": 0.1}, {"batch_size": 64, "lr": 0.5}),
        ({"batch-size": 16, "lr": 0.1}, {"batch-size": 64, "lr": 0.5}),
        ({"lr": 0.1}, {"lr": 0.5, "batch_size": 64}),
    ],
)
def test_a_configuration_goes_over_the_job(
    job: dict[str, ArgValue], expected: dict[str, ArgValue]
) -> None:
    """The grid's batch size and arguments replace the job's, in the job's own spelling."""
    spec = load_spec({"job": {"args": job}})
    configuration = Configuration(1, 1, batch_size=64, args=(("lr", 0.5),))
    assert merged_arguments(spec, configuration) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"batch_size": 16}, 16),
        ({"batch-size": 8}, 8),
        ({"batch_size": True}, None),
        ({"batch_size": "auto"}, None),
        ({}, None),
    ],
)
def test_the_batch_size_is_known_where_it_is_a_number(
    arguments: dict[str, ArgValue], expected: int | None
) -> None:
    """A batch size that is not given, or no number, is not known."""
    assert batch_size_of(load_spec({"job": {"args": arguments}})) == expected
