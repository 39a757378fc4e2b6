"""The journal: what may still be there, whatever happened to its writer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.rehearsal.machines.journal import Item, Journal

_ITEMS = st.builds(Item, st.sampled_from(("link", "folder")), st.text(max_size=3))


def test_what_was_made_and_not_struck_off_is_held(tmp_path: Path) -> None:
    """Things come in the order of their making, and leave when they are struck off."""
    journal = Journal(tmp_path / "journal")
    assert journal.held() == ()
    first, second = Item("link", "a"), Item("folder", "b")
    journal.add((first, second))
    assert journal.held() == (first, second)
    journal.strike((first,))
    assert Journal(tmp_path / "journal").held() == (second,)
    assert journal.all() == (first, second)


@given(before=st.lists(_ITEMS), after=st.lists(_ITEMS, min_size=1), cut=st.integers(2, 20))
def test_a_line_cut_short_spoils_no_other(
    tmp_path_factory: pytest.TempPathFactory, before: list[Item], after: list[Item], cut: int
) -> None:
    """A writer that was killed in the middle of a line loses that line alone."""
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal = Journal(path)
    journal.add(before)
    journal.add((Item("folder", "cut short"),))
    path.write_bytes(path.read_bytes()[:-cut])
    journal.add(after)
    assert set(journal.held()) == {*before, *after}
