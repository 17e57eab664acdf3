"""Columns of a table that are no features: weights of the rows, and groups of rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .column_errors import MISSING, Faults, is_number
from .columns import FloatArray, quoted

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?$")


class Column:
    """A column of weights or groups, stored as its distinct words and a position for every row.

    label: The table's name in messages.
    name: The column's name.
    codes, shape (n,): The cell of row i is ``words[codes[i]]``.
    words: The distinct texts of the column's cells.
    mark: The decimal mark of numbers in the words.
    """

    def __init__(
        self, label: str, name: str, codes: NDArray[np.intp], words: Sequence[str], mark: str = "."
    ) -> None:
        self.label, self.name, self.codes, self.words = label, name, codes, words
        plain = [word.replace(mark, ".") for word in words]
        # These are the words' values, NaN for a word that is no number.
        self._numbers = np.array([float(word) if is_number(word) else np.nan for word in plain])

    @classmethod
    def of(cls, label: str, name: str, values: FloatArray) -> Column:
        """The column whose cells are numbers in memory, shape (n,)."""
        found, codes = np.unique(values, return_inverse=True)
        return cls(label, name, codes.astype(np.intp), [repr(float(v)) for v in found])

    def of_rows(self, kept: NDArray[np.bool_] | None) -> Column:
        """The column of some rows of the table; of all rows where ``kept`` is None."""
        if kept is not None:
            self.codes = self.codes[kept]
        return self

    def _check_missing(self) -> None:
        """Raise an InputError that names the rows whose cells are missing, if there are any."""
        missing = np.array([word.lower() in MISSING for word in self.words], dtype=bool)
        faults = Faults(self.label, self.name)
        faults.rows(self.name, "missing", np.flatnonzero(missing[self.codes]))
        faults.check()

    def weights(self) -> FloatArray | None:
        """The column's numbers as weights of the rows, shape (n,); None where all weights are 1.

        Raises InputError: A weight is missing, no number, infinite or negative, or fewer than 2
            weights are above 0.
        """
        self._check_missing()
        values: FloatArray = self._numbers[self.codes]
        wrong = ~(np.isfinite(values) & (values >= 0.0))
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"{self.label}: the weights in column {quoted(self.name)} must be finite numbers "
                f">= 0, not {quoted(self.words[self.codes[row]])} (data row {row + 1})"
            )
        if np.count_nonzero(values) < 2:
            raise InputError(
                f"{self.label}: the weights in column {quoted(self.name)} must be above 0 in at "
                "least 2 rows"
            )
        return None if (values == 1.0).all() else values

    def times(self) -> NDArray[np.intp]:
        """The rank of every row's time, shape (n,): rows of one time have one rank.

        Raises InputError: A time is missing, or the words are neither all numbers nor all dates
            that begin with the year, such as 2024-01-31 or 2024-01-31 12:00.
        """
        self._check_missing()
        if np.isnan(self._numbers).any():
            odd = [word for word in self.words if not _ISO_DATE.match(word)]
            if odd:
                raise InputError(
                    f"{self.label}: --order needs numbers, or dates written like 2024-01-31; "
                    f"column {quoted(self.name)} holds {quoted(odd[0])}"
                )
        return self.groups()

    def groups(self) -> NDArray[np.intp]:
        """The number of every row's group, shape (n,).

        Groups are numbered in the order of their values if all words are numbers, else of the
        words.

        Raises InputError: A group is missing.
        """
        self._check_missing()
        keys = np.array(self.words) if np.isnan(self._numbers).any() else self._numbers
        rank = np.unique(keys, return_inverse=True)[1].astype(np.intp)
        return np.asarray(rank[self.codes])
