"""What all sources share, arrays in memory and ``.npy`` files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.tables import NAMES, check, refused, table, write

from sparsecv.errors import InputError
from sparsecv.tables.sources import open_file, open_table
from sparsecv.tables.table import Table

# ---------------------------------------------------------------------------- .npy


@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f8", np.int16, np.uint8, np.bool_])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_round_trip(tmp_path: Path, dtype: Any, order: Any) -> None:
    values = np.asarray(table() > 0 if dtype is np.bool_ else table() % 100, order=order)
    values = values.astype(dtype, order="K")
    np.save(tmp_path / "t.npy", values)
    expected = values.astype(np.float64)
    check(open_table(tmp_path / "t.npy"), expected, ["x0", "x1", "x2"], "y")
    check(
        open_table(tmp_path / "t.npy", target="x1", drop="x2"),
        expected[:, [0, 3, 1]],
        ["x0", "y"],
        "x1",
    )
    check(open_table(tmp_path / "t.npy", drop="x1"), expected[:, [0, 2, 3]], ["x0", "x2"], "y")


def test_npy_faults(tmp_path: Path) -> None:
    def save(array: Any) -> Path:
        np.save(tmp_path / "t.npy", array)
        return tmp_path / "t.npy"

    refused(save(np.zeros(5)), "2-D", "1-D")
    refused(save(np.zeros((3, 2, 2))), "2-D", "3-D")
    refused(save(np.zeros((3, 2), dtype=complex)), "2-D array of real numbers", "complex128")
    refused(save(np.array([["a", "b"]] * 3)), "real numbers", "<U1")
    refused(save(np.array([[1, None]] * 3, dtype=object)), "t.npy", "array of numbers")
    refused(save(np.zeros(3, dtype=[("a", float), ("b", float)])), "2-D")
    refused(save(np.zeros((1, 4))), "only 1 data row")
    refused(save(np.zeros((0, 4))), "t.npy")
    refused(save(np.zeros((4, 1))), "no feature columns left")
    refused(save(np.zeros((4, 0))), "t.npy")
    refused(save(np.zeros((4, 3))), "'x7'", target="x7")
    refused(write(tmp_path / "u.npy", "a,y\n1,2\n3,4\n"), "u.npy", "not a readable .npy")
    refused(write(tmp_path / "v.npy", ""), "v.npy", "not a readable .npy")
    whole = save(np.zeros((100, 3))).read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:500])
    refused(tmp_path / "cut.npy", "cut.npy", "not a readable .npy")


def test_npy_huge_values_are_not_infinite(tmp_path: Path) -> None:
    values = np.full((10, 3), 1.5e308)  # their sum overflows
    np.save(tmp_path / "t.npy", values)
    check(open_table(tmp_path / "t.npy"), values, ["x0", "x1"], "y")


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
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".csv":
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
    save_rows(tmp_path / "t.npy", 60)
    file = open_file(tmp_path / "t.npy", "utf-8")
    save_rows(tmp_path / "t.npy", 61)
    with pytest.raises(InputError, match="60 rows when it was opened"):
        open_table((file, "t"), **{use: "x0"})
