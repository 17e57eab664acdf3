"""Parquet: round trips, types, text columns, and every refusal by its words."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.inside import resolve
from support.tables import NAMES, check, refused, table, write

from sparsecv import SparseRidge
from sparsecv.errors import InputError
from sparsecv.tables.sources import open_file


def save_parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=8)
    return path


@pytest.mark.parametrize("file", ["t.parquet", "t.pq"])
def test_parquet_round_trip(tmp_path: Path, file: str) -> None:
    values = table()
    columns = dict(zip([*NAMES, "resp"], values.T, strict=True))
    source = resolve(save_parquet(tmp_path / file, **columns))
    check(source, values, NAMES, "resp")
    assert source.name == "t"
    check(
        resolve(tmp_path / file, target="a", drop=["d.e"]),
        values[:, [1, 3, 0]],
        ["b c", "resp"],
        "a",
    )


def test_parquet_names_that_look_nested(tmp_path: Path) -> None:
    values = table(20)
    path = save_parquet(
        tmp_path / "t.parquet", **dict(zip(["a", "a.b", "b", "y"], values.T, strict=True))
    )
    check(resolve(path), values, ["a", "a.b", "b"], "y")
    check(resolve(path, drop=["a.b"]), values[:, [0, 2, 3]], ["a", "b"], "y")


def test_parquet_types(tmp_path: Path) -> None:
    n = 20
    i = np.arange(n)
    path = save_parquet(
        tmp_path / "t.parquet",
        flag=pa.array([bool(k % 2) for k in i]),
        i8=pa.array(i.astype(np.int8)),
        u64=pa.array([2**63 + 2**58 * int(k) for k in i], pa.uint64()),
        big=pa.array([2**53 + 1 + int(k) for k in i], pa.int64()),
        half=pa.array(i.astype(np.float16)),
        single=pa.array(i.astype(np.float32) / 8),
        money=pa.array([decimal.Decimal(f"{k}.25") for k in i]),
        code=pa.array(i % 3).dictionary_encode(),
        y=pa.array(i, pa.int32()),
    )
    names = ["flag", "i8", "u64", "big", "half", "single", "money"]
    names += ["code=0", "code=1", "code=2"]
    expected = [
        i % 2,
        i,
        [float(2**63 + 2**58 * int(k)) for k in i],
        [float(2**53 + 1 + int(k)) for k in i],
        i,
        i / 8,
        i + 0.25,
        *(i % 3 == level for level in range(3)),
        i,
    ]
    check(resolve(path), np.column_stack(expected).astype(float), names, "y")


def test_parquet_levels(tmp_path: Path) -> None:
    g = ["m", "f", "m", "d"] * 10
    for column in (
        pa.array(g),
        pa.array(g, pa.large_string()),
        pa.array(g).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([3, 1, 3, 0] * 10), ["d", "f", "unused", "m"]),
    ):
        path = save_parquet(
            tmp_path / "t.parquet", x=pa.array(range(40)), g=column, y=pa.array(range(40))
        )
        source = resolve(path)
        assert source.feature_names == ["x", "g=d", "g=f", "g=m"]
        k = np.arange(40)
        expected = np.column_stack([k, *([v == w for v in g] for w in "dfm"), k]).astype(float)
        check(source, expected, source.feature_names, "y")


def test_levels_of_numbers_are_those_of_text(tmp_path: Path) -> None:
    """A declared factor of numbers has the same levels from a file of text and of numbers."""
    codes = ["0.00001", "0.25", "100000000000000000", "-3"]
    text = tmp_path / "t.csv"
    text.write_text("d,y\n" + "".join(f"{codes[k % 4]},{k}\n" for k in range(12)))
    numbers = pa.array([float(codes[k % 4]) for k in range(12)])
    file = save_parquet(tmp_path / "t.parquet", d=numbers, y=pa.array(range(12)))
    of_text, of_numbers = (resolve(path, factors=["d"]).feature_names for path in (text, file))
    assert of_text == of_numbers == [f"d={code}" for code in ("-3", *codes[:3])]


def test_a_point_without_digits_behind_it_makes_no_level_of_its_own(tmp_path: Path) -> None:
    text = tmp_path / "t.csv"
    text.write_text(
        "d,x,y\n" + "".join(f"{d},{k},{k}\n" for k, d in enumerate(["2.", "2", "-0.", "30."]))
    )
    assert resolve(text, factors=["d"]).feature_names == ["d=0", "d=2", "d=30", "x"]


def test_whole_numbers_beside_a_missing_cell_keep_their_digits(tmp_path: Path) -> None:
    codes = [2**53 + 1, 2**53, None, 12]
    texts = [str(code) for code in codes if code is not None]
    g, y = pa.array(codes * 5), pa.array(range(20))
    for file, column in (("int.parquet", g), ("category.parquet", g.dictionary_encode())):
        path = save_parquet(tmp_path / file, g=column, y=y)
        names = resolve(path, target="y", factors=["g"], missing="mean").feature_names
        assert sorted(names) == sorted(f"g={text}" for text in (*texts, "(missing)"))
        rows = open_file(path).texts(["g"])[:4]  # As predict --id writes them.
        assert rows == [[texts[0]], [texts[1]], [""], [texts[2]]]


def test_a_missing_category_of_arrow_is_none_of_its_levels() -> None:
    codes = pa.array([1, 2, None, 12] * 5)
    y = np.array([1.0, 2.0, -5.0, 4.0] * 5) + np.arange(20.0) / 100.0
    arrow = pa.table({"g": codes.dictionary_encode()})
    frame = pd.DataFrame({"g": pd.Series([1, 2, None, 12] * 5, dtype="Int64").astype("category")})
    fits = [SparseRidge(tau=3, missing="mean").fit(X, y).predict(X) for X in (arrow, frame)]
    np.testing.assert_allclose(fits[0], fits[1], rtol=1e-12)
    assert fits[0][2] < 0.0 < fits[0][3]


def test_parquet_text_and_dates(tmp_path: Path) -> None:
    y = pa.array([1.0, 2.0, 3.0, 4.0])
    day = datetime.date(2024, 1, 5)
    path = save_parquet(tmp_path / "a.parquet", g=pa.array([None, "u", "v", "v"]), y=y)
    refused(path, "missing value", "'g'", "data row 1")
    for column, example in (
        (pa.array([day, day, day, None]), "2024-01-05"),
        (pa.array([datetime.datetime(2024, 1, 5, 7)] * 4, pa.timestamp("us")), "2024-01-05 07:00"),
        (pa.array([datetime.datetime(2024, 1, 5, 7)] * 4, pa.timestamp("ns")), "2024-01-05 07:00"),
    ):
        path = save_parquet(tmp_path / "b.parquet", x=y, day=column, y=y)
        refused(path, "'day'", "dates", example, "days since", "--exclude 'day'")
    path = save_parquet(tmp_path / "c.parquet", x=y, y=pa.array(["p", "q", "p", "q"]))
    refused(path, "target column 'y'", "'p'", "never encoded")
    path = save_parquet(tmp_path / "d.parquet", x=pa.array([[1], [2], [3], [4]]), y=y)
    refused(path, "'x'", "list", "--exclude 'x'")
    path = save_parquet(tmp_path / "e.parquet", x=y, y=pa.array([[1], [2], [3], [4]]))
    refused(path, "target column 'y'", "list", "--target")
    path = save_parquet(tmp_path / "f.parquet", x=pa.nulls(4), y=y)
    refused(path, "missing value", "'x'", "data row 1")


def test_categories_and_periods_of_pandas(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(12.0), "y": np.arange(12.0) ** 2})
    codes = pd.Categorical(np.arange(12) % 3 + 8)
    frame.assign(code=codes).to_parquet(tmp_path / "t.parquet", index=False)
    source = resolve(tmp_path / "t.parquet", target="y")
    assert source.feature_names == ["x", "code=8", "code=9", "code=10"]
    months = pd.period_range("2024-01", periods=12, freq="M")
    frame.assign(month=months).to_parquet(tmp_path / "p.parquet", index=False)
    refused(tmp_path / "p.parquet", "'month'", "periods", "dt.month", target="y")


@pytest.mark.parametrize("bad", [None, float("nan")])
def test_parquet_missing(tmp_path: Path, bad: float | None) -> None:
    clean = [float(v) for v in range(40)]
    holed = pa.array([*clean[:29], bad, *clean[30:]], pa.float64(), from_pandas=False)
    path = save_parquet(tmp_path / "t.parquet", x=pa.array(clean), z=holed, y=pa.array(clean))
    refused(path, "missing value", "'z'", "data row 30", load=True)
    refused(path, "missing value", "'z'", "data row 30", load=True, target="z")
    with pytest.raises(InputError, match="data row 30"):
        resolve(path)
    assert resolve(path, drop="z").load()[0].shape == (40, 1)


def test_parquet_file_faults(tmp_path: Path) -> None:
    refused(write(tmp_path / "t.parquet", "a,y\n1,2\n"), "t.parquet", "not a readable Parquet")
    refused(write(tmp_path / "u.parquet", ""), "u.parquet", "not a readable Parquet")
    refused(save_parquet(tmp_path / "v.parquet", x=[1.0], y=[2.0]), "only 1 data row")
    empty = pa.array([], pa.float64())
    refused(save_parquet(tmp_path / "w.parquet", x=empty, y=empty), "no data rows")
    path = save_parquet(tmp_path / "x.parquet", price=[1.0, 2.0], y=[2.0, 3.0])
    refused(path, "'prise'", "did you mean 'price'", target="prise")
    refused(path, "--exclude", "'z'", drop="z")
    both = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 3, names=["a", "a", "y"])
    pq.write_table(both, tmp_path / "z.parquet")
    refused(tmp_path / "z.parquet", "duplicate", "'a'")


def test_pandas_index_is_not_the_target(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "y": [5.0, 6, 7, 8]})
    expected = frame.to_numpy()
    frame.iloc[[0, 1, 3]].to_parquet(tmp_path / "t.parquet")
    check(resolve(tmp_path / "t.parquet"), expected[[0, 1, 3]], ["a"], "y")
    frame.index = pd.Index([9.0, 8, 7, 6], name="id")
    frame.to_parquet(tmp_path / "u.parquet")
    check(resolve(tmp_path / "u.parquet"), expected, ["a"], "y")
    assert resolve(tmp_path / "u.parquet", target="id").feature_names == ["a", "y"]
