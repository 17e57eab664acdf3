"""Delimited text files: their layout, and their rows as Arrow batches of strings."""

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
from .column_errors import MISSING, Faults, is_number
from .columns import FloatArray, shown

_DELIMITERS = "\t;,|"  # in order of preference when the header holds equally many
_BOOLEANS = ["false", "true"]
_BLOCK = 1 << 20  # bytes that are parsed at once
KEPT_BYTES = 200_000_000  # numbers of a smaller file are kept while it is inspected
_SAMPLE = 1000  # cells that are looked at to say what a column of text holds


def _count_outside_quotes(line: str, delimiter: str) -> int:
    # Every other piece between quote marks lies inside a quoted field.
    return sum(piece.count(delimiter) for piece in line.split('"')[::2])


def detect_delimiter(header: str, first: str = "") -> str:
    """Tell tab, semicolon, comma or bar from the header line.

    The most frequent one outside quotes wins. The first data line only overrules it when it has
    another number of fields and a rival fits both lines.

    header, first: The header line and the first line of data.
    """
    counts = {mark: _count_outside_quotes(header, mark) for mark in _DELIMITERS}
    ranked = sorted(_DELIMITERS, key=lambda mark: -counts[mark])
    for mark in ranked:
        if counts[mark] and _count_outside_quotes(first, mark) == counts[mark]:
            return mark
    return ranked[0] if counts[ranked[0]] else ","


class TextFile:
    """A text file with a header line.

    path: Compressed when its name ends in ``.gz``; ``-`` is the standard input.
    encoding: What is not UTF-8 is read into memory as a whole.
    Raises InputError: The file cannot be read, is no text, or has no header line.
    """

    def __init__(self, path: Path, encoding: str = "utf-8", content: bytes | None = None) -> None:
        self.path, self._content = path, content
        self.label = "standard input" if content is not None else path.name
        self._offset = 0
        self._ragged: Any = None
        try:
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise InputError(f"--encoding: Python knows no {shown(encoding)}") from None
        if self._encoding != "utf-8":
            with self._opened() as handle:
                self._content = handle.read().decode(encoding).encode()
        with self._opened() as handle:
            self._read_header(handle)
        self._marks: dict[str, str] = {}  # of decimals, where a column has some
        self._kinds: dict[str, str] = {}
        self.kept: list[FloatArray] = []

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open for reading; every fault of the file itself becomes one line."""
        try:
            if self._content is not None:
                handle: Any = io.BytesIO(self._content)
            elif self.path.suffix.lower() == ".gz":
                handle = gzip.open(self.path)  # noqa: SIM115
            else:
                handle = open(self.path, "rb")  # noqa: SIM115
            with handle:
                handle.seek(self._offset)
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

    def _not_text(self) -> str:
        return (
            f"{self.label}: not {self._encoding.upper()} text; name its --encoding, such as "
            "latin-1, or save it as UTF-8 (Parquet and .npy files are told by their suffix)"
        )

    def _not_rows(self, reason: str) -> str:
        """What to say of a row that does not fit the header, or of text that is none."""
        if "UTF8" in reason:
            return self._not_text()
        if self._ragged is None:
            return f"{self.label}: malformed quotes or field ({reason.splitlines()[0]}); correct it"
        row = self._ragged
        first = row.text.splitlines()[0] if row.text else ""
        with self._opened() as handle:
            texts = (line.decode(errors="replace").rstrip("\r\n") for line in handle)
            at = (i for i, text in enumerate(texts) if text == first)
            line = self._lines + 1 + next(at, row.number)
        if row.text.count('"') % 2:
            return f"{self.label}: malformed quotes from line {line} on; correct that line"
        hint = " (or remove line 1, if it is a title above the header)" * (row.number == 1)
        return (
            f"{self.label}: line {line} has {row.actual_columns} fields where the header has "
            f"{row.expected_columns}; correct that line{hint}"
        )

    def _read_header(self, handle: BinaryIO) -> None:
        raw: list[bytes] = []

        def line() -> str:
            raw.append(handle.readline())
            return raw[-1].decode("utf-8-sig" if len(raw) == 1 else "utf-8")

        header = line()
        while not header.strip():
            if not raw[-1]:
                raise InputError(f"{self.label}: the file is empty; a header line is needed")
            header = line()
        above = len(raw) - 1
        first = line()
        self.delimiter = detect_delimiter(header, first)
        rest = chain([header, first], iter(line, ""))
        reader = csv.reader(rest, delimiter=self.delimiter, skipinitialspace=True, strict=True)
        self.names = [name.strip() for name in next(reader)]
        self._lines = above + reader.line_num  # the header may hold quoted line breaks
        self._offset = sum(map(len, raw[: self._lines]))
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

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows, each column as stripped strings."""

        def ragged(row: Any) -> str:
            if not row.text.strip():
                return "skip"
            self._ragged = row
            return "error"

        names = [str(number) for number in range(len(self.names))]
        chosen = [names[self.names.index(name)] for name in columns]
        with self._opened() as handle:
            if not handle.read(1):
                return
            handle.seek(self._offset)
            reader = pacsv.open_csv(
                handle,
                pacsv.ReadOptions(
                    use_threads=False,
                    block_size=max(_BLOCK, 4 * self._offset),
                    column_names=names,
                ),
                pacsv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=ragged,
                ),
                pacsv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), include_columns=chosen
                ),
            )
            for batch in reader:
                for start in range(0, len(batch), rows):
                    part = batch.slice(start, rows)
                    yield pa.record_batch([_cells(column) for column in part], list(columns))

    def inspect(
        self, columns: Sequence[str], encode: bool, levels: Collection[str], faults: Faults
    ) -> tuple[int, set[str]]:
        """Read all rows once: how many there are, and which columns hold text to encode.

        encode: Encode text columns; otherwise text is a fault.
        levels, collection of str: Columns that hold text, whatever their cells look like.
        faults: What is wrong is noted here.
        Returns n: Rows.
        Returns text: Columns that hold text.
        """
        n, text, kept = 0, set(levels), 0
        for batch in self.batches(columns, 1 << 62):
            block = np.empty((len(batch), len(columns)), order="F")
            for j, (name, cells) in enumerate(zip(columns, batch.columns, strict=True)):
                block[:, j] = self._look(name, cells, n, encode, text, faults)
            n, kept = n + len(batch), kept + block.nbytes
            self.kept.append(block)
            if text or kept > KEPT_BYTES:
                self.kept.clear()
        return n, text

    def _look(
        self, name: str, cells: Any, first: int, encode: bool, text: set[str], faults: Faults
    ) -> FloatArray | float:
        """Settle what a column holds, as far as these cells show; its values, if all are there."""
        values = None if name in text else self._numbers(name, cells, faults)
        kind, present = "number", cells
        if values is None:
            missing = _among(cells, MISSING).to_numpy(zero_copy_only=False)
            faults.rows(name, "missing", first + np.flatnonzero(missing))
            if missing.any():
                present = cells.filter(pa.array(~missing))
            if name in text or not len(present):
                return np.nan
            values = self._numbers(name, present, faults)
        if values is not None:
            faults.values(values, [name], first)
        elif pc.all(_among(present, _BOOLEANS)).as_py():
            kind, values = "bool", self.floats(name, present)
        else:
            kind = "text"
        if self._kinds.setdefault(name, kind) == kind != "text":
            return np.nan if values is None or len(present) < len(cells) else values
        text.add(name)
        some = present.to_pylist()
        odd = [cell for cell in some if not is_number(self._plain(cell))] or some
        row = first + cells.index(odd[0]).as_py()
        faults.text(name, odd[:_SAMPLE], row, encode=encode)
        return np.nan

    def _plain(self, cell: str) -> str:
        return cell.replace(",", ".") if self.delimiter == ";" else cell

    def _numbers(self, name: str, cells: Any, faults: Faults | None = None) -> FloatArray | None:
        """Cells as numbers, or None if one of them is none."""
        commas = None
        if self.delimiter == ";":  # where 1,5 is a decimal
            commas = pc.match_substring(cells, ",")
            plain = pc.replace_substring(cells, ",", ".")
        else:
            plain = cells
        try:
            values: FloatArray = as_numpy(pc.cast(plain, pa.float64()))
        except pa.ArrowInvalid:
            return None
        if commas is None or faults is None:
            return values
        points = pc.match_substring(cells, ".")
        for mark, found in ((",", commas), (".", points)):
            if pc.any(found).as_py() and self._marks.setdefault(name, mark) != mark:
                at = pc.index(found, pa.scalar(True)).as_py()
                # 1.234 may then mean 1234: refuse rather than guess.
                faults.add(
                    name,
                    f"column {shown(name)} mixes decimal commas and decimal points (for example "
                    f"{shown(cells[at].as_py())})",
                    "write all of it one way",
                )
        return values

    def floats(self, name: str, cells: Any) -> FloatArray:
        """A column of numbers or of true and false, as settled by :meth:`inspect`.

        Returns, shape (m,).
        """
        values = self._numbers(name, cells)
        if values is None:
            values = _among(cells, _BOOLEANS[1:]).to_numpy(zero_copy_only=False).astype(float)
        return values


def _cells(column: Any) -> Any:
    """Strip blanks, and the quotes of a quoted field that stands after a blank."""
    cells = pc.utf8_trim_whitespace(column)
    if pc.any(pc.starts_with(cells, '"')).as_py():
        cells = pc.replace_substring_regex(cells, '^"(.*)"$', r"\1")
    return cells


def as_numpy(cells: Any) -> Any:
    """An Arrow array as NumPy's, where possible without Arrow's own way: that imports pandas.

    Returns, shape (m,).
    """
    if cells.null_count or pa.types.is_boolean(cells.type):
        return cells.to_numpy(zero_copy_only=False)
    return np.from_dlpack(cells)


def _among(cells: Any, words: Collection[str]) -> Any:
    return pc.is_in(pc.utf8_lower(cells), pa.array(sorted(words)))
