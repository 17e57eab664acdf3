"""Names of columns: which are used as features, response, weights and groups."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

FloatArray = NDArray[np.float64]

BLOCK_ROWS = 65536
"""Rows of a table that are read at a time unless a caller asks for another number of rows.

A block of 100 columns then takes 52 MB; doubling the number doubles that."""


class Selection(NamedTuple):
    """Names of the columns in use: features (in file order), response, weights and groups."""

    features: list[str]
    target: str
    weights: str | None = None
    groups: str | None = None


def shown(value: object, most: int = 40) -> str:
    """Quote a value for a one-line message: escaped, and cut to ``most`` characters."""
    text = str(value)
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Names for a one-line message, quoted and comma separated, the first ``limit`` of them."""
    every = list(names)
    text = ", ".join(shown(name) for name in every[:limit])
    return text + (f", ... ({len(every)} in all)" if len(every) > limit else "")


def near(name: str, names: Sequence[str]) -> list[str]:
    """At most three of ``names`` that ``name`` may be a misspelling of, the closest first."""
    folded = {other.casefold(): other for other in reversed(names)}
    hits = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)
    return [folded[hit] for hit in hits]


def suggestion(name: str, names: Sequence[str]) -> str:
    """The end of a message on an unknown column: similar names, or else all names."""
    close = near(name, names)
    return f"did you mean {listed(close)}?" if close else f"the columns are {listed(names)}"


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """A single name, or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def check_names(label: str, names: Sequence[str]) -> None:
    """Refuse empty and repeated column names.

    label: What messages call the table.
    Raises InputError: A name is empty or occurs twice.
    """
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(
                f"{label}: column {position} has an empty name; name it in the header line, or "
                "leave it out with --drop '' if it is a row index, as pandas writes one"
            )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{label}: duplicate column name {listed(twice)}; give every column its own name"
        )


def dropped_columns(label: str, names: Sequence[str], drop: Iterable[str]) -> set[str]:
    """Columns to leave out, where each value of ``drop`` is a name or names between commas.

    label: What messages call the table.
    names: Names of all columns.
    Raises InputError: A name is no column.

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
    """The column called ``wanted``, in upper or lower case if only one column fits.

    label: What messages call the table.
    names: Names of all columns.
    what: What the column is to be, such as "target", for the message.
    Returns: The name as the table spells it.
    Raises InputError: No column is called so, or several that differ in case alone.
    """
    if wanted in names:
        return wanted
    alike = [name for name in names if name.casefold() == wanted.casefold()]
    if len(alike) != 1:
        raise InputError(f"{label}: no {what} column {shown(wanted)}; {suggestion(wanted, names)}")
    return alike[0]


def select_columns(
    label: str,
    names: Sequence[str],
    target: str | None,
    drop: Iterable[str],
    weights: str | None = None,
    groups: str | None = None,
) -> Selection:
    """Find the response, the weights and the groups among a table's columns; the rest are features.

    label: What messages call the table.
    names: Names of all columns.
    target: The response, as a user spells it; None stands for the last column left.
    drop: Columns to leave out; a value that is no column may hold several names, comma-separated.
    weights, groups: Columns that are no features, as a user spells them.
    Raises InputError: A name is empty, repeated or unknown, a column is named twice, or no feature
        is left.

    Examples
    --------
    >>> select_columns("t.csv", ["id", "a", "Price"], "price", ["id"])
    Selection(features=['a'], target='Price', weights=None, groups=None)
    """
    dropped = dropped_columns(label, names, drop)
    check_names(label, [name for name in names if name not in dropped])
    taken: dict[str, str] = dict.fromkeys(dropped, "in --drop")
    found: dict[str, str | None] = {}
    for what, asked in (("target", target), ("weights", weights), ("groups", groups)):
        found[what] = name = None if asked is None else find_column(label, names, asked, what)
        if name is None:
            continue
        as_what = "the target" if what == "target" else f"named by --{what}"
        if name in taken:
            raise InputError(
                f"{label}: column {shown(name)} is {as_what} and is also {taken[name]}; "
                "take it out of one of the two"
            )
        taken[name] = as_what
    left = [name for name in names if name not in taken or name == found["target"]]
    if len(left) < 2:
        raise InputError(
            f"{label}: no feature columns left besides the target; the file needs at least two "
            "columns in use (separated by comma, semicolon, tab or | in a text file)"
        )
    response = found["target"] or left[-1]
    features = [name for name in left if name != response]
    return Selection(features, response, found["weights"], found["groups"])


def check_rows(label: str, n: int, least: int = 2) -> None:
    """Refuse a table of ``n`` data rows where ``least`` are needed.

    label: What messages call the table.
    Raises InputError: The table has too few rows.
    """
    if n == 0:
        raise InputError(f"{label}: no data rows (a header only); at least {least} are needed")
    if n < least:
        raise InputError(f"{label}: only {n} data row; at least {least} are needed")


def is_integer(value: Any) -> bool:
    """Whether a value is an integer proper (Python or NumPy, not a bool)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
