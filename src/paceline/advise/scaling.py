"""How an iteration grows with batch, processes and hosts: one formula, fitted to medians.

    T = (fixed + item * b) * p ** exponent + step * 2 * (w - 1) + bytes * 2 * (w - 1) / w

b is the batch size of a process, p the processes of a host, w all ranks. The first term is the
work of a rank, the other two are an all-reduce over a ring: its steps, and its bytes (the
constant holds the message size). All four constants are physical, so none is negative. Where
the measurements leave one open, weak assumptions (`priors`) decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from paceline.advise.course import Course
from paceline.advise.nouns import Target
from paceline.advise.priors import Priors

# A last, partial batch is a single iteration: it counts, but less than a median.
_PARTIAL_WEIGHT = 0.2
# Weak enough to move a fit of real measurements by less than their noise. The weakest is the
# guess of how long two hosts communicate: any measurement of several hosts knows better.
_PRIOR_WEIGHT, _LINK_WEIGHT = 0.02, 0.002
# At least this share of the quickest iteration is work that grows with the batch.
_LEAST_WORK = 0.02
_EXPONENTS = tuple(step / 50 for step in range(51))


@dataclass(frozen=True)
class Point:
    """One iteration time that the fit has to meet, and how much it counts."""

    target: Target
    items: float
    seconds: float
    weight: float = 1.0


@dataclass(frozen=True)
class Model:
    """The fitted constants of one instance type in one study, in seconds."""

    fixed_s: float
    item_s: float
    step_s: float
    bytes_s: float
    procs_exponent: float
    within_host: float

    def compute_s(self, target: Target, items: float | None = None) -> float:
        """Return the work of a rank in one iteration."""
        batch = target.batch_size if items is None else items
        crowding = float(target.procs_per_node**self.procs_exponent)
        return (self.fixed_s + self.item_s * batch) * crowding

    def communication_s(self, target: Target) -> float:
        """Return what communication adds to one iteration."""
        steps, traffic = _ring(target, self.within_host)
        return self.step_s * steps + self.bytes_s * traffic

    def iteration_s(self, target: Target, items: float | None = None) -> float:
        """Return how long an undisturbed iteration takes."""
        return self.compute_s(target, items) + self.communication_s(target)


def points_of(courses: Iterable[Course]) -> tuple[Point, ...]:
    """Return what launches tell about iteration times: medians, and last, partial batches."""
    points = []
    for course in courses:
        target = course.launch.target
        points.append(Point(target, target.batch_size, course.steady_s))
        own = course.partial
        # A straggler in that one iteration would say that the batch hardly matters.
        if own is not None and course.regime == "steady" and own.seconds < course.steady_s:
            points.append(Point(target, own.items, own.seconds, _PARTIAL_WEIGHT))
    return tuple(points)


def fit(points: Sequence[Point], priors: Priors) -> Model:
    """Return the model that fits iteration times of one instance type best."""
    if len({point.target.procs_per_node for point in points}) == 1:
        return _solve(points, priors, priors.procs_exponent)[0]
    tried = (_solve(points, priors, exponent) for exponent in _EXPONENTS)
    return min(tried, key=lambda found: found[1])[0]


def _solve(points: Sequence[Point], priors: Priors, exponent: float) -> tuple[Model, float]:
    """Return the best constants for one exponent, and how far they miss the points."""
    from scipy.optimize import nnls  # noqa: PLC0415 - half a second that --help must not pay

    floor = _LEAST_WORK * min(_work_s(point, exponent) / point.items for point in points)
    rows = [_row(point, exponent, priors.within_host) for point in points]
    rows += _prior_rows(points, priors, exponent)
    found, missed = nnls([row for row, _ in rows], [value - row[1] * floor for row, value in rows])
    fixed, item, step, traffic = (float(value) for value in found)
    model = Model(fixed, floor + item, step, traffic, exponent, priors.within_host)
    return model, float(missed)


_Row = tuple[list[float], float]


def _row(point: Point, exponent: float, within_host: float) -> _Row:
    """Return one equation, divided by its time: relative errors count, not seconds."""
    crowding = point.target.procs_per_node**exponent
    steps, traffic = _ring(point.target, within_host)
    scale = point.weight / point.seconds
    terms = (crowding, crowding * point.items, steps, traffic)
    return [scale * term for term in terms], point.weight


def _prior_rows(points: Sequence[Point], priors: Priors, exponent: float) -> list[_Row]:
    typical = median(point.seconds for point in points)
    work = min(_work_s(point, exponent) for point in points)
    two_hosts = priors.two_hosts_s(points[0].target.instance_type, work)
    scale, link = _PRIOR_WEIGHT / typical, _LINK_WEIGHT / typical
    return [
        ([scale, -scale * priors.fixed_items, 0.0, 0.0], 0.0),
        ([0.0, 0.0, 2 * scale, 0.0], 0.0),
        ([0.0, 0.0, 0.0, link], link * two_hosts),
    ]


def _work_s(point: Point, exponent: float) -> float:
    """Return what a point's iteration would be for a single process, if all of it were work."""
    return float(point.seconds / point.target.procs_per_node**exponent)


def _ring(target: Target, within_host: float) -> tuple[float, float]:
    """Return the steps and the traffic of an all-reduce; within one host both are cheap."""
    ranks = target.world_size
    ease = within_host if target.nodes == 1 else 1.0
    return 2.0 * (ranks - 1) * ease, 2.0 * (ranks - 1) / ranks * ease
