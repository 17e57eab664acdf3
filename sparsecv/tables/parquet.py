"""Parquet files as Arrow batches."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InputError
from .column_errors import Faults
from .columns import FloatArray, shown
from .text import as_numpy

SUFFIXES = {".parquet", ".pq"}
_ROWS = 65536
_BUFFER = 1 << 20


class ParquetFile:
    """A Parquet file; only the columns in use are read.

    The index that pandas stores next to the columns is in ``index``.

    Raises InputError: The file is not Parquet.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.label = path, path.name
        self.kept: list[FloatArray] = []
        with self._opened() as file:
            self._schema, self.n = file.schema_arrow, int(file.metadata.num_rows)
        self.names: list[str] = list(self._schema.names)
        try:
            stored = json.loads((self._schema.metadata or {})[b"pandas"])["index_columns"]
        except (KeyError, ValueError, TypeError):
            stored = []
        self.index = [name for name in stored if isinstance(name, str) and name in self.names]

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        try:
            # Buffered, or Arrow would hold a whole row group in memory.
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
                yield file
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self.label}: not a readable Parquet file ({reason}); write it again"
            ) from error
        except OSError as error:
            reason = error.strerror or str(error).splitlines()[0]
            raise InputError(f"cannot read {self.path}: {reason}") from error

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows, the columns in the order asked for."""
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=min(rows, _ROWS), columns=list(columns)):
                if len(batch):  # by name: a column "a" also brings in "a.b"
                    at = map(batch.schema.get_field_index, columns)
                    arrays = [batch.column(j) for j in at]
                    yield pa.record_batch(arrays, list(columns))

    def inspect(
        self, columns: Sequence[str], encode: bool, levels: Collection[str], faults: Faults
    ) -> tuple[int, set[str]]:
        """How many rows there are, and which columns hold text to encode; see the text reader."""
        text = set(levels)
        for name in columns:
            dtype = self._schema.field(name).type
            if name in text or _is_numeric(dtype):
                continue
            if pa.types.is_null(dtype):
                faults.rows(name, "missing", range(self.n))
            elif _is_text(dtype):
                text.add(name)
                encoded = encode and name != faults.target
                self._note(name, pa.types.is_temporal(_value_type(dtype)), encoded, faults)
            elif name == faults.target:
                what = f"the target column {shown(name)} is not numeric: it has type {dtype}"
                faults.add(name, what, "name a numeric column with --target")
            else:
                what = f"column {shown(name)} has type {dtype}, neither numeric nor text"
                faults.add(name, what)
        return self.n, text

    def _note(self, name: str, dates: bool, encode: bool, faults: Faults) -> None:
        """Note a column of text with its first cells for an example."""
        row = 0
        for batch in self.batches([name], _ROWS):
            cells = as_text(batch.column(0)).to_pylist()
            present = [cell for cell in cells if cell is not None]
            if present:
                first = row + cells.index(present[0])
                kind = "dates" if dates else None
                faults.text(name, present[:1000], first, encode=encode, kind=kind)
                return
            row += len(cells)
        faults.rows(name, "missing", range(self.n))

    def floats(self, name: str, cells: Any) -> FloatArray:
        """A numeric column; nulls become NaN.

        Returns, shape (m,).
        """
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if pa.types.is_decimal(cells.type):
            cells = cells.cast(pa.float64())
        # Through NumPy: Arrow's own cast refuses large integers and, in older versions, half
        # floats.
        values: FloatArray = as_numpy(cells).astype(np.float64, copy=False)
        return values


class ParquetFolder(ParquetFile):
    """The Parquet files of a folder as one table, in the order of their names.

    Raises InputError: There are none, one cannot be read, or two differ in their columns.
    """

    def __init__(self, path: Path) -> None:
        found = sorted(one for one in path.iterdir() if one.suffix.lower() in SUFFIXES)
        if not found:
            raise InputError(
                f"{path} is a folder without Parquet files; name a CSV, Parquet or .npy file in it"
            )
        self.files = [ParquetFile(one) for one in found]
        super().__init__(found[0])
        self.path, self.label = path, path.name
        for one in self.files:
            if one.names != self.names:
                raise InputError(
                    f"{path.name}: {one.label} has other columns, or in another order, than "
                    f"{self.files[0].label}"
                )
            for name in self.names:
                kinds = {_is_numeric(file._schema.field(name).type) for file in (self, one)}
                if len(kinds) > 1:
                    raise InputError(
                        f"{path.name}: column {shown(name)} is numeric in one file and not in "
                        f"another ({one.label})"
                    )
        self.n = sum(one.n for one in self.files)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of all files, one after the other; see :class:`ParquetFile`."""
        for one in self.files:
            yield from one.batches(columns, rows)


def as_text(cells: Any) -> Any:
    """The values as strings, nulls kept."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return cells.cast(pa.string())


def _value_type(dtype: Any) -> Any:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _is_numeric(dtype: Any) -> bool:
    dtype, types = _value_type(dtype), pa.types
    return bool(
        types.is_boolean(dtype)
        or types.is_integer(dtype)
        or types.is_floating(dtype)
        or types.is_decimal(dtype)
    )


def _is_text(dtype: Any) -> bool:
    """Text, and what has a plain text form: dates, times of day and times."""
    dtype, types = _value_type(dtype), pa.types
    return bool(
        types.is_string(dtype)
        or types.is_large_string(dtype)
        or str(dtype) == "string_view"  # no test for it before pyarrow 16
        or types.is_date(dtype)
        or types.is_time(dtype)
        or types.is_timestamp(dtype)
    )
