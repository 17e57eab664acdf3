"""Parquet files, streamed with pyarrow."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..errors import InputError
from .columns import (
    MAX_LEVELS,
    FloatArray,
    check_levels,
    check_names,
    check_rows,
    identifier_error,
    missing_error,
    select_columns,
    shown,
    text_error,
)
from .rows import RowSource

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError:  # pragma: no cover - depends on the environment
    pa = None

_LEVEL_ROWS = 65536
_BUFFER = 1 << 20


class ParquetSource(RowSource):
    """A Parquet file; only the columns in use are read, block by block.

    Parameters
    ----------
    path : Path
    target : str, optional
        The target column; the last column in use by default.
    one_hot : bool
        Encode columns of text and dates, one 0/1 column per level. Their levels are collected
        when the source is made, which reads these columns once.
    drop : sequence of str
        Columns to leave out.

    Raises
    ------
    InputError
        pyarrow is missing, the file is not Parquet, or a column cannot be used.

    Notes
    -----
    The index that pandas stores next to the columns is left out unless ``target`` names it.
    """

    def __init__(
        self,
        path: Path,
        *,
        target: str | None = None,
        one_hot: bool = False,
        drop: Sequence[str] = (),
    ) -> None:
        if pa is None:
            raise InputError(
                f"{path.name}: reading Parquet needs pyarrow; "
                'install it with: pip install "sparsecv[parquet]"'
            )
        self._path = path
        self.name = path.stem
        with self._opened() as file:
            schema, self.n = file.schema_arrow, int(file.metadata.num_rows)
            check_rows(path.name, self.n)
            index = [name for name in _pandas_index(schema) if name != target]
            names: list[str] = list(schema.names)
            selection = select_columns(path.name, names, target, (*drop, *index))
            self.target_name = names[selection.target]
            columns = [names[position] for position in selection.features]
            self._levels: dict[str, list[str]] = {}
            for name in [*columns, self.target_name]:
                dtype = schema.field(name).type
                if _is_numeric(dtype):
                    continue
                if one_hot and name != self.target_name and not pa.types.is_null(dtype):
                    self._levels[name] = self._collect(file, name)
                else:
                    self._refuse(file, name, dtype)
        self._columns = columns
        self.feature_names = []
        for name in columns:
            levels = self._levels.get(name)
            self.feature_names += [f"{name}={v}" for v in levels] if levels else [name]
        check_names(path.name, [*self.feature_names, self.target_name])

    @property
    def _label(self) -> str:
        return self._path.name

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            # Buffered, or Arrow would hold a whole row group in memory.
            with pq.ParquetFile(self._path, pre_buffer=False, buffer_size=_BUFFER) as file:
                yield file
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self._label}: not a readable Parquet file ({reason}); write it again"
            ) from error
        except OSError as error:
            reason = error.strerror or str(error).splitlines()[0]
            raise InputError(f"cannot read {self._path}: {reason}") from error

    def _refuse(self, file: Any, name: str, dtype: Any) -> NoReturn:
        """Refuse a column by its type, with its first value as the example."""
        is_target = name == self.target_name
        row = 1
        for batch in file.iter_batches(batch_size=_LEVEL_ROWS, columns=[name]):
            column = _named(batch, name)
            if column.null_count == len(column):  # look on for a value to show
                row += len(column)
                continue
            if _is_text(dtype):
                values = _as_text(column)
                place = next(i for i, value in enumerate(values) if value is not None)
                what = "dates" if pa.types.is_temporal(_value_type(dtype)) else None
                raise text_error(
                    self._label,
                    name,
                    values[place],
                    row=row + place,
                    is_target=is_target,
                    what=what,
                )
            break
        else:
            raise missing_error(self._label, name, 1, is_target=is_target)
        if is_target:
            raise InputError(
                f"{self._label}: the target column {shown(name)} is not numeric: it has type "
                f"{dtype}; name a numeric column with --target"
            )
        raise InputError(
            f"{self._label}: column {shown(name)} has type {dtype}, neither numeric nor text; "
            f"leave it out with --drop {shown(name)}"
        )

    def _collect(self, file: Any, name: str) -> list[str]:
        """The sorted levels of one column; at most ``MAX_LEVELS`` strings are ever held."""
        dtype = file.schema_arrow.field(name).type
        if not _is_text(dtype):
            self._refuse(file, name, dtype)
        levels: dict[str, None] = {}
        row = 0
        for batch in file.iter_batches(batch_size=_LEVEL_ROWS, columns=[name]):
            column = _named(batch, name)
            self._check_null(column, name, row)
            row += len(column)
            levels.update(dict.fromkeys(_as_text(pc.unique(column))))
            if len(levels) > MAX_LEVELS:
                why = f"has more than {MAX_LEVELS} levels"
                raise identifier_error(self._label, name, next(iter(levels)), why)
        found = list(levels)
        check_levels(self._label, name, found, self.n)
        return sorted(found)

    def _check_null(self, column: Any, name: str, done: int) -> None:
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            is_target = name == self.target_name
            raise missing_error(self._label, name, done + row + 1, is_target=is_target)

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        names = [*self._columns, self.target_name]
        done = 0
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=rows, columns=names):
                m = len(batch)
                if not m:
                    continue
                # Arrow holds columns, so filling in column order is what runs at full speed.
                X = np.zeros((m, self.p), order="F")
                at = 0
                for name in names:
                    column = _named(batch, name)
                    self._check_null(column, name, done)
                    if name in self._levels:
                        at = self._spread(X, at, column, self._levels[name])
                    elif name == self.target_name:
                        y = _as_float(column).copy()  # Arrow's own memory is read-only
                    else:
                        X[:, at] = _as_float(column)
                        at += 1
                done += m
                yield np.ascontiguousarray(X), y

    @staticmethod
    def _spread(X: FloatArray, at: int, column: Any, levels: list[str]) -> int:
        """Write the 0/1 columns of one text column; return the next free column."""
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        places = {level: place for place, level in enumerate(levels)}
        # A dictionary may hold entries that no row uses, so unknown ones are no fault.
        place = np.array([places.get(v, -1) for v in _as_text(coded.dictionary)], dtype=np.intp)
        codes = coded.indices.to_numpy(zero_copy_only=False)
        X[np.arange(len(codes)), at + place[codes]] = 1.0
        return at + len(levels)


def _pandas_index(schema: Any) -> list[str]:
    """Columns in which pandas stored an index."""
    try:
        stored = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, ValueError, TypeError):
        return []
    return [name for name in stored if isinstance(name, str) and name in schema.names]


def _named(batch: Any, name: str) -> Any:
    # By name: the batch follows the order of the file, and a column "a" also brings in "a.b".
    return batch.column(batch.schema.get_field_index(name))


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


def _as_text(column: Any) -> list[str]:
    """The values as strings; a null stays None, which callers look for where it can occur."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    texts: list[str] = column.cast(pa.string()).to_pylist()
    return texts


def _as_float(column: Any) -> FloatArray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    # Through NumPy: Arrow's own cast refuses large integers and, in older versions, half floats.
    values: FloatArray = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return values
