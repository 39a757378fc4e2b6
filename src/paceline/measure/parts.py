"""Where the time of an iteration goes: compute, waiting for other ranks, and input.

The ranks report how long they waited for the network (`wait_s`) and for their input (`data_s`);
what is left of an iteration is compute. Communication that went on behind the compute was not
waited for, and is in none of the parts: it cost no time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from paceline.measure.statistics import estimate
from paceline.model.summary import Parts, RankSample, Sample, TimeParts


def parts_of_rank(rank: RankSample, *, alone: bool) -> Parts | None:
    """Return the parts of a rank's mean iteration; None where it did not report them.

    A rank that is alone has nobody to wait for, whether it says so or not.
    """
    waited_s = 0.0 if alone and rank.wait_s is None else rank.wait_s
    count = len(rank.iteration_s)
    if waited_s is None or rank.data_s is None or not count:
        return None
    compute_s = max(0.0, math.fsum(rank.iteration_s) - waited_s - rank.data_s)
    return Parts(compute_s / count, waited_s / count, rank.data_s / count)


def parts_of(sample: Sample) -> Parts | None:
    """Return the mean over a sample's ranks; None unless all of them reported their parts."""
    alone = len(sample.ranks) == 1
    found = [parts_of_rank(rank, alone=alone) for rank in sample.ranks]
    known = [parts for parts in found if parts is not None]
    if not known or len(known) < len(found):
        return None
    return Parts(
        fmean(parts.compute_s for parts in known),
        fmean(parts.wait_s for parts in known),
        fmean(parts.input_s for parts in known),
    )


def time_parts(good: Sequence[Sample]) -> TimeParts | None:
    """Return the parts over the samples of a configuration that told them."""
    known = [parts for sample in good if (parts := parts_of(sample)) is not None]
    compute = estimate(parts.compute_s for parts in known)
    wait = estimate(parts.wait_s for parts in known)
    given = estimate(parts.input_s for parts in known)
    if compute is None or wait is None or given is None:
        return None
    return TimeParts(compute, wait, given)
