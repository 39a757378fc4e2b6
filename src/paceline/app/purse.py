"""The limits of a study while it goes on: its deadline, and the money that it may spend."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from paceline.app.spending import (
    HostPrice,
    Period,
    affordable_s,
    cost_usd,
    spent_usd,
)
from paceline.errors import Interrupted
from paceline.model.plan import RunPlan
from paceline.model.spec import LimitsSpec
from paceline.ports import Clock

_GO_ON = "what was measured is kept: the same command again goes on from there"
_SHORTEST_S = 0.05


@dataclass
class Purse:
    """What a study may still use of time and money.

    The deadline is that of this sitting; the budget is that of the study, and what earlier
    sittings spent counts.
    """

    limits: LimitsSpec
    clock: Clock
    earlier: tuple[Period, ...] = ()
    price: HostPrice | None = None
    _begun_s: float = field(init=False)
    _paid: list[Period] = field(default_factory=list)
    _paying_since: float = 0.0

    def __post_init__(self) -> None:
        """Begin to count."""
        self._begun_s = self.clock.monotonic()

    def open(self, price: HostPrice | None) -> None:
        """Count the money at this price from now on, or since its hosts were rented for us."""
        if price == self.price:
            return
        now = self.clock.now()
        since = price.since if price is not None else None
        begin = now if since is None else min(since, now)
        # What was let go of is paid until the next began.
        self._close(max(self._paying_since, begin))
        self.price, self._paying_since = price, begin

    def _close(self, now: float) -> None:
        if self.price is not None:
            self._paid.append(Period(self._paying_since, now, self.price.usd_per_hour))

    @property
    def provenance(self) -> dict[str, object]:
        """What is written down with each run; nothing where no price is known."""
        return {} if self.price is None else {"price": dict(self.price.told())}

    @property
    def spent_usd(self) -> float | None:
        """What was spent so far, by all sittings; None where no price was ever known."""
        periods = [*self.earlier, *self._paid]
        if self.price is not None:
            now = self.clock.now()
            periods.append(Period(self._paying_since, now, self.price.usd_per_hour))
        return spent_usd(periods) if periods else None

    def cost_usd(self, seconds: float | None) -> float | None:
        """Return what the hosts will cost for so long; None where that is not known."""
        if seconds is None or self.price is None:
            return None
        return cost_usd(seconds, self.price)

    @property
    def left_s(self) -> float | None:
        """For how long the study may go on; None without any limit."""
        limits = [limit for limit in (self._time_left_s, self._money_left_s) if limit is not None]
        return min(limits, default=None)

    @property
    def is_over(self) -> bool:
        """Whether time or money is used up."""
        left_s = self.left_s
        return left_s is not None and left_s <= 0

    def require(self, expected_s: float | None) -> None:
        """Raise Interrupted if another run may not start.

        Past the deadline none does; and none that would, by what is known, exceed the budget.
        """
        money_s = self._money_left_s
        if self.is_over or (money_s is not None and (expected_s or 0.0) > money_s):
            raise self.over()

    def limited(self, plan: RunPlan) -> RunPlan:
        """Return the plan of a run that ends when time or money is used up."""
        left_s = self.left_s
        if left_s is None or (plan.timeout_s is not None and plan.timeout_s <= left_s):
            return plan
        return replace(plan, timeout_s=max(_SHORTEST_S, left_s))

    def over(self) -> Interrupted:
        """Return what to say when a limit ends the study."""
        if self._time_left_s is not None and self._time_left_s <= 0:
            text = f"the study's deadline of {self.limits.deadline:g} s is over"
            return Interrupted(text, hint=_GO_ON)
        spent = self.spent_usd or 0.0
        budget = self.limits.budget_usd or 0.0
        return Interrupted(
            f"the next sample does not fit into the budget: {spent:.2f} of {budget:.2f} USD "
            "are spent",
            hint=f"raise limits.budget_usd; {_GO_ON}",
        )

    @property
    def _time_left_s(self) -> float | None:
        deadline = self.limits.deadline
        if deadline is None:
            return None
        return deadline - (self.clock.monotonic() - self._begun_s)

    @property
    def _money_left_s(self) -> float | None:
        budget, spent = self.limits.budget_usd, self.spent_usd
        if budget is None or spent is None or self.price is None:
            return None
        return affordable_s(budget - spent, self.price)
