"""What a certificate holds besides its proof: the table, its units in whole numbers, the claim.

Without it a proof has no table and no units, and cannot be checked.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError, file_faults
from ...verify import FORMAT, claim
from ..kernels.linalg import Array

# Powers of ten up to this one are numbers of 64 bits.
MOST_PLACES = 300
# Columns, an exponent e, and the coefficients of these columns times 2^e.
Point = tuple[list[int], int, list[int]]


class IntegerScale(NamedTuple):
    """What takes coefficients of solved columns to the whole columns of the checker.

    factors, length p + 1: Whole numbers. Times its factor every number of a column is whole.
    ratio, shape (p,): Coefficients of solved columns times these numbers are those of whole ones.
    """

    factors: list[int]
    ratio: Array

    @classmethod
    def of(cls, cells: Sequence[Sequence[str]], scale: Array, y_spread: float) -> IntegerScale:
        """The units of columns of decimal strings, the response last, which have these scales."""
        places = [max(0, -min(map(_exponent, column))) for column in cells]
        if max(places) > MOST_PLACES:
            most = f"digits beyond decimal place {MOST_PLACES}"
            raise InputError(f"a certificate serves no numbers with {most}: rescale or round them")
        tens = [10**place for place in places]
        lengths = np.array([float(ten) for ten in tens[:-1]]) * scale
        longest = max(float(lengths.max()), tens[-1] * y_spread)
        shifts = np.ceil(np.log2(longest / lengths)).astype(int).tolist()
        factors = [ten << shift for ten, shift in zip(tens[:-1], shifts, strict=True)]
        own = np.array([float(factor) for factor in factors]) * scale
        return cls([*factors, tens[-1]], float(tens[-1]) / own)

    def rounded(self, betas: Array, bits: int) -> tuple[list[Point], Array]:
        """Rows of coefficients as the checker reads them, and as those of the solved columns.

        betas, shape (r, p): Coefficients of the solved columns.
        bits: The largest whole number of a row has so many bits, or more where it is that large.
        Returns: A point for every row, and the rounded coefficients of solved columns, (r, p).
        """
        values = betas * self.ratio
        powers = np.maximum(0, bits - np.frexp(np.abs(values).max(axis=1, initial=0.0))[1])
        whole = np.rint(np.ldexp(values, powers[:, None]))
        points: list[Point] = []
        for beta, power, row in zip(betas, powers.tolist(), whole, strict=True):
            columns = beta.nonzero()[0]
            points.append((columns.tolist(), power, list(map(int, row[columns].tolist()))))
        return points, np.ldexp(whole, -powers[:, None]) / self.ratio


def _exponent(cell: str) -> int:
    return int(Decimal(cell).as_tuple().exponent)


@dataclass(frozen=True)
class CertifiedTable:
    """The table that a certificate is about, and what is done to its columns.

    names: Of the columns that models choose from, and of the response.
    cells: Decimal strings of these columns.
    data: The bytes of the CSV file that has them.
    intercept: Whether training rows are centred by their means.
    scale: "unit-variance", "unit-norm" or "none".
    divisors, shape (p,): What the scale divides columns by.
    """

    names: list[str]
    cells: list[list[str]]
    data: bytes
    intercept: bool
    scale: str
    divisors: Array

    @classmethod
    def of(
        cls, rows: Array, names: Sequence[str], intercept: bool, scale: str, divisors: Array
    ) -> CertifiedTable:
        """The table of rows of [X y], shape (n, p + 1), as they were before they were scaled.

        A cell is the shortest decimal that is read as the same number. ``scale`` and ``divisors``
        are only noted.

        rows: They are finite.
        names: Those of the p columns, then of the response.
        Raises InputError: Two names are the same, or a name cannot be printed.
        """
        if len(set(names)) < len(names):
            raise InputError("a certificate names columns, and two of these have the same name")
        for name in names:
            if not name.isprintable():
                raise InputError(f"a certificate cannot print the name {name!r}: rename the column")
        cells = [[repr(x) for x in column] for column in rows.T.tolist()]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([names, *zip(*cells, strict=True)])
        return cls(list(names), cells, text.getvalue().encode(), intercept, scale, divisors)

    @cached_property
    def integer_scale(self) -> IntegerScale:
        """The units of the checker's whole columns."""
        y = np.array(self.cells[-1], dtype=float)
        return IntegerScale.of(self.cells, self.divisors, float(np.abs(y - y.mean()).max()) or 1.0)

    def head(self, **numbers: Any) -> dict[str, Any]:
        """The entries of a certificate that all claims have, and further ones."""
        return {
            "sha256": hashlib.sha256(self.data).hexdigest(),
            "rows": len(self.cells[0]),
            "columns": self.names[:-1],
            "response": self.names[-1],
            "factors": self.integer_scale.factors,
            "intercept": self.intercept,
            "scale": self.scale,
            **numbers,
        }


@dataclass(frozen=True)
class Certificate:
    """A claim with a proof that ``sparsecv verify`` and ``verify.py`` check.

    Attributes
    ----------
    claim : list of str
        What is proved.
    text : str
        The certificate.
    data : bytes
        The table that it is about, a CSV file.
    """

    claim: list[str]
    text: str
    data: bytes = field(repr=False)

    @classmethod
    def of(
        cls, source: CertifiedTable, head: dict[str, Any], blocks: list[dict[str, Any]]
    ) -> Certificate:
        """The certificate of a claim."""
        lines = [json.dumps(entry, separators=(",", ":")) for entry in (head, *blocks)]
        words = claim(head)
        return cls(words, "\n".join([FORMAT, *words, *lines, ""]), source.data)

    @classmethod
    def joined(cls, parts: Sequence[Certificate]) -> Certificate:
        """One certificate of several claims on the same table."""
        (data,) = {one.data for one in parts}
        lines = [line for one in parts for line in one.claim]
        return cls(lines, "".join(one.text for one in parts), data)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate, and its table beside it.

        Parameters
        ----------
        path : path-like
            The file of the certificate; the table's name is the same with ``.csv`` appended.
        """
        with file_faults(f"cannot write {path}"):
            Path(path).write_text(self.text, encoding="utf-8")
            Path(f"{path}.csv").write_bytes(self.data)
