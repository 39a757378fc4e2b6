"""Advice on a study: which configuration to take, why, how sure that is, and how to be surer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.advise.choosing import Choice, Goal, Limits, choose, front_of, surer_with
from paceline.advise.options import Evidence, Option, options_of
from paceline.model.plan import Configuration

GOALS: tuple[Goal, ...] = ("cheapest", "fastest", "best")


@dataclass(frozen=True)
class Advice:
    """Everything that is advised: the options, fastest first, the choices, the front.

    `next` is the measurement that would make the answers surer; None where they are clear.
    """

    options: tuple[Option, ...]
    choices: tuple[Choice, ...]
    front: tuple[Option, ...]
    next: Option | None
    limits: Limits
    epochs: float

    def choice(self, goal: Goal) -> Choice | None:
        """Return the answer to one question."""
        return next((choice for choice in self.choices if choice.goal == goal), None)


def advise(
    evidence: Evidence,
    configurations: Sequence[Configuration],
    *,
    epochs: float = 1.0,
    limits: Limits | None = None,
) -> Advice:
    """Return the advice among these configurations, measured or not."""
    wanted = limits or Limits()
    options = options_of(evidence, configurations, epochs)
    found = [choose(goal, options, wanted) for goal in GOALS]
    choices = tuple(choice for choice in found if choice is not None)
    return Advice(
        options=tuple(sorted(options, key=_by_time)),
        choices=choices,
        front=front_of(options),
        next=surer_with(choices, options),
        limits=wanted,
        epochs=epochs,
    )


def _by_time(option: Option) -> tuple[bool, float, str]:
    seconds = option.time_s.value if option.time_s else 0.0
    return option.time_s is None, seconds, option.configuration.label


def neighbours(
    known: Sequence[Configuration],
    *,
    most_nodes: int | None = None,
    most_procs: int | None = None,
    types: Sequence[str] = (),
    strong: bool = False,
) -> tuple[Configuration, ...]:
    """Return what was planned, and what lies so near that it can be predicted.

    Hosts and processes go up to twice what is known, within what there is, where more than one
    number of them is known. In strong scaling the batch of all processes together stays the same.
    """
    nodes = _doubled([item.nodes for item in known], most_nodes)
    procs = _doubled([item.procs_per_node for item in known], most_procs)
    found = dict.fromkeys(known)
    for item in known:
        for count in nodes:
            for own in procs:
                near = _resized(item, count, own, strong=strong)
                if near is not None:
                    found.update(dict.fromkeys([near, *(_on(near, name) for name in types)]))
    return tuple(found)


def _doubled(values: Sequence[int], most: int | None) -> list[int]:
    known = sorted(set(values))
    more = 2 * known[-1]
    # Two values make a trend; beyond a single one lies nothing but a guess.
    guessed = len(known) == 1
    return known if guessed or (most is not None and more > most) else [*known, more]


def _resized(item: Configuration, nodes: int, procs: int, *, strong: bool) -> Configuration | None:
    """Return a configuration with other processes; None where its batch cannot be shared out."""
    near = replace(item, nodes=nodes, procs_per_node=procs)
    whole = item.global_batch_size
    if not strong or whole is None:
        return near
    each, rest = divmod(whole, near.world_size)
    return None if rest or not each else replace(near, batch_size=each)


def _on(configuration: Configuration, instance_type: str) -> Configuration:
    return replace(configuration, instance_type=instance_type)
