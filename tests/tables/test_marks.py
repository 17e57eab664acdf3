"""Decimal marks and marks of thousands are those of a file, and codes of missing values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands import run_json
from support.inside import Reading, main, resolve
from support.stand_ins import StandIn
from support.tables import refused, write

import sparsecv
from sparsecv.errors import InputError
from sparsecv.tables.marks import Marks

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
    ("a,y\n1’234.5,1\n2'345,2\n", {"thousands": "’"}, [[1234.5, 1], [2345, 2]]),
    ("a,y\n1_234,1\n5,2\n", {"thousands": "_"}, [[1234, 1], [5, 2]]),
    ("a;y\n1\u00a0234,5;1\n2 345;2\n", {"thousands": " "}, [[1234.5, 1], [2345, 2]]),
]


@pytest.mark.parametrize(("text", "said", "cells"), READ)
def test_what_is_read(
    tmp_path: Path, text: str, said: dict[str, Any], cells: list[list[float]]
) -> None:
    path = write(tmp_path / "t.csv", text)
    missing = "drop" if "na" in said else None
    X, y = resolve(path, reading=Reading(**said), missing=missing).load()
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


@pytest.mark.parametrize("text", ["İnf", "ınf", "infİnity", "١", "1\u00b2"])
def test_letters_and_digits_of_other_alphabets_are_no_numbers(text: str) -> None:
    assert Marks().number(text) is None
    assert Marks().number("-INF") == -np.inf


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
    assert resolve(path, factors=["dose"]).coding.levels == {"dose": ["0.5", "1", "1.5"]}
    path.write_text(path.read_text().replace("\n0,5;", "\nnone;"))
    assert resolve(path).coding.levels == {"dose": ["1", "1.5", "none"]}


@pytest.mark.filterwarnings("default:n.csv")
def test_predict_takes_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows: Any = [f"{i % 7 + 1}.{100 + i};{i},5;{3 * i},25" for i in range(30)]
    Path("t.csv").write_text("\n".join(["a;b;y", *rows]))
    assert main(["fit", "t.csv", "--tau", "2", "--save", "m.json", "--quiet"]) == 0
    Path("n.csv").write_text("a;b\n3.102;7\n")
    assert main(["predict", "m.json", "n.csv", "--out", "p.csv"]) == 0
    assert capsys.readouterr().err == (
        "warning: n.csv: '3.102' in column 'a' (data row 1) is read as 3102, with the decimal mark "
        "of the model's table; --decimal names another\n"
    )
    Path("o.csv").write_text("a,b\n3102,7\n")
    assert main(["predict", "m.json", "o.csv", "--out", "q.csv"]) == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


# ---------------------------------------------------------------------------- saved models

# What a user says of the file that a model is fitted to, its rows, what a later file holds, and the
# numbers that are read from that.
LATER: list[tuple[list[str], str, str, list[float]]] = [
    # The file that was fitted to shows what the later file leaves open.
    ([], "{i},5;{i}", "a;x\n3.102;1\n", [3102]),
    ([], "{i},5;{i}", "a\tx\n3.102\t1\n", [3102]),
    ([], "{i},5;{i}", "a;x\n1,234;1\n", [1.234]),
    ([], "{i}.5;{i}", "a;x\n3.102;1\n", [3.102]),
    ([], "{i}.5;{i}", "a;x\n1,234;1\n939;2\n", [1234, 939]),
    ([], "{i}.5,{i}", 'a,x\n"1,234",1\n', [1234]),
    # A column of the later file may mix what the file of the model has not mixed.
    ([], "{i},5;{i}", "a;x\n3.102;1\n1,5;2\n", [3102, 1.5]),
    # A later file that shows its own mark is read by it, and so is one after a file of whole
    # numbers, which shows none.
    ([], "{i},5;{i}", "a,x\n2.50,1\n3.102,2\n", [2.5, 3.102]),
    ([], "{i}.5,{i}", "a;x\n2,50;1\n3,102;2\n", [2.5, 3.102]),
    ([], "{i};{i}", "a;x\n2,50;1\n7;2\n", [2.5, 7]),
    # What a user has said holds as if it were said again.
    (["--decimal", ","], "{i};{i}", "a;x\n3.102;1\n", [3102]),
    (["--thousands", "'"], "{i}'000.5;{i}", "a;x\n3'102;1\n", [3102]),
    (["--na", "-999", "--missing", "mean"], "{i}.5;{i}", "a;x\n-999;1\n2.5;1\n", [np.nan, 2.5]),
    (["--encoding", "latin-1"], "{i}.5;{i}", "a;x;größe\n2.5;1;1\n", [2.5]),
]

# Rows and later files that leave open what their mark is, with the cell that a warning names.
OPEN = {
    ("{i},5;{i}", "a;x\n3.102;1\n"): ["'3.102'"],
    ("{i},5;{i}", "a\tx\n3.102\t1\n"): ["'3.102'"],
    ("{i}.5;{i}", "a;x\n1,234;1\n939;2\n"): ["'1,234'"],
    ("{i}.5,{i}", 'a,x\n"1,234",1\n'): ["'1,234'"],
}


@pytest.mark.parametrize(("said", "row", "later", "expected"), LATER)
def test_a_later_file_is_read_like_that_of_the_model(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stand_in: StandIn,
    said: list[str],
    row: str,
    later: str,
    expected: list[float],
) -> None:
    monkeypatch.chdir(tmp_path)
    warned = list[str]()
    stand_in(warn_of_marks=lambda text, _: warned.append(text))
    mark = "," if "," in row and ";" not in row else ";"
    rows = [mark.join([row.format(i=i * i), str(3 * i * i + 1)]) for i in range(2, 14)]
    rows += [mark.join(["-999", "3", "4"])] * ("--na" in said)
    Path("t.csv").write_text("\n".join([f"a{mark}x{mark}y", *rows]))
    common = ["--tau", "1", "--exclude", "x", "--quiet"]
    assert main(["fit", "t.csv", "--save", "m.json", *said, *common]) == 0
    encoding = "latin-1" if "--encoding" in said else "utf-8"
    Path("n.csv").write_text(later, encoding=encoding)
    assert main(["predict", "m.json", "n.csv", "--out", "p.csv"]) == 0
    cells = [text.split(" ")[1] for text in warned]
    assert cells == OPEN.get((*said, row, later), [])
    model = sparsecv.load("m.json")
    mean = model.predict(pd.DataFrame({"a": [np.nan]}))[0] if "--na" in said else np.nan
    wanted = [mean if np.isnan(a) else model.intercept_ + a * model.coef_[0] for a in expected]
    np.testing.assert_allclose(pd.read_csv("p.csv")["prediction"], wanted, rtol=1e-12)
    # A model that is loaded and saved again keeps how its file was read.
    model.save("again.json")
    assert main(["predict", "again.json", "n.csv", "--out", "q.csv"]) == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def _comma_model(*options: str) -> None:
    rows = [f"{i}.{100 + i},5;{i}" for i in range(1, 13)]
    Path("t.csv").write_text("\n".join(["a;y", *rows]))
    assert main(["fit", "t.csv", "--tau", "1", "--save", "m.json", "--quiet", *options]) == 0


@pytest.mark.filterwarnings("ignore:n.csv")
@pytest.mark.parametrize("options", [[], ["--decimal", ","], ["--thousands", "."]])
def test_options_of_predict_come_before_the_marks_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _comma_model(*options)
    model = sparsecv.load("m.json")
    Path("n.csv").write_text("a\n3.102\n939\n")
    for own, value in (([], 3102), (["--decimal", "."], 3.102), (["--thousands", ","], 3.102)):
        assert main(["predict", "m.json", "n.csv", "--out", "p.csv", *own]) == 0
        wanted = model.predict(pd.DataFrame({"a": [value, 939.0]}))
        np.testing.assert_allclose(pd.read_csv("p.csv")["prediction"], wanted, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_codes_of_missing_values_are_missing_in_frames_and_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i}.5,{i}" for i in range(12)]
    Path("t.csv").write_text("\n".join(["a,y", *rows]))
    common = ["fit", "t.csv", "--tau", "1", "--save", "m.json", "--quiet", "--na", "-999"]
    assert main([*common, "--missing", "mean"]) == 0
    model = sparsecv.load("m.json")
    for codes, holes in (
        (pd.DataFrame({"a": [2.0, -999.0]}), pd.DataFrame({"a": [2.0, np.nan]})),
        (np.array([[2.0], [-999.0]]), np.array([[2.0], [np.nan]])),
        ([[2], [-999]], [[2.0], [np.nan]]),
    ):
        np.testing.assert_array_equal(model.predict(codes), model.predict(holes))
    assert main(common) == 0
    model = sparsecv.load("m.json")
    with pytest.raises(InputError, match="missing value in column 'a', data row 2"):
        model.predict(pd.DataFrame({"a": [2.0, -999.0]}))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.array([[2.0], [-999.0]]))


def test_a_model_file_of_before_says_nothing_of_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _comma_model()
    document = json.loads(Path("m.json").read_text())
    assert document.pop("reading")["usual"] == ","
    Path("m.json").write_text(json.dumps(document))
    Path("n.csv").write_text("a;b\n3.102;7\n")
    assert main(["predict", "m.json", "n.csv"]) == 2
    assert main(["predict", "m.json", "n.csv", "--decimal", ","]) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"decimal": ";"},
        {"usual": "x"},
        {"na": [1]},
        {"encoding": "klingon"},
        {"encoding": 3},
        {"more": 1},
        [","],
        "text",
    ],
)
def test_a_damaged_reading_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    _comma_model()
    document = json.loads(Path("m.json").read_text())
    Path("m.json").write_text(json.dumps(document | {"reading": wrong}))
    with pytest.raises(InputError, match="damaged model file: 'reading'"):
        sparsecv.load("m.json")
