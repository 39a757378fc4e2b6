"""Who says a line: where several processes speak, each line bears process, ranks and host."""

from __future__ import annotations

import re

from paceline.model.plan import HostPlan, ProcessPlan, RunPlan

# A carriage return ends a line, too: progress bars write over it.
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Voices:
    """Marks what the processes of a run say; what one process alone says is not marked."""

    def __init__(self, plan: RunPlan) -> None:
        several = len(plan.hosts) > 1
        labels = {
            process.name: _label(plan, host if several else None, process)
            for host in plan.hosts
            for process in host.processes
        }
        width = max(map(len, labels.values()), default=0)
        self._fronts = {name: f"{label:{width}} | " for name, label in labels.items()}
        self._unfinished: str | None = None

    def marked(self, process: str, text: str) -> str:
        """Return a piece of a process's output as it is shown after what was shown before."""
        if len(self._fronts) < 2 or not text:  # noqa: PLR2004 - two are several
            return text
        front = self._fronts.get(process, f"{process} | ")
        lines = _LINES.findall(text)
        begin = "" if self._unfinished in (None, process) else "\n"
        if self._unfinished == process:
            begin, lines = lines[0], lines[1:]
        self._unfinished = None if text.endswith(("\n", "\r")) else process
        return begin + "".join(f"{front}{line}" for line in lines)


def _label(plan: RunPlan, host: HostPlan | None, process: ProcessPlan) -> str:
    """Return who speaks; a launcher speaks for its ranks, and mpirun for those of other hosts."""
    ranks, words = process.ranks, [process.name]
    if len(ranks) > 1:
        words.append(f"ranks {min(ranks)}-{max(ranks)}")
    elif ranks and process.name != f"rank-{ranks[0]}":
        words.append(f"rank {ranks[0]}")
    if host is not None and len(ranks) <= plan.configuration.procs_per_node:
        words.append(host.host.name)
    return " ".join(words)
