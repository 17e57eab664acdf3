"""What the columns of a file become: numbers, or levels of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .coding import Coding
from .columns import check_names, check_rows, is_number, quoted
from .faults import Faults
from .files import File

MAX_LEVELS = 100
"""A text column with more levels (distinct texts) is refused as an identifier of the rows.

One-hot encoding makes a 0/1 column of every level. The number is a choice."""

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
# The pattern matches numbers with separators of thousands, a decimal comma, a currency or a per
# cent sign.
_DISGUISED = re.compile(
    r"[-+(]? ?[$€£¥₹]? ?[-+]?(\d+|\d{1,3}([,.'_\u00a0\u202f ]\d{3})+)([.,]\d+)? ?[$€£¥₹%‰]?\)?"
)


@dataclass
class _TextColumn:
    """The levels of a text column, and cells of it that a message can show.

    examples: The first levels that are no numbers, at most ``MAX_LEVELS``; the first levels where
        all are numbers.
    row: The row of the first of these cells, numbered from 0.
    kind: "dates" or "text", by the type of the column.
    missing: The rows of the cells that are missing, numbered from 0.
    """

    levels: list[str]
    examples: list[str]
    row: int
    kind: str
    missing: NDArray[np.intp]

    @classmethod
    def of(cls, cells: Any, decimal: str) -> _TextColumn:
        """The column of some cells of text, in which ``decimal`` is the decimal mark of numbers."""
        import pyarrow as pa  # The import would slow down commands that read no text.
        import pyarrow.compute as pc

        from .cells import as_text, where

        texts = as_text(cells)
        levels = pc.unique(texts).drop_null().to_pylist()
        texts_alone = (cell for cell in levels if not is_number(cell.replace(decimal, ".")))
        examples = list(islice(texts_alone, MAX_LEVELS)) or levels[:MAX_LEVELS]
        row = texts.index(examples[0]).as_py() if examples else 0
        kind = "dates" if pa.types.is_temporal(cells.type) else "text"
        return cls(levels, examples, row, kind, where(texts.is_null()))

    def describe(self, name: str, n: int, faults: Faults) -> None:
        """Add what is wrong with the column to ``faults``.

        Text is no fault, except in the target. Dates, numbers that are not written plainly, more
        than ``MAX_LEVELS`` levels, and another level in every row are.
        """
        is_target, kind, mend = name == faults.target, self.kind, ""
        odd = [cell for cell in self.examples if not is_number(cell)]
        place = f"(for example {quoted(self.examples[0])}, data row {self.row + 1})"
        if kind == "dates" or (odd and all(map(_DATE.match, self.examples))):
            kind, mend = "dates", "write numbers in their place, such as years or days since a date"
        elif odd and all(map(_DISGUISED.fullmatch, odd)):
            kind, mend = "numbers that are not written plainly", "write digits and a point alone"
        if is_target:
            what = f"the target column {quoted(name)} is not numeric: it holds {kind} {place}"
            plain = "write digits" in mend
            what += "" if plain else "; the target is never encoded"
            faults.add(name, what, [*[mend] * plain, "name a numeric column with --target"])
        elif kind != "text":
            faults.add(name, f"column {quoted(name)} holds {kind} {place}", [mend])
        elif len(self.levels) > MAX_LEVELS or len(self.levels) == n:
            many = f"has more than {MAX_LEVELS} levels"
            why = many if len(self.levels) > MAX_LEVELS else "has another value in every row"
            what = f"text column {quoted(name)} {why} {place}"
            faults.add(name, f"{what}, so it looks like an identifier")


def learned(
    file: File,
    columns: Sequence[str],
    faults: Faults,
    min_rows: int = 2,
) -> Coding:
    """What the columns of a file become.

    A text column becomes one 0/1 column for every level, or, where it has two levels, the 0/1
    column of its second level.

    Raises InputError: Columns cannot be used, or rows are too few; the message names all columns.
    """
    text = file.inspect(columns, (), faults)
    check_rows(file.label, file.n, min_rows)
    texts = file.load([name for name in columns if name in text])
    found = {name: _TextColumn.of(cells, file.decimal) for name, cells in texts.items()}
    for name, column in found.items():
        faults.missing(name, column.missing)
        if column.levels:
            column.describe(name, file.n, faults)
        elif faults.missing_allowed:
            faults.add(name, f"column {quoted(name)} has no value")
    if faults and file.stores_rows:
        from .cells import as_floats

        # The missing and infinite values of the other columns are found, too.
        for name, cells in file.load([one for one in columns if one not in text]).items():
            faults.values(as_floats(cells), [name])
    faults.check()
    levels = {name: sorted(column.levels) for name, column in found.items()}
    coding = Coding(list(columns), levels, single=True)
    # In a saved model ``column=level`` names the level, also where the level has no 0/1 column.
    without = [f"{name}={level}" for name, level in coding.first_levels.items()]
    check_names(file.label, [*coding.features, *without])
    return coding
