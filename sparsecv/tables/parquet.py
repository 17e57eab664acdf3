"""Parquet files, and folders of Parquet files, as Arrow batches."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import InputError, first_line
from .columns import BLOCK_ROWS, quoted
from .faults import Faults
from .files import File

_TYPES = pa.types


def is_numeric(dtype: Any) -> bool:
    """Whether a type of Arrow, or of the entries of its dictionary, is one of numbers."""
    dtype = dtype.value_type if _TYPES.is_dictionary(dtype) else dtype
    tests = _TYPES.is_boolean, _TYPES.is_integer, _TYPES.is_floating, _TYPES.is_decimal
    return any(test(dtype) for test in tests)


def is_text(dtype: Any) -> bool:
    """Whether a type of Arrow is one of text or times, or that of a column without a value."""
    dtype = dtype.value_type if _TYPES.is_dictionary(dtype) else dtype
    texts = _TYPES.is_string, _TYPES.is_large_string, _TYPES.is_string_view
    times = _TYPES.is_date, _TYPES.is_time, _TYPES.is_timestamp
    return any(test(dtype) for test in (_TYPES.is_null, *texts, *times))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file for reading; errors while it is open become InputErrors."""
    import pyarrow.parquet as pq

    # Arrow reads a column through a buffer of this many bytes, where it would otherwise read whole
    # row groups into memory. The number is a choice.
    buffer_bytes = 1 << 16
    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=buffer_bytes) as file:
            yield file
    except pa.ArrowException as error:
        raise InputError(
            f"{path.name}: not a readable Parquet file ({first_line(error)}); write it again"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or first_line(error)}") from error
    finally:
        pa.default_memory_pool().release_unused()  # Arrow would keep its buffers for later.


class ParquetFile(File):
    """A Parquet file.

    Only the columns in use are read. The attribute ``index`` names the columns that pandas has
    stored as the index of a data frame.

    Raises InputError: The file is not Parquet.
    """

    max_columns_at_once = 8

    def __init__(self, path: Path) -> None:
        self.path, self.label = path, path.name
        with _opened(path) as file:
            self._schema, self.n = file.schema_arrow, int(file.metadata.num_rows)
        self.names = list(self._schema.names)
        try:
            stored = json.loads((self._schema.metadata or {})[b"pandas"])["index_columns"]
        except (KeyError, ValueError, TypeError):
            stored = []
        self.index = [name for name in stored if isinstance(name, str) and name in self.names]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows with the named columns, in this order."""
        with _opened(self.path) as file:
            for batch in file.iter_batches(batch_size=min(rows, BLOCK_ROWS), columns=list(columns)):
                if len(batch):  # A column "a" also brings in "a.b", so columns are taken by name.
                    at = map(batch.schema.get_field_index, columns)
                    yield pa.record_batch([batch.column(j) for j in at], list(columns))

    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """Find text by the columns' types; see :meth:`File.inspect`."""
        text = set(levels)
        for name in columns:
            dtype = self._schema.field(name).type
            if name in text or is_numeric(dtype):
                continue
            if is_text(dtype):
                text.add(name)
            elif name == faults.target:
                what = f"the target column {quoted(name)} is not numeric: it has type {dtype}"
                faults.add(name, what, ["name a numeric column with --target"])
            else:
                what = f"column {quoted(name)} has type {dtype}, neither numeric nor text"
                faults.add(name, what)
        return text
