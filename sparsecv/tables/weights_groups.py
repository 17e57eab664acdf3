"""Columns of a table that are no features: weights of the rows, and groups of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .column_errors import MISSING, Faults, is_number
from .columns import FloatArray, shown


class Column:
    """A column of weights or groups as positions among its distinct words.

    label: What messages call the table.
    codes, shape (n,): ``words[codes[i]]`` stands in row i.
    mark: The decimal mark of numbers among the words.
    """

    def __init__(
        self, label: str, name: str, codes: NDArray[np.intp], words: Sequence[str], mark: str = "."
    ) -> None:
        self.label, self.name, self.codes, self.words = label, name, codes, words
        plain = [word.replace(mark, ".") for word in words]
        # The value of every word, NaN where the word is no number.
        self._numbers = np.array([float(word) if is_number(word) else np.nan for word in plain])

    @classmethod
    def of(cls, label: str, name: str, values: FloatArray) -> Column:
        """A column of numbers in memory, of shape (n,)."""
        found, codes = np.unique(values, return_inverse=True)
        return cls(label, name, codes.astype(np.intp), [repr(float(v)) for v in found])

    def _check_missing(self) -> None:
        missing = np.array([word.lower() in MISSING for word in self.words], dtype=bool)
        faults = Faults(self.label, self.name)
        faults.rows(self.name, "missing", np.flatnonzero(missing[self.codes]))
        faults.check()

    def weights(self) -> FloatArray | None:
        """Weights of the rows, shape (n,); None where all are 1.

        Raises InputError: A weight is missing, no number, infinite or negative, or fewer than 2
            weights are above 0.
        """
        self._check_missing()
        values: FloatArray = self._numbers[self.codes]
        wrong = ~(np.isfinite(values) & (values >= 0.0))
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"{self.label}: the weights in column {shown(self.name)} must be finite numbers "
                f">= 0, not {shown(self.words[self.codes[row]])} (data row {row + 1})"
            )
        if np.count_nonzero(values) < 2:
            raise InputError(
                f"{self.label}: the weights in column {shown(self.name)} must be above 0 in at "
                "least 2 rows"
            )
        return None if (values == 1.0).all() else values

    def groups(self) -> NDArray[np.intp]:
        """Number of every row's group, shape (n,), in the order of the numbers or else the words.

        Raises InputError: A group is missing.
        """
        self._check_missing()
        keys = np.array(self.words) if np.isnan(self._numbers).any() else self._numbers
        rank = np.unique(keys, return_inverse=True)[1].astype(np.intp)
        return np.asarray(rank[self.codes])
