"""What the columns of a model hang on, as data frames and as a section."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..plots.robustness import draw_inclusion, draw_influence
from ..plots.style import in_style, new_figure
from ..selection.partitions import choices_by_partition
from ..selection.result import Result
from ..selection.row_influence import chosen_support, comparison_on_rows, parts_of, row_influence
from ..selection.row_removals import row_removals
from ..selection.sizes import changes
from ..solvers.core.limits import Limits
from .answer import MAX_CHARACTERS
from .frames import columns_and_names, frame_of
from .sections import Section, SectionColumn, SectionTable, counted, listed, percent

if TYPE_CHECKING:
    from pandas import DataFrame


def influence_of_rows(result: Result, limits: Limits) -> DataFrame:
    """Which columns are the best without each row, or each group of rows."""
    problem, data, support = chosen_support(result)
    parts, what = parts_of(result), "row" if result.table.source.groups is None else "group"
    weights = comparison_on_rows(result)
    found = row_influence(problem, data, support, list(parts.values()), limits, weights)
    supports = (result.design.kept[one] for one in found.supports)
    columns = columns_and_names(supports, result.names)
    values = {"stays": ~found.changed, **columns, "lead": found.lead, "proved": found.proved}
    return frame_of(values, list(parts)).rename_axis(what)


def removals_of_rows(result: Result, most: int, limits: Limits) -> DataFrame:
    """Whether columns stay the best without 1, 2, … rows; an example of rows that change them."""
    problem, data, support = chosen_support(result)
    if support.size == 0:
        raise InputError("the model has no columns: ask row_influence")
    single = list(np.arange(len(data.given))[:, None])
    influence = row_influence(problem, data, support, single, limits)
    safe, rows, best = row_removals(problem, data, support, influence, most, limits)
    last = min(rows.size - 1, most) if rows.size else most
    stays = [True] * min(safe, most) + [None] * (last - safe) + [False] * (most - last)
    values = {"stays": np.array(stays, dtype=object)}
    found = frame_of(values, range(1, most + 1)).rename_axis("rows removed")
    if rows.size:
        known = columns_and_names([result.design.kept[best]], result.names)
        found.attrs = {"rows": rows.tolist()} | {name: one[0] for name, one in known.items()}
    return found


def partitions_of_rows(result: Result, n: int) -> DataFrame:
    """How often every rule chooses each column on n other partitions of the rows into folds."""
    every, p = list(choices_by_partition(result, n)), result.model.coef.size
    assert result.study is not None
    own, model = result.study.rule, result.model.support
    held = {
        name: np.array([np.isin(np.arange(p), one[name]) for one in every]) for name in every[0]
    }
    values: dict[str, NDArray[Any]] = {"selected": np.isin(np.arange(p), model)}
    for name in (own, *(name for name in held if name != own)):
        values[name] = held[name].mean(axis=0)
    found = frame_of(values, [*result.names]).rename_axis("column")
    found.attrs["same"] = float((held[own] == values["selected"]).all(axis=1).mean())
    return found


def robustness(result: Result) -> Iterator[Section]:
    """Yield a section for every question on rows and partitions that was asked."""
    found = result.answers
    if "row_influence" in found:
        yield _influence(found["row_influence"], result)
    if "row_removals" in found:
        yield Section("", sentences=list(_removals(found["row_removals"], result)))
    if "partitions" in found:
        yield _partitions(found["partitions"])


def _influence(found: DataFrame, result: Result) -> Section:
    """The rows that decide which columns are the best, one by one."""
    what, changed = str(found.index.name), found[~found["stays"]]
    unproved, lead = int((~found["proved"]).sum()), found["lead"].min()
    if not changed.empty:
        names = listed([str(label) for label in changed.index], MAX_CHARACTERS)
        sentence = f"Other columns are the best where one {what} is left out: {names}."
    elif not unproved:
        sentence = f"The columns are the best whichever single {what} is left out"
        least = f", by {percent(lead)} of the objective at least" if np.isfinite(lead) else ""
        sentence += f"{least}."
    else:
        sentence = f"No other columns were found to be better where one {what} is left out."
    if unproved:
        sentence += f" Of {counted(unproved, what)} that is not proved."
    columns = [
        SectionColumn(what, changed.index.tolist()),
        SectionColumn("better by", [percent(-one) for one in changed["lead"]]),
        SectionColumn("what changes", [_steps(one, result) for one in changed["columns"]], "names"),
    ]
    table = None if changed.empty else SectionTable(columns, what=f"{what}s")
    picture = partial(
        _picture, draw_influence, found, f"The lead of the columns by {what} left out."
    )
    return Section(f"Without single {what}s", (), table, [sentence], picture)


def _steps(columns: list[int], result: Result) -> list[str]:
    """What columns have that the model lacks, and what they lack."""
    return changes(result.model.support, np.array(columns, dtype=np.intp), result.names)


def _removals(found: DataFrame, result: Result) -> Iterator[str]:
    """Yield what is proved of the removal of several rows, an example, and what is open."""
    stays, example = found["stays"].tolist(), found.attrs
    if safe := stays.count(True):
        yield f"The columns are the best whichever rows are left out, up to {counted(safe, 'row')}."
    if example:
        rows, steps = (
            listed([*map(str, example["rows"])]),
            listed(_steps(example["columns"], result)),
        )
        yield f"Without these rows other columns are better: {rows} ({steps})."
    if left := stays.count(None):
        yield f"Of {safe + 1} to {safe + left} rows neither a proof nor an example is known."


def _partitions(found: DataFrame) -> Section:
    """How often columns are chosen on other partitions."""
    rules = found.columns.drop("selected")
    shown = found[found["selected"] | (found[rules] > 0.0).any(axis=1)]
    columns = [SectionColumn("column", [str(name) for name in shown.index], "words")]
    chosen = ["yes" if one else "" for one in shown["selected"]]
    columns.append(SectionColumn("model", chosen, "words"))
    columns += [SectionColumn(name, [percent(one) for one in shown[name]]) for name in rules]
    sentence = (
        f"On {percent(found.attrs['same'])} of other partitions of the rows the rule chooses "
        "exactly these columns. A figure says on how many a rule chooses the column, by estimates."
    )
    words = "The share of other partitions on which a column is chosen."
    picture = partial(_picture, draw_inclusion, shown, words)
    return Section("Other partitions", (), SectionTable(columns), [sentence], picture)


@in_style
def _picture(draw: Any, found: DataFrame, words: str) -> tuple[Any, str]:
    """A picture of a frame, and its description."""
    figure, ((axes,),) = new_figure(figsize=(5.6, 3.6))
    draw(axes, found)
    return figure, words
