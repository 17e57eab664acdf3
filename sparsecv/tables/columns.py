"""Which columns of a table are used, and the wording of every refusal.

Shared by the CSV, Parquet and NumPy readers, so that the same fault reads the same in each.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

FloatArray = NDArray[np.float64]

MAX_LEVELS = 100
"""A text column with more levels than this is taken for an identifier."""

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?"})
"""Cells (stripped, lower case) that stand for a missing value."""

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_SHOWN = 40


class Selection(NamedTuple):
    """Positions of the feature columns (in file order) and of the target."""

    features: list[int]
    target: int


def shown(value: object) -> str:
    """Quote a value for a one-line message: escaped, and cut when long."""
    text = str(value)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Names for a one-line message, quoted and comma separated, the first ``limit`` of them."""
    every = list(names)
    text = ", ".join(shown(name) for name in every[:limit])
    return text + (f", ... ({len(every)} in all)" if len(every) > limit else "")


def near(name: str, names: Sequence[str]) -> list[str]:
    """Names that ``name`` may have been meant for, best first, at most three."""
    folded: dict[str, str] = {}
    for other in names:
        folded.setdefault(other.casefold(), other)
    hits = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)
    return [folded[hit] for hit in hits]


def suggestion(name: str, names: Sequence[str]) -> str:
    """The end of a message on an unknown column: near matches, or else the names there are."""
    close = near(name, names)
    return f"did you mean {listed(close)}?" if close else f"the columns are {listed(names)}"


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Accept one name where several are expected."""
    return (names,) if isinstance(names, str) else tuple(names)


def check_names(label: str, names: Sequence[str]) -> None:
    """Refuse empty and repeated column names."""
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(
                f"{label}: column {position} has an empty name; name it in the header line, or "
                "remove the column if it is a row index"
            )
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = {name: None for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
        raise InputError(
            f"{label}: duplicate column name {listed(twice)}; give every column its own name"
        )


def select_columns(
    label: str, names: Sequence[str], target: str | None, drop: Iterable[str]
) -> Selection:
    """Find the target and the features among the columns of a table.

    Parameters
    ----------
    label : str
        What messages call the table.
    names : sequence of str
        All column names.
    target : str or None
        The target; None for the last column that is not dropped.
    drop : iterable of str
        Columns to leave out.

    Raises
    ------
    InputError
        Empty, duplicate or unknown names; a dropped target; no feature left.
    """
    check_names(label, names)
    dropped = set(drop)
    for name in drop:
        if name not in names:
            raise InputError(
                f"{label}: --drop names {shown(name)}, which is not a column; "
                f"{suggestion(name, names)}"
            )
    if target is not None and target not in names:
        raise InputError(f"{label}: no target column {shown(target)}; {suggestion(target, names)}")
    if target in dropped:
        raise InputError(
            f"{label}: column {shown(target)} is the target and is also in --drop; "
            "take it out of one of the two"
        )
    kept = [index for index, name in enumerate(names) if name not in dropped]
    if len(kept) < 2:
        raise InputError(
            f"{label}: no feature columns left besides the target; the file needs at least two "
            "columns in use (separated by comma, semicolon or tab in a text file)"
        )
    position = kept[-1] if target is None else list(names).index(target)
    return Selection([index for index in kept if index != position], position)


def check_rows(label: str, n: int) -> None:
    """Refuse a table with fewer than two data rows."""
    if n == 0:
        raise InputError(f"{label}: no data rows (a header only); at least 2 are needed")
    if n < 2:
        raise InputError(f"{label}: only {n} data row; at least 2 are needed")


def _remedy(column: str, is_target: bool) -> str:
    if is_target:  # the target cannot be dropped
        return "or remove the row"
    return f"remove the row, or leave the column out with --drop {shown(column)}"


def missing_error(label: str, column: str, row: int, *, is_target: bool = False) -> InputError:
    """The error for a missing value; ``row`` counts data rows from 1."""
    return InputError(
        f"{label}: missing value in column {shown(column)}, data row {row}; "
        f"fill it in, {_remedy(column, is_target)}"
    )


def infinite_error(label: str, column: str, row: int, *, is_target: bool = False) -> InputError:
    """The error for an infinite value (or one too large for a float)."""
    return InputError(
        f"{label}: infinite value in column {shown(column)}, data row {row}; "
        f"correct it, {_remedy(column, is_target)}"
    )


def text_error(
    label: str,
    column: str,
    example: object,
    *,
    row: int | None = None,
    is_target: bool = False,
    what: str | None = None,
) -> InputError:
    """The error for a column of text or dates, with an example of its values."""
    kind = what or ("dates" if _DATE.match(str(example)) else "text")
    place = f", data row {row}" if row is not None else ""
    if is_target:
        return InputError(
            f"{label}: the target column {shown(column)} is not numeric: it holds {kind} "
            f"(for example {shown(example)}{place}); the target is never encoded, "
            "so name a numeric column with --target"
        )
    return InputError(
        f"{label}: column {shown(column)} holds {kind} (for example {shown(example)}{place}); "
        f"pass --one-hot to encode it, or --drop {shown(column)} to leave it out"
    )


def identifier_error(label: str, column: str, example: object, why: str) -> InputError:
    """The error for a text column that one-hot encoding would make no sense of."""
    return InputError(
        f"{label}: text column {shown(column)} {why} (for example {shown(example)}), so it looks "
        f"like an identifier; leave it out with --drop {shown(column)}"
    )


def check_levels(label: str, column: str, levels: Sequence[str], n: int) -> None:
    """Refuse levels that are all distinct (too many are refused while they are counted)."""
    if len(levels) == n:
        raise identifier_error(label, column, levels[0], "has another value in every row")


def check_finite(
    label: str,
    block: FloatArray,
    names: Sequence[str],
    first_row: int = 0,
    *,
    is_target: bool = False,
) -> None:
    """Refuse a block that holds NaN or an infinite value, naming the first cell in row order.

    Parameters
    ----------
    label : str
        What messages call the table.
    block : ndarray of shape (m, p) or (m,)
        The values; a vector counts as one column.
    names : sequence of str
        The p column names.
    first_row : int
        Data rows before this block.
    is_target : bool
        Whether the block is the target.

    Raises
    ------
    InputError
        Naming the column and the data row (counted from 1).
    """
    # A sum is finite only if every term is, and costs one pass without a temporary array; an
    # overflow of finite terms merely leads to the full check.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(block.sum()):
            return
    columns = block.reshape(block.shape[0], -1)
    bad = ~np.isfinite(columns)
    if not bad.any():
        return
    row = int(bad.any(axis=1).argmax())
    column = int(bad[row].argmax())
    error = missing_error if np.isnan(columns[row, column]) else infinite_error
    raise error(label, names[column], first_row + row + 1, is_target=is_target)


def is_integer(value: Any) -> bool:
    """Whether a value is an integer proper (Python or NumPy, not a bool)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
