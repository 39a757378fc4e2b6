"""Findings of a study that has measured nothing."""

from __future__ import annotations

from paceline.model.summary import StudySummary


def nothing_found() -> StudySummary:
    """Return the summary of a study without any configuration."""
    return StudySummary("s", "Nothing has been measured yet.", "img", (), 0.0, "", "")
