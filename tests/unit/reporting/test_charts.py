"""The charts: valid for plotly, honest in what they show, dressed in known colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from paceline.model.plan import Configuration
from paceline.model.summary import ConfigurationSummary, RankSample, StudySummary
from paceline.reporting.bars import cost_chart, throughput_chart
from paceline.reporting.chart import Chart
from paceline.reporting.html import study_charts
from paceline.reporting.lines import efficiency_chart, speedup_chart
from paceline.reporting.palette import contrast, dark, light
from paceline.reporting.plane import front_of, plane_chart
from paceline.reporting.series import series_of
from paceline.reporting.shares import shares_chart
from paceline.reporting.timeline import timeline_charts

PALETTES = {"light": light(), "dark": dark()}


def _charts(summary: StudySummary) -> list[Chart]:
    return [*study_charts(summary), *timeline_charts(summary)]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


def _dressed(value: Any, colours: dict[str, str]) -> Any:
    if isinstance(value, str):
        return colours[value[1:]] if value.startswith("@") else value
    if isinstance(value, dict):
        return {key: _dressed(item, colours) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dressed(item, colours) for item in value]
    return value


@pytest.mark.parametrize("name", ["light", "dark"])
def test_plotly_accepts_every_chart(
    name: str, study: StudySummary, cluster_study: StudySummary, variant: StudySummary
) -> None:
    """With real colours in, plotly's own validation finds nothing unknown or ill-typed."""
    from plotly import graph_objects  # type: ignore[import-untyped]

    for summary in (study, cluster_study, variant):
        for chart in _charts(summary):
            graph_objects.Figure(_dressed(chart.figure(), PALETTES[name]))


def test_colours_are_roles_of_both_palettes(cluster_study: StudySummary) -> None:
    """No chart names a colour itself, and every role has a colour in light and dark."""
    assert PALETTES["light"].keys() == PALETTES["dark"].keys()
    for chart in _charts(cluster_study):
        for text in _strings(chart.figure()):
            assert not re.fullmatch(r"#[0-9a-f]{3,8}|rgba?\(.*\)", text)
            if text.startswith("@"):
                assert text[1:] in PALETTES["light"]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_letters_can_be_read(name: str) -> None:
    """Text on every ground it stands on has at least the contrast that guidelines ask for."""
    colours = PALETTES[name]
    grounds = [colours["paper"], colours["page"]]
    for role in ("ink", "muted", "accent", "warn"):
        assert min(contrast(colours[role], ground) for ground in grounds) >= 4.5
    assert contrast(colours["warn"], colours["warn-soft"]) >= 4.5
    bars = [colour for role, colour in colours.items() if role.startswith("bar-")]
    assert min(contrast(colours["ink"], bar) for bar in bars) >= 4.5
    lines = [colour for role, colour in colours.items() if role.startswith("series-")]
    assert min(contrast(line, colours["paper"]) for line in lines) >= 3.0


def test_every_good_sample_and_interval_is_drawn(study: StudySummary) -> None:
    """Eleven samples that count are eleven dots; four intervals are four error bars."""
    chart = throughput_chart(study)
    assert chart is not None
    bars, means, dots = chart.data
    assert len(dots["x"]) == 11
    assert set(dots["x"]) == {
        sample.items_per_s for item in study.configurations for sample in item.good
    }
    assert None not in means["error_x"]["array"]
    assert bars["x"] == [item.items_per_s.mean for item in study.configurations if item.items_per_s]
    assert len(set(zip(dots["x"], dots["y"], strict=True))) == 11


def test_axes_of_sizes_begin_at_zero(study: StudySummary, cluster_study: StudySummary) -> None:
    """Bars and ratios are not made to look dramatic by an axis that is cut off."""
    lying = ("throughput", "iteration", "cost", "shares")
    for chart in (*study_charts(study), *study_charts(cluster_study)):
        axis = "xaxis" if chart.name in lying else "yaxis"
        assert chart.layout[axis]["rangemode"] == "tozero"


def test_the_parts_of_an_iteration_stack_to_the_whole(study: StudySummary) -> None:
    """Each bar is as long as the mean iteration; colours, patterns and names tell parts apart."""
    chart = shares_chart(study)
    assert chart is not None
    assert chart.layout["barmode"] == "stack"
    lengths = [sum(values) for values in zip(*(trace["x"] for trace in chart.data), strict=True)]
    means = [item.iteration_s for item in study.configurations]
    for length, mean in zip(lengths, means, strict=True):
        assert mean is not None
        assert length == pytest.approx(mean.mean * 1000, rel=0.01)
    for key in ("color", "pattern"):
        looks = {str(trace["marker"][key]) for trace in chart.data}
        assert len(looks) == 3


def test_the_plane_shows_who_nothing_beats(cluster_study: StudySummary) -> None:
    """The front goes from the quickest to the cheapest, and every other point is dominated."""
    chart = plane_chart(cluster_study)
    assert chart is not None
    front = front_of(cluster_study)
    times = [one.mean for item in front if (one := item.expected_epoch_s)]
    costs = [one.mean for item in front if (one := item.cost_per_epoch_usd)]
    assert times == sorted(times)
    assert costs == sorted(costs, reverse=True)
    assert (chart.data[0]["x"], chart.data[0]["y"]) == (times, costs)
    drawn = sum(len(trace["x"]) for trace in chart.data if trace["mode"] == "markers+text")
    assert drawn == len(cluster_study.configurations)


def test_the_plane_shows_every_configuration_once(cluster_study: StudySummary) -> None:
    """The baseline too, whichever series it is like, if any."""
    first, *others = cluster_study.configurations
    odd = replace(first, configuration=replace(first.configuration, batch_size=7))
    for items in (
        (first, *others),
        (first, *reversed(others)),
        (odd, *others),
    ):
        chart = plane_chart(replace(cluster_study, configurations=items))
        assert chart is not None
        means = [len(trace["x"]) for trace in chart.data if trace["mode"] == "markers+text"]
        priced = [item for item in items if item.cost_per_epoch_usd and item.expected_epoch_s]
        assert sum(means) == len(priced)


def test_intervals_far_beyond_the_means_are_cut_and_the_caption_says_so(
    study: StudySummary,
) -> None:
    """Two noisy samples must not press everything else together; below zero nothing is drawn."""
    wide = [
        replace(
            item,
            items_per_s=item.items_per_s
            and replace(item.items_per_s, low=-900.0, high=100 * item.items_per_s.mean),
        )
        for item in study.configurations
    ]
    chart = throughput_chart(replace(study, configurations=tuple(wide)))
    assert chart is not None
    means = [item.items_per_s.mean for item in wide if item.items_per_s]
    assert chart.layout["xaxis"]["range"] == [0.0, 2.5 * max(means)]
    assert "go on beyond" in chart.caption
    (bars,) = [trace["error_x"] for trace in chart.data if "error_x" in trace]
    assert [value for value in bars["arrayminus"] if value is not None] == pytest.approx(means)


def test_without_a_price_there_is_no_cost(study: StudySummary) -> None:
    """Nobody knows what a laptop costs: no chart says that it is free."""
    assert plane_chart(study) is None
    assert cost_chart(study) is None


def test_ideal_line_goes_through_the_baseline(cluster_study: StudySummary) -> None:
    """Ideal is one at the baseline's size and sixteen at sixteen processes."""
    speedup, efficiency = speedup_chart(cluster_study), efficiency_chart(cluster_study)
    assert speedup is not None
    assert efficiency is not None
    assert (speedup.data[0]["x"], speedup.data[0]["y"]) == ([1, 16], [1.0, 16.0])
    assert efficiency.data[0]["y"] == [1.0, 1.0]


def test_lines_join_what_differs_in_processes_only(
    study: StudySummary, cluster_study: StudySummary
) -> None:
    """Batches are lines of their own, and so are nodes where sizes would coincide."""
    assert [series.name for series in series_of(study.configurations)] == ["batch 16", "batch 32"]
    by_nodes = series_of(cluster_study.configurations)
    assert [series.name for series in by_nodes] == ["1 node", "2 nodes", "4 nodes"]
    sizes = [[item.configuration.world_size for item in series.items] for series in by_nodes]
    assert sizes == [[1, 2, 4], [1, 2, 4, 8], [1, 4, 8, 16]]
    assert series_of(study.configurations[:1])[0].items == study.configurations[:1]


def test_series_differ_without_their_colour(cluster_study: StudySummary) -> None:
    """Whoever sees no colours tells lines by symbol and by dashes."""
    chart = speedup_chart(cluster_study)
    assert chart is not None
    lines = [trace for trace in chart.data if trace["mode"] == "lines+markers"]
    assert len({trace["marker"]["symbol"] for trace in lines}) == len(lines)
    assert len({trace["line"]["dash"] for trace in lines}) == len(lines)


def test_nothing_compared_draws_no_comparison(variant: StudySummary) -> None:
    """Speedup and efficiency are drawn only where two configurations were compared."""
    compared = [item for item in variant.configurations if item.speedup is not None]
    assert (speedup_chart(variant) is not None) == (len(compared) == 2)
    assert (efficiency_chart(variant) is not None) == (len(compared) == 2)


def test_long_runs_are_thinned_and_say_so(study: StudySummary) -> None:
    """A run of 5000 iterations is drawn in at most 400 points, and the caption tells how."""
    item = study.configurations[0]
    rank = RankSample(0, "h", iteration_s=tuple(0.1 for _ in range(5000)), warmup_s=(9.0,))
    long = replace(item, samples=(replace(item.samples[0], ranks=(rank,)),))
    chart = timeline_charts(replace(study, configurations=(long,)))[0]
    assert len(chart.data[0]["x"]) <= 400
    assert "Each point is the mean of 13 iterations." in chart.caption
    assert chart.layout["annotations"][0]["text"] == "slowest warm-up iteration: 9.000 s"
    assert chart.layout["yaxis"]["range"][1] == pytest.approx(120)


def test_failed_samples_are_marked_in_timelines(study: StudySummary) -> None:
    """What a failed sample got to is shown, and called failed."""
    names = [trace["name"] for trace in timeline_charts(study)[-1].data]
    assert names[2:4] == ["sample 2, rank 0 (failed)", "sample 2, rank 1 (failed)"]


def test_names_cannot_inject_markup_into_charts(study: StudySummary) -> None:
    """Plotly understands some tags: an argument's value is shown as it was written."""
    odd = Configuration(1, 2, 16, (("mode", "<a href='x'>y</a>"),))
    other = replace(study.configurations[1], configuration=odd)
    items: tuple[ConfigurationSummary, ...] = (study.configurations[0], other)
    for chart in study_charts(replace(study, configurations=items)):
        assert not any("<a href" in text for text in _strings(chart.figure()))
