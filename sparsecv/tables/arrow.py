"""What the columns of a file become: numbers, or levels of text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .cells import as_floats, as_text, where
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

    examples: The cells that are no numbers of the first block that has such cells. Before that,
        all cells of the first block.
    row: The row of the first of these cells, numbered from 0.
    holds_text: Whether a cell is no number.
    """

    decimal: str
    levels: dict[str, None] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    row: int = 0
    kind: str = "text"
    holds_text: bool = False

    def see(self, cells: Any, row: int) -> None:
        """Add the distinct cells of a block to ``levels``, and note examples; ``row`` is its first.

        Once a cell is no number and there are more than ``MAX_LEVELS`` levels, nothing is added.
        """
        if self.holds_text and len(self.levels) > MAX_LEVELS:
            return
        texts = as_text(cells)
        seen = pc.unique(texts).drop_null().to_pylist()
        self.levels.update(dict.fromkeys(seen))
        texts_alone = [cell for cell in seen if not is_number(cell.replace(self.decimal, "."))]
        if not self.holds_text and (texts_alone or (seen and not self.examples)):
            self.examples, self.holds_text = texts_alone or seen, bool(texts_alone)
            self.row = row + texts.index(self.examples[0]).as_py()
            self.kind = "dates" if pa.types.is_temporal(cells.type) else "text"

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
    """What the columns of a file become, found in passes over the file.

    A text column becomes one 0/1 column for every level, or, where it has two levels, the 0/1
    column of its second level.

    Raises InputError: Columns cannot be used, or rows are too few; the message names all columns.
    """
    text = file.inspect(columns, (), faults)
    check_rows(file.label, file.n, min_rows)
    left = [name for name in columns if name in text]
    found = {name: _TextColumn(file.decimal) for name in left}
    for row, name, cells in file.cells(list(found)):
        faults.missing(name, row + where(cells.is_null()))
        found[name].see(cells, row)
    for name, column in found.items():
        if column.levels:
            column.describe(name, file.n, faults)
        elif faults.missing_allowed:
            faults.add(name, f"column {quoted(name)} has no value")
    if faults and file.max_columns_at_once is None:
        # A pass over the other columns finds their missing and infinite values, too.
        for row, name, cells in file.cells([name for name in columns if name not in text]):
            faults.values(as_floats(cells), [name], row)
    faults.check()
    levels = {name: sorted(column.levels) for name, column in found.items()}
    coding = Coding(list(columns), levels, single=True)
    # In a saved model ``column=level`` names the level, also where the level has no 0/1 column.
    without = [f"{name}={level}" for name, level in coding.first_levels.items()]
    check_names(file.label, [*coding.features, *without])
    return coding
