"""What the columns of a model hang on, as data frames and as a section."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..plots.robustness import draw_inclusion, draw_influence
from ..plots.style import page_picture
from ..selection.partitions import choices_by_partition
from ..selection.result import Result
from ..selection.row_influence import (
    Influence,
    chosen_support,
    comparison_on_rows,
    parts_of,
    row_influence,
)
from ..selection.row_removals import row_removals
from ..solvers.core.limits import Limits
from .answer import MAX_CHARACTERS
from .frames import columns_and_names, frame_of
from .sections import Section, SectionColumn, SectionTable, counted, listed, percent

if TYPE_CHECKING:
    from pandas import DataFrame


def influence_of_rows(result: Result, limits: Limits) -> DataFrame:
    """Which columns are the best without each row, or each group of rows.

    A row of the frame says whether the model's columns stay the best ("stays"), which are the best
    then, by what share of the objective the model's columns lead, and whether that is proved.

    limits: Where they are reached, what is not proved is open.
    """
    parts, influence = parts_of(result), _influence_of_parts(result, limits)
    supports = (result.design.kept[one] for one in influence.supports)
    values = {"stays": ~influence.changed, **columns_and_names(supports, result.features)}
    values |= {"lead": influence.lead, "proved": influence.proved}
    what = "row" if result.table.source.groups is None else "group"
    return frame_of(values, list(parts)).rename_axis(what)


def _influence_of_parts(result: Result, limits: Limits) -> Influence:
    """What is best without each row, or each group of rows, of a fit."""
    parts, weights = list(parts_of(result).values()), comparison_on_rows(result)
    return row_influence(*chosen_support(result), parts, limits, weights)


def _influence_at_size(result: Result, limits: Limits) -> Influence:
    """What is best of the model's size without each row."""
    problem, data, support = chosen_support(result)
    single = list(np.arange(len(data.rows.given))[:, None])
    return row_influence(problem, data, support, single, limits)


def removals_of_rows(result: Result, most: int, limits: Limits) -> DataFrame:
    """Whether the model's columns stay the best without up to 1, 2, …, ``most`` rows.

    True: they do, whichever rows are left out. False: without the rows of an example, at most so
    many, other columns are better. None: neither is known. Where an example is known, the attribute
    "rows" has its rows, by their positions in the table that was fitted, and "columns" and "names"
    are the positions and names of the best columns known without them.

    limits: Where they are reached, what is not proved is open.
    """
    problem, data, support = chosen_support(result)
    if support.size == 0:
        raise InputError(
            "the model has no columns, and removals of several rows are about its columns: "
            "row_influence serves such a model"
        )
    influence = _influence_at_size(result, limits)
    safe, rows, best = row_removals(problem, data, support, influence, most, limits)
    safe = min(safe, most)
    changes_from = min(rows.size, most + 1) if rows.size else most + 1
    stays = [True] * safe + [None] * (changes_from - 1 - safe) + [False] * (most + 1 - changes_from)
    values = {"stays": np.array(stays, dtype=object)}
    frame = frame_of(values, range(1, most + 1)).rename_axis("rows removed")
    if rows.size:
        example = columns_and_names([result.design.kept[best]], result.features)
        frame.attrs = {"rows": rows.tolist()} | {name: one[0] for name, one in example.items()}
    return frame


def removals_of_features(result: Result, most: int, limits: Limits) -> DataFrame:
    """How many rows may be removed before the best subset of the model's size lacks a feature.

    A line for each feature of the model: "safe", the number of rows, at most ``most``, of which it
    is proved that the best subset has the feature whichever of them are removed; and "rows", as few
    as were found without which the best subset is proved to lack it, an empty list where none were.

    limits: Where they are reached, what is not proved is open. Features share the time.
    """
    problem, data, support = chosen_support(result)
    if support.size == 0:
        return frame_of({"safe": [], "rows": []}, []).rename_axis("feature")
    influence = _influence_at_size(result, limits.share(2.0))
    units = problem.constraints.units(support).tolist()
    found = [
        row_removals(problem, data, support, influence, most, limits.share(len(units) - i), unit)
        for i, unit in enumerate(units)
    ]
    kept = [result.design.kept[problem.constraints.columns[unit][:1]] for unit in units]
    values = {
        "safe": [min(one.safe, most) for one in found],
        "rows": [one.rows.tolist() for one in found],
    }
    labels = [result.features.called(one)[0] for one in kept]
    return frame_of(values, labels).rename_axis("feature")


def partitions_of_rows(
    result: Result, n: int, every: bool = True, limits: Limits | None = None
) -> DataFrame:
    """How often every rule chooses each feature on n other partitions of the rows into folds.

    A column of the frame is the share of partitions of one rule, that of the fit first. "selected"
    says which features the model has, and the attribute "same" on what share of the partitions the
    fit's rule chooses exactly these. "sizes" has the number of features on every partition.

    every: Whether there is a column for every rule, or for that of the fit alone.
    limits: Where they are reached no further partition is drawn.
    """
    supports = list(choices_by_partition(result, n, every, limits))
    assert result.study is not None  # Else the line above has refused the fit.
    own, features = result.study.rule, result.features
    positions = np.arange(len(features.names))
    selected = np.isin(positions, features.among(result.model.support))
    by_rule = {
        rule: np.array([np.isin(positions, features.among(choices[rule])) for choices in supports])
        for rule in (own, *(rule for rule in supports[0] if rule != own))
    }
    values: dict[str, NDArray[Any]] = {"selected": selected}
    values |= {rule: chosen.mean(axis=0) for rule, chosen in by_rule.items()}
    frame = frame_of(values, [*features.names]).rename_axis("column")
    frame.attrs["same"] = float((by_rule[own] == selected).all(axis=1).mean())
    frame.attrs["sizes"] = by_rule[own].sum(axis=1).tolist()
    return frame


def robustness(result: Result) -> Iterator[Section]:
    """Yield a section for every question on rows and partitions that was asked."""
    frames = result.answers
    if "row_influence" in frames:
        yield _influence(frames["row_influence"], result)
    if "row_removals" in frames:
        yield Section(sentences=list(_removals(frames["row_removals"], result)))
    if "partitions" in frames:
        yield _partitions(frames["partitions"])


def _influence(frame: DataFrame, result: Result) -> Section:
    """The rows, or groups, without which other columns are the best: all leads are in a picture.

    frame: That of :func:`influence_of_rows`.
    """
    what, changed = str(frame.index.name), frame[~frame["stays"]]
    unproved, lead = int((~frame["proved"]).sum()), frame["lead"].min()
    table = None
    if not changed.empty:
        names = listed([str(label) for label in changed.index], MAX_CHARACTERS)
        sentence = f"Other columns are the best where one {what} is left out: {names}."
        steps = [_steps(columns, result) for columns in changed["columns"]]
        columns = [
            SectionColumn(what, changed.index.tolist()),
            SectionColumn("better by", [percent(-share) for share in changed["lead"]]),
            SectionColumn("what changes", steps, "names"),
        ]
        table = SectionTable(columns, what=f"{what}s")
    elif not unproved:
        # The lead is not known where no row needed a look at the second best columns.
        least = f", by {percent(lead)} of the objective at least" if np.isfinite(lead) else ""
        sentence = f"The columns are the best whichever single {what} is left out{least}."
    else:
        sentence = f"No other columns were found to be better where one {what} is left out."
    if unproved:
        sentence += f" Of {counted(unproved, what)} that is not proved."
    words = f"The lead of the columns by {what} left out, at least."
    picture = partial(page_picture, words, draw_influence, frame)
    return Section(f"Without single {what}s", table=table, sentences=[sentence], picture=picture)


def _steps(columns: list[int], result: Result) -> list[str]:
    """The names of columns that the model lacks, after a plus, and has besides, after a minus."""
    return result.features.changes(result.model.support, np.array(columns, dtype=np.intp))


def _removals(frame: DataFrame, result: Result) -> Iterator[str]:
    """Yield what is proved of the removal of several rows, an example, and what is open.

    frame: That of :func:`removals_of_rows`.
    """
    stays, example = frame["stays"].tolist(), frame.attrs
    if safe := stays.count(True):
        yield f"The columns are the best whichever rows are left out, up to {counted(safe, 'row')}."
    if example:
        rows = listed([*map(str, example["rows"])])
        steps = listed(_steps(example["columns"], result))
        yield f"Without these rows other columns are better: {rows} ({steps})."
    if unknown := stays.count(None):
        last = safe + unknown
        yield f"Of {safe + 1} to {last} rows neither a proof nor an example is known."


def _partitions(frame: DataFrame) -> Section:
    """How often columns are chosen on other partitions; columns that none chooses are left out.

    frame: That of :func:`partitions_of_rows`.
    """
    rules = frame.columns.drop("selected")
    shown = frame[frame["selected"] | (frame[rules] > 0.0).any(axis=1)]
    columns = [
        SectionColumn("column", [[str(name)] for name in shown.index], "names"),
        SectionColumn("model", ["yes" if one else "" for one in shown["selected"]], "words"),
        *(SectionColumn(rule, [percent(share) for share in shown[rule]]) for rule in rules),
    ]
    sentence = (
        f"On {percent(frame.attrs['same'])} of other partitions of the rows the rule chooses "
        "exactly these columns. A figure says on how many a rule chooses the column, by estimates."
    )
    words = "The share of other partitions of the rows on which each feature is chosen."
    table, picture = SectionTable(columns), partial(page_picture, words, draw_inclusion, shown)
    return Section("Other partitions", table=table, sentences=[sentence], picture=picture)
