"""Delimited text files, and workbooks as such files: their header, and their rows as Arrow batches.

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
from datetime import date, datetime, time
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from ..errors import InputError, first_line, not_installed
from .columns import MISSING, is_number, quoted, rows_changed
from .faults import Faults
from .files import File

# Where two of these marks are equally frequent in the header line, the earlier mark is preferred.
_DELIMITERS = "\t;,|"


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


class _NotForArrow(Exception):
    """Arrow refuses a text that Python may be able to read.

    Such a text has rows of blanks, or is in a gzip file that is damaged or padded with zeros.
    """


class TextFile(File):
    """A text file with a header line.

    path: The file, which is decompressed where the name ends in ``.gz``.
    encoding: Encoding of the text, by a name that Python knows.
    content: The bytes of the standard input, in place of a file.
    Raises InputError: The file cannot be read, is no text, or has no header line.
    """

    stores_rows = True
    # Arrow parses a text in blocks of this many bytes.
    block_bytes = 1 << 20

    def __init__(self, path: Path, encoding: str = "utf-8", content: bytes | None = None) -> None:
        self.path, self._content = path, content
        self.label = "standard input" if content is not None else path.name
        try:
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise InputError(f"--encoding: Python knows no {quoted(encoding)}") from None
        self._is_read_by_arrow = content is None and self._encoding == "utf-8"
        # What columns hold, "number", "boolean" or "text", once it is known; the columns that Arrow
        # reads as numbers; and all rows.
        self._kinds: dict[str, str] = {}
        self._numeric: Collection[str] = ()
        self._kept: list[Any] = []
        with self._lines() as lines:
            self._read_header(lines)

    @contextmanager
    def _lines(self) -> Iterator[Iterator[str]]:
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
                yield iter(lines)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = "not a complete gzip file; compress it again"
            raise InputError(f"{self.label}: {reason}") from error
        except UnicodeDecodeError as error:
            raise InputError(self._not_text()) from error
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from error
        except csv.Error as error:
            raise InputError(f"{self.label}: malformed quotes in the header ({error})") from error

    def _not_text(self) -> str:
        """The message for bytes that are not text in the file's encoding."""
        return (
            f"{self.label}: not {self._encoding.upper()} text; name its --encoding, such as "
            "latin-1, or save it as UTF-8 (Parquet files are known by their suffix)"
        )

    def _not_rows(self, reason: str) -> str:
        """The message for a row that does not fit the header, or for a file that is no text.

        reason: Arrow's own message.
        Raises _NotForArrow: Python may be able to read the file.
        """
        if "UTF8" in reason:
            return self._not_text()
        if "zlib" in reason and self._is_read_by_arrow:
            raise _NotForArrow
        first = reason.splitlines()[0]
        not_read = f"{self.label}: malformed quotes or field ({first}); correct it"
        if "conversion error" in reason:  # The rows are well formed, and a cell is no number.
            return not_read
        with self._lines() as lines:
            rows = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True, strict=True)
            line, width, has_blank_row = 1, len(self.names), False
            try:
                for fields in rows:
                    is_blank = len(fields) <= 1 and not "".join(fields).strip()
                    has_blank_row |= is_blank and bool(fields)  # Arrow leaves out empty lines.
                    if line > self._above and len(fields) != width and not is_blank:
                        break
                    line = rows.line_num + 1
                else:
                    if has_blank_row and self._is_read_by_arrow:
                        raise _NotForArrow
                    return not_read
            except csv.Error:
                return f"{self.label}: malformed quotes from line {line} on; correct that line"
        is_first = line == self._above + 1
        hint = " (or remove line 1, if it is a title above the header)" * is_first
        return (
            f"{self.label}: line {line} has {len(fields)} fields where the header has "
            f"{width}; correct that line{hint}"
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
        first_name, fields = quoted(self.names[0]), max(map(first.count, _DELIMITERS))
        wrong = ""
        if all(is_number(name) for name in self.names):
            wrong = (
                f"the first line holds numbers only (for example {first_name}); add a header line"
            )
            wrong += " with the column names"
        elif len(self.names) == 1 and len(header.split()) == len(first.split()) > 1:
            wrong = "the columns seem to be separated by spaces; separate them by "
            wrong += "comma, semicolon, tab or |"
        elif fields and self.names[0] and not any(self.names[1:]):
            wrong = f"the first line {quoted(header.strip())} looks like a title above the header "
            wrong += "line; remove it"
        if wrong:
            raise InputError(f"{self.label}: {wrong}")

    # ------------------------------------------------------------------------ rows

    @contextmanager
    def _reader(self, columns: Sequence[str], types: dict[str, Any]) -> Iterator[Any]:
        """Arrow's reader of some columns; the reader names each column by its position.

        types: The Arrow types of columns; Arrow infers the types of all others.
        """
        at = {name: str(self.names.index(name)) for name in columns}
        read = pacsv.ReadOptions(use_threads=False, skip_rows=self._above)
        read.block_size = max(self.block_bytes, self._header_bytes)
        read.column_names = [str(number) for number in range(len(self.names))]
        parse = pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = pacsv.ConvertOptions(include_columns=list(at.values()))
        convert.column_types = {at[name]: dtype for name, dtype in types.items()}
        convert.decimal_point = "." if self._points else self.decimal
        try:
            yield pacsv.open_csv(self._text_for_arrow(), read, parse, convert)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(self._not_rows(str(error))) from error

    def _text_for_arrow(self) -> Any:
        """The file as UTF-8 text, as an object that holds nothing of Python.

        Threads of Arrow read ahead, and let go of the file when they are done with it. This may be
        while Python ends, when a thread that touches an object of Python aborts the process.
        """
        if self._is_read_by_arrow:
            file = pa.OSFile(str(self.path))
            is_packed = self.path.suffix.lower() == ".gz"
            return pa.CompressedInputStream(file, "gzip") if is_packed else file
        text, is_quoted = pa.BufferOutputStream(), False
        with self._lines() as lines:
            for above, line in enumerate(lines):
                is_quoted ^= line.count('"') % 2 == 1
                if above < self._above or is_quoted or line.strip():
                    text.write(line.encode())
        return pa.BufferReader(text.getvalue())

    def load(self, columns: Sequence[str]) -> dict[str, Any]:
        """All cells of the named columns as arrays of numbers, or of text without blanks.

        A column comes as numbers, true and false as 1 and 0, where :meth:`inspect` has found
        such values in it. Every other column comes as text.
        """
        kept = self._kinds.keys() >= set(columns)
        try:
            batches = self._kept if kept else list(self._parsed(columns))
        except _NotForArrow:
            self._is_read_by_arrow = False
            return self.load(columns)
        found = {}
        for name in columns:
            parts = [batch.column(name) for batch in batches]
            found[name] = pa.concat_arrays(parts) if parts else pa.array([], pa.string())
            if self.n and len(found[name]) != self.n:
                raise rows_changed(self.label, self.n)
        return found

    def _parsed(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as record batches, from the start of the file; see :meth:`load`."""
        if self._empty:
            return
        types = {n: pa.float64() if n in self._numeric else pa.string() for n in columns}
        with self._reader(columns, types) as reader:
            for batch in reader:
                pairs = zip(columns, map(_cells, batch.columns), strict=True)
                arrays = [self._as_kind(cells, self._kinds.get(name)) for name, cells in pairs]
                yield pa.record_batch(arrays, list(columns))

    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """Read all rows to find what columns hold; see :meth:`File.inspect`."""
        try:
            try:
                self._find_kinds(columns, self._numbers_first(columns, levels), levels, faults)
            except InputError:
                if not self._numeric:
                    raise
                # A later cell is no number, and only reading text finds the cell.
                self._find_kinds(columns, (), levels, faults)
            if not self._kept:
                self._kept = list(self._parsed(columns))
        except _NotForArrow:
            self._is_read_by_arrow = False
            return self.inspect(columns, levels, faults)
        return {name for name, kind in self._kinds.items() if kind == "text"}

    def _numbers_first(self, columns: Sequence[str], levels: Collection[str]) -> list[str]:
        """The columns that hold numbers in the first block, those of ``levels`` left out."""
        if self._empty:
            return []
        with self._reader(columns, {}) as reader:
            types = zip(columns, reader.schema.types, strict=True)
            numeric = pa.int64(), pa.float64()  # Arrow infers no other types of numbers.
            return [name for name, kind in types if kind in numeric and name not in levels]

    def _find_kinds(
        self,
        columns: Sequence[str],
        numeric: Collection[str],
        levels: Collection[str],
        faults: Faults,
    ) -> None:
        """Count the rows, find what the columns hold, and keep the rows.

        A column that holds numbers in one block and true and false in another holds text. No rows
        are kept where a column was found to hold text after blocks of it were taken for numbers.

        numeric: Columns that Arrow reads as numbers.
        levels: Columns that hold text, whatever their cells look like.
        faults: Gets the columns in which decimal commas and decimal points occur.
        Raises InputError: Arrow cannot read the file, such as where a later cell of a numeric
            column is no number.
        """
        self.n, self._numeric, self._kept, self._kinds = 0, numeric, [], {}
        kept, kinds = True, dict.fromkeys(levels, "text")
        marks: dict[str, str] = {}  # The decimal mark that was seen in a column.
        for batch in self._parsed(columns):
            arrays = list(batch.columns)
            for j, name in enumerate(columns):
                if name in numeric or kinds.get(name) == "text":
                    continue
                kind = self._kind(arrays[j])
                if kind == "number" and self.decimal != ".":
                    self._check_marks(name, arrays[j], marks, faults)
                if arrays[j].null_count < len(batch) and kinds.setdefault(name, kind) != kind:
                    kind = kinds[name] = "text"
                    kept = False  # The blocks before have numbers in this column.
                arrays[j] = self._as_kind(arrays[j], kind)
            self.n += len(batch)
            self._kept = [*self._kept, pa.record_batch(arrays, list(columns))] if kept else []
        # A column without a value is one of numbers, all of them missing.
        self._kinds = dict.fromkeys(columns, "number") | kinds

    def _numbers(self, cells: Any) -> Any:
        """Cells of text as numbers; pyarrow.ArrowInvalid where one is none."""
        if self.decimal != ".":
            cells = pc.replace_substring(cells, self.decimal, ".")
        return pc.cast(cells, pa.float64())

    def _kind(self, cells: Any) -> str:
        """What cells of text hold: "number", "boolean" or "text"."""
        try:
            self._numbers(cells)
        except pa.ArrowInvalid:
            booleans = _among(cells.drop_null(), ["false", "true"])
            return "boolean" if pc.all(booleans).as_py() else "text"
        return "number"

    def _as_kind(self, cells: Any, kind: str | None) -> Any:
        """Cells of text as numbers where their column holds numbers, or true and false."""
        if kind == "boolean":
            return pc.equal(pc.utf8_lower(cells), "true").cast(pa.float64())
        is_text = pa.types.is_string(cells.type)
        return self._numbers(cells) if is_text and kind == "number" else cells

    def _check_marks(self, name: str, cells: Any, marks: dict[str, str], faults: Faults) -> None:
        """Add a column of both decimal commas and points as a fault: 1.234 could mean 1234."""
        for mark in (",", "."):
            at = pc.index(pc.match_substring(cells, mark), pa.scalar(True)).as_py()
            if at >= 0 and marks.setdefault(name, mark) != mark:
                what = (
                    f"column {quoted(name)} mixes decimal commas and decimal points (for example "
                    f"{quoted(cells[at].as_py())})"
                )
                faults.add(name, what, ["write all numbers in one way"])


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


def open_workbook(path: Path) -> TextFile:
    """The first sheet of an Excel or OpenDocument workbook, whose first row holds the names.

    A formula counts as the value that was computed when the workbook was saved.

    Raises InputError: python-calamine is not installed, or the file is no workbook.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise InputError(
            f"{path.name}: {not_installed('python-calamine', 'excel')}, or save the sheet as CSV"
        ) from None
    try:
        book = CalamineWorkbook.from_path(str(path))
        rows = book.get_sheet_by_index(0).to_python()
    except (CalamineError, OSError, IndexError) as error:
        reason = first_line(error, "it has no sheet")
        raise InputError(
            f"{path.name}: not a readable workbook ({reason}); save it again"
        ) from None
    text = io.StringIO()
    csv.writer(text).writerows([_as_csv(cell) for cell in row] for row in rows if any(row))
    file = TextFile(path, content=text.getvalue().encode())
    file.label = f"{path.name}, sheet {quoted(book.sheet_names[0])}"
    return file


def _as_csv(cell: Any) -> str:
    """A cell as it would stand in a CSV file; a whole number has no decimals."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (date, datetime, time)) else str(cell)
