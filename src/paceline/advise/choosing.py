"""Choosing: the cheapest, the fastest, the best within limits, and how sure that is.

What is uncertain is drawn many times, each option within its own doubt; a choice is as sure as
the share of the draws in which it comes out best, or within a margin that nobody would notice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from paceline.advise.options import Option, Span

Goal = Literal["cheapest", "fastest", "best"]
# A choice that is this close to the truly best one is as good.
MARGIN = 0.02
# From this certainty on the answer is called clear.
CLEAR = 0.90
# An option that comes out best in fewer of the draws is out of the race.
_CONTENDER = 0.02
_DRAWS = 2000
# A 90% interval of a normal distribution reaches so many deviations to either side.
_DEVIATIONS = 1.645


@dataclass(frozen=True)
class Limits:
    """What the job may cost, and how long it may take."""

    budget_usd: float | None = None
    deadline_s: float | None = None

    def hold(self, option: Option, *, surely: bool = True) -> bool:
        """Whether an option keeps within them, at the far end of its interval or on average."""
        return all(
            limit is None
            or (figure is not None and (figure.high if surely else figure.value) <= limit)
            for figure, limit in (
                (option.time_s, self.deadline_s),
                (option.cost_usd, self.budget_usd),
            )
        )

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return self.budget_usd is not None or self.deadline_s is not None


@dataclass(frozen=True)
class Choice:
    """One answer: the option, how sure it is to be the best, and who may be as good.

    `contenders` may be better, as far as the measurements tell; `ties` cannot be told apart.
    `kept` says of a choice within limits whether they hold at the far end of its interval.
    """

    goal: Goal
    option: Option
    sure: float
    ties: tuple[Option, ...] = ()
    contenders: tuple[Option, ...] = ()
    kept: bool = True

    @property
    def clear(self) -> bool:
        """Whether more measurements would hardly change it."""
        return self.sure >= CLEAR


Figure = Callable[[Option], "float | None"]


def time_of(option: Option) -> float | None:
    """Return the time of the whole job."""
    return None if option.time_s is None else option.time_s.value


def money_of(option: Option) -> float | None:
    """Return what the whole job costs: dollars, else host-hours."""
    return None if option.money is None else option.money.value


def balance_of(option: Option) -> float | None:
    """Return time times money: what halves one and doubles the other is as good."""
    time, money = time_of(option), money_of(option)
    return None if time is None or money is None else math.sqrt(time * money)


def choose(goal: Goal, options: Sequence[Option], limits: Limits) -> Choice | None:
    """Return the option that serves a goal best; None where there is none."""
    figure: Figure = {"cheapest": money_of, "fastest": time_of, "best": _wanted(limits)}[goal]
    candidates = [option for option in options if figure(option) is not None]
    if goal != "best":
        return _best(goal, candidates, figure)
    within = [option for option in candidates if limits.hold(option)]
    perhaps = [option for option in candidates if limits.hold(option, surely=False)]
    found = _best(goal, within or perhaps, figure)
    return found and replace(found, kept=bool(within))


def _wanted(limits: Limits) -> Figure:
    """Return what the best within limits is best in: what the limits leave open."""
    if limits.deadline_s is not None:
        return money_of
    return balance_of if limits.budget_usd is None else time_of


def _best(goal: Goal, options: Sequence[Option], figure: Figure) -> Choice | None:
    values = {position: figure(option) for position, option in enumerate(options)}
    figures = [value for value in values.values() if value is not None]
    if not figures:
        return None
    leader = min(range(len(options)), key=lambda position: figures[position])
    drawn = _drawn(figures, [option.doubt for option in options], leader)
    others = [position for position in range(len(options)) if position != leader]
    return Choice(
        goal=goal,
        option=options[leader],
        sure=drawn.good,
        ties=tuple(options[item] for item in others if drawn.ahead[item] > 1 - CLEAR),
        contenders=tuple(
            options[item]
            for item in sorted(others, key=lambda item: -drawn.wins[item])
            if drawn.wins[item] >= _CONTENDER
        ),
    )


@dataclass(frozen=True)
class _Draws:
    """Shares of the draws.

    In which each option wins, in which it is not behind the leader, and in which the leader is as
    good as the winner.
    """

    wins: Sequence[float]
    ahead: Sequence[float]
    good: float


def _drawn(figures: Sequence[float], doubts: Sequence[float], leader: int) -> _Draws:
    """Return how the options do when each is drawn within its doubt, many times."""
    chance = random.Random(0)  # noqa: S311 - the same answer every time, not a secret
    wins, ahead, good = [0] * len(figures), [0] * len(figures), 0
    logs = [math.log(figure) for figure in figures]
    widths = [doubt / _DEVIATIONS for doubt in doubts]
    for _ in range(_DRAWS):
        drawn = [log + width * chance.gauss(0, 1) for log, width in zip(logs, widths, strict=True)]
        least = min(drawn)
        wins[drawn.index(least)] += 1
        good += drawn[leader] <= least + MARGIN
        for item, value in enumerate(drawn):
            ahead[item] += value <= drawn[leader]
    return _Draws(
        [count / _DRAWS for count in wins], [count / _DRAWS for count in ahead], good / _DRAWS
    )


def front_of(options: Sequence[Option]) -> tuple[Option, ...]:
    """Return the options that no other one beats in both time and money, the fastest first."""
    known = [
        (time, money, option)
        for option in options
        if (time := time_of(option)) is not None and (money := money_of(option)) is not None
    ]
    return tuple(
        option
        for time, money, option in sorted(known, key=lambda item: item[:2])
        if not any(
            other_time <= time
            and other_money <= money
            and (other_time, other_money) != (time, money)
            for other_time, other_money, _ in known
        )
    )


def surer_with(choices: Sequence[Choice], among: Sequence[Option]) -> Option | None:
    """Return the option whose measurement would settle most; None if all choices are clear.

    Of those that are in the race for an answer that is open, it is the one that is known least
    about for the host-hours that its measurement takes.
    """
    open_ones = [choice for choice in choices if not choice.clear]
    racing = [option for choice in open_ones for option in (choice.option, *choice.contenders)]
    useful = [option for option in among if option in racing and option.doubt > 0]
    return max(useful, key=_worth, default=None)


def _worth(option: Option) -> float:
    """Return the variance that a measurement removes, for what a host does in an iteration."""
    step = option.prediction.iteration_s or (option.time_s or Span(1.0, 1.0, 1.0)).value
    return float(option.doubt**2 / (step * option.configuration.nodes) ** 0.25)
