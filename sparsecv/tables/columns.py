"""The names of a table's columns and their uses.

In every function ``label`` is the table's name in messages, and ``names`` are all column names.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

FloatArray = NDArray[np.float64]
PARQUET_SUFFIXES = {".parquet", ".pq"}
WORKBOOK_SUFFIXES = {".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"}
TABLE_SUFFIXES = {".csv", ".tsv", ".txt", *PARQUET_SUFFIXES, *WORKBOOK_SUFFIXES, ".gz"}

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?"})
"""A cell that has one of these texts, in any case and with blanks around it, is missing."""
# A message advises to leave out at most so many columns without names, such as those that marks at
# the ends of lines make. The number is a choice: more columns are the table, and lack its header.
MAX_EMPTY_NAMES = 4


class Selection(NamedTuple):
    """The names of the columns in use; the features are in the order of the file.

    target: The response.
    weights, groups, offset: The columns of the rows' weights, of their groups, and of what is taken
        off the response; None for no such column.
    """

    features: list[str]
    target: str
    weights: str | None = None
    groups: str | None = None
    offset: str | None = None


def quoted(value: object, max_characters: int = 40) -> str:
    """A value between quote marks for a message, its text cut to ``max_characters`` characters.

    Line breaks and other control characters are escaped, so that the message stays on one line.
    """
    text = str(value)
    return repr(text if len(text) <= max_characters else text[: max_characters - 3] + "...")


def quoted_names(names: Iterable[str], max_names: int = 8) -> str:
    """The first ``max_names`` of some names for a message, each quoted, with commas between."""
    every = list(names)
    text = ", ".join(map(quoted, every[:max_names]))
    return text + (f", ... ({len(every)} in all)" if len(every) > max_names else "")


def similar_names(name: str, names: Sequence[str]) -> list[str]:
    """The at most three of ``names`` that are spelt most like ``name``, the closest first."""
    folded = {other.casefold(): other for other in reversed(names)}
    hits = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)
    return [folded[hit] for hit in hits]


def suggestion(name: str, names: Sequence[str]) -> str:
    """The end of a message on the unknown column ``name``: similar names, or else all names."""
    close = similar_names(name, names)
    if close:
        return f"did you mean {quoted_names(close)}?"
    return f"the columns are {quoted_names(names)}"


def shell_quoted(text: str) -> str:
    """A text between quote marks, as a shell takes it, whole and on one line."""
    if not text.isprintable():
        escaped = text.encode("unicode_escape").decode().replace("'", "\\'")
        return f"$'{escaped}'"
    return "'" + text.replace("'", "'\"'\"'") + "'"


def exclude_option(names: Sequence[str]) -> str:
    """The option --exclude with all these names, as a shell takes it."""
    plain = [name for name in names if name and "," not in name]
    others = [name for name in names if name not in plain]
    parts = [",".join(plain)] * bool(plain) + others
    return " ".join(f"--exclude {shell_quoted(part)}" for part in parts)


def numbered(positions: Sequence[int], max_positions: int = 8) -> str:
    """Columns named by their positions, from 1, such as "columns 2, 5 and 7"."""
    if len(positions) == 1:
        return f"column {positions[0]}"
    if len(positions) > max_positions:
        shown = ", ".join(map(str, positions[:max_positions]))
        return f"columns {shown}, ... ({len(positions)} in all)"
    *first, last = map(str, positions)
    return f"columns {', '.join(first)} and {last}"


def check_names(label: str, names: Sequence[str], ignored: Collection[str] = ()) -> None:
    """Raise an InputError where a column name is empty or occurs twice, unless it is ignored."""
    places = dict[str, list[int]]()
    for position, name in enumerate(names, start=1):
        if name not in ignored:
            places.setdefault(name.strip() and name, []).append(position)
    if blank := places.get(""):
        what, it, holds = "has an empty name", "it", "it holds the names of the rows, or nothing"
        if len(blank) > 1:
            what, it, holds = "have empty names", "them", "they hold nothing"
        remedy = f", or leave {it} out with --exclude '' if {holds}"
        raise InputError(
            f"{label}: {numbered(blank)} {what}; name {it} in the header line"
            f"{remedy * (len(blank) <= MAX_EMPTY_NAMES)}"
        )
    twice = [
        f"{quoted(name)} ({numbered(positions)})"
        for name, positions in places.items()
        if len(positions) > 1
    ]
    if twice:
        more = f", ... ({len(twice)} names in all)" * (len(twice) > 8)
        raise InputError(
            f"{label}: duplicate column name {', '.join(twice[:8])}{more}; give every column its "
            "own name"
        )


def select_columns(
    label: str, names: Sequence[str], drop: Sequence[str], uses: Mapping[str, str | None]
) -> Selection:
    """Find the columns of a table that have a use of their own; the other columns are features.

    drop: Names of columns to leave out, as they are written in the table.
    uses: The columns named by a user for "target", which must be a key, and for other fields of
        :class:`Selection`, or None. A name may differ from a column's in upper and lower case, if
        no other column's does. Without a target the response is the last column that has no other
        use.
    Raises InputError: A name is empty, repeated or unknown, a column has two uses, or no feature
        is left.
    """
    dropped = set(drop)
    for name in drop:
        if name not in names:
            what = f"--exclude names {quoted(name)}, which is not a column"
            raise InputError(f"{label}: {what}; {suggestion(name, names)}")
    check_names(label, names, ignored=dropped)
    # The columns that are no features, with the words that say why, and each use with its column.
    taken, chosen = dict.fromkeys(dropped, "in --exclude"), dict(uses)
    for use, wanted in uses.items():
        if wanted is None:
            continue
        alike = [name for name in names if name.casefold() == wanted.casefold()]
        if wanted not in names and len(alike) != 1:
            hint = suggestion(wanted, names)
            raise InputError(f"{label}: no {use} column {quoted(wanted)}; {hint}")
        name = wanted if wanted in names else alike[0]
        what = "the target" if use == "target" else f"named by --{use}"
        if name in taken:
            raise InputError(
                f"{label}: column {quoted(name)} is {what} and is also {taken[name]}; "
                "take it out of one of the two"
            )
        chosen[use], taken[name] = name, what
    remaining = [name for name in names if name not in taken or name == chosen["target"]]
    if len(remaining) < 2:
        raise InputError(
            f"{label}: no feature columns left besides the target; the file needs at least two "
            "columns in use (separated by comma, semicolon, tab or | in a text file)"
        )
    target = chosen["target"] or remaining[-1]
    features = [name for name in remaining if name != target]
    others = {use: name for use, name in chosen.items() if use != "target"}
    return Selection(features, target, **others)


def check_rows(label: str, n: int, min_rows: int = 2) -> None:
    """Raise an InputError where a table has ``n`` data rows and ``min_rows`` are needed."""
    if n < min_rows:
        found = f"only {n} data row" if n else "no data rows (a header only)"
        raise InputError(f"{label}: {found}; at least {min_rows} are needed")


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; True and False do not count."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def reads_as_number(cell: str) -> bool:
    """Whether a cell of text is a number that Python reads, without underscores."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_finite(*blocks: FloatArray) -> bool:
    """Whether all values of all blocks are finite.

    A finite sum proves that every term is finite, and takes no temporary array. Where the sum is
    not finite, which an overflow can also cause, the values are tested one by one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.isfinite(block.sum()) or np.isfinite(block).all() for block in blocks)
