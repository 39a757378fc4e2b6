"""The table of a study, as cells of text: shared by the terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.measure.alike import batch_of
from paceline.model.plan import Configuration
from paceline.model.summary import ConfigurationSummary, Estimate, StudySummary
from paceline.reporting.numbers import (
    MISSING,
    SECONDS,
    Figure,
    Unit,
    common_decimals,
    percent,
    plus_minus,
    time_unit,
    times,
)

_TRAITS = {
    "instance_type": "the type of the hosts",
    "runtime": "how the processes start",
    "launcher": "who starts the ranks",
}

Cell = Callable[[ConfigurationSummary], Figure]
Pick = Callable[[ConfigurationSummary], Estimate | None]

HOW_TO_READ = (
    "± and ranges are 95% intervals of the mean over n samples "
    "(Student's t; ratios on the log scale)."
)


@dataclass(frozen=True)
class Column:
    """A heading, what it means, and how a configuration fills its cell.

    Where there is little room, the column with the highest `spare` is left out first; one with 0
    never is.
    """

    title: str
    meaning: str
    cell: Cell
    is_number: bool = True
    spare: int = 0


@dataclass(frozen=True)
class Row:
    """One configuration's cells."""

    item: ConfigurationSummary
    cells: tuple[Figure, ...]


@dataclass(frozen=True)
class Table:
    """Columns that have something to show, and one row per configuration."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def study_table(summary: StudySummary) -> Table:
    """Return the study as a table; columns that would be empty throughout are left out."""
    return _filled((*_configuration_columns(summary), *_figure_columns(summary)), summary)


def without(made: Table, summary: StudySummary) -> Table | None:
    """Return the table without the column that can best be spared; None if none can."""
    spare = max((column.spare for column in made.columns), default=0)
    if spare == 0:
        return None
    first = next(column for column in made.columns if column.spare == spare)
    return _filled(tuple(column for column in made.columns if column is not first), summary)


def _filled(columns: tuple[Column, ...], summary: StudySummary) -> Table:
    rows = tuple(
        Row(item, tuple(column.cell(item) for column in columns)) for item in summary.configurations
    )
    return Table(columns, rows)


def short_title(configuration: Configuration) -> str:
    """Return `2 x 4, batch 16`: nodes x processes per node and what else is known."""
    words = [layout(configuration)]
    if configuration.batch_size is not None:
        words.append(f"batch {configuration.batch_size}")
    words += [f"{name} {value}" for name, value in configuration.traits]
    return ", ".join(words)


def telling_title(
    configuration: Configuration, items: Sequence[ConfigurationSummary], scaling: str = "weak"
) -> str:
    """Return the short title without what all configurations of the study have in common."""
    return ", ".join([layout(configuration), *telling_words(configuration, items, scaling)])


def telling_words(
    configuration: Configuration, items: Sequence[ConfigurationSummary], scaling: str = "weak"
) -> tuple[str, ...]:
    """Return the batch size and the arguments that are not the same everywhere."""
    configurations = [item.configuration for item in items]
    words = []
    if len({batch_of(item, scaling) for item in configurations}) > 1:
        what = "global batch" if scaling == "strong" else "batch"
        words.append(f"{what} {_text(batch_of(configuration, scaling))}")
    shared = set.intersection(*(set(item.traits) for item in configurations)) if items else set()
    words += [
        f"{name} {value}" for name, value in configuration.traits if (name, value) not in shared
    ]
    return tuple(words)


def layout(configuration: Configuration) -> str:
    """Return `2 x 4`: nodes x processes per node."""
    return f"{configuration.nodes} x {configuration.procs_per_node}"


def iteration_unit(summary: StudySummary) -> Unit:
    """Return the unit in which this study's iterations are shown."""
    return time_unit(
        item.iteration_s.mean for item in summary.configurations if item.iteration_s is not None
    )


def _configuration_columns(summary: StudySummary) -> list[Column]:
    configurations = [item.configuration for item in summary.configurations]
    columns = [
        Column(
            "nodes x procs",
            "nodes x processes on each node",
            lambda item: Figure(layout(item.configuration)),
            is_number=False,
        )
    ]
    if any(item.batch_size is not None for item in configurations):
        columns.append(
            Column(
                "batch",
                "batch size of each process",
                lambda item: Figure(_text(item.configuration.batch_size)),
                spare=3 if len({item.batch_size for item in configurations}) == 1 else 0,
            )
        )
    if summary.scaling == "strong":
        columns.append(
            Column(
                "global batch",
                "batch size of all processes together",
                lambda item: Figure(_text(item.configuration.global_batch_size)),
                spare=2,
            )
        )
    names = dict.fromkeys(name for item in configurations for name, _ in item.traits)
    columns += [_argument_column(name) for name in names]
    columns.append(Column("n", "samples that count", _count))
    return columns


def _argument_column(name: str) -> Column:
    return Column(
        name,
        _TRAITS.get(name, f"the job's argument {name}"),
        lambda item: Figure(_text(dict(item.configuration.traits).get(name))),
        is_number=False,
    )


def _figure_columns(summary: StudySummary) -> list[Column]:
    unit, name = iteration_unit(summary), summary.unit
    cost = _measured_column(
        summary,
        "USD/epoch",
        "what the hosts cost for a whole epoch",
        lambda item: item.cost_per_epoch_usd,
        spare=1,
    )
    columns = [
        _measured_column(
            summary,
            f"{name}/s",
            f"{name} per second, all processes together",
            lambda item: item.items_per_s,
        ),
        _measured_column(
            summary,
            f"{unit.name}/iteration",
            "time of one iteration, warm-up left out",
            lambda item: item.iteration_s,
            unit,
            spare=4,
        ),
        _measured_column(summary, "s/epoch", "time of a whole epoch", lambda item: item.epoch_s),
    ]
    known = [column for column in columns if column is not None]
    wall = _measured_column(
        summary,
        "wall s",
        "time from start to end, measured from outside",
        lambda item: item.wall_s,
    )
    if not known and wall is not None:
        known.append(wall)
    costs = [] if cost is None else [cost]
    return [*known, *costs, *_comparison_columns()]


def _measured_column(
    summary: StudySummary,
    title: str,
    meaning: str,
    pick: Pick,
    unit: Unit = SECONDS,
    *,
    spare: int = 0,
) -> Column | None:
    """Return a column of means with their intervals; None where nothing was measured."""
    known = [one for item in summary.configurations if (one := pick(item)) is not None]
    if not known:
        return None
    decimals = common_decimals(known, unit.per_second)
    return Column(
        title, meaning, lambda item: plus_minus(pick(item), unit.per_second, decimals), spare=spare
    )


def _comparison_columns() -> list[Column]:
    return [
        Column("speedup", "how many times as fast as the baseline", _speedup),
        Column("efficiency", "speedup over the growth in the number of processes", _efficiency),
    ]


def _speedup(item: ConfigurationSummary) -> Figure:
    if item.is_baseline:
        return Figure("1" if item.speedup else MISSING, "(baseline)")
    return times(item.speedup)


def _efficiency(item: ConfigurationSummary) -> Figure:
    if item.is_baseline:
        return Figure("100%" if item.efficiency else MISSING)
    return percent(item.efficiency)


def _count(item: ConfigurationSummary) -> Figure:
    good = len(item.good)
    return Figure(str(good) if good >= item.planned else f"{good} of {item.planned}")


def _text(value: object) -> str:
    return MISSING if value is None else str(value)


def failures(summary: StudySummary) -> tuple[tuple[str, str], ...]:
    """Return which samples failed, by name, and why."""
    return tuple(
        (
            f"{short_title(item.configuration)}, sample {sample.index} ({sample.run_id})",
            sample.failed,
        )
        for item in summary.configurations
        for sample in item.samples
        if sample.failed is not None
    )


def remarks(summary: StudySummary) -> tuple[str, ...]:
    """Return what a reader should know beside the figures, each sentence once.

    What holds of some configurations only is followed by their names.
    """
    where: dict[str, list[str]] = {}
    for item in summary.configurations:
        notes = [*item.notes, *(note for sample in item.good for note in sample.notes)]
        for note in dict.fromkeys(notes):
            where.setdefault(note, []).append(short_title(item.configuration))
    everywhere = len([item for item in summary.configurations if item.samples])
    scoped = [
        note if len(names) == everywhere and everywhere > 1 else f"{note} [{'; '.join(names)}]"
        for note, names in where.items()
    ]
    return tuple(dict.fromkeys([*summary.notes, *scoped]))


def subject(summary: StudySummary) -> str:
    """Return what was trained on, what was timed, and what kept its size, in a few words."""
    parts = (summary.data, summary.measured, scaling_words(summary))
    return "; ".join(part for part in parts if part)


def scaling_words(summary: StudySummary) -> str:
    """Return what stays the same while processes are added; nothing where none are."""
    configurations = [item.configuration for item in summary.configurations]
    if len({item.world_size for item in configurations}) < 2:  # noqa: PLR2004 - nothing is added
        return ""
    if summary.scaling == "weak":
        return "weak scaling: each process keeps its batch"
    totals = sorted({item.global_batch_size for item in configurations if item.global_batch_size})
    which = f" of {totals[0]}" if len(totals) == 1 else ""
    return f"strong scaling: the processes share a batch{which}"
