"""The launchers by the words that the spec uses for them."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.planning.launch import Launcher, direct, torchrun
from paceline.planning.mpirun import mpirun

LAUNCHERS: Mapping[str, Launcher] = {"direct": direct, "torchrun": torchrun, "mpirun": mpirun}
