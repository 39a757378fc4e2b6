from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.supervisor.excerpt import MAX_CHARS, describe_end, excerpt

CRASH = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
  File "train.py", line 2, in main
    raise ValueError("no such data")
ValueError: no such data
"""


def test_the_traceback_is_cut_out_of_the_log() -> None:
    """Neither what came before the traceback nor what came after is shown."""
    log = f"epoch 0\nepoch 1\n{CRASH}W1118 21:42:42.123000 17 torch: closing down\nbye\n"
    assert excerpt(log) == CRASH.rstrip()


def test_the_first_traceback_wins() -> None:
    """A launcher that ends with a traceback of its own does not hide the rank's."""
    own = CRASH.replace("no such data", "ChildFailedError")
    assert excerpt(f"{CRASH}\n{own}") == CRASH.rstrip()


@pytest.mark.parametrize(
    "link",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_a_chain_is_kept_together(link: str) -> None:
    """What was raised from something else is shown with its cause."""
    chain = f"{CRASH}\n{link}\n\n{CRASH.replace('no such data', 'cannot train')}"
    assert excerpt(f"hello\n{chain}\nbye\n") == chain.rstrip()


def test_a_message_of_several_lines_is_kept() -> None:
    """The error's own words go on until a blank line or a line of a logger."""
    words = "RuntimeError: gloo: connection closed\n[10.0.0.1]:4711\nhint: look at rank 0"
    log = f'Traceback (most recent call last):\n  File "a", line 1\n{words}\nE1118 12:00:00 x\n'
    assert excerpt(log).endswith("hint: look at rank 0")


def test_ranks_that_write_at_once_are_taken_apart() -> None:
    """Where a launcher marks the lines, only those of the rank that failed first are shown."""
    one = [f"[rank1]: {line}" for line in CRASH.splitlines()]
    other = [f"[rank0]: {line}" for line in CRASH.replace("data", "peer").splitlines()]
    mixed = [line for pair in zip(one, other, strict=True) for line in pair]
    assert excerpt("\n".join(mixed)) == "\n".join(one)


def test_a_sentence_before_a_traceback_is_no_mark() -> None:
    """A logger that begins a traceback in mid-line does not cost us the rest of it."""
    assert excerpt(f"uncaught: {CRASH}").endswith("ValueError: no such data")


def test_recursion_is_followed_to_its_end() -> None:
    """The line by which Python shortens deep recursion does not end the frames."""
    log = (
        'Traceback (most recent call last):\n  File "a", line 1\n'
        '  [Previous line repeated 995 more times]\n  File "a", line 2\nRecursionError: too deep\n'
    )
    assert excerpt(log).endswith("RecursionError: too deep")


def test_without_a_traceback_the_last_lines_are_shown() -> None:
    """Other programs say last what is wrong."""
    log = "".join(f"line {number}\n" for number in range(100)) + "\n\n"
    assert excerpt(log).splitlines() == [f"line {number}" for number in range(80, 100)]


def test_a_progress_bar_counts_as_its_last_picture() -> None:
    """What a carriage return has overwritten is not shown."""
    assert excerpt("  1%|\r 50%|\r 99%|\r\nkilled\n") == " 99%|\nkilled"


def test_a_silent_process_has_an_empty_excerpt() -> None:
    """No log, no excerpt."""
    assert excerpt("") == ""


@given(st.text(alphabet=st.sampled_from("aT \n\r[]:0é")) | st.text())
def test_any_log_gives_a_short_excerpt(noise: str) -> None:
    """Whatever is in a log, its excerpt is bounded, and a traceback in it is found."""
    assert len(excerpt(noise * 1000)) <= MAX_CHARS
    found = excerpt(f"{noise}\n{CRASH}")
    assert "Traceback" in found


def test_a_long_excerpt_loses_its_middle() -> None:
    """The two ends of a long traceback are what counts."""
    frames = "".join(f'  File "a.py", line {number}\n' for number in range(5000))
    text = excerpt(f"Traceback (most recent call last):\n{frames}ValueError: deep\n")
    assert len(text) <= MAX_CHARS
    assert text.startswith("Traceback")
    assert "\n[...]\n" in text
    assert text.endswith("ValueError: deep")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "ended with exit code 3"),
        (-signal.SIGSEGV, "was ended by SIGSEGV"),
        (-signal.SIGKILL, "ran out of memory"),
        (-77, "was ended by signal 77"),
    ],
)
def test_an_end_is_put_into_words(code: int, words: str) -> None:
    """A signal is called by its name, and the usual reason for SIGKILL is given."""
    assert words in describe_end(code)
