"""Factors: which columns are, what their levels are, and their 0/1 columns.

In every function ``label`` is the table's name in messages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np

from ..errors import InputError
from .cells import MAX_CODES, Column, in_order
from .coding import MISSING_LEVEL, Coding
from .columns import (
    FloatArray,
    check_names,
    check_rows,
    quoted,
    quoted_names,
    shell_quoted,
    similar_names,
)
from .faults import Faults
from .source import Source
from .table import joined

MAX_LEVELS = 100
"""A text column with more levels is refused as an identifier of the rows, unless it is declared.

The number is a choice."""
# The 0/1 columns of a table take at most this many bytes. The number is a choice.
MAX_BYTES_OF_LEVELS = 1_500_000_000
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
# The pattern matches dates, to the day, the month or the quarter, and what follows a day.
_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}|\d{8}T\d{2,6}"
    r"|\d{4}([-/]\d{1,2}|[- ]?[MQ]\d{1,2})$|\d{1,2}/\d{4}$"
    rf"|(\d{{1,2}}[-/. ])?{_MONTH}[-/. ]((\d{{1,2}},?[-/ ])?\d{{2,4}})\b",
    re.IGNORECASE,
)
# The pattern matches numbers with separators of thousands, a decimal comma, a currency or a per
# cent sign.
_DISGUISED = re.compile(
    r"[-+(]? ?[$€£¥₹]? ?[-+]?(\d+|\d{1,3}([,.'_\u00a0\u202f ]\d{3})+)([.,]\d+)? ?[$€£¥₹%‰]?\)?"
)
# A column of text holds numbers and at most ``MAX_CODES`` codes, fewer than its distinct numbers,
# where codes are in at most this share of the rows, or the distinct numbers are at least so many.
# Else the column is a factor, such as 2, 3, 4, 5+. Both are choices.
MAX_SHARE_OF_CODES = 0.1
MANY_NUMBERS = 10
# The pattern matches a number with a mark before or behind it, such as 12.5T or 1.234,50 €.
_MARKED = re.compile(
    r"([^\d\s.,+-]{0,3}) ?[-+]?(?:\d{1,3}(?:[., ]\d{3})+(?:[.,]\d*)?|\d+[.,]?\d*|[.,]\d+)"
    r" ?([^\d\s.,+-]{0,3})"
)
_SIGNS = re.compile("[$€£¥₹%‰(]")
_PLAIN = "write digits and a point alone"
# Numbers that may take the place of cells on time, and how pandas makes them of a frame {t}.
_RECIPES = {
    "dates": (
        "such as the year, the month or the days since the first row: for pandas {t}[name].dt.year "
        "or ({t}[name] - {t}[name].min()).dt.days"
    ),
    "periods": "such as the year or the month: for pandas {t}[name].dt.year or {t}[name].dt.month",
    "durations": "such as the seconds: for pandas {t}[name].dt.total_seconds()",
    "times of day": "such as the hour: for pandas {t}[name].map(lambda time: time.hour)",
}


def _describe(column: Column, n: int, faults: Faults) -> None:
    """Add to ``faults`` what keeps a column of words from being a factor.

    Text is no fault, except in the target. Faults are dates and other types. Where the column is
    not declared a factor, faults are also dates and numbers written as text, numbers beside a few
    codes (``_codes``), more than ``MAX_LEVELS`` levels, and another level in every row.

    n: The number of rows.
    faults: Where it has a target, messages are for a user of the command; else they are for a user
        of Python, who knows the table as X.
    """
    name, command = column.name, faults.target is not None
    is_target = name == faults.target
    kind, example = _kind(column)
    example = example if command else ""
    levels, mends, called = len(set(column.words or ())), list[str](), "column"
    codes = list[int]()
    if kind.startswith("type "):
        what = f"has {kind}, neither numeric nor text"
        if not command:
            what, mends = "is neither numeric nor text", ["drop it"]
    elif kind in _RECIPES:
        what = f"holds {kind}{example}" if command else f"is not numeric: it holds {kind}"
        recipe = _RECIPES[kind]
        if not column.other:
            first = "for pandas, after {t}[name] = pandas.to_datetime({t}[name]), "
            recipe = recipe.replace("for pandas ", first)
        mends = [f"replace it by numbers, {recipe.format(t='table' if command else 'X')}"]
    elif kind == "numbers" and (is_target or not column.declared):
        what, mends = f"holds numbers that are not written plainly{example}", [_PLAIN]
        places = [place for place in range(len(column.cells)) if column.number(place) is None]
        if command and (marks := _marks(column, places)):
            what += f", with the mark {quoted_names(marks)}"
        # The options serve no currencies and no per cent.
        if command and not _SIGNS.search("".join(map(str, column.cells[:MAX_LEVELS]))):
            mends.append("name their marks with --decimal and --thousands")
    elif codes := _codes(column):
        what, mends = _of_codes(column, codes, command)
    elif is_target:
        what = f"holds text{example}"
    elif not column.declared and (levels > MAX_LEVELS or levels == n):
        many = levels > MAX_LEVELS
        why = f"has more than {MAX_LEVELS} levels" if many else "has another value in every row"
        what, called = f"{why}{example}, so it looks like an identifier", "text column"
        mends = [_declare(name, command)]
        if not command:
            mends += [f"make numbers of it by pandas.to_numeric(X[{name!r}])", "drop it"]
    else:
        return
    if is_target:
        called, what = "the target column", f"is not numeric: it {what}"
        if (kind == "text" and not codes) or kind in _RECIPES:
            what += "; the target is never encoded"
        # No other remedy turns the target into numbers.
        mends = mends[:-1] if codes else mends if kind == "numbers" else []
        mends = [*mends, "name a numeric column with --target"]
    faults.add(name, f"{called} {quoted(name)} {what}", mends)


def _codes(column: Column) -> list[int]:
    """The positions of the cells that are no numbers, where they are few beside the numbers.

    There are none in a declared factor. Of numbers with up to three marks, such as T in 12.5T,
    there may be nearly as many as plain numbers.
    """
    places = [place for place in range(len(column.cells)) if column.number(place) is None]
    numbers = len(column.cells) - len(places)
    few = 0 < len(places) < numbers
    few = few and (len(places) <= MAX_CODES or 0 < len(_marks(column, places)) <= 3)
    rare = np.isin(column.values, places).mean() <= MAX_SHARE_OF_CODES
    return places if few and (rare or numbers >= MANY_NUMBERS) and not column.declared else []


def _marks(column: Column, places: Sequence[int]) -> list[str]:
    """The marks of cells that are numbers with a mark; none where a cell is something else."""
    found = [_MARKED.fullmatch(str(column.cells[place]).strip()) for place in places]
    marks = ["" if one is None else one[1] + one[2] for one in found]
    return list(dict.fromkeys(marks)) if all(marks) else []


def _of_codes(column: Column, codes: Sequence[int], command: bool) -> tuple[str, list[str]]:
    """What is said of a column of numbers with a few codes, and what a user can do about it."""
    name, marks = column.name, _marks(column, codes)
    rows = int(np.isin(column.values, codes).sum())
    texts = ", ".join(
        f"{quoted(column.cells[code])} (data row {column.row(code)})" for code in codes[:MAX_CODES]
    )
    more = ", ..." * (len(codes) > MAX_CODES)
    what = f"holds numbers, and {texts}{more} in {rows} of {len(column.values)} rows"
    if marks:
        what += f", with the mark {quoted_names(marks)}"
        mends = ["write the numbers alone"]
    elif command and any("," in str(column.cells[code]) for code in codes):
        mends = ["write a number or nothing in these cells"]  # --na divides its value at commas.
    elif command:
        every = ",".join(str(column.cells[code]).strip() for code in codes)
        mends = [f"say that this is a missing value with --na {shlex.quote(every)} --missing drop"]
    else:
        mends = [f"make numbers of it by pandas.to_numeric(X[{name!r}], errors='coerce')"]
    return what, [*mends, _declare(name, command)]


def _declare(name: str, command: bool) -> str:
    """How a user declares a column to be a factor."""
    if command:
        return f"declare it a factor with --factor {shell_quoted(name)}"
    return f"declare it a factor by X[{name!r}].astype('category')"


def _kind(column: Column) -> tuple[str, str]:
    """What a column of words holds, and a cell of it with its row for a message.

    It is "text", a key of ``_RECIPES``, "numbers" that are not written plainly, or "type" with its
    name. Dates and numbers are known by the first ``MAX_LEVELS`` cells that are no plain numbers.
    """
    cells = column.cells
    texts = [place for place in range(len(cells)) if column.number(place) is None]
    some = list(islice(texts or range(len(cells)), MAX_LEVELS))
    example = ""
    if some:
        example = f" (for example {quoted(cells[some[0]])}, data row {column.row(some[0])})"
    words = [str(cells[place]).strip() for place in some]
    if column.other:
        known = column.other in _RECIPES
        return (column.other, example) if known else (f"type {column.other}", "")
    if texts and all(map(_DATE.match, words)) and not column.declared:
        return "dates", example
    return ("numbers" if texts and all(map(_DISGUISED.fullmatch, words)) else "text"), example


def learned(
    label: str,
    n: int,
    columns: Sequence[Column],
    faults: Faults,
    min_rows: int = 2,
    missing: bool = False,
) -> Coding:
    """What the columns of a table become: numbers stay, and words become the levels of a factor.

    A factor becomes one 0/1 column for every level, or, where it has two levels, the 0/1 column of
    its second level.

    label, n: The table's name in messages, and its number of rows.
    faults: Gets what is wrong with columns.
    min_rows: The least number of rows.
    missing: Whether the missing cells of a factor are a level of their own. It is the last one,
        unless the column has the text of ``MISSING_LEVEL`` itself, whose level it then shares.
    Raises InputError: Columns cannot be used, or rows are too few; the message names all columns.
    """
    check_rows(label, n, min_rows)
    levels, cells = dict[str, list[str]](), dict[str, list[tuple[object, str]]]()
    for column in columns:
        if column.words is None:
            continue
        if not column.other:
            faults.missing(column.name, np.flatnonzero(column.missing))
        if column.words or column.other:
            _describe(column, n, faults)
        elif faults.missing_allowed:  # Else each cell is at fault already.
            faults.add(column.name, f"column {quoted(column.name)} has no value")
        levels[column.name] = own = in_order(set(column.words))
        if missing and own and MISSING_LEVEL not in own and column.missing.any():
            own.append(MISSING_LEVEL)
        cells[column.name] = list(zip(column.cells, column.words, strict=True))
    if faults:  # The missing and infinite values of the other columns are told, too.
        for column in columns:
            if column.words is None:
                faults.values(column.values, [column.name])
    faults.check()
    names = [column.name for column in columns]
    coding = Coding(names, levels, single=True, missing=missing, cells=cells)
    # In a saved model ``column=level`` names the level, also where the level has no 0/1 column.
    without = [f"{name}={level}" for name, level in coding.first_levels.items()]
    check_names(label, [*coding.features, *without])
    return coding


def encoded(
    columns: Mapping[str, Column],
    n: int,
    coding: Coding,
    faults: Faults,
    unknown: str = "error",
    check: bool = False,
) -> FloatArray:
    """The columns of a table as numbers, shape (n, features), with 0/1 columns for factors.

    Nobody may write to them: they may be the arrays of the columns.

    columns: The columns of the table by name.
    n: The number of rows.
    coding: What the columns become.
    faults: Gets the cells that cannot be used. They become infinite, and missing cells NaN.
    unknown: With "zero" the 0/1 columns of a cell are 0 if the cell is none of the given levels.
    check: Whether missing, infinite and wrong cells of columns of numbers are told to ``faults``.
    Raises InputError: The 0/1 columns would not fit into memory.
    """
    features = len(coding.features)
    if coding.levels and 8 * n * features > MAX_BYTES_OF_LEVELS:
        name = max(coding.levels, key=lambda one: len(coding.levels[one]))
        raise InputError(
            f"{faults.label}: the 0/1 columns of the factors take {8e-9 * n * features:.1f} GB, "
            f"above the limit of {1e-9 * MAX_BYTES_OF_LEVELS:.1f} GB: column {quoted(name)} has "
            f"{len(coding.levels[name]):,} levels; merge levels, or leave the column out"
        )
    numbers = {one: columns[one].as_numbers() for one in coding.names if one not in coding.levels}
    if check:
        for name, values in numbers.items():
            _check_numbers(columns[name], values, faults)
    if numbers and not coding.levels:
        return joined(*numbers.values())
    X = np.empty((n, features))
    for name, own in coding.places:
        if name in numbers:
            X[:, own[0]] = numbers[name]
        else:
            block = X[:, own[0] : own[-1] + 1]
            _write_levels(block, columns[name], coding, faults, unknown)
    return X


def _write_levels(
    block: FloatArray, column: Column, coding: Coding, faults: Faults, unknown: str
) -> None:
    """Write the 0/1 columns of a factor to a block: NaN where a cell is missing and has no level.

    block, shape (n, m): The columns of the last m levels, which are all levels or all but one.
    coding: It has all levels of the factor.
    faults: Gets missing cells without a level, and cells that are none of the levels.
    unknown: With "zero" such a cell has 0 in every column, and is no fault; else it is infinite.
    """
    words, name = column.words or (), column.name
    levels = coding.levels[name]
    index = {level: k for k, level in enumerate(levels)}
    # Of every row the position of its level, -1 for a cell that is none, and -2 for a missing one.
    without = index[MISSING_LEVEL] if name in coding.with_missing else -2
    level_of = np.array([*(index.get(word, -1) for word in words), without])[column.values]
    first = len(levels) - block.shape[1]
    np.equal(level_of[:, None], np.arange(first, len(levels)), out=block, casting="unsafe")
    missing, other = np.flatnonzero(level_of == -2), np.flatnonzero(level_of == -1)
    block[missing] = np.nan
    faults.missing(name, missing)
    if unknown != "zero" and other.size:
        block[other] = np.inf
        strange = dict.fromkeys(word for word in words if word not in index)
        what = (
            f"column {quoted(name)} holds {quoted_names(strange, 3)}, which is none of its "
            f"levels: {quoted_names(levels)}"
        )
        # This helps cross_val_score, too, where the training rows of a fold lack a rare level.
        zero = "pass unknown='zero' (--unknown zero), which gives such a row 0 for every level"
        faults.add(name, what, [zero, "correct it"], other)


def _check_numbers(column: Column, values: FloatArray, faults: Faults) -> None:
    """Tell ``faults`` which cells of a column are missing, infinite or text.

    values: What ``column.as_numbers()`` returns: a text is infinite.
    """
    name = column.name
    if column.words is None:
        faults.values(values, [name])
        return
    faults.missing(name, np.flatnonzero(np.isnan(values)))
    if len(rows := np.flatnonzero(np.isinf(values))):
        cell = quoted(column.cells[column.values[rows[0]]])
        what = f"column {quoted(name)} holds {cell}, which is no number"
        faults.add(name, what, ["correct it", "remove the row"], rows)


def features(
    source: Source,
    coding: Coding,
    wanted: Sequence[str],
    faults: Faults,
    fills: Mapping[str, float] | None = None,
    unknown: str = "error",
) -> FloatArray:
    """The features of a model in the rows of a table, shape (n, len(wanted)).

    source: The table; no response is needed.
    coding: The columns to read, with the levels of factors.
    wanted: The features in the model's order: a column's name, or ``column=level``.
    faults: Gets the rows that cannot be used, which hold values that are not finite.
    fills: What missing values of a feature are filled with, by its name.
    unknown: With "zero" a cell that is no level has no level; with "error" it is a fault.
    Raises InputError: A column is missing or repeated, or holds what the model cannot use.
    """
    names = list(coding.names)
    _check_columns(source.label, source.names, names)
    n, columns, _ = source.read(names, coding.levels.keys())
    check_rows(source.label, n, min_rows=1)
    for column in columns.values():
        if column.other:
            _describe(column, n, faults)
    faults.check()
    check_names(source.label, coding.features)
    every = encoded(columns, n, coding, faults, unknown, check=True)
    places = {name: place for place, name in enumerate(coding.features)}
    X = every[:, [places[name] for name in wanted]]
    return np.where(np.isnan(X), [fills[name] for name in wanted], X) if fills else X


def _check_columns(label: str, names: Sequence[str], columns: Collection[str]) -> None:
    """Raise an InputError where ``columns`` are not among a table's ``names``, or stand twice."""
    known, wanted = set(names), set(columns)
    missing = [name for name in columns if name not in known]
    if missing:
        close = dict.fromkeys(other for name in missing for other in similar_names(name, names))
        hint = f"; it has {quoted_names(close)}" if close else ""
        columns_missing = f"column{'s' * (len(missing) > 1)} {quoted_names(missing)}"
        needed = f"the model needs {columns_missing}, which the table does not have"
        raise InputError(f"{label}: {needed}{hint}")
    check_names(label, names, ignored=known - wanted)
