"""Delimited text files: their layout, and their rows as Arrow batches.

Arrow looks at the first block of a file, and reads the columns that hold numbers there as numbers.
All other columns are read as text, so that a message can name the cell at fault; where a later row
does not fit, all columns are read as text.
"""

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from ..errors import InputError
from .arrow import ArrowFile, Contents, as_numpy
from .column_errors import MISSING, Faults, is_number
from .columns import FloatArray, shown

# Where the header line holds equally many of two marks, the earlier mark is preferred.
_DELIMITERS = "\t;,|"
_BOOLEANS = ["false", "true"]


def _count_outside_quotes(line: str, delimiter: str) -> int:
    # Every other piece between quote marks lies inside a quoted field.
    return sum(piece.count(delimiter) for piece in line.split('"')[::2])


def detect_delimiter(header: str, first: str = "") -> str:
    """Find out whether a tab, semicolon, comma or bar separates the columns.

    The mark that is most frequent in the header line, outside quotes, is preferred. The first line
    of data overrules the header only where the lines disagree and another mark fits both.
    """
    counts = {mark: _count_outside_quotes(header, mark) for mark in _DELIMITERS}
    ranked = sorted(_DELIMITERS, key=lambda mark: -counts[mark])
    for mark in ranked:
        if counts[mark] and _count_outside_quotes(first, mark) == counts[mark]:
            return mark
    return ranked[0] if counts[ranked[0]] else ","


class TextFile(ArrowFile):
    """A text file with a header line.

    path: Compressed when its name ends in ``.gz``.
    content: The bytes of the standard input, in place of a file.
    Raises InputError: The file cannot be read, is no text, or has no header line.
    """

    # Arrow parses so many bytes at a time; twice as many double the memory of a block.
    block_bytes = 1 << 20
    # A table whose numbers take no more bytes stays in memory; a larger table is read from the text
    # again whenever its rows are asked for. Twice the number admits tables twice as large.
    kept_bytes = 200_000_000

    def __init__(self, path: Path, encoding: str = "utf-8", content: bytes | None = None) -> None:
        self.path, self._content = path, content
        self.label = "standard input" if content is not None else path.name
        try:
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise InputError(f"--encoding: Python knows no {shown(encoding)}") from None
        self._ragged: Any = None
        self._numeric: list[str] = []
        with self._lines() as lines:
            self._read_header(lines)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open the file for reading; every fault of the file itself becomes an InputError."""
        try:
            if self._content is not None:
                handle: Any = io.BytesIO(self._content)
            elif self.path.suffix.lower() == ".gz":
                handle = gzip.open(self.path)  # noqa: SIM115
            else:
                handle = open(self.path, "rb")  # noqa: SIM115
            with handle:
                yield handle
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = "not a complete gzip file; compress it again"
            raise InputError(f"{self.label}: {reason}") from error
        except UnicodeDecodeError as error:
            raise InputError(self._not_text()) from error
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from error
        except csv.Error as error:
            raise InputError(f"{self.label}: malformed quotes in the header ({error})") from error
        except pa.ArrowInvalid as error:
            raise InputError(self._not_rows(str(error))) from error

    @contextmanager
    def _lines(self) -> Iterator[Iterator[str]]:
        """Open the file for reading line by line, where every line keeps its end."""
        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        with self._opened() as handle, io.TextIOWrapper(handle, encoding, newline="") as lines:
            yield iter(lines)

    def _not_text(self) -> str:
        return (
            f"{self.label}: not {self._encoding.upper()} text; name its --encoding, such as "
            "latin-1, or save it as UTF-8 (Parquet and .npy files are told by their suffix)"
        )

    def _not_rows(self, reason: str) -> str:
        """What to say of a row that does not fit the header, or of a file that is no text."""
        if "UTF8" in reason:
            return self._not_text()
        if self._ragged is None:
            return f"{self.label}: malformed quotes or field ({reason.splitlines()[0]}); correct it"
        row = self._ragged
        first = row.text.splitlines()[0] if row.text else ""
        with self._lines() as lines:
            texts = enumerate(lines, start=1)
            at = (i for i, text in texts if i > self._above and text.rstrip("\r\n") == first)
            line = next(at, row.number)
        if row.text.count('"') % 2:
            return f"{self.label}: malformed quotes from line {line} on; correct that line"
        is_first = row.number == self._above + 1
        hint = " (or remove line 1, if it is a title above the header)" * is_first
        return (
            f"{self.label}: line {line} has {row.actual_columns} fields where the header has "
            f"{row.expected_columns}; correct that line{hint}"
        )

    def _read_header(self, lines: Iterator[str]) -> None:
        """Find the names, the delimiter, the decimal mark and the line that the header ends at."""
        above, header = next(((i, line) for i, line in enumerate(lines) if line.strip()), (0, ""))
        if not header:
            raise InputError(f"{self.label}: the file is empty; a header line is needed")
        first = next(lines, "")
        self.delimiter = detect_delimiter(header, first)
        self.decimal = "," if self.delimiter == ";" else "."
        rest = chain([header, first], lines)
        reader = csv.reader(rest, delimiter=self.delimiter, skipinitialspace=True, strict=True)
        self.names = [name.strip() for name in next(reader)]
        self._above = above + reader.line_num  # The header may hold quoted line breaks.
        self._header_bytes, self._empty = 4 * len(header), not first
        self._points = "," not in first  # The first row decides which mark Arrow takes for decimal.
        self._check_header(header, first)

    def _check_header(self, header: str, first: str) -> None:
        names = self.names
        if all(is_number(name) for name in names):
            raise InputError(
                f"{self.label}: the first line holds numbers only (for example "
                f"{shown(names[0])}); add a header line with the column names"
            )
        if len(names) == 1 and len(names[0].split()) == len(first.split()) > 1:
            raise InputError(
                f"{self.label}: the columns seem to be separated by spaces; separate them by "
                "comma, semicolon, tab or |"
            )
        fields = max(_count_outside_quotes(first, mark) for mark in _DELIMITERS)
        if fields and names[0] and not any(names[1:]):
            raise InputError(
                f"{self.label}: the first line {shown(header.strip())} looks like a title above "
                "the header line; remove it"
            )

    # ------------------------------------------------------------------------ rows

    @contextmanager
    def _reader(self, columns: Sequence[str], types: dict[str, Any]) -> Iterator[Any]:
        """Arrow's reader of some columns, which are called by their positions."""

        def ragged(row: Any) -> str:
            if not row.text.strip():
                return "skip"
            self._ragged = row
            return "error"

        at = {name: str(self.names.index(name)) for name in columns}
        read = pacsv.ReadOptions(use_threads=False, skip_rows=self._above)
        read.block_size = max(self.block_bytes, self._header_bytes)
        read.column_names = [str(number) for number in range(len(self.names))]
        read.encoding = "utf8" if self._encoding == "utf-8" else self._encoding
        parse = pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        parse.invalid_row_handler = ragged
        convert = pacsv.ConvertOptions(include_columns=list(at.values()))
        convert.column_types = {at[name]: dtype for name, dtype in types.items()}
        convert.decimal_point = "." if self._points else self.decimal
        with self._opened() as handle:
            yield pacsv.open_csv(handle, read, parse, convert)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows: numbers, and text without blanks."""
        if self._empty:
            return
        types = {n: pa.float64() if n in self._numeric else pa.string() for n in columns}
        with self._reader(columns, types) as reader:
            for batch in reader:
                for start in range(0, len(batch), rows):
                    part = batch.slice(start, rows)
                    yield pa.record_batch([_cells(column) for column in part], list(columns))

    def _guess(self, columns: Sequence[str]) -> list[str]:
        """The columns that are numbers as far as Arrow's look at the first block goes."""
        types = pa.types
        with self._reader(columns, {}) as reader:
            kinds = zip(columns, reader.schema.types, strict=True)
            return [n for n, t in kinds if types.is_integer(t) or types.is_floating(t)]

    def inspect(
        self, columns: Sequence[str], target: str | None, encode: bool, levels: Collection[str]
    ) -> Contents:
        """Read all rows once; see :class:`ArrowFile`."""
        self._numeric = [] if self._empty else [n for n in self._guess(columns) if n not in levels]
        try:
            return self._read_once(columns, target, encode, levels)
        except InputError:
            if not self._numeric:
                raise
        self._numeric = []  # A later row does not fit, and reading as text can say why.
        return self._read_once(columns, target, encode, levels)

    def _read_once(
        self, columns: Sequence[str], target: str | None, encode: bool, levels: Collection[str]
    ) -> Contents:
        n, kept = 0, list[FloatArray]()
        look = _Look(self, Faults(self.label, target), encode, levels)
        for batch in self.batches(columns, 1 << 62):
            block = np.empty((len(batch), len(columns)), order="F")
            for j, (name, cells) in enumerate(zip(columns, batch.columns, strict=True)):
                block[:, j] = look.values(name, cells, n)
            n += len(batch)
            kept.append(block)
            if look.text or 8 * n * len(columns) > self.kept_bytes:
                kept.clear()
        return Contents(n, look.text, look.faults, kept)

    def plain(self, cell: str) -> str:
        """A cell with a decimal point in place of a decimal comma, in files that have such."""
        return cell.replace(self.decimal, ".")

    def numbers(self, cells: Any) -> FloatArray | None:
        """Cells of text as numbers, missing ones as NaN; None if one of them is no number."""
        if self.decimal != ".":
            cells = pc.replace_substring(cells, self.decimal, ".")
        try:
            return np.asarray(as_numpy(pc.cast(cells, pa.float64())))
        except pa.ArrowInvalid:
            return None

    def floats(self, name: str, cells: Any) -> FloatArray:
        """A column of numbers, or of true and false, as float64, shape (m,)."""
        if name in self._numeric:
            return np.asarray(as_numpy(cells))
        values = self.numbers(cells)
        return as_booleans(cells) if values is None else values


class _Look:
    """A look, block by block, at which columns hold numbers, true and false, or text.

    encode: Text columns are going to be encoded.
    levels: Columns that hold text whatever the cells look like.
    """

    # Of a column of text in a block, so many cells decide which words a message has for the column.
    # Twice as many take twice as long, and rarely decide otherwise.
    max_cells = 1000

    def __init__(
        self, file: TextFile, faults: Faults, encode: bool, levels: Collection[str]
    ) -> None:
        self.file, self.faults, self.encode = file, faults, encode
        self.text = set(levels)
        self._kinds: dict[str, str] = {}
        self._marks: dict[str, str] = {}  # The decimal mark of every column in which one was seen.

    def values(self, name: str, cells: Any, first: int) -> FloatArray | float:
        """Values of a column's cells, which begin with row ``first``; NaN where they are text."""
        if pa.types.is_floating(cells.type):
            values: FloatArray | None = as_numpy(cells)
        else:
            cells = pc.if_else(_among(cells, MISSING), pa.scalar(None, pa.string()), cells)
            values = self._settled(name, cells, first)
        if values is None:
            missing = cells.is_null().to_numpy(zero_copy_only=False)
            self.faults.rows(name, "missing", first + np.flatnonzero(missing))
            return np.nan
        self.faults.values(values, [name], first)
        return values

    def _settled(self, name: str, cells: Any, first: int) -> FloatArray | None:
        """The values of cells that were read as text; None where the column holds text."""
        if name in self.text:
            return None
        values, present = self.file.numbers(cells), cells.drop_null()
        if values is not None:
            self._check_marks(name, present)
        if not len(present):
            return values
        kind = "number"
        if values is None:
            kind = "boolean" if pc.all(_among(present, _BOOLEANS)).as_py() else "text"
        if kind == self._kinds.setdefault(name, kind) != "text":
            return as_booleans(cells) if values is None else values
        self.text.add(name)
        some = present.to_pylist()
        odd = [cell for cell in some if not is_number(self.file.plain(cell))] or some
        row = first + cells.index(odd[0]).as_py()
        self.faults.text(name, odd[: self.max_cells], row, encode=self.encode)
        return None

    def _check_marks(self, name: str, cells: Any) -> None:
        """Refuse a column that has both decimal commas and points: 1.234 may then mean 1234."""
        for mark in (",", ".") if self.file.decimal != "." else ():
            at = pc.index(pc.match_substring(cells, mark), pa.scalar(True)).as_py()
            if at >= 0 and self._marks.setdefault(name, mark) != mark:
                self.faults.add(
                    name,
                    f"column {shown(name)} mixes decimal commas and decimal points (for example "
                    f"{shown(cells[at].as_py())})",
                    "write all of it one way",
                )


def as_booleans(cells: Any) -> FloatArray:
    """Cells of true and false as 1 and 0, missing ones as NaN."""
    return np.asarray(as_numpy(pc.equal(pc.utf8_lower(cells), "true").cast(pa.float64())))


def _cells(column: Any) -> Any:
    """Cells without the blanks around them, and the quotes of a field that stand after a blank."""
    if not pa.types.is_string(column.type):
        return column
    cells = pc.utf8_trim_whitespace(column)
    if pc.any(pc.starts_with(cells, '"')).as_py():
        cells = pc.replace_substring_regex(cells, '^"(.*)"$', r"\1")
    return cells


def _among(cells: Any, words: Collection[str]) -> Any:
    return pc.is_in(pc.utf8_lower(cells), pa.array(sorted(words)))
