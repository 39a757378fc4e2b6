"""Who is taken for lost, from what was heard and when; and three supervisors' company, for real."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from paceline.supervisor import companions, company, lines
from paceline.supervisor.companions import LONGEST_STEP_S, PATIENCE_S, Ears, News
from paceline.supervisor.company import Company
from paceline.supervisor.job import Companions
from paceline.supervisor.lines import Guest, Line
from paceline.supervisor.ports import free_ports
from tests.fakes.supervised import until

HOSTS = ("one", "two", "three")


class AnyEars(RuleBasedStateMachine):
    """Whatever comes in whatever order: the silent are lost, in time, and nobody else."""

    @initialize()
    def begin(self) -> None:
        """Listen to three hosts."""
        self.ears = Ears()
        self.quiet_s = dict.fromkeys(HOSTS, 0.0)
        for host in HOSTS:
            self.ears = self.ears.heard(host)

    @rule(seconds=st.floats(0, LONGEST_STEP_S))
    def time_passes(self, seconds: float) -> None:
        """Listen, and hear nothing."""
        self.ears = self.ears.listened(seconds)
        self.quiet_s = {host: quiet + seconds for host, quiet in self.quiet_s.items()}

    @rule(seconds=st.floats(LONGEST_STEP_S, 1e6))
    def we_are_paused(self, seconds: float) -> None:
        """Do not listen for long: it counts as little more than a moment."""
        self.ears = self.ears.listened(seconds)
        self.quiet_s = {host: quiet + LONGEST_STEP_S for host, quiet in self.quiet_s.items()}

    @rule(host=st.sampled_from(HOSTS))
    def somebody_speaks(self, host: str) -> None:
        """Hear a beat of a host that we listen to."""
        if host in self.quiet_s:
            self.ears = self.ears.heard(host)
            self.quiet_s[host] = 0.0

    @rule(host=st.sampled_from(HOSTS))
    def somebody_leaves(self, host: str) -> None:
        """Hear a host say goodbye."""
        self.ears = self.ears.without(host)
        self.quiet_s.pop(host, None)

    @invariant()
    def the_silent_are_lost(self) -> None:
        """A host is lost once it was silent for the patience, and not before."""
        lost = dict(self.ears.lost)
        for host, quiet in self.quiet_s.items():
            if abs(quiet - PATIENCE_S) > 1e-6:
                assert (host in lost) == (quiet > PATIENCE_S)
        assert lost.keys() <= self.quiet_s.keys()


TestAnyEars = AnyEars.TestCase


def test_news_are_told_in_words() -> None:
    """A loss names the host and how long it was silent; a stop names where the job ended."""
    loss = News("node1", "lost", 8.3, at=5.0)
    assert loss.sentence == "the host node1 is lost: no word from its supervisor for 8 s"
    failure = loss.failure()
    assert (failure.host, failure.at, failure.reason) == ("node1", 5.0, loss.sentence)
    assert "ended on node2: failed" in News("node2", "failed").sentence


Meet = Callable[..., "dict[str, Company]"]


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meet]:
    """Return what lets supervisors of named hosts keep company, in a hurry."""
    for module, name, value in (
        (company, "BEAT_S", 0.1),
        (company, "_TURN_S", 0.05),
        (company, "_LET_THEM_FAIL_S", 0.1),
        (companions, "PATIENCE_S", 2.0),
        (lines, "_RENEW_AFTER_S", 0.5),
    ):
        monkeypatch.setattr(module, name, value)
    made: list[Company] = []
    address = "127.0.0.1"
    (port,) = free_ports(1)

    def begin(*names: str, word: str = "s") -> dict[str, Company]:
        own = Companions("one", HOSTS, address, port, word)
        found = {
            name: Company(replace(own, host=name), lambda _: None, lambda: None) for name in names
        }
        made.extend(found.values())
        for one in found.values():
            one.begin()
        return found

    yield begin
    for one in made:
        one.farewell("succeeded")


def joined(company_of: Company, *names: str) -> None:
    """Wait until somebody has met these."""
    until(lambda: company_of._met >= set(names), f"{names} to join")


def mute(company_of: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody neither hear nor say anything any more."""

    def hear_nothing(wait_s: float) -> list[object]:
        time.sleep(wait_s)
        return []

    def say_nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(company_of._end, "turn", hear_nothing)
    monkeypatch.setattr(company_of._end, "say", say_nothing)


def line_of(company_of: Company) -> Line | None:
    """Return the line that somebody has to the first host."""
    assert isinstance(company_of._end, Guest)
    return company_of._end._line


def test_a_host_that_falls_silent_is_named_everywhere(
    meet: Meet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first host misses it, and tells the others; the silent one takes the first for lost."""
    there = meet(*HOSTS)
    joined(there["one"], "two", "three")
    mute(there["three"], monkeypatch)
    until(lambda: all(one.news for one in there.values()), "news everywhere")
    blamed = {name: one.news.host for name, one in there.items() if one.news is not None}
    assert blamed == {"one": "three", "two": "three", "three": "one"}
    assert all(one.news is not None and one.news.is_loss for one in there.values())


def test_a_broken_line_is_made_again(meet: Meet) -> None:
    """Whose connection breaks calls again, and nobody is lost."""
    there = meet(*HOSTS)
    joined(there["one"], "two", "three")
    for _ in range(3):
        line = line_of(there["two"])
        assert line is not None
        line.sock.shutdown(socket.SHUT_RDWR)
        until(lambda line=line: line_of(there["two"]) not in (line, None), "a new line")  # type: ignore[misc]
    time.sleep(2.5)
    assert [one.news for one in there.values()] == [None] * 3


@pytest.mark.parametrize("first", HOSTS)
def test_a_good_end_is_no_loss(meet: Meet, first: str) -> None:
    """Whose ranks have ended well says goodbye, and the others go on; the first host, too."""
    there = meet(*HOSTS)
    joined(there["one"], "two", "three")
    joined(there["two"], "one")
    joined(there["three"], "one")
    there[first].farewell("succeeded")
    assert not there[first]._thread.is_alive()
    time.sleep(2.5)
    assert [one.news for one in there.values()] == [None] * 3


@pytest.mark.parametrize("leaving", ["one", "two"])
def test_a_goodbye_outlives_a_broken_line(meet: Meet, leaving: str) -> None:
    """Whose line breaks at that very moment says it once more, and is not taken for lost."""
    there = meet("one", "two")
    joined(there["one"], "two")
    joined(there["two"], "one")
    line = line_of(there["two"])
    assert line is not None
    line.sock.shutdown(socket.SHUT_RDWR)
    there[leaving].farewell("succeeded")
    (left,) = {"one", "two"} - {leaving}
    until(lambda: leaving in there[left]._gone, "the goodbye")
    assert there[left].news is None


@pytest.mark.parametrize("first", HOSTS)
def test_a_bad_end_is_told_to_all(meet: Meet, first: str) -> None:
    """A host where the job fails tells the others, those that come only now as well."""
    late = "three" if first != "three" else "two"
    there = meet(*(name for name in HOSTS if name != late))
    if first != "one":
        joined(there["one"], first)
    there[first].tell("failed")
    there |= meet(late)
    until(lambda: all(one.news for one in there.values()), "news everywhere")
    assert {one.news for one in there.values()} == {there[first].news}
    news = there[late].news
    assert news is not None
    assert (news.host, news.outcome) == (first, "failed")


def test_strangers_are_not_heard(meet: Meet) -> None:
    """Without the secret nobody joins, and nobody is believed to be the first host."""
    there = meet("one")
    stranger = meet("two", word="other")
    time.sleep(0.5)
    assert there["one"]._met == set()
    assert stranger["two"]._met == set()
    there["one"].tell("failed")
    time.sleep(0.5)
    assert stranger["two"].news is None
