"""Which columns of a table are used."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

FloatArray = NDArray[np.float64]

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
    """Refuse empty and repeated column names.

    label: Of the table, for the message.
    Raises InputError: A name that is empty or occurs twice.
    """
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(
                f"{label}: column {position} has an empty name; name it in the header line, or "
                "leave it out with --drop '' if it is a row index, as pandas writes one"
            )
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = {name: None for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
        raise InputError(
            f"{label}: duplicate column name {listed(twice)}; give every column its own name"
        )


def dropped_columns(label: str, names: Sequence[str], drop: Iterable[str]) -> set[str]:
    """Columns to leave out: each value is a name, or several separated by commas.

    label: Of the table, for the message.
    names: Of all columns.
    Raises InputError: A name that is no column.

    Examples
    --------
    >>> sorted(dropped_columns("t.csv", ["a", "b", "c"], ["a,c"]))
    ['a', 'c']
    """
    dropped = set()
    for value in drop:
        parts = [value] if value in names or not value else value.split(",")
        for name in (part if part in names else part.strip() for part in parts):
            if name not in names:
                raise InputError(
                    f"{label}: --drop names {shown(name)}, which is not a column; "
                    f"{suggestion(name, names)}"
                )
            dropped.add(name)
    return dropped


def find_column(label: str, names: Sequence[str], wanted: str, what: str) -> str:
    """The column that is wanted as the target, say; in any case if only one is spelt so.

    label: Of the table, for the message.
    names: Of all columns.
    what: What the column is to be, for the message.
    Returns: As the table spells it.
    Raises InputError: There is none, or more than one that differs in case alone.
    """
    if wanted in names:
        return wanted
    alike = [name for name in names if name.casefold() == wanted.casefold()]
    if len(alike) != 1:
        raise InputError(f"{label}: no {what} column {shown(wanted)}; {suggestion(wanted, names)}")
    return alike[0]


def select_columns(
    label: str, names: Sequence[str], target: str | None, drop: Iterable[str]
) -> Selection:
    """Find the target and the features among the columns of a table.

    label: What messages call the table.
    names: All column names.
    target: The target, in any case if only one column is spelt so; None for the last column that is
        not dropped.
    drop: Columns to leave out; a value that is no column may hold several names, comma-separated.
    Returns: Positions of the features and of the target.
    Raises InputError: Empty, duplicate or unknown names; a dropped target; no feature left.

    Examples
    --------
    >>> select_columns("t.csv", ["id", "a", "Price"], "price", ["id"])
    Selection(features=[1], target=2)
    """
    dropped = dropped_columns(label, names, drop)
    check_names(label, [name for name in names if name not in dropped])
    if target is not None:
        target = find_column(label, names, target, "target")
    if target in dropped:
        raise InputError(
            f"{label}: column {shown(target)} is the target and is also in --drop; "
            "take it out of one of the two"
        )
    kept = [index for index, name in enumerate(names) if name not in dropped]
    if len(kept) < 2:
        raise InputError(
            f"{label}: no feature columns left besides the target; the file needs at least two "
            "columns in use (separated by comma, semicolon, tab or | in a text file)"
        )
    position = kept[-1] if target is None else list(names).index(target)
    return Selection([index for index in kept if index != position], position)


def check_rows(label: str, n: int, least: int = 2) -> None:
    """Refuse a table with fewer data rows than are needed.

    label: Of the table, for the message.
    n, least: Rows there are, and rows needed.
    Raises InputError: Fewer than are needed.
    """
    if n == 0:
        raise InputError(f"{label}: no data rows (a header only); at least {least} are needed")
    if n < least:
        raise InputError(f"{label}: only {n} data row; at least {least} are needed")


def is_integer(value: Any) -> bool:
    """Whether a value is an integer proper (Python or NumPy, not a bool)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
