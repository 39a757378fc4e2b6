"""From one instance type to another: the work scales with the processor, communication apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from paceline.advise.groups import Group
from paceline.advise.nouns import Machine, family_of
from paceline.advise.priors import Priors
from paceline.advise.scaling import Model

# How much an iteration gains from more vCPUs where nothing tells how many threads it uses.
_UNKNOWN_GAIN = 0.3


def carried(
    group: Group, instance_type: str, machines: Mapping[str, Machine], priors: Priors
) -> Model | None:
    """Return a group's model as it would be on another instance type; None if nothing tells."""
    here, there = group.instance_type, instance_type
    own, other = priors.item_s(here), priors.item_s(there)
    if same_family(here, there):
        own = other = 1.0
    if own is None or other is None:
        return None
    factor = other / own * _more_vcpus(group, instance_type, machines, priors)
    links = priors.two_hosts_s(there, 1.0) / priors.two_hosts_s(here, 1.0)
    model = group.model
    return replace(
        model,
        fixed_s=model.fixed_s * factor,
        item_s=model.item_s * factor,
        step_s=model.step_s * links,
        bytes_s=model.bytes_s * links,
    )


def same_family(one: str, other: str) -> bool:
    """Whether two instance types differ in size only."""
    return family_of(one) == family_of(other)


def busy_vcpus(
    model: Model, instance_type: str, procs: int, machine: Machine | None, priors: Priors
) -> float:
    """Return how many vCPUs the ranks of a host keep busy.

    The thread setting is in no file. An iteration that is twice as quick as one thread of its
    type would be has two threads. Where nothing tells, all vCPUs are taken to be busy.
    """
    vcpus = (machine and machine.vcpus) or None
    one_thread = priors.item_s(instance_type)
    if one_thread is None or model.item_s <= 0:
        return vcpus or math.inf
    threads = max(1.0, one_thread / model.item_s)
    return min(vcpus or math.inf, procs * threads)


def _more_vcpus(
    group: Group, instance_type: str, machines: Mapping[str, Machine], priors: Priors
) -> float:
    """Return the factor on the work that a type's number of vCPUs makes."""
    here, there = machines.get(group.instance_type), machines.get(instance_type)
    if not (here and there and here.vcpus and there.vcpus) or here.vcpus == there.vcpus:
        return 1.0
    return float((here.vcpus / there.vcpus) ** _gain(group, here, priors))


def _gain(group: Group, here: Machine, priors: Priors) -> float:
    """Return with which power of its vCPUs a type's pace grows: 0 for a single thread."""
    if here.vcpus is None or here.vcpus <= 1 or priors.item_s(group.instance_type) is None:
        return _UNKNOWN_GAIN
    threads = busy_vcpus(group.model, group.instance_type, 1, here, priors)
    return math.log(threads) / math.log(here.vcpus)
