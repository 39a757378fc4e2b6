"""The study on a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.model.summary import StudySummary
from paceline.reporting import text

EXPECTED = """\
dcgan-on-a-laptop (generated images of CIFAR-10's shape; 20 iterations after 3 of warm-up; weak
scaling: each process keeps its batch)

2 processes train 1.85 times as fast as 1 (95% interval 1.80 to 1.91): each works at 93% of the
baseline's speed. 11 of 12 planned samples count; 1 failed.

nodes x procs  batch       n        img/s  ms/iteration           speedup      efficiency
-------------  -----  ------  -----------  ------------  ----------------  --------------
1 x 1             16       3   58.3 ± 1.9       274 ± 9      1 (baseline)            100%
1 x 2             16       3  107.9 ± 3.6      296 ± 10  1.85 (1.80-1.91)     93% (90-95)
1 x 1             32       3   62.7 ± 2.9      510 ± 23  1.08 (1.04-1.12)  108% (104-112)
1 x 2             32  2 of 3  118.1 ± 3.9      542 ± 20  2.02 (1.97-2.08)   101% (98-104)

± and ranges are 95% intervals of the mean over n samples (Student's t; ratios on the log scale).

Failed:
  1 x 2, batch 32, sample 2 (nnode-1_nproc-2_batch_size-32-s2-a0): rank 1 was killed by signal 9
    (out of memory?)

Notes:
  the job says: generated images, because CIFAR-10 is not here
  unlike the baseline: batch 32 instead of 16; the speedup includes that effect [1 x 1, batch 32; 1
    x 2, batch 32]
  1 of 3 samples failed [1 x 2, batch 32]
"""


def test_whole_text_of_a_study(study: StudySummary) -> None:
    """The text is exactly what a reader should see."""
    assert text.render(study) == EXPECTED


def test_lines_fit_their_width(study: StudySummary, cluster_study: StudySummary) -> None:
    """No line of a usual study is longer than 100 columns."""
    for one in (study, cluster_study):
        assert max(len(line) for line in text.render(one).splitlines()) <= text.WIDTH


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_table_fits_its_width(
    width: int, study: StudySummary, cluster_study: StudySummary
) -> None:
    """In a narrow terminal, what can be spared is left out, and speedup never is."""
    for one in (study, cluster_study):
        lines = text.table(one, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert "speedup" in lines[0]
        assert "img/s" in lines[0]
        assert len(lines) == 2 + len(one.configurations)
    assert "ms/iteration" in text.table(cluster_study)


def test_studies_with_little_to_show(variant: StudySummary) -> None:
    """Whatever is missing, there is a table with a line per configuration, and the headline."""
    made = text.table(variant).splitlines()
    assert len(made) == 2 + len(variant.configurations)
    assert "nodes x procs" in made[0]
    assert variant.headline.split(maxsplit=1)[0] in text.render(variant)


def test_missing_figures_are_dashes(variant: StudySummary) -> None:
    """What was not measured is a dash; a zero never stands for it."""
    rows = text.table(variant).splitlines()[2:]
    for row, item in zip(rows, variant.configurations, strict=True):
        assert (" - " in f"{row} ") == (item.speedup is None)


def test_control_characters_do_not_reach_the_terminal(study: StudySummary) -> None:
    """A reason with escape codes cannot move the cursor or colour the screen."""
    sample = replace(study.configurations[0].samples[0], failed="\x1b[2Jgone\r\nTraceback")
    item = replace(study.configurations[0], samples=(sample,))
    shown = text.render(replace(study, configurations=(item,)))
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert "[2Jgone Traceback" in shown
