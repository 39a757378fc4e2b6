"""Somebody else's training script: it prints, and knows nothing of Paceline."""

import sys
import time

rows = int(sys.argv[sys.argv.index("--rows") + 1])
for epoch in range(2):
    begun = time.perf_counter()
    total = sum((row % 7 - 3) ** 2 for row in range(rows))
    print(f"loss: {total / rows / (epoch + 1):.4f}")
    print(f"epoch {epoch} took {time.perf_counter() - begun:.3f} seconds")
