"""How good the advice is: predictions of published EC2 runs, checked against what they did.

python benchmarks/advice.py [runs.csv[.gz]]

Each line of the table is a target. What is predicted is never among what the prediction learns
from, and what Paceline knows of instance types beforehand is switched off, because it was read
off these very runs. The widths of the intervals were read off them too, so their coverage is
printed twice: as it is, and with widths that were scaled on the runs of other launches only.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from statistics import median

from paceline.advise.course import course_of
from paceline.advise.iterations import parse_iterations
from paceline.advise.nouns import EpochTimes, Launch, Machine, Prediction
from paceline.advise.predict import Knowledge, know, predict
from paceline.advise.priors import Priors
from paceline.planning.prices import packaged_prices

DATA = Path(__file__).parent.parent / "tests" / "data" / "ec2-dcgan-iterations.csv.gz"
PROBE = 20
NOTHING_OF_TYPES = Priors(types=False)


@dataclass(frozen=True)
class Case:
    """One prediction, and what became true of it."""

    name: str
    found: Prediction
    truth: Launch
    iteration_s: float
    epoch_s: float | None

    @property
    def iteration_error(self) -> float:
        """How far off the steady iteration was."""
        assert self.found.iteration_s is not None
        return abs(self.found.iteration_s / self.iteration_s - 1)

    @property
    def epoch_error(self) -> float | None:
        """How far off the epoch was; None where none was seen."""
        if self.epoch_s is None or self.found.epoch_s is None:
            return None
        return abs(self.found.epoch_s / self.epoch_s - 1)

    @property
    def score(self) -> float | None:
        """The error in half widths of the interval: it holds the truth up to 1."""
        if self.epoch_s is None or not self.found.epoch_s_low or not self.found.epoch_s_high:
            return None
        low, high = math.log(self.found.epoch_s_low), math.log(self.found.epoch_s_high)
        return abs(math.log(self.epoch_s) - (low + high) / 2) / ((high - low) / 2)


@dataclass(frozen=True)
class Line:
    """One line of the table of targets."""

    what: str
    figure: str
    target: str
    cases: int
    reached: bool


def seconds_of(epoch: EpochTimes) -> float:
    """Return what the iterations of an epoch took."""
    return math.fsum(epoch.seconds.values())


def probe_of(launch: Launch, epoch: EpochTimes, count: int = PROBE) -> Launch:
    """Return what a probe of the first iterations of an epoch would have seen."""
    seen = {index: value for index, value in epoch.seconds.items() if index < count}
    return replace(launch, epochs=(replace(epoch, seconds=seen),))


def cases_of(known: Sequence[Launch], truth: Launch, epochs: Sequence[EpochTimes]) -> list[Case]:
    """Return one case for each epoch that is there to check with, or one without any."""
    found = predict(know(known, priors=NOTHING_OF_TYPES), truth.target)
    if found.reason is not None:
        return []
    name = f"{', '.join(item.target.words for item in known)} -> {truth.target.words}"
    steady = course_of(truth, None).steady_s
    times: Iterable[float | None] = [seconds_of(epoch) for epoch in epochs] or [None]
    return [Case(name, found, truth, steady, time) for time in times]


def same_run(launches: Sequence[Launch]) -> Iterator[Case]:
    """Yield the rest of each epoch that was seen from end to end, from its first iterations."""
    for launch in launches:
        for epoch in launch.whole_epochs:
            if len(epoch.seconds) > PROBE:
                yield from cases_of([probe_of(launch, epoch)], launch, [epoch])


def alike(launches: Sequence[Launch], *names: str) -> Iterator[list[Launch]]:
    """Yield the launches that agree in these respects, where there are several."""
    found: dict[tuple[object, ...], list[Launch]] = defaultdict(list)
    for launch in launches:
        key = tuple(
            launch.study if name == "study" else getattr(launch.target, name) for name in names
        )
        found[key].append(launch)
    yield from (own for own in found.values() if len(own) > 1)


def unseen_nodes(launches: Sequence[Launch], known: int) -> Iterator[Case]:
    """Yield a host count of each series from so many others; at most twice the measured ones."""
    for own in alike(launches, "study", "instance_type", "procs_per_node", "batch_size"):
        for chosen in combinations(own, known):
            most = 2 * max(item.target.nodes for item in chosen)
            for truth in own:
                if truth not in chosen and truth.target.nodes <= most:
                    yield from cases_of(chosen, truth, truth.whole_epochs)


def beyond(cases: Iterable[Case]) -> list[Case]:
    """Return the cases whose host count lies above all that were measured."""
    return [case for case in cases if _nodes_known(case) < case.truth.target.nodes]


def _nodes_known(case: Case) -> int:
    sources = case.name.partition(" -> ")[0].split(", ")
    return max(int(words.split(":")[1]) for words in sources)


def unseen_batch(launches: Sequence[Launch]) -> Iterator[Case]:
    """Yield a batch size of a type on as many hosts from another one, of whichever series."""
    for own in alike(launches, "instance_type", "nodes", "procs_per_node"):
        for source, truth in permutations(own, 2):
            if source.target.batch_size != truth.target.batch_size and source.whole_epochs:
                yield from cases_of([source], truth, truth.whole_epochs)


def errors_line(what: str, errors: Sequence[float], most: float, worst: float) -> Line:
    """Return a line on median and worst errors."""
    figure = f"{median(errors):.1%} median, {max(errors):.1%} worst"
    target = f"{most:.1%} median, {worst:.0%} worst"
    reached = median(errors) <= most and max(errors) <= worst
    return Line(what, figure, target, len(errors), reached)


def epoch_errors(cases: Iterable[Case]) -> list[float]:
    return [error for case in cases if (error := case.epoch_error) is not None]


def coverage_lines(cases: Sequence[Case]) -> Iterator[Line]:
    """Yield how often the intervals hold, as they are and scaled on other runs only."""
    for how, scaled in (("as they are", False), ("scaled on other runs", True)):
        held = [(case.found.regime, _holds(case, cases, scaled=scaled)) for case in cases]
        regimes = [regime for regime in ("steady", "straggling") if (regime, True) in held]
        share = sum(hit for _, hit in held) / len(held)
        parts = {
            regime: sum(hit for own, hit in held if own == regime)
            / sum(own == regime for own, _ in held)
            for regime in regimes
        }
        words = ", ".join(f"{part:.0%} {regime}" for regime, part in parts.items())
        # Too wide is a fault too: such an interval says less than is known.
        reached = 0.85 <= share <= 0.95 and min(parts.values()) >= 0.80
        yield Line(
            f"90% intervals hold, {how}", f"{share:.0%} ({words})", "85-95%, each 80%",
            len(held), reached,
        )  # fmt: skip


def _holds(case: Case, cases: Sequence[Case], *, scaled: bool) -> bool:
    score = case.score
    assert score is not None
    return score <= (_scale_from_others(case, cases) if scaled else 1.0)


def _scale_from_others(case: Case, cases: Sequence[Case]) -> float:
    """Return by how much the widths would have to be scaled for the other launches' truths."""
    scores = sorted(
        other.score for other in cases if other.truth is not case.truth and other.score is not None
    )
    place = math.ceil(0.9 * (len(scores) + 1))
    return scores[min(place, len(scores)) - 1]


def machines() -> dict[str, Machine]:
    """Return the prices that travel with the package."""
    return {
        price.instance_type: Machine(price.instance_type, price.vcpus, price.usd_per_hour())
        for price in packaged_prices().in_region()
    }


def choices(launches: Sequence[Launch]) -> Iterator[tuple[Knowledge, list[Launch]]]:
    """Yield what each series' probes teach, and the launches among which is to be chosen.

    Where a series compares host counts, only one and two hosts are probed.
    """
    known = machines()
    for own in alike(launches, "study"):
        whole = [launch for launch in own if launch.whole_epochs]
        probed = [item for item in whole if item.target.nodes <= 2]
        probes = [probe_of(item, item.whole_epochs[0]) for item in probed]
        if len(whole) > 1:
            yield know(probes, machines=known, priors=NOTHING_OF_TYPES), whole


def choice_lines(launches: Sequence[Launch]) -> Iterator[Line]:
    """Yield what the cheapest choice cost too much, and the orders that were wrong."""
    excesses, wrong, pairs = [], 0, 0
    for knowledge, candidates in choices(launches):
        costs = [
            (predict(knowledge, item.target), true_cost(knowledge, item)) for item in candidates
        ]
        chosen = min(costs, key=lambda item: item[0].cost_usd or math.inf)
        excesses.append(chosen[1] / min(true for _, true in costs) - 1)
        pairs += math.comb(len(costs), 2)
        wrong += sum(_dearer(one, two) and a < b for (one, a), (two, b) in permutations(costs, 2))
    yield Line(
        "cost of the choice over the cheapest", f"{max(excesses):.1%} worst", "2%",
        len(excesses), max(excesses) <= 0.02,
    )  # fmt: skip
    yield Line("wrong orders beyond the noise", str(wrong), "0", pairs, not wrong)


def true_cost(knowledge: Knowledge, launch: Launch) -> float:
    """Return what the first epoch of a launch cost."""
    usd_per_hour = knowledge.machines[launch.target.instance_type].usd_per_hour
    assert usd_per_hour is not None
    return usd_per_hour * launch.target.nodes * seconds_of(launch.whole_epochs[0]) / 3600


def _dearer(one: Prediction, two: Prediction) -> bool:
    """Whether one costs more than the other even at the near ends of their intervals."""
    low, high = one.epoch_s_low, two.epoch_s_high
    if None in (low, high, one.cost_usd, two.cost_usd):
        return False
    least = one.cost_usd / one.epoch_s * low  # type: ignore[operator]
    return least > two.cost_usd / two.epoch_s * high  # type: ignore[operator]


def probe_line(launches: Sequence[Launch]) -> Line:
    """Return what probes take of the time of the whole sweep."""
    probed = swept = 0.0
    for knowledge, candidates in choices(launches):
        seen = (epoch for item in knowledge.courses for epoch in item.launch.epochs)
        probed += math.fsum(seconds_of(epoch) for epoch in seen)
        swept += math.fsum(seconds_of(e) for item in candidates for e in item.whole_epochs)
    share = probed / swept
    return Line("time of probes over the whole sweep", f"{share:.1%}", "5%", 1, share <= 0.05)


def table(launches: Sequence[Launch]) -> list[Line]:
    """Return the lines of the table."""
    rest, one, two = list(same_run(launches)), *(list(unseen_nodes(launches, n)) for n in (1, 2))
    batch = list(unseen_batch(launches))
    upwards = beyond(two)
    known = [case for case in (*rest, *one, *two, *batch) if case.epoch_s is not None]
    steady = [case.iteration_error for case in {case.name: case for case in upwards}.values()]
    return [
        errors_line("same run from 20 iterations, epoch", epoch_errors(rest), 0.005, 0.05),
        errors_line("unseen host count, steady iteration", steady, 0.02, 0.05),
        errors_line("unseen host count, epoch of a launch", epoch_errors(upwards), 0.05, 0.10),
        errors_line("unseen batch size, epoch", epoch_errors(batch), 0.05, 0.05),
        *coverage_lines(known),
        *choice_lines(launches),
        probe_line(launches),
    ]


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    launches = parse_iterations(path.read_bytes(), source=path.name)
    lines = table(launches)
    print(f"{'what':<42} {'found':<38} {'target':<24} cases")
    for line in lines:
        word = "" if line.reached else "   MISSED"
        print(f"{line.what:<42} {line.figure:<38} {line.target:<24} {line.cases:>5}{word}")
    return 0 if all(line.reached for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
