"""Decimal marks and marks of thousands are those of a file, and codes of missing values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands import run_json
from support.tables import refused, write

from sparsecv.cli.main import main
from sparsecv.tables.marks import Marks
from sparsecv.tables.source import Reading
from sparsecv.tables.sources import open_table

# A file, what a user says of it, and its cells.
READ: list[tuple[str, dict[str, Any], list[list[float]]]] = [
    # one column shows the mark of all
    ("a;b;y\n3.102;1,5;1\n939;2,25;2\n", {}, [[3102, 1.5, 1], [939, 2.25, 2]]),
    ("a;b;y\n1,5;3.102;1\n2,25;939;2\n", {}, [[1.5, 3102, 1], [2.25, 939, 2]]),
    ("a;b;y\n3.102;7;1\n939;8;2,5\n", {}, [[3102, 7, 1], [939, 8, 2.5]]),
    ("a\tb\ty\n3,102\t1.5\t1\n939\t2\t2\n", {}, [[3102, 1.5, 1], [939, 2, 2]]),
    ("a|b|y\n1.234.567|1|1\n8|2|2\n", {}, [[1234567, 1, 1], [8, 2, 2]]),
    ("a;y\n1.234,5;1\n2,5;2\n1.300;2\n", {}, [[1234.5, 1], [2.5, 2], [1300, 2]]),
    ('a,y\n"1,5",1\n"2,5",2\n', {}, [[1.5, 1], [2.5, 2]]),
    ("a\tp\ty\n1\t1,234,567.5\t3\n2\t7\t4\n", {}, [[1, 1234567.5, 3], [2, 7, 4]]),
    ("a;b;y\n-3.102;-1,5;1\n+939;2,25;2\n", {}, [[-3102, -1.5, 1], [939, 2.25, 2]]),
    # 0.102 and 1e3 have one reading
    ("a;y\n0.102;1\n3.102;2\n", {}, [[0.102, 1], [3.102, 2]]),
    ("a;y\n3.102e2;1\n3.102;2\n", {}, [[310.2, 1], [3.102, 2]]),
    # commas separate the columns, and so they are no decimal marks
    ("a,y\n3.102,1\n939,2\n", {}, [[3.102, 1], [939, 2]]),
    (
        "a,b,y\n123456789012345678901,3.102,1\n1,939,2\n",
        {},
        [[123456789012345678901.0, 3.102, 1], [1, 939, 2]],
    ),
    (
        "a,b,y\n x ,3.102,1\n1, n/A ,2\n2.102,5,3\n3,1.250,4\n",
        {"na": ("x",)},
        [[2.102, 5, 3], [3, 1.25, 4]],
    ),
    # what a user says
    ("a;y\n3.102;1\n939;2\n", {"decimal": ","}, [[3102, 1], [939, 2]]),
    ("a;y\n3.102;1\n939;2\n", {"decimal": "."}, [[3.102, 1], [939, 2]]),
    ("a;y\n3.102;1\n939;2\n", {"thousands": "."}, [[3102, 1], [939, 2]]),
    ('a,y\n"1,234",1\n"2,345",2\n', {"decimal": "."}, [[1234, 1], [2345, 2]]),
    ('a,y\n"1,234",1\n"2,345",2\n', {"decimal": ","}, [[1.234, 1], [2.345, 2]]),
    ("a;y\n1.234;1\n1,5;2\n", {"decimal": ","}, [[1234, 1], [1.5, 2]]),
    ("a,y\n1'234.5,1\n2'345,2\n", {"thousands": "'"}, [[1234.5, 1], [2345, 2]]),
    ("a,y\n1_234,1\n5,2\n", {"thousands": "_"}, [[1234, 1], [5, 2]]),
    ("a;y\n1\u00a0234,5;1\n2 345;2\n", {"thousands": " "}, [[1234.5, 1], [2345, 2]]),
]


@pytest.mark.parametrize(("text", "said", "cells"), READ)
def test_what_is_read(
    tmp_path: Path, text: str, said: dict[str, Any], cells: list[list[float]]
) -> None:
    path = write(tmp_path / "t.csv", text)
    missing = "drop" if "na" in said else None
    X, y = open_table(path, reading=Reading(**said), missing=missing).load()
    np.testing.assert_array_equal(np.column_stack([X, y]), cells)


REFUSED: list[tuple[str, dict[str, str], list[str]]] = [
    # two readings, and cells of both columns
    (
        "a;b;y\n3.102;1,234;1\n939;8;2\n",
        {},
        ["'3.102' in column 'a' (data row 1)", "'1,234' in column 'b'", "--decimal"],
    ),
    ("a;y\n3.102;1\n939;2\n", {}, ["'3.102' in column 'a'", "3.102 or 3102", "--decimal"]),
    ('a,y\n"1,234",3\n"2,345",4\n', {}, ["'1,234' in column 'a'", "1234 or 1.234"]),
    # a column without a value shows nothing
    ("a;b;y\n;3;1\n;4;2\n", {}, ["missing value in column 'a', data row 1"]),
    ("a;b;y\n;3.102;1\n;4;2\n", {}, ["'3.102' in column 'b'"]),
    # two marks
    (
        "a;b;y\n1,5;2.50;1\n2,5;3.25;2\n",
        {},
        ["'1,5' in column 'a'", "'2.50' in column 'b'", "decimal commas and decimal points"],
    ),
    ("a;y\n1,5;1\n2.55;2\n", {}, ["'1,5' in column 'a'", "'2.55' in column 'a' (data row 2)"]),
    ("a;m;y\n1;1.234;1\n2;1,5;2\n", {}, ["'m' mixes decimal commas", "'1.234'", "--decimal ,"]),
    # numbers that the marks do not allow
    ("a;y\n2.50;1\n3.5;2\n", {"decimal": ","}, ["'a'", "'2.50'", "not written plainly"]),
    ("a,y\n1'234,1\n2'345,2\n", {}, ["'a'", "not written plainly", "--thousands"]),
    # options
    ("a,y\n1,1\n2,2\n", {"decimal": ";"}, ["--decimal must be a point or a comma", "';'"]),
    ("a,y\n1,1\n2,2\n", {"thousands": "x"}, ["--thousands must be one of", "'x'"]),
    ("a,y\n1,1\n2,2\n", {"decimal": ",", "thousands": ","}, ["cannot both be ','"]),
]


@pytest.mark.parametrize(("text", "said", "words"), REFUSED)
def test_what_is_refused(tmp_path: Path, text: str, said: dict[str, str], words: list[str]) -> None:
    reading = Reading(**said)  # type: ignore[arg-type]
    refused(write(tmp_path / "t.csv", text), *words, reading=reading)


@given(
    value=st.integers(-(10**12), 10**12),
    places=st.integers(0, 6),
    marks=st.sampled_from(
        [Marks(".", ","), Marks(",", "."), Marks(".", " "), Marks(",", "'"), Marks(".", "")]
    ),
)
def test_a_number_is_what_was_written(value: int, places: int, marks: Marks) -> None:
    number = value / 10**places
    text = f"{number:,.{places}f}"
    text = text.replace(",", "T").replace(".", marks.decimal).replace("T", marks.thousands)
    assert marks.number(text) == float(f"{number:.{places}f}")


def test_codes_of_missing_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((40, 3)).round(3), columns=["a", "b", "y"])
    frame["g"] = ["u", "v"] * 20
    holed = frame[["a", "g", "b", "y"]].copy()
    holed.loc[[2, 5], "a"] = np.nan
    holed.loc[[7], "b"] = np.nan
    holed.loc[[9], "g"] = None
    codes = holed.fillna({"a": -999.0, "b": -200.0, "g": "-999"})
    codes.to_csv("codes.csv", index=False)
    codes.to_parquet("codes.parquet", index=False)
    codes.to_excel("codes.xlsx", index=False)
    holed.to_csv("holed.csv", index=False)
    common: list[str] = ["--tau", "2", "--missing", "mean"]
    expected = run_json("fit", "holed.csv", *common)["model"]
    for file in ("codes.csv", "codes.parquet", "codes.xlsx"):
        found = run_json("fit", file, *common, "--na", "-999,-200")["model"]
        assert found["support"] == expected["support"]
        np.testing.assert_allclose(found["coef"], expected["coef"], rtol=1e-12)
    refused(
        Path("codes.csv"),
        "missing value in column 'a', data row 3",
        "missing value in column 'g', data row 10",
        reading=Reading(na=("-999", "-200")),
    )
    assert main(["fit", "holed.csv", *common, "--save", "m.json", "--quiet"]) == 0
    assert main(["predict", "m.json", "holed.csv", "--out", "p.csv"]) == 0
    assert main(["predict", "m.json", "codes.csv", "--out", "q.csv", "--na", "-999,-200"]) == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_levels_of_a_file_with_decimal_commas(tmp_path: Path) -> None:
    rows = [f"{(i % 3 + 1) / 2};{i}.5;{i}".replace(".", ",") for i in range(12)]
    path = write(tmp_path / "t.csv", "\n".join(["dose;x;y", *rows]))
    assert open_table(path, factors=["dose"]).coding.levels == {"dose": ["0.5", "1", "1.5"]}
    path.write_text(path.read_text().replace("\n0,5;", "\nnone;"))
    assert open_table(path).coding.levels == {"dose": ["1", "1.5", "none"]}


def test_predict_takes_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows: Any = [f"{i % 7 + 1}.{100 + i};{i},5;{3 * i},25" for i in range(30)]
    Path("t.csv").write_text("\n".join(["a;b;y", *rows]))
    assert main(["fit", "t.csv", "--tau", "2", "--save", "m.json", "--quiet"]) == 0
    Path("n.csv").write_text("a;b\n3.102;7\n")
    assert main(["predict", "m.json", "n.csv"]) == 2
    assert main(["predict", "m.json", "n.csv", "--decimal", ",", "--out", "p.csv"]) == 0
    Path("o.csv").write_text("a,b\n3102,7\n")
    assert main(["predict", "m.json", "o.csv", "--out", "q.csv"]) == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()
