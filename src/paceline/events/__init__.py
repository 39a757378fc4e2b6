"""The event schema: what the ranks of a job tell Paceline, one JSON object per line.

Each rank appends to a file of its own, `rank-R.jsonl`, in the folder that the environment
variable `PACELINE_EVENTS` names. Without that variable a reporter is silent, so that a script
that reports runs unchanged anywhere else. Nothing but the standard library is used, because
this package travels to the hosts and is imported by anybody's training script:

    from paceline.events import Reporter

    with Reporter() as progress:
        for epoch in range(epochs):
            for batch in loader:
                loss = train_step(batch)
                progress.iteration(epoch, items=len(batch), metrics={"loss": loss})
            progress.epoch(epoch)

Every event is written by one `write` call before the training goes on: what a rank has said
survives the rank.
"""

from __future__ import annotations

from paceline.events.nouns import (
    EVENT_TYPES,
    EVENTS_VARIABLE,
    SCHEMA_VERSION,
    Checkpoint,
    End,
    Epoch,
    Event,
    Interruption,
    Iteration,
    Metric,
    Note,
    Picture,
    Scalar,
    Start,
)
from paceline.events.parsing import MalformedEvent, parse_event, parse_events
from paceline.events.place import Place
from paceline.events.reporter import Reporter

__all__ = [
    "EVENTS_VARIABLE",
    "EVENT_TYPES",
    "SCHEMA_VERSION",
    "Checkpoint",
    "End",
    "Epoch",
    "Event",
    "Interruption",
    "Iteration",
    "MalformedEvent",
    "Metric",
    "Note",
    "Picture",
    "Place",
    "Reporter",
    "Scalar",
    "Start",
    "parse_event",
    "parse_events",
]
