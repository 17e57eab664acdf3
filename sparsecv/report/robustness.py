"""What the columns of a model hang on, as sections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..plots.robustness import draw_inclusion, draw_influence
from ..plots.style import page_picture
from ..selection.result import Result
from .answer import MAX_CHARACTERS
from .sections import (
    Section,
    SectionColumn,
    SectionTable,
    changes,
    counted,
    listed,
    percent,
    percent_bound,
)

if TYPE_CHECKING:
    from pandas import DataFrame


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

    frame: That of :func:`~sparsecv.report.questions.influence_of_rows`.
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
        # The lead is not known where a row has needed no look at the second best columns.
        known = frame["lead"].notna().all() and np.isfinite(lead)
        least = f", by {percent_bound(lead, up=False)} of the objective at least" if known else ""
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
    called = result.features.called
    return changes(called(result.model.support), called(np.array(columns, dtype=np.intp)))


def _removals(frame: DataFrame, result: Result) -> Iterator[str]:
    """Yield what is proved of the removal of several rows, an example, and what is open.

    frame: That of :func:`~sparsecv.report.questions.removals_of_rows`.
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

    frame: That of :func:`~sparsecv.report.questions.partitions_of_rows`.
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
