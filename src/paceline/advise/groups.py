"""Groups: what one study knows of one instance type, fitted, and how far it reaches."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from paceline.advise.course import Course
from paceline.advise.intervals import Gap
from paceline.advise.nouns import Target
from paceline.advise.priors import Priors
from paceline.advise.scaling import Model, fit, points_of


@dataclass(frozen=True)
class Group:
    """The launches of one instance type in one study, and the model that fits them."""

    study: str
    instance_type: str
    courses: tuple[Course, ...]
    model: Model

    @property
    def items(self) -> int | None:
        """How many items an epoch has, as its launches tell."""
        found = [course.items for course in self.courses if course.items is not None]
        return max(found, default=None)

    @property
    def start_s(self) -> float:
        """What the first iterations of an epoch usually take beyond the others."""
        return median(course.start_s for course in self.courses)

    def repeats(self, but: Target | None = None) -> list[list[float]]:
        """Return the mean iterations of the launches of each target, one of them left out."""
        found: dict[Target, list[float]] = defaultdict(list)
        for course in self.courses:
            if course.launch.target != but:
                found[course.launch.target].append(course.mean_s)
        return list(found.values())

    def gap_to(self, target: Target) -> Gap:
        """Return how far a target lies from the launches of this group."""
        points = points_of(self.courses)
        targets = [point.target for point in points]
        nodes = {item.nodes for item in targets}
        batches = {item.batch_size for item in targets}
        procs = {item.procs_per_node for item in targets}
        # A single host does not communicate at all: that is further away than half as many. Where
        # communication is a guess anyway, its width has room for that.
        alone = target.nodes == 1 and 1 not in nodes and len(nodes) > 1
        return Gap(
            nodes=_doublings(target.nodes, nodes) + alone,
            batch=_doublings(target.batch_size, batches),
            procs=_doublings(target.procs_per_node, procs),
            nodes_known=len(nodes) > 1,
            batch_known=len(batches) > 1,
            batch_partial=any(
                item.items != item.target.batch_size for item in points_of(self.courses)
            ),
            procs_known=len(procs) > 1,
        )


def groups_of(courses: Sequence[Course], priors: Priors) -> tuple[Group, ...]:
    """Return the launches by study and instance type, each group with its model."""
    found: dict[tuple[str, str], list[Course]] = defaultdict(list)
    for course in courses:
        found[course.launch.study, course.launch.target.instance_type].append(course)
    return tuple(
        Group(study, name, tuple(own), fit(points_of(own), priors))
        for (study, name), own in sorted(found.items())
    )


def _doublings(value: int, known: set[int]) -> float:
    """Return how many doublings or halvings a number is away from the nearest known one."""
    return min(abs(math.log2(value / other)) for other in known)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean on the log scale, where too slow and too quick by a factor cancel out."""
    return math.exp(fmean(math.log(value) for value in values))
