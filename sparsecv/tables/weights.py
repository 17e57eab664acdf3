"""Columns of weights and of groups, which are no features."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import MISSING, FloatArray, is_number, quoted
from .faults import Faults


class Column(NamedTuple):
    """A column of text, stored as its distinct words and a position for every row.

    label: The table's name in messages.
    name: The column's name.
    codes, shape (n,): The cell of row i is ``words[codes[i]]``.
    words: The distinct texts of the column's cells.
    mark: The decimal mark of numbers in the words.
    """

    label: str
    name: str
    codes: NDArray[np.intp]
    words: Sequence[str]
    mark: str = "."

    @property
    def numbers(self) -> FloatArray:
        """The values of the words, NaN for a word that is no number.

        Raises InputError: A cell is missing.
        """
        missing = np.array([word.lower() in MISSING for word in self.words], dtype=bool)
        faults = Faults(self.label)  # No --missing serves weights and groups.
        faults.missing(self.name, np.flatnonzero(missing[self.codes]))
        faults.check()
        plain = [word.replace(self.mark, ".") for word in self.words]
        return np.array([float(word) if is_number(word) else np.nan for word in plain])

    def weights(self) -> FloatArray | None:
        """The column's numbers as weights of the rows, shape (n,); None where all weights are 1.

        Raises InputError: A weight is no number, infinite or negative, or fewer than 2 weights are
            above 0.
        """
        values: FloatArray = self.numbers[self.codes]
        wrong = ~(np.isfinite(values) & (values >= 0.0))
        what = f"{self.label}: the weights in column {quoted(self.name)} must be"
        if wrong.any():
            row = int(wrong.argmax())
            cell = quoted(self.words[self.codes[row]])
            raise InputError(f"{what} finite numbers >= 0, not {cell} (data row {row + 1})")
        if np.count_nonzero(values) < 2:
            raise InputError(f"{what} above 0 in at least 2 rows")
        return None if (values == 1.0).all() else values

    def groups(self) -> NDArray[np.intp]:
        """The number of every row's group, shape (n,).

        Groups are numbered in the order of their values if all words are numbers, else of the
        words.
        """
        keys = np.array(self.words) if np.isnan(self.numbers).any() else self.numbers
        rank = np.unique(keys, return_inverse=True)[1].astype(np.intp)
        return np.asarray(rank[self.codes])
