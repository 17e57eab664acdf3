"""Tables as other programs write them: unnamed index columns and workbooks."""

import builtins
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.inside import Table, main, resolve
from support.tables import refused, write

FRAME = pd.DataFrame(
    {
        "a": [1.5, 2.0, 3.25, 4.0, 5.0, 6.0],
        "city": ["Oslo", "Rome", "Oslo", "Bonn", "Rome", "Oslo"],
        "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.5],
    }
)


def says_left_out(source: Table) -> bool:
    return any("names the rows: it is left out" in note for note in source.notes())


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "xlsx"])
@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_unnamed_index_is_left_out(tmp_path: Path, first: int, suffix: str, name: str) -> None:
    frame = FRAME.copy()
    frame.insert(0, name, np.arange(first, first + 6))
    path = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_excel(path, index=False)
    source = resolve(path)
    assert source.feature_names == ["a", "city=Bonn", "city=Oslo", "city=Rome"]
    assert says_left_out(source)


def test_names_of_rows_are_left_out(tmp_path: Path) -> None:
    """R writes the names of rows below an empty name."""
    path = write(tmp_path / "names.csv", '"";"a";"y"\n"x";1,5;2\n"z";3,5;5\n')
    source = resolve(path)
    assert source.feature_names == ["a"]
    assert says_left_out(source)
    path = write(tmp_path / "one.csv", ',a,y\n"x",1,2\n,3,5\n')
    refused(path, "empty name")


@pytest.mark.parametrize(("ends", "leaves_out"), [(1, True), (2, True), (4, True), (5, False)])
def test_marks_at_the_ends_of_lines(
    ends: int, leaves_out: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["a;b;y", *(f"{i % 7};{i % 5};{i % 3}" for i in range(30))]
    path = write(tmp_path / "t.csv", "\n".join(line + ";" * ends for line in lines))
    assert main(["cv", str(path), "--target", "y", "--quiet"]) == 2
    assert ("out with --exclude ''" in capsys.readouterr().err) == leaves_out
    assert main(["cv", str(path), "--target", "y", "--exclude", "", "--quiet"]) == 0


def test_other_first_columns_stay(tmp_path: Path) -> None:
    path = write(tmp_path / "twice.csv", ',a,y\n"x",1,2\n"x",3,5\n')
    refused(path, "empty name", "--exclude ''")
    path = write(tmp_path / "gap.csv", ",a,y\n0,1,2\n2,3,5\n")
    refused(path, "empty name")
    path = write(tmp_path / "from7.csv", ",a,y\n7,1,2\n8,3,5\n")
    refused(path, "empty name")
    source = resolve(path, drop="")
    assert source.feature_names == ["a"]
    assert not says_left_out(source)
    path = write(tmp_path / "named.csv", "id,a,y\n0,1,2\n1,3,5\n")
    assert resolve(path).feature_names == ["id", "a"]


def test_a_workbook_reads_like_its_csv(tmp_path: Path) -> None:
    book, text = tmp_path / "t.xlsx", tmp_path / "t.csv"
    FRAME.to_excel(book, index=False)
    FRAME.to_csv(text, index=False)
    for options in ({}, {"drop": "city"}, {"groups": "city"}):
        expected = resolve(text, **options)  # type: ignore[arg-type]
        source = resolve(book, **options)  # type: ignore[arg-type]
        assert (source.name, source.feature_names) == ("t", expected.feature_names)
        for one, other in zip(source.load(), expected.load(), strict=True):
            np.testing.assert_array_equal(one, other)
    assert main(["fit", str(text), "--tau", "2", "--save", str(tmp_path / "m"), "--quiet"]) == 0
    predicted = []
    for table in (text, book):
        assert main(["predict", str(tmp_path / "m"), str(table), "--out", str(tmp_path / "p")]) == 0
        predicted.append((tmp_path / "p").read_text())
    assert predicted[0] == predicted[1]


def test_faults_of_a_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = FRAME.assign(city=1.0)
    frame.loc[2, "a"] = np.nan
    path = tmp_path / "t.xlsx"
    frame.to_excel(path, index=False)
    refused(path, "t.xlsx, sheet 'Sheet1'", "missing value in column 'a'", "data row 3")
    FRAME.assign(city=[datetime.date(2024, 1, day) for day in range(1, 7)]).to_excel(path)
    refused(path, "'city'", "dates", "2024-01-01", "--exclude 'city'")
    broken = write(tmp_path / "broken.xlsx", "a,b\n1,2\n")
    refused(broken, "broken.xlsx", "not a readable workbook")
    find = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "python_calamine":
            raise ImportError
        return find(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    refused(path, "sparsecv[excel]")
