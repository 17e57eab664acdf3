"""Delimited text files into float64 arrays."""

import csv
import gzip
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from ..errors import InputError
from .columns import (
    MAX_LEVELS,
    MISSING,
    FloatArray,
    check_levels,
    check_names,
    check_rows,
    identifier_error,
    infinite_error,
    missing_error,
    select_columns,
    shown,
    text_error,
)

_DELIMITERS = "\t;,"  # in order of preference when the header holds equally many
_BOOLEANS = {"true": 1.0, "false": 0.0}
# Cells per chunk: as Python strings they take some 15 MB, whatever the size of the file.
_CHUNK_CELLS = 200_000


class CsvTable(NamedTuple):
    """A delimited text file, read and checked."""

    X: FloatArray
    y: FloatArray
    feature_names: list[str]
    target_name: str


def read_csv(
    path: Path, *, target: str | None = None, one_hot: bool = False, drop: Sequence[str] = ()
) -> CsvTable:
    """Read a delimited text file with a header line.

    Parameters
    ----------
    path : Path
        The file; compressed when its name ends in ``.gz``.
    target : str, optional
        The target column; the last column in use by default.
    one_hot : bool
        Encode text columns, one 0/1 column per level.
    drop : sequence of str
        Columns to leave out; they are not parsed.

    Returns
    -------
    CsvTable
        X of shape (n, p), y of shape (n,), the p feature names and the target's.

    Raises
    ------
    InputError
        One line on the column, row or line at fault.
    """
    reader = _Reader(path, target, one_hot, drop)
    chunks = reader.run()
    if reader.text:
        # A column may look numeric for many rows before its first text cell. A second pass, now
        # that the text columns are known, spares keeping every cell as a string.
        reader.encoding = True
        chunks = reader.run()
    return reader.assemble(chunks)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open for reading; every fault of the file itself becomes one line."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as handle:
            yield handle
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path.name}: not UTF-8 text; save it as a UTF-8 CSV file "
            "(Parquet and .npy files are told by their suffix)"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path.name}: not a complete gzip file; compress it again") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _count_outside_quotes(line: str, delimiter: str) -> int:
    # Every other piece between quote marks lies inside a quoted field.
    return sum(piece.count(delimiter) for piece in line.split('"')[::2])


def detect_delimiter(header: str, first: str = "") -> str:
    """Tell tab, semicolon or comma from the header line.

    The most frequent one outside quotes wins. The first data line only overrules it when it has
    another number of fields and a rival fits both lines.
    """
    counts = {mark: _count_outside_quotes(header, mark) for mark in _DELIMITERS}
    ranked = sorted(_DELIMITERS, key=lambda mark: -counts[mark])
    for mark in ranked:
        if counts[mark] and _count_outside_quotes(first, mark) == counts[mark]:
            return mark
    return ranked[0] if counts[ranked[0]] else ","


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


class _Reader:
    """One file: its layout, what is known of each column in use, and the passes over its rows.

    Columns in use are numbered by ``use``: the features in file order with the target in place.
    """

    def __init__(self, path: Path, target: str | None, one_hot: bool, drop: Sequence[str]) -> None:
        self.path, self.label = path, path.name
        self.target, self.one_hot, self.drop = target, one_hot, drop
        self.text: set[int] = set()
        self.encoding = False

    def run(self) -> deque[FloatArray]:
        """Read all rows into float64 chunks of shape (m, columns in use)."""
        with _opened(self.path) as handle:
            try:
                return self._read(handle)
            except csv.Error as error:
                line = self._skipped + self._rows.line_num
                raise InputError(
                    f"{self.label}: malformed quotes or field near line {line} ({error}); "
                    "correct that line"
                ) from error

    def _read(self, handle: TextIO) -> deque[FloatArray]:
        header = ""
        self._skipped = -1
        while not header.strip():
            self._skipped += 1
            header = next(handle, "")
            if not header:
                raise InputError(f"{self.label}: the file is empty; a header line is needed")
        first = next(handle, "")
        self.delimiter = detect_delimiter(header, first)
        self._rows = csv.reader(
            chain([header, first] if first else [header], handle),
            delimiter=self.delimiter,
            skipinitialspace=True,
            strict=True,
        )
        names = [name.strip() for name in next(self._rows)]
        self._lay_out(names)

        chunks: deque[FloatArray] = deque()
        self.n = 0
        for rows in self._chunked(len(names)):
            chunks.append(self._convert(rows))
            self.n += len(rows)
        check_rows(self.label, self.n)
        return chunks

    def _lay_out(self, names: list[str]) -> None:
        if all(_is_number(name) for name in names):
            raise InputError(
                f"{self.label}: the first line holds numbers only (for example "
                f"{shown(names[0])}); add a header line with the column names"
            )
        check_names(self.label, names)
        selection = select_columns(self.label, names, self.target, self.drop)
        self.use = sorted([*selection.features, selection.target])
        self.names = [names[index] for index in self.use]
        self.target_at = self.use.index(selection.target)
        width = len(self.use)
        self.kind = [""] * width
        self.points = [False] * width
        self.commas = [False] * width
        self.levels: list[dict[str, int]] = [{} for _ in range(width)]

    def _chunked(self, width: int) -> Iterator[list[list[str]]]:
        """Rows in chunks; blank lines are passed over, ragged rows refused."""
        size = max(64, _CHUNK_CELLS // width)
        chunk: list[list[str]] = []
        for row in self._rows:
            if len(row) != width:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                raise InputError(
                    f"{self.label}: line {self._skipped + self._rows.line_num} has {len(row)} "
                    f"fields where the header has {width}; correct that line"
                )
            chunk.append(row)
            if len(chunk) == size:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    def _convert(self, rows: list[list[str]]) -> FloatArray:
        columns = list(zip(*rows, strict=True))
        out = np.empty((len(rows), len(self.use)))
        for j, index in enumerate(self.use):
            convert = self._codes if self.encoding and j in self.text else self._values
            out[:, j] = convert(j, columns[index])
        return out

    def _values(self, j: int, cells: Sequence[str]) -> FloatArray:
        """One chunk of one column as numbers; a text column is noted, or refused."""
        values = self._numbers(j, cells)
        if values is not None:
            if np.isfinite(values).all():
                return values if self._settle(j, "number") else self._text(j, cells)
            row = int(np.isfinite(values).argmin())
            error = missing_error if np.isnan(values[row]) else infinite_error
            raise error(self.label, self.names[j], self.n + row + 1, is_target=j == self.target_at)
        folded = self._folded(j, cells)
        if all(cell in _BOOLEANS for cell in folded) and self._settle(j, "bool"):
            return np.array([_BOOLEANS[cell] for cell in folded])
        return self._text(j, cells)

    def _settle(self, j: int, kind: str) -> bool:
        """Whether the column is of this kind in all chunks so far."""
        self.kind[j] = self.kind[j] or kind
        return self.kind[j] == kind

    def _numbers(self, j: int, cells: Sequence[str]) -> FloatArray | None:
        joined = "".join(cells)
        if "_" in joined:  # float() would read 1_000 as a number
            return None
        commas = self.delimiter == ";" and "," in joined
        parsed: Iterable[str] = (cell.replace(",", ".") for cell in cells) if commas else cells
        try:
            values = np.fromiter(map(float, parsed), np.float64, len(cells))
        except ValueError:
            return None
        if self.delimiter == ";":
            self.commas[j] |= commas
            self.points[j] |= "." in joined
            if self.commas[j] and self.points[j]:
                # 1.234 may then mean 1234: refuse rather than guess.
                example = next(cell for cell in cells if "," in cell or "." in cell)
                raise InputError(
                    f"{self.label}: column {shown(self.names[j])} mixes decimal commas and decimal "
                    f"points (for example {shown(example.strip())}); write all of it one way"
                )
        return values

    def _folded(self, j: int, cells: Sequence[str]) -> list[str]:
        """Cells stripped and in lower case, none of them missing."""
        folded = [cell.strip().lower() for cell in cells]
        if not MISSING.isdisjoint(folded):
            row = next(i for i, cell in enumerate(folded) if cell in MISSING)
            raise missing_error(
                self.label, self.names[j], self.n + row + 1, is_target=j == self.target_at
            )
        return folded

    def _text(self, j: int, cells: Sequence[str]) -> FloatArray:
        is_target = j == self.target_at
        if self.one_hot and not is_target:
            self.text.add(j)
            return np.zeros(len(cells))  # a placeholder: the second pass encodes the column
        point = "," if self.delimiter == ";" else "."
        row = next((i for i, c in enumerate(cells) if not _is_number(c.replace(point, "."))), 0)
        raise text_error(
            self.label,
            self.names[j],
            cells[row].strip(),
            row=self.n + row + 1,
            is_target=is_target,
        )

    def _codes(self, j: int, cells: Sequence[str]) -> FloatArray:
        """One chunk of a text column as numbers of levels, in order of appearance."""
        self._folded(j, cells)
        levels = self.levels[j]
        codes = [levels.setdefault(cell.strip(), len(levels)) for cell in cells]
        if len(levels) > MAX_LEVELS:
            why = f"has more than {MAX_LEVELS} levels"
            raise identifier_error(self.label, self.names[j], next(iter(levels)), why)
        return np.array(codes, dtype=np.float64)

    def assemble(self, chunks: deque[FloatArray]) -> CsvTable:
        """Join the chunks, text columns spread over their levels.

        Chunks are let go of as they are copied, which keeps the peak near one copy of the data.
        """
        names: list[str] = []
        ranks: dict[int, np.ndarray] = {}  # level number to place among the sorted levels
        starts: list[int] = []
        for j, name in enumerate(self.names):
            starts.append(len(names))
            if j in self.text:
                check_levels(self.label, name, list(self.levels[j]), self.n)
                order = sorted(self.levels[j])
                ranks[j] = np.argsort([self.levels[j][level] for level in order])
                names += [f"{name}={level}" for level in order]
            elif j != self.target_at:
                names.append(name)
        target_name = self.names[self.target_at]
        check_names(self.label, [*names, target_name])

        X, y = np.zeros((self.n, len(names))), np.empty(self.n)
        row = 0
        while chunks:
            chunk = chunks.popleft()
            rows = np.arange(row, row + len(chunk))
            row += len(chunk)
            y[rows] = chunk[:, self.target_at]
            for j, start in enumerate(starts):
                if j in ranks:
                    X[rows, start + ranks[j][chunk[:, j].astype(np.intp)]] = 1.0
                elif j != self.target_at:
                    X[rows[0] : row, start] = chunk[:, j]
        return CsvTable(X, y, names, target_name)
