"""Delimited text files: their delimiter, header and decimal mark, and their rows as Arrow batches.

Columns that hold numbers in the first block of a file are read as numbers by Arrow. Other columns
are read as text, so that a message can name the cell at fault. Where a cell of a later block is no
number, the file is read again with all columns as text.
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
from .columns import FloatArray, quoted

# Where two of these marks are equally frequent in the header line, the earlier mark is preferred.
_DELIMITERS = "\t;,|"
_BOOLEANS = ["false", "true"]


def _count_outside_quotes(line: str, delimiter: str) -> int:
    """How often a delimiter stands outside quoted fields; every second piece is inside quotes."""
    return sum(piece.count(delimiter) for piece in line.split('"')[::2])


def detect_delimiter(header: str, first: str = "") -> str:
    """The mark that separates the columns: a tab, semicolon, comma or bar.

    The answer is the mark that is most frequent in the header line outside quotes, among the marks
    that are as frequent in the first line of data; or among all marks if none is.
    """
    counts = {mark: _count_outside_quotes(header, mark) for mark in _DELIMITERS}
    ranked = sorted(_DELIMITERS, key=lambda mark: -counts[mark])
    for mark in ranked:
        if counts[mark] and _count_outside_quotes(first, mark) == counts[mark]:
            return mark
    return ranked[0] if counts[ranked[0]] else ","


class TextFile(ArrowFile):
    """A text file with a header line.

    path: The file, which is decompressed where the name ends in ``.gz``.
    encoding: Encoding of the text, by a name that Python knows.
    content: The bytes of the standard input, in place of a file.
    Raises InputError: The file cannot be read, is no text, or has no header line.
    """

    # Arrow parses a text in blocks of this many bytes.
    block_bytes = 1 << 20
    max_bytes_in_memory = 200_000_000  # See :class:`ArrowFile`; the value was chosen.

    def __init__(self, path: Path, encoding: str = "utf-8", content: bytes | None = None) -> None:
        self.path, self._content = path, content
        self.label = "standard input" if content is not None else path.name
        try:
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise InputError(f"--encoding: Python knows no {quoted(encoding)}") from None
        self._ragged: Any = None
        self._numeric: list[str] = []
        with self._lines() as lines:
            self._read_header(lines)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open the file for reading bytes; errors while it is open become InputErrors."""
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
        """Open the file for reading lines of text, each with its line break."""
        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        with self._opened() as handle, io.TextIOWrapper(handle, encoding, newline="") as lines:
            yield iter(lines)

    def _not_text(self) -> str:
        """The message for bytes that are not text in the file's encoding."""
        return (
            f"{self.label}: not {self._encoding.upper()} text; name its --encoding, such as "
            "latin-1, or save it as UTF-8 (Parquet and .npy files are known by their suffix)"
        )

    def _not_rows(self, reason: str) -> str:
        """The message for a row that does not fit the header, or for a file that is no text.

        reason: Arrow's own message.
        """
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
        """Find the columns' names, the delimiter, the decimal mark and the header's last line."""
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
        self._points = "," not in first  # Arrow reads the decimal mark of the first row alone.
        self._check_header(header, first)

    def _check_header(self, header: str, first: str) -> None:
        """Refuse a first line that holds no names of columns; ``first`` is the line after it."""
        names = self.names
        if all(is_number(name) for name in names):
            raise InputError(
                f"{self.label}: the first line holds numbers only (for example "
                f"{quoted(names[0])}); add a header line with the column names"
            )
        if len(names) == 1 and len(names[0].split()) == len(first.split()) > 1:
            raise InputError(
                f"{self.label}: the columns seem to be separated by spaces; separate them by "
                "comma, semicolon, tab or |"
            )
        fields = max(_count_outside_quotes(first, mark) for mark in _DELIMITERS)
        if fields and names[0] and not any(names[1:]):
            raise InputError(
                f"{self.label}: the first line {quoted(header.strip())} looks like a title above "
                "the header line; remove it"
            )

    # ------------------------------------------------------------------------ rows

    @contextmanager
    def _reader(self, columns: Sequence[str], types: dict[str, Any]) -> Iterator[Any]:
        """Arrow's reader of some columns; the reader names each column by its position.

        types: The Arrow types of columns; Arrow infers the types of all others.
        """

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
        """Yield record batches of at most ``rows`` rows of numbers, or of text without blanks.

        Every call reads the file from its start. A column comes as numbers where :meth:`inspect`
        has noted it in ``_numeric``; every other column, and before that every column, comes as
        text, without the blanks around each cell. However large ``rows`` is, a batch ends where a
        block that Arrow parses ends.
        """
        if self._empty:
            return
        types = {n: pa.float64() if n in self._numeric else pa.string() for n in columns}
        with self._reader(columns, types) as reader:
            for batch in reader:
                for start in range(0, len(batch), rows):
                    part = batch.slice(start, rows)
                    yield pa.record_batch([_cells(column) for column in part], list(columns))

    def _inferred_numeric(self, columns: Sequence[str]) -> list[str]:
        """The columns that Arrow infers to be numbers from the first block of the file."""
        types = pa.types
        with self._reader(columns, {}) as reader:
            kinds = zip(columns, reader.schema.types, strict=True)
            return [n for n, t in kinds if types.is_integer(t) or types.is_floating(t)]

    def inspect(
        self, columns: Sequence[str], target: str | None, encode: bool, levels: Collection[str]
    ) -> Contents:
        """Read all rows and find text and faults; see :meth:`ArrowFile.inspect`."""
        inferred = [] if self._empty else self._inferred_numeric(columns)
        self._numeric = [name for name in inferred if name not in levels]
        try:
            return self._read_once(columns, target, encode, levels)
        except InputError:
            if not self._numeric:
                raise
        self._numeric = []  # A later cell is no number, and only reading text finds the cell.
        return self._read_once(columns, target, encode, levels)

    def _read_once(
        self, columns: Sequence[str], target: str | None, encode: bool, levels: Collection[str]
    ) -> Contents:
        """Read all rows, with the numeric columns of ``self._numeric``, and see what they hold."""
        n, blocks = 0, list[FloatArray]()
        kinds = _ColumnKinds(self, Faults(self.label, target, self.missing_allowed), encode, levels)
        for batch in self.batches(columns, 1 << 62):
            block = np.empty((len(batch), len(columns)), order="F")
            for j, (name, cells) in enumerate(zip(columns, batch.columns, strict=True)):
                block[:, j] = kinds.values(name, cells, n)
            n += len(batch)
            blocks.append(block)
            if kinds.text or 8 * n * len(columns) > self.max_bytes_in_memory:
                blocks.clear()
        return Contents(n, kinds.text, kinds.faults, blocks)

    def numbers(self, cells: Any) -> FloatArray | None:
        """Cells of text as numbers, NaN for missing cells; None if any cell is no number."""
        if self.decimal != ".":
            cells = pc.replace_substring(cells, self.decimal, ".")
        try:
            return np.asarray(as_numpy(pc.cast(cells, pa.float64())))
        except pa.ArrowInvalid:
            return None

    def floats(self, name: str, cells: Any) -> FloatArray:
        """The m cells of a column of numbers, or of true and false, as float64, shape (m,).

        :meth:`sparsecv.tables.arrow.ArrowTable.blocks` calls it, block by block, for a table that
        :meth:`inspect` did not keep in memory, and so only after :meth:`inspect` has found what
        every column holds. Columns of text never get here: they are refused before, or become 0/1
        columns by another way.

        cells: Cells of the column as :meth:`batches` yields them, numbers or text.
        """
        if name in self._numeric:
            return np.asarray(as_numpy(cells))
        values = self.numbers(cells)
        return as_booleans(cells) if values is None else values


class _ColumnKinds:
    """Finds out, block by block, which columns hold numbers, true and false, or text.

    file: The file that the blocks come from.
    faults: Collects the faults of the columns.
    encode: Text columns become 0/1 columns, so text is no fault.
    levels: Names of columns that hold text whatever their cells look like.
    """

    def __init__(
        self, file: TextFile, faults: Faults, encode: bool, levels: Collection[str]
    ) -> None:
        self.file, self.faults, self.encode = file, faults, encode
        self.text = set(levels)
        self._kinds: dict[str, str] = {}
        self._marks: dict[str, str] = {}  # The decimal mark that was seen in a column.

    def values(self, name: str, cells: Any, first: int) -> FloatArray | float:
        """Values of a column's cells, shape (m,); a single NaN where the column holds text.

        first: Row of the table, numbered from 0, of the first cell.
        """
        if pa.types.is_floating(cells.type):
            values: FloatArray | None = as_numpy(cells)
        else:
            values = self._parsed(name, cells, first)
        if values is None:
            missing = cells.is_null().to_numpy(zero_copy_only=False)
            self.faults.rows(name, "missing", first + np.flatnonzero(missing))
            return np.nan
        self.faults.values(values, [name], first)
        return values

    def _parsed(self, name: str, cells: Any, first: int) -> FloatArray | None:
        """Numbers in cells that were read as text; None where the column holds text.

        A column that holds numbers in one block and true and false in another holds text.
        """
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
        odd = [cell for cell in some if not is_number(cell.replace(self.file.decimal, "."))] or some
        row = first + cells.index(odd[0]).as_py()
        self.faults.text(name, odd[: self.faults.max_cells], row, encode=self.encode)
        return None

    def _check_marks(self, name: str, cells: Any) -> None:
        """Add a column of both decimal commas and points as a fault: 1.234 could mean 1234."""
        for mark in (",", ".") if self.file.decimal != "." else ():
            at = pc.index(pc.match_substring(cells, mark), pa.scalar(True)).as_py()
            if at >= 0 and self._marks.setdefault(name, mark) != mark:
                self.faults.add(
                    name,
                    f"column {quoted(name)} mixes decimal commas and decimal points (for example "
                    f"{quoted(cells[at].as_py())})",
                    "write all numbers in one way",
                )


def as_booleans(cells: Any) -> FloatArray:
    """Cells of true and false as 1 and 0; missing cells become NaN."""
    return np.asarray(as_numpy(pc.equal(pc.utf8_lower(cells), "true").cast(pa.float64())))


def _cells(column: Any) -> Any:
    """Cells without the blanks around them, and without quotes that follow a blank.

    Missing cells are null.
    """
    if not pa.types.is_string(column.type):
        return column
    cells = pc.utf8_trim_whitespace(column)
    if pc.any(pc.starts_with(cells, '"')).as_py():
        cells = pc.replace_substring_regex(cells, '^"(.*)"$', r"\1")
    return pc.if_else(_among(cells, MISSING), pa.scalar(None, pa.string()), cells)


def _among(cells: Any, words: Collection[str]) -> Any:
    """Whether each cell, in lower case, is one of some words: an Arrow array of true and false."""
    return pc.is_in(pc.utf8_lower(cells), pa.array(sorted(words)))
