"""Delimited text, which pandas reads: its header, its marks, and what is wrong with its rows."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, file_faults, first_line
from .cells import MAX_CODES, Column, column_of, column_of_numbers, level_text
from .columns import MISSING, FloatArray, check_names, quoted, reads_as_number
from .marks import Marks, Reading, checked_encoding, marks_of, possible_marks
from .source import CELLS_AT_A_TIME, Cells, Source

# Where two of these marks are equally frequent in the header line, the earlier mark is preferred.
_DELIMITERS = "\t;,|"
# What a user can do whose file has no line of names.
_WITHOUT_NAMES = ", name the columns with --names FILE, or pass --no-header for x1, x2, ..."
# pandas finds missing cells fast where it knows their texts; ``column_of`` finds the others.
_USUAL_MISSING = sorted({*MISSING, *(text.upper() for text in MISSING), "NaN", "-NaN"})


def _count_outside_quotes(line: str, delimiter: str) -> int:
    """How often a delimiter stands outside quoted fields; every second piece is inside quotes."""
    return sum(piece.count(delimiter) for piece in line.split('"')[::2])


def detect_delimiter(header: str, first: str) -> str:
    """The mark that separates the columns: a tab, semicolon, comma or bar.

    The answer is the mark that is most frequent in the header line outside quotes, among the marks
    that are as frequent in the first line of data; or among all marks if none is.

    header, first: The line of the names, and the first line of data, which may be empty.
    """
    counts = {mark: _count_outside_quotes(header, mark) for mark in _DELIMITERS}
    ranked = sorted(_DELIMITERS, key=lambda mark: -counts[mark])
    for mark in ranked:
        if counts[mark] and _count_outside_quotes(first, mark) == counts[mark]:
            return mark
    return ranked[0] if counts[ranked[0]] else ","


def _by_spaces(name: str, cell: str) -> bool:
    """Whether a name and the cell below it look like several of each, with blanks between them."""
    parts = cell.split()
    if len(parts) < 2 or len(parts) != len(name.split()):
        return False
    # 12 345 may be a number with a blank between thousands.
    is_number = any(Marks(point, " ").number(" ".join(parts)) is not None for point in ".,")
    return not is_number and all(reads_as_number(part) or part in MISSING for part in parts)


def check_header(label: str, names: Sequence[str], row: Sequence[str], reading: Reading) -> None:
    """Raise an InputError where the first line of a table does not hold names of columns.

    names, row: The cells of the first line, and those of the first row below.
    """
    numbers = [name for name in names if reads_as_number(name)]
    twice = [name for name, count in Counter(numbers).items() if count > 1]
    wide = len(row) > 1 or any(mark in cell for cell in row for mark in _DELIMITERS)
    blank = not all(names)
    titled = wide and bool(names[0]) and not any(names[1:])
    # The row below is the line of names if it has neither gaps, as the first line has, nor numbers.
    full = len(row) == len(names) and MISSING.isdisjoint(cell.strip().lower() for cell in row)
    titled = titled or (blank and full and not _numbers_in(row))
    one = len(names) == 1 and " " in names[0] and len(names[0].split()) == len("".join(row).split())
    if one or any(map(_by_spaces, names, row)):
        wrong = "the columns seem to be separated by spaces; separate them by comma, semicolon, "
        wrong += "tab or | (pandas.read_csv(path, sep=r'\\s+') reads such files)"
    elif reading.header is not None:
        return
    elif len(numbers) == len(names):
        wrong = f"the first line holds numbers only (for example {quoted(names[0])}); add a header "
        wrong += f"line with the column names{_WITHOUT_NAMES}"
    elif twice:
        wrong = f"the first line has {quoted(twice[0])} twice, and looks like a row and no line of "
        wrong += f"names; add a header line{_WITHOUT_NAMES}"
    elif titled:
        wrong = f"the first line {quoted(', '.join(filter(None, names)))} looks like a title above "
        wrong += "the header line; remove it"
    else:
        return
    raise InputError(f"{label}: {wrong}")


def _numbers_in(cells: Sequence[str]) -> bool:
    """Whether a cell is a number in any way to write numbers."""
    ways = [Marks(point, other) for point, other in ((".", ","), (",", "."))]
    return any(way.number(cell.strip()) is not None for cell in cells for way in ways)


def refuse_row_as_names(label: str, columns: Collection[Column]) -> None:
    """Raise an InputError where the first line of a table, taken for names, looks like a row.

    A text above numbers is a name. Where no column of numbers has one, or fewer columns of numbers
    have one than columns of text repeat one of their cells in the first line, the line is a row.
    Numbers in equal steps may be names, such as years.

    columns: The columns with the names that the first line gives.
    """
    numbers, named, repeated = list[str](), 0, list[str]()
    for column in columns:
        if column.words is not None:
            repeated += [column.name] * (level_text(column.name) in column.words)
        elif _numbers_in([column.name]) or level_text(column.name) in ("True", "False"):
            numbers.append(column.name)
        else:
            named += column.name.lower() not in MISSING
    steps = np.diff([float(name) for name in numbers if reads_as_number(name)])
    even = len(steps) > 1 and bool((np.abs(steps - steps[0]) <= 1e-9 * np.abs(steps[0])).all())
    if len(repeated) > named or (numbers and not named and not (even and not repeated)):
        above = f"{quoted(numbers[0])} stands above numbers" if numbers else ""
        again = f"{quoted(repeated[0])} is also a cell below it" if repeated else ""
        why = " and ".join(filter(None, (again, above)))
        raise InputError(
            f"{label}: the first line looks like a row and no line of names ({why}); add a header "
            f"line{_WITHOUT_NAMES}; pass --header if the line holds names"
        )


def in_numbers(
    label: str,
    columns: dict[str, Column],
    possible: list[Marks],
    known: str | None,
    as_text: Callable[[Sequence[str]], dict[str, Column]] = lambda names: {},
    in_doubt: bool = False,
) -> tuple[dict[str, Column], str | None]:
    """The columns of a table of text, those of words as numbers where all of them are numbers.

    possible, known, in_doubt: Those of :func:`~sparsecv.tables.marks.marks_of`.
    as_text: Takes names of columns that are numbers by the usual marks, the first of ``possible``,
        and returns them as columns of words.
    Returns: The columns, and the decimal mark that the words show, None where they show none.
    Raises InputError: The table leaves open what its decimal mark is.
    """

    def in_marks(column: Column) -> bool:
        """Whether the texts are numbers, or all but a few codes, which show nothing of marks."""
        each = column.texts()
        others = (t for t, _ in each if all(one.number(t) is None for one in possible))
        codes = len(list(islice(others, MAX_CODES + 1)))
        return not codes or (codes <= MAX_CODES and 2 * codes < len(each))

    own = [one for one in columns.values() if one.words and not one.declared and not one.other]
    numbers = {one.name: one for one in own if in_marks(one)}
    # Columns that were read as numbers may be numbers in another way as well, such as 3.102.
    if (numbers or in_doubt) and len(possible) > 1:
        others = [name for name, one in columns.items() if one.words is None]
        numbers |= {name: one for name, one in as_text(others).items() if one.words}
    texts = {name: one.texts() for name, one in numbers.items()}
    shown = marks_of(label, texts, possible, in_doubt, known)
    marks = shown or possible[0]
    found = columns if marks == possible[0] else columns | numbers
    return {name: one.under(marks) for name, one in found.items()}, shown and shown.decimal


def read_names(path: Path) -> tuple[str, ...]:
    """The names in the file of --names, one in each line or several with a mark between them.

    Raises InputError: The file cannot be read, or a name is empty or occurs twice.
    """
    what = f"--names {path}"
    try:
        with file_faults(what):
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        every = csv.reader(lines, delimiter=detect_delimiter((lines or [""])[0], ""), strict=True)
        names = [name.strip() for row in every for name in row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{what}: no list of names in UTF-8 ({first_line(error)})") from None
    if not names:
        raise InputError(f"{what}: the file is empty; it should hold a name for every column")
    check_names(what, names)
    return tuple(names)


def names_of(label: str, top: Sequence[str], reading: Reading) -> list[str]:
    """The names of a table's columns, from the cells of its first line or as a user says.

    Raises InputError: A user names more columns, or fewer, than the table has.
    """
    if reading.names and len(reading.names) != len(top):
        given = f"{len(reading.names)} name{'s' * (len(reading.names) > 1)}"
        have = f"{len(top)} column{'s' * (len(top) > 1)}"
        raise InputError(f"{label}: --names gives {given} where the table has {have}")
    numbered = [f"x{j}" for j in range(1, len(top) + 1)]
    return [*(reading.names or (top if reading.has_header else numbered))]


class _Parsed(NamedTuple):
    """Columns of a file of text as pandas reads them, by their positions.

    n: The number of rows.
    numbers: Columns of numbers, each shape (n,). They are columns of one array, whose rows are
        filled while pieces of the file are read.
    words: Columns of text, or of true and false, as series of pandas.
    floats: Positions of columns of numbers that are not all written as whole numbers.
    """

    n: int
    numbers: dict[int, FloatArray]
    words: dict[int, Any]
    floats: set[int]


class TextFile:
    """A text file, of which the constructor reads the names of the columns.

    path: The file, which is decompressed where the name ends in ``.gz``.
    reading: What the user says of the text in the file.
    content: The bytes of the standard input, in place of a file.
    Raises InputError: The file cannot be read, is no text, or has no header line.
    """

    def __init__(self, path: Path, reading: Reading, content: bytes | None = None) -> None:
        self.path, self._content, self._reading = path, content, reading
        self.label = "standard input" if content is not None else path.name
        self._possible = possible_marks(reading)
        try:
            self._encoding = checked_encoding(reading.encoding)
        except ValueError as error:
            raise InputError(f"--encoding: {error}") from None
        with self._lines() as lines:
            self._read_header(lines)

    @property
    def source(self) -> Source:
        """The file as a table whose columns are read by name."""
        return Source(self.label, self.names, self.read, reading=self._reading, in_lines=True)

    @contextmanager
    def _lines(self) -> Iterator[io.TextIOWrapper]:
        """Open the file for reading lines of text; errors while it is open become InputErrors."""
        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        try:
            if self._content is not None:
                handle: Any = io.BytesIO(self._content)
            elif self.path.suffix.lower() == ".gz":
                handle = gzip.open(self.path)  # noqa: SIM115
            else:
                handle = open(self.path, "rb")  # noqa: SIM115
            with handle, io.TextIOWrapper(handle, encoding, newline="") as lines:
                yield lines
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = "not a complete gzip file; compress it again"
            raise InputError(f"{self.label}: {reason}") from error
        except UnicodeError as error:
            raise InputError(
                f"{self.label}: not {self._encoding.upper()} text; name its --encoding, such as "
                "latin-1, or save it as UTF-8 (Parquet files are known by their suffix)"
            ) from error
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from error
        except csv.Error as error:
            raise InputError(f"{self.label}: malformed quotes in the header ({error})") from error

    def _read_header(self, lines: Iterator[str]) -> None:
        """Set the columns' names, the delimiter, the usual marks and the header's last line.

        Raises InputError: There is no header, or the first row does not fit it.
        """
        above, header = next(((i, line) for i, line in enumerate(lines) if line.strip()), (0, ""))
        if not header:
            raise InputError(f"{self.label}: the file is empty; a header line is needed")
        first = next(lines, "")
        self._delimiter = detect_delimiter(header, first)
        rest = chain([header, first], lines)
        reader = csv.reader(rest, delimiter=self._delimiter, skipinitialspace=True, strict=True)
        top = [name.strip() for name in next(reader)]
        # The lines before the data, as pandas skips them; the header may hold quoted line breaks.
        self._above = above + reader.line_num if self._reading.has_header else above
        try:
            row = next((fields for fields in reader if "".join(fields).strip()), [])
        except csv.Error:
            row = []
        check_header(self.label, top, row, self._reading)
        self.names = names_of(self.label, top, self._reading)
        if not self._reading.has_header:
            row = top
        # pandas takes the length of the first row for that of all rows.
        if len(row) != len(self.names) and row:
            self._check_rows()
        # The first row shows the usual way to write numbers, which stands first from here on.
        commas = self._delimiter != "," and any(
            Marks(",").number(cell.strip()) is not None and "," in cell for cell in row
        )
        self._possible.sort(key=lambda marks: marks.decimal, reverse=not commas)

    def _check_rows(self, reason: str = "") -> None:
        """Raise an InputError that names the first row that does not fit the header, if one does.

        reason: Why pandas refuses the file, where it does; there is an error then in any case.
        """
        width, line = len(self.names), 1  # The line at which the row begins, for messages.
        with self._lines() as lines:
            rows = csv.reader(
                lines, delimiter=self._delimiter, skipinitialspace=True, strict=bool(reason)
            )
            try:
                for fields in rows:
                    is_blank = len(fields) <= 1 and not "".join(fields).strip()
                    if line > self._above and len(fields) != width and not is_blank:
                        break
                    line = rows.line_num + 1
                else:
                    if not reason:
                        return
                    raise InputError(
                        f"{self.label}: malformed quotes or field ({reason}); correct it"
                    )
            except csv.Error:
                raise InputError(
                    f"{self.label}: malformed quotes from line {line} on; correct that line"
                ) from None
        named = self._reading.has_header
        is_first = named and line == self._above + 1
        hint = " (or remove line 1, if it is a title above the header)" * is_first
        raise InputError(
            f"{self.label}: line {line} has {len(fields)} fields where the "
            f"{'header' if named else 'first line'} has {width}; correct that line{hint}"
        )

    def _pieces(self, texts: Collection[int], places: list[int] | None = None) -> Iterator[Any]:
        """Yield the rows as data frames of pandas, whose columns are named by their positions.

        texts: Positions of columns that are read as text.
        places: Positions of the columns that are read. By default all are, and only then does
            pandas refuse rows that are too long.
        Raises InputError: Rows do not fit the header.
        """
        import pandas as pd

        options: Any = {}
        if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
            options["float_precision"] = "round_trip"  # Newer versions always round correctly.
        with self._lines() as lines:
            for _ in range(self._above):
                next(lines)
            try:
                with pd.read_csv(
                    lines,
                    sep=self._delimiter,
                    header=None,
                    names=range(len(self.names)),
                    index_col=False,
                    usecols=places,
                    dtype=dict.fromkeys(texts, str),
                    skipinitialspace=True,
                    keep_default_na=False,
                    na_values=_USUAL_MISSING,
                    decimal=self._possible[0].decimal,
                    chunksize=max(1, CELLS_AT_A_TIME // len(self.names)),
                    low_memory=False,  # A column of a piece then has one type.
                    **options,
                ) as reader:
                    yield from reader
                return
            except pd.errors.EmptyDataError:  # There is a header alone.
                return
            except pd.errors.ParserError as error:
                reason = first_line(error)
        self._check_rows(reason)

    def _texts(self, places: list[int]) -> dict[int, Any]:
        """The columns at some positions as text, each as a series of pandas."""
        import pandas as pd

        pieces = [*self._pieces(texts=places, places=places)] if places else []
        return {j: pd.concat([piece[j] for piece in pieces]) for j in places if pieces}

    def _parsed(self, texts: Collection[int], places: Sequence[int]) -> _Parsed:
        """The rows as pandas reads them, piece by piece.

        A column is of numbers or of words by its first piece. Where another piece differs, the
        column is mixed, and is read once more as text.

        texts: Positions of columns that are read as text.
        places: Positions of all columns that are kept.
        """
        import pandas as pd

        n, last, is_short = 0, len(self.names) - 1, False
        first, mixed = dict[int, str](), set[int]()  # The kinds of the first piece, by position.
        numbers, block = list[int](), np.empty((0, 0))
        words, floats = dict[int, list[Any]](), set[int]()
        for piece in self._pieces(texts):
            is_short = is_short or bool(piece[last].isna().any())
            kinds = {j: _kind_of_cells(piece[j]) for j in places}
            if not first:
                first, numbers = kinds, [j for j in places if kinds[j] == "number"]
                block = np.empty((0, len(numbers)))
                words = {j: [] for j in places if kinds[j] != "number"}
            mixed |= {j for j in places if kinds[j] != first[j]}
            floats |= {j for j in numbers if piece[j].dtype.kind == "f"}
            end = n + len(piece)
            if end > len(block):  # Room grows by a quarter, so that rows are seldom moved.
                block.resize((max(end, 5 * len(block) // 4), len(numbers)), refcheck=False)
            for k, j in enumerate(numbers):
                block[n:end, k] = np.nan if j in mixed else piece[j]
            for j, cells in words.items():
                cells.append(piece[j])
            n = end
        if is_short:  # pandas fills a row that is too short up with missing cells.
            self._check_rows()
        block.resize((n, len(numbers)), refcheck=False)
        columns = {j: block[:, k] for k, j in enumerate(numbers) if j not in mixed}
        if not first:  # There are no rows, and every column counts as one of numbers.
            columns = {j: np.empty(0) for j in places}
        whole = {j: pd.concat(cells) for j, cells in words.items() if j not in mixed}
        series = whole | self._texts(sorted(mixed))
        return _Parsed(n, numbers=columns, words=series, floats=floats)

    def read(self, columns: Sequence[str], factors: Collection[str]) -> Cells:
        """The cells of the named columns, and the decimal mark that their numbers show.

        Columns of words become numbers where their cells are numbers with the marks that all
        columns together show. Of columns of one name the first is read.

        factors: Names of columns that stay words, whatever their cells are.
        Raises InputError: Rows do not fit the header, or numbers leave open what their marks are.
        """
        import narwhals as nw

        first = {name: place for place, name in reversed([*enumerate(self.names)])}
        places = {name: first[name] for name in columns}
        declared = [places[name] for name in factors if name in places]
        parsed = self._parsed(texts=declared, places=[*dict.fromkeys(places.values())])
        na = self._reading.na

        def column(name: str, cells: Any) -> Column:
            series = nw.from_native(cells, series_only=True)
            return column_of(name, series, declared=name in factors, text=True, na=na)

        def as_text(names: Sequence[str]) -> dict[str, Column]:
            """Those columns of numbers of which not all are whole, as columns of words."""
            some = [name for name in names if places[name] in parsed.floats]
            cells = self._texts([places[name] for name in some])
            return {name: column(name, cells[places[name]]) for name in some}

        found = dict[str, Column]()
        for name, j in places.items():
            if j in parsed.numbers:
                found[name] = column_of_numbers(name, parsed.numbers[j], na=na)
            else:
                found[name] = column(name, parsed.words[j])
        usual, known = self._possible[0].decimal, self._reading.usual
        # Semicolons are the rule where commas are decimal marks, and points those of thousands.
        probable = known or ("," if self._delimiter == ";" and usual == "." else None)
        # Is 3.102 a fraction? Not surely where commas are probable, and no number shows a point.
        in_doubt = probable not in (None, usual) and not any(map(_shows_mark, found.values()))
        numbers, shown = in_numbers(self.label, found, self._possible, known, as_text, in_doubt)
        # What pandas has read as fractions shows the usual mark, too.
        if shown is None and any(_fractions(one).size for one in found.values()):
            shown = usual
        return Cells(parsed.n, numbers, shown)


def _fractions(column: Column) -> FloatArray:
    """The absolute values of the numbers in a column that are no whole numbers; none of words."""
    if column.words is not None:
        return np.empty(0)
    size = np.abs(column.values[np.isfinite(column.values)])
    return np.asarray(size[size % 1.0 > 0.0])


def _shows_mark(column: Column) -> bool:
    """Whether a number of a column is no thousands without the mark that it was read with.

    3.102 could be 3102; 0.102, 3102.5 and 3.1025 could not: a group of thousands has three digits,
    after one to three others that do not begin with 0.
    """
    fractions = _fractions(column)
    thousands = 1000.0 * fractions
    # A number of three decimals is a whole number of thousandths, up to what rounding adds.
    more_decimals = np.abs(thousands - np.round(thousands)) > 1e-6
    return bool(((fractions < 1.0) | (fractions >= 1000.0) | more_decimals).any())


def _kind_of_cells(cells: Any) -> str:
    """Whether pandas has read numbers, or else the kind of NumPy's type that it has read."""
    kind = str(cells.dtype.kind)
    return "number" if kind in "iuf" else kind
