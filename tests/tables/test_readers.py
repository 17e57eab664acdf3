"""What all sources share, and arrays in memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.tables import NAMES, check, table

from sparsecv.errors import InputError
from sparsecv.tables.sources import open_file, open_table
from sparsecv.tables.table import Table

# ---------------------------------------------------------------------------- in memory


def test_array_source() -> None:
    values = table()
    source = Table(values[:, :-1], values[:, -1], NAMES, "resp", "mine")
    check(source, values, NAMES, "resp")
    assert source.name == "mine"
    assert Table([[1, 2], [3, 4]], [True, False], ["a", "b"]).load()[1].tolist() == [1.0, 0.0]


def test_array_source_faults() -> None:
    X, y = table()[:, :-1], table()[:, -1]
    with pytest.raises(InputError, match="duplicate column name 'a'"):
        Table(X, y, ["a", "b", "c"], "a")
    with pytest.raises(InputError, match="only 1 data row"):
        Table(X[:1], y[:1], NAMES)
    with pytest.raises(InputError, match="no feature columns"):
        Table(X[:, :0], y, [])
    with pytest.raises(InputError, match="arrays of numbers"):
        Table([["a", "b"]] * 2, [1, 2], ["a", "b"])
    hole = X.copy()
    hole[4, 2] = np.nan
    with pytest.raises(InputError, match=r"missing value in column 'd\.e', data row 5"):
        Table(hole, y, NAMES)


# ---------------------------------------------------------------------------- files that change


def save_rows(path: Path, n: int) -> Path:
    values = pd.DataFrame(np.random.default_rng(0).standard_normal((n, 3)), columns=list("aby"))
    if path.suffix == ".csv":
        values.to_csv(path, index=False)
    else:
        values.to_parquet(path)
    return path


@pytest.mark.parametrize("now", [30, 20, 90])
def test_a_file_that_changes_while_it_is_open(now: int, tmp_path: Path) -> None:
    file = open_file(save_rows(tmp_path / "t.parquet", 60), "utf-8")
    save_rows(tmp_path / "t.parquet", now)
    with pytest.raises(InputError, match="rows when it was opened") as caught:
        open_table((file, "t"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("use", ["weights", "groups"])
def test_weights_of_another_number_than_the_rows(tmp_path: Path, use: str) -> None:
    save_rows(tmp_path / "t.parquet", 60)
    file = open_file(tmp_path / "t.parquet", "utf-8")
    save_rows(tmp_path / "t.parquet", 61)
    with pytest.raises(InputError, match="60 rows when it was opened"):
        open_table((file, "t"), **{use: "a"})
