"""A training script of one's own: linear regression by gradient descent, without any library.

All that it needs for Paceline are the lines with `Reporter`; started by hand, they do nothing.
"""

import argparse
import random

from paceline.events import Place, Reporter

parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float, default=0.5)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch_size", type=int, default=64)
options = parser.parse_args()

source = random.Random(Place.from_environment().rank)  # noqa: S311 - each rank its own rows
slope = offset = 0.0

with Reporter() as progress:
    for _ in range(options.steps):
        rows = [(x := source.uniform(-1, 1), 3 * x + 1) for _ in range(options.batch_size)]
        errors = [slope * x + offset - y for x, y in rows]
        pairs = zip(errors, rows, strict=True)
        slope -= options.learning_rate * sum(error * x for error, (x, _) in pairs) / len(rows)
        offset -= options.learning_rate * sum(errors) / len(rows)
        loss = sum(error * error for error in errors) / len(rows)
        progress.iteration(epoch=0, items=len(rows), of=options.steps, metrics={"loss": loss})
    progress.epoch(0)

print(f"y = {slope:.2f} x + {offset:.2f}")
