"""Columns of a table that are no features: weights of the rows, groups that stay together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .column_errors import MISSING, Faults, is_number
from .columns import FloatArray, check_names, dropped_columns, find_column, shown

if TYPE_CHECKING:
    from .parquet import ParquetFile
    from .text import TextFile

_ROWS = 65536


@dataclass
class Column:
    """One column as positions among its distinct words.

    label: What messages call the table.
    codes, shape (n,).
    words: ``words[codes[i]]`` is what stands in row i.
    mark: The decimal mark.
    """

    label: str
    name: str
    codes: NDArray[np.intp]
    words: list[str]
    mark: str = "."

    @classmethod
    def of(cls, label: str, name: str, values: FloatArray) -> Column:
        """A column of numbers in memory.

        values, shape (n,).
        """
        found, codes = np.unique(values, return_inverse=True)
        return cls(label, name, codes.astype(np.intp), [repr(float(v)) for v in found])

    @classmethod
    def read(cls, file: TextFile | ParquetFile, name: str) -> Column:
        """A column of a file, in a pass of its own.

        Raises InputError: The column is neither numeric nor text.
        """
        import pyarrow as pa

        from .parquet import as_text
        from .text import as_numpy

        place: dict[str, int] = {}
        parts = [np.empty(0, dtype=np.intp)]
        for batch in file.batches([name], _ROWS):
            try:
                coded = as_text(batch.column(0)).fill_null("").dictionary_encode()
            except pa.ArrowException:
                raise InputError(
                    f"{file.label}: column {shown(name)} is neither numeric nor text"
                ) from None
            words = coded.dictionary.to_pylist()
            at = np.array([place.setdefault(word, len(place)) for word in words], dtype=np.intp)
            parts.append(at[as_numpy(coded.indices)])
        mark = "," if getattr(file, "delimiter", "") == ";" else "."
        return cls(file.label, name, np.concatenate(parts), list(place), mark)

    def _check_missing(self) -> None:
        missing = np.array([word.lower() in MISSING for word in self.words], dtype=bool)
        faults = Faults(self.label, self.name)
        faults.rows(self.name, "missing", np.flatnonzero(missing[self.codes]))
        faults.check()

    def _number(self, word: str) -> float:
        """A word as a number; NaN where it is none."""
        plain = word.replace(self.mark, ".")
        return float(plain) if is_number(plain) else np.nan

    def weights(self) -> FloatArray | None:
        """Weights of the rows; None where all are 1.

        Returns, shape (n,), or None.
        Raises InputError: A weight is missing, no number, infinite or negative, or fewer than 2 are
            above 0.
        """
        self._check_missing()
        numbers = np.array([self._number(word) for word in self.words])
        values: FloatArray = numbers[self.codes]
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
        """Group of every row, numbered in the order of numbers where all are, else of text.

        Returns, shape (n,).
        Raises InputError: A group is missing.
        """
        self._check_missing()
        numbers = np.array([self._number(word) for word in self.words])
        keys = np.array(self.words) if np.isnan(numbers).any() else numbers
        rank = np.unique(keys, return_inverse=True)[1].astype(np.intp)
        return np.asarray(rank[self.codes])


def names_aside(
    label: str,
    names: Sequence[str],
    target: str | None,
    drop: Collection[str],
    weights: str | None,
    groups: str | None,
) -> tuple[str | None, str | None]:
    """Find the columns of weights and groups, which nothing else may name.

    label: What messages call the table.
    names: All column names.
    target: As the user spells it.
    drop, collection of str: Columns to leave out.
    weights, groups: As the user spells them.
    Returns weights, groups: Names of columns.
    Raises InputError: An unknown or repeated name, or one that is also the target, left out, or
        named by both.

    Examples
    --------
    >>> names_aside("t.csv", ["a", "W", "y"], "y", (), "w", None)
    ('W', None)
    """
    if weights is groups is None:
        return None, None
    taken: dict[str, str] = {}
    if target is not None:
        taken[find_column(label, names, target, "target")] = "the target"
    taken |= dict.fromkeys(dropped_columns(label, names, drop), "in --drop")
    found: list[str | None] = []
    for what, asked in (("weights", weights), ("groups", groups)):
        name = None if asked is None else find_column(label, names, asked, what)
        if name is not None:
            check_names(label, [other for other in names if other == name])
            if name in taken:
                raise InputError(
                    f"{label}: column {shown(name)} is named by --{what} and is also "
                    f"{taken[name]}; take it out of one of the two"
                )
            taken[name] = f"named by --{what}"
        found.append(name)
    return found[0], found[1]
