"""Parquet files as columns of Arrow."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import InputError, first_line
from .files import ColumnFile

_TYPES = pa.types


def _kind(dtype: Any) -> str:
    """What a column of a type of Arrow holds: "number", "text", or the name of another type.

    Times and a column without a value count as text.
    """
    entry = dtype.value_type if _TYPES.is_dictionary(dtype) else dtype
    numbers = _TYPES.is_boolean, _TYPES.is_integer, _TYPES.is_floating, _TYPES.is_decimal
    texts = _TYPES.is_string, _TYPES.is_large_string, _TYPES.is_string_view
    times = _TYPES.is_date, _TYPES.is_time, _TYPES.is_timestamp
    if any(test(entry) for test in numbers):
        return "number"
    return "text" if any(test(entry) for test in (_TYPES.is_null, *texts, *times)) else str(dtype)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file for reading; errors while it is open become InputErrors."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except pa.ArrowException as error:
        raise InputError(
            f"{path.name}: not a readable Parquet file ({first_line(error)}); write it again"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or first_line(error)}") from error
    finally:
        pa.default_memory_pool().release_unused()  # Arrow would keep its buffers for later.


def open_parquet(path: Path) -> ColumnFile:
    """A Parquet file, of which only the columns in use are read.

    The attribute ``index`` names the columns that pandas has stored as the index of a data frame.

    Raises InputError: The file is not Parquet.
    """
    with _opened(path) as file:
        schema, n = file.schema_arrow, int(file.metadata.num_rows)
    kinds = {name: _kind(dtype) for name, dtype in zip(schema.names, schema.types, strict=True)}

    def read(columns: Sequence[str]) -> dict[str, Any]:
        with _opened(path) as file:
            table = file.read(list(columns))
        # A column "a" also brings in "a.b", so columns are taken by name.
        return {name: table.column(name).combine_chunks() for name in columns}

    made = ColumnFile(path.name, schema.names, n, kinds, read)
    try:
        stored = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, ValueError, TypeError):
        stored = []
    made.index = [name for name in stored if isinstance(name, str) and name in made.names]
    return made
