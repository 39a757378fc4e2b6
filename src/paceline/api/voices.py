"""Who says a line: where several processes speak, each line bears rank and host in front."""

from __future__ import annotations

import re

from paceline.model.plan import RunPlan

# A carriage return ends a line, too: progress bars write over it.
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Voices:
    """Marks what the processes of a run say; what one process alone says is not marked."""

    def __init__(self, plan: RunPlan) -> None:
        of_host = {
            process.name: host.host.name for host in plan.hosts for process in host.processes
        }
        several = len(set(of_host.values())) > 1
        labels = {name: f"{name} {host}" if several else name for name, host in of_host.items()}
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
