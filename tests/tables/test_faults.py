"""All columns at fault in one line, numbers in disguise, text read in pieces, hints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.inside import Table, main, resolve
from support.tables import NAMES, check, csv_text, refused, table, write

import sparsecv
from sparsecv.errors import InputError

# So many rows of four columns are read in many pieces.
ROWS_OF_PIECES = 500


@pytest.mark.parametrize("kind", ["csv", "parquet", "memory"])
def test_every_column_with_missing_values_is_named(tmp_path: Path, kind: str) -> None:
    values = table(60)
    values[[3, 9, 20, 21, 22, 50], 1] = np.nan
    values[40, 2] = np.inf
    values[59, 3] = np.nan
    frame = pd.DataFrame(values, columns=["x0", "x1", "x2", "y"])
    path = tmp_path / f"t.{kind}"
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")

    def read() -> None:
        if kind == "memory":
            names = ["x0", "x1", "x2"]
            Table(values[:, :-1], values[:, -1], names, name="t.memory").check_values()
        else:
            resolve(path)

    with pytest.raises(InputError) as caught:
        read()
    assert str(caught.value) == (
        f"t.{kind}: 3 columns cannot be used: missing value in column 'x1', data row 4 "
        "(6 in all, also in 10, 21, 22, 23, ...); infinite value in column 'x2', data row 41; "
        "missing value in column 'y', data row 60; fill it in, remove the row, pass "
        "--missing drop or mean, correct it, or leave columns out with "
        "--exclude 'x1,x2' --missing drop"
    )


@pytest.mark.parametrize("response", ["", "inf", "text"])
def test_the_last_remedy_of_a_refusal_runs(
    response: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows without a response are left out; a response with another fault leaves no remedy."""
    lines = [f"{i},{i % 7},{'' if i == 4 else i % 3},{i % 5}" for i in range(40)]
    lines[6] = f"6,6,0,{response}"
    path = write(tmp_path / "t.csv", "a,b,c,y\n" + "\n".join(lines))
    assert main(["cv", str(path), "--quiet"]) == 2
    said = capsys.readouterr().err.strip()
    if response:
        assert "--exclude" not in said
        return
    remedy = re.search(r"leave the column out with (.*)$", said)
    assert remedy is not None
    assert main(["cv", str(path), "--quiet", *shlex.split(remedy[1])]) == 0


def test_a_remedy_of_one_column_among_several_names_the_column(tmp_path: Path) -> None:
    lines = [f"2024-01-{i % 28 + 1:02d},{'' if i == 3 else i},{i % 5} %,{i % 7}" for i in range(40)]
    path = write(tmp_path / "t.csv", "day,a,share,y\n" + "\n".join(lines))
    refused(path, "for 'day' replace it by numbers", "for 'share' write digits", ", fill it in, ")
    path = write(tmp_path / "u.csv", "day,y\n" + "\n".join(f"{line[:10]},1" for line in lines))
    refused(path, "; replace it by numbers")


def test_many_columns_at_fault_are_cut(tmp_path: Path) -> None:
    names = [f"c{j}" for j in range(30)]
    rows = "\n".join(",".join(["2024-01-31"] * 30 + ["1"]) for _ in range(3))
    path = write(tmp_path / "t.csv", ",".join([*names, "y"]) + "\n" + rows)
    refused(path, "30 columns cannot be used", "'c7'", "and 22 more")
    with pytest.raises(InputError) as caught:
        resolve(path)
    assert "'c8'" not in str(caught.value)


@pytest.mark.parametrize(
    "cell",
    ["10 %", "10%", "€12", "12 €", "$1,200.50", "£ 3", "-€4", "1'000"],
)
def test_numbers_in_disguise(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path / "t.tsv", f"a\tp\ty\n1\t7\t3\n2\t{cell}\t4\n3\t8\t5\n")
    refused(path, "'p'", "not written plainly", repr(cell), "data row 2")
    path = write(tmp_path / "u.tsv", f"a\ty\n1\t{cell}\n2\t{cell}\n")
    refused(path, "target column 'y'", "not written plainly")


@pytest.mark.parametrize("cell", ["12 kg", "A12", "1.2.3", "3-4", "%", "€", "1,23,4 %x"])
def test_text_is_not_a_number_in_disguise(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path / "t.tsv", f"a\tp\ty\n1\tu\t3\n2\t{cell}\t4\n3\tu\t5\n")
    assert resolve(path).feature_names == ["a", f"p={max(cell, 'u')}"]


# ---------------------------------------------------------------------------- pieces


@pytest.mark.parametrize("with_text", [False, True])
def test_text_in_pieces(tmp_path: Path, with_text: bool) -> None:
    values = table(ROWS_OF_PIECES)
    path = write(tmp_path / "t.csv", csv_text(values))
    if with_text:
        lines = path.read_text().splitlines()
        body = (f"{'u' if i % 3 else 'v'},{line}" for i, line in enumerate(lines[1:]))
        path.write_text("\n".join(["g," + lines[0], *body]))
        values = np.column_stack([np.arange(len(values)) % 3 == 0, values]).astype(float)
    source = resolve(path)
    check(source, values, ["g=v"] * with_text + NAMES, "resp")
    assert source.coding.first_levels == ({"g": "u"} if with_text else {})


# ---------------------------------------------------------------------------- hints, features


def test_hints(tmp_path: Path) -> None:
    n = 40
    frame = pd.DataFrame({"id": range(1, n + 1), "row": range(n), "x": np.ones(n), "y": range(n)})
    frame["year"] = range(1990, 1990 + n)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for file in ("t.csv", "t.parquet"):
        notes = resolve(tmp_path / file, target="x").notes()
        assert [note.split("'")[1] for note in notes] == ["id", "row", "y"]
        assert "--exclude 'id'" in notes[0]
    assert resolve(tmp_path / "t.csv", drop=["id", "row", "y"]).notes() == []
    frame.loc[[0, 5, 30], "x"] = np.nan
    frame["far"] = [*range(1, n), n + 4]
    frame.to_csv(tmp_path / "t.csv", index=False)
    first, *notes = resolve(tmp_path / "t.csv", target="x", missing="mean").notes()
    assert first.startswith("3 of 40 rows are left out")
    assert [note.split("'")[1] for note in notes] == ["id", "row", "y"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_text_column_of_a_model_may_lack_no_cell(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of all blocks are named, and a fill that the model has stands in for the cells."""
    frame = pd.DataFrame({"g": ["u", "v"] * 100, "a": np.arange(200.0)})
    whole, holed, model, out = (str(tmp_path / name) for name in ("w.csv", f"h.{suffix}", "m", "p"))
    frame.assign(y=2.0 * (frame["g"] == "v") + frame["a"] / 9.0).to_csv(whole, index=False)
    frame.loc[[4, 150], "g"] = None
    _ = frame.to_csv(holed, index=False) if suffix == "csv" else frame.to_parquet(holed)
    fit, predict = ["fit", whole, "--tau", "2", "--save", model, "--quiet"], ["predict", model]
    assert main(fit) == 0
    assert main([*predict, holed, "--out", out]) == 1
    assert "'g', data row 5 (2 in all, also in 151)" in capsys.readouterr().err
    assert main([*fit, "--missing", "mean"]) == 0
    assert main([*predict, holed, "--out", out]) == 0
    found = pd.read_csv(out)["prediction"].to_numpy()
    assert main([*predict, whole, "--out", out]) == 0
    known = pd.read_csv(out)["prediction"].to_numpy()
    effect = sparsecv.load(model).coef_[0]  # A row without a level counts half of the level v.
    expected = np.where(np.isin(np.arange(200), [4, 150]), 0.5 * effect, 0.0)
    np.testing.assert_allclose(found - known, expected, atol=1e-9)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_dates_and_missing_cells_are_named_in_one_message(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame({"x": np.arange(30.0), "g": ["2024-01-31"] * 30, "y": np.arange(30.0)})
    frame.loc[3, "g"] = None
    path = tmp_path / f"t.{suffix}"
    _ = frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    words = "column 'g' holds dates (for example '2024-01-31', data row 1); missing value in "
    words += "column 'g'"
    refused(path, words, "data row 4")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([*range(45, 65), *range(4, 24)], True),  # rows that were sorted after they were numbered
        (range(1950, 1990), False),  # years
        (range(1990, 1950, -1), False),
        ([*range(20), *range(19, -1, -1)], False),
        ([7 * i % 41 * 3 for i in range(1, 41)], False),  # a count of something
        ([0.5 + 7 * i % 41 for i in range(1, 41)], False),
    ],
)
def test_numbers_of_rows_in_another_order_are_noted(values: list[float], named: bool) -> None:
    columns = pd.DataFrame({"number": values, "a": np.sin(np.arange(40.0))})
    notes = Table(columns.to_numpy(float), np.arange(40.0), list(columns)).notes()
    assert notes == named * [
        "column 'number' has another whole number in every row: if it is an identifier, leave it "
        "out with --exclude 'number'"
    ]


def test_numbers_that_come_again_in_later_rows_are_not_noted() -> None:
    mixed, rows = (
        np.random.default_rng(0).permutation(1000.0 + np.arange(1000.0)),
        np.arange(2000.0),
    )
    X = np.column_stack([np.tile(mixed, 2), rows % 1000.0, np.append(mixed, 1000.0 + mixed), rows])
    assert [text.split(":")[0] for text in Table(X, np.sin(rows), list("abcd")).notes()] == [
        "column 'c' has another whole number in every row",
        "column 'd' counts the rows",
    ]
