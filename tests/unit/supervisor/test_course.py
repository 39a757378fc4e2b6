from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from paceline.supervisor.course import GIVE_UP_S, Course

NAMES = frozenset({"rank-0", "rank-1", "rank-2"})


def test_all_zero_is_success_once_the_last_has_ended() -> None:
    """A job succeeds when every process has ended with zero, and not before."""
    course = Course(NAMES).after_exits({"rank-0": 0, "rank-2": 0}, 1.0, 10.0)
    assert course.outcome is None
    assert course.after_exits({"rank-1": 0}, 2.0, 10.0).outcome == "succeeded"


def test_one_failure_ends_the_job() -> None:
    """A non-zero end settles the outcome and gives the others the grace."""
    course = Course(NAMES).after_exits({"rank-1": 1}, 5.0, 10.0)
    assert (course.outcome, course.kill_at) == ("failed", 15.0)
    assert not course.must_kill(14.9)
    assert course.must_kill(15.0)


def test_a_timeout_is_an_outcome_of_its_own() -> None:
    """What the timeout ends is not called a failure, though it ends by a signal."""
    course = Course(NAMES, timeout_at=3.0)
    assert course.after_time(2.9, 1.0).outcome is None
    late = course.after_time(3.0, 1.0)
    assert late.after_exits(dict.fromkeys(NAMES, -15), 3.5, 1.0).outcome == "timeout"


def test_after_a_notice_the_job_ends_in_time() -> None:
    """It may succeed until then; a timeout that comes sooner is still one."""
    course = Course(NAMES).after_notice(2.0, 30.0)
    assert course.next_deadline() == 32.0
    assert course.after_time(31.9, 10.0).outcome is None
    assert course.after_time(32.0, 10.0).outcome == "interrupted"
    assert course.after_exits(dict.fromkeys(NAMES, 0), 3.0, 10.0).outcome == "succeeded"
    assert Course(NAMES, timeout_at=9.0).after_notice(2.0, 30.0).next_deadline() == 9.0


def test_an_impatient_second_stop_shortens_the_grace() -> None:
    """A stop request holds while the job is ending: the shorter grace counts."""
    course = Course(NAMES).after_stop_request(0.0, 60.0)
    assert course.after_stop_request(1.0, 2.0).kill_at == 3.0
    assert course.after_stop_request(1.0, 600.0).kill_at == 60.0


class AnyCourse(RuleBasedStateMachine):
    """Whatever happens in whatever order, a course keeps its promises."""

    @initialize(timeout=st.none() | st.floats(0, 100))
    def begin(self, timeout: float | None) -> None:
        """Start three processes."""
        self.now = 0.0
        self.course = Course(NAMES, timeout_at=timeout)
        self.settled: str | None = None
        self.codes: dict[str, int] = {}

    @rule(seconds=st.floats(0, 50))
    def time_passes(self, seconds: float) -> None:
        """Let the clock go on."""
        self.now += seconds
        self.course = self.course.after_time(self.now, 10.0)

    @precondition(lambda self: self.course.running)
    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, -9]))
    def one_ends(self, data: st.DataObject, code: int) -> None:
        """Let any process end in any way."""
        name = data.draw(st.sampled_from(sorted(self.course.running)))
        self.codes[name] = code
        self.course = self.course.after_exits({name: code}, self.now, 10.0)

    @rule(grace=st.floats(0, 30))
    def stop(self, grace: float) -> None:
        """Ask for a stop; the end never moves away."""
        before = self.course.kill_at
        self.course = self.course.after_stop_request(self.now, grace)
        assert before is None or (self.course.kill_at or 0.0) <= before

    @invariant()
    def the_outcome_is_settled_once(self) -> None:
        """What a job came to does not change."""
        if self.settled is not None:
            assert self.course.outcome == self.settled
        self.settled = self.course.outcome

    @invariant()
    def success_means_that_all_ended_well(self) -> None:
        """No process that failed or still runs is in a success."""
        if self.course.outcome == "succeeded":
            assert self.codes == dict.fromkeys(NAMES, 0)

    @invariant()
    def nothing_is_left_running_without_an_end_in_sight(self) -> None:
        """A job runs, or has a time by which all is gone."""
        if self.course.outcome is None:
            assert self.course.running
            assert not self.course.must_kill(self.now)
        else:
            assert self.course.kill_at is not None
            assert self.course.is_hopeless(self.course.kill_at + GIVE_UP_S)


TestAnyCourse = AnyCourse.TestCase
