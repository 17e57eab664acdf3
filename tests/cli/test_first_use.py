"""What a new user meets: standard streams, text columns, saved models, hints, help."""

from __future__ import annotations

import datetime
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import complaint, run_json
from support.inside import SavedModel, main
from support.models import linear

import sparsecv

Capture = pytest.CaptureFixture[str]


def rows(n: int = 30, **more: Any) -> str:
    """A table whose y is 2a − b, the columns of ``more`` in front."""
    rng = np.random.default_rng(2)
    lines = [",".join([*more, "a", "b", "y"])]
    for i in range(n):
        a, b = rng.standard_normal(2)
        cells = [values[i % len(values)] for values in more.values()]
        lines.append(",".join([*cells, *map(repr, map(float, (a, b, 2 * a - b)))]))
    return "\n".join(lines) + "\n"


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_standard_streams(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, rows())
    assert main(["fit", "-", "--tau", "2", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["n"], document["model"]["support"]) == (30, ["a", "b"])
    assert "coefficient" in err
    assert not Path("-").exists()


def test_drop(capsys: Capture) -> None:
    Path("t.csv").write_text(rows(**{'"x,1"': ["1", "2"], "": ["u"], "z": ["3", "4"]}))
    drop = ["--exclude", "x,1", "--exclude", "", "--exclude", "z, b"]
    assert run_json("fit", "t.csv", "--tau", "1", *drop)["p"] == 1
    drop = ["--exclude", "x,1", "--exclude", ",z, b"]
    assert run_json("fit", "t.csv", "--tau", "1", *drop)["p"] == 1
    complaint(capsys, ["fit", "t.csv", "--tau", "1"], ["--exclude ''"])


# ---------------------------------------------------------------------------- saved models


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,B,y\n1,2,3\n", ["'sex', 'b'", "does not have", "'B'"]),
        ("a,b,sex\n", ["no data rows"]),
        ("a,b,b,sex\n1,2,3,m\n", ["duplicate", "'b'"]),
    ],
)
def test_tables_that_cannot_be_predicted(text: str, words: list[str], capsys: Capture) -> None:
    Path("t.csv").write_text(rows(sex=["m", "f"]))
    assert main(["fit", "t.csv", "--tau", "3", "--save", "m.json", "--quiet"]) == 0
    Path("n.csv").write_text(text)
    complaint(capsys, ["predict", "m.json", "n.csv", "--out", "p.csv"], words)
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_that_cannot_be_predicted_stay_empty(suffix: str, capsys: Capture) -> None:
    pandas = pytest.importorskip("pandas")
    Path("t.csv").write_text(rows(sex=["m", "f"]))
    assert main(["fit", "t.csv", "--tau", "3", "--save", "m.json", "--quiet"]) == 0
    frame = pandas.DataFrame(
        {
            "who": ["07", 'a "b", c', "x", "y", "z"],
            "a": [1.0, 2.0, 3.0, 4.0, 5.0],
            "sex": ["m", "other", None, "f", "m"],
            "b": ["1.5", "2", "3", "x", "2"] if suffix == "csv" else [1.5, 2.0, 3.0, None, 2.0],
        }
    )
    table = f"n.{suffix}"
    _ = frame.to_csv(table, index=False) if suffix == "csv" else frame.to_parquet(table)
    command = ["predict", "m.json", table, "--out", "p.csv", "--id", "who", "--id", "a"]
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    number = "column 'b' holds 'x', which is no number"
    fourth = number if suffix == "csv" else "missing value in column 'b'"
    for words in (
        "3 of 5 rows have no prediction",
        "'other', which is none of its levels: 'f', 'm', data row 2",
        "missing value in column 'sex', data row 3",
        f"{fourth}, data row 4",
        "--unknown zero",
    ):
        assert words in err
    assert "--exclude" not in err
    assert "--missing" not in err
    found = pandas.read_csv("p.csv", dtype={"who": str})
    assert found.columns.tolist() == ["who", "a", "prediction"]
    assert found["who"].tolist() == frame["who"].tolist()
    assert found["a"].tolist() == frame["a"].tolist()
    model = sparsecv.load("m.json")
    good = frame.iloc[[0, 4]].astype({"b": float})
    np.testing.assert_allclose(found["prediction"].dropna(), model.predict(good), rtol=1e-12)
    assert found["prediction"].isna().tolist() == [False, True, True, True, False]
    assert main([*command, "--unknown", "zero"]) == 1
    assert "2 of 5 rows" in capsys.readouterr().err
    value = pandas.read_csv("p.csv")["prediction"][1]
    expected = model.predict(frame.iloc[[1]].astype({"b": float}).assign(sex="f"))
    weight = dict(zip(model.feature_names_in_, model.coef_, strict=True))
    assert value == pytest.approx(expected[0] - weight.get("sex=f", 0.0), rel=1e-12)
    assert main(["predict", "m.json", table, "--id", "whom"]) == 2
    assert "--id names 'whom', which is no column; did you mean 'who'" in capsys.readouterr().err


def test_names_of_rows_beside_a_row_of_blanks(capsys: Capture) -> None:
    SavedModel(linear([1.0, 1.0], 1.0), ["a", "b"]).write("m.json")
    Path("n.csv").write_text("k,a,b\nu,0,0\n   \nv,1,2\n")
    assert main(["predict", "m.json", "n.csv", "--id", "k", "--id", "k"]) == 0
    assert capsys.readouterr().out == "k,k,prediction\nu,u,1.0\nv,v,4.0\n"


@pytest.mark.parametrize("suffix", ["parquet", "xlsx"])
def test_dates_name_rows(capsys: Capture, suffix: str) -> None:
    """A column of --id may hold what no feature can be: its cells are written as pandas would."""
    pandas, days = pytest.importorskip("pandas"), ["2024-01-05", None, "2023-12-31"]
    SavedModel(linear([1.0], 1.0), ["a"]).write("m.json")
    frame = pandas.DataFrame({"day": pandas.to_datetime(days), "a": [0.0, 1.0, 2.0]})
    frame["at"] = [datetime.time(7, 30), None, datetime.time(9)]
    if suffix == "parquet":
        frame["month"] = frame["day"].dt.to_period("M")
        frame["parts"] = [[1], None, [2, 3]]
        frame.to_parquet("n.parquet")
    else:
        frame.to_excel("n.xlsx", index=False)
    names = [name for name in frame.columns if name != "a"]
    ids = [word for name in names for word in ("--id", name)]
    assert main(["predict", "m.json", f"n.{suffix}", *ids]) == 0
    found = pandas.read_csv(io.StringIO(capsys.readouterr().out), dtype=str, keep_default_na=False)
    assert found["day"].tolist() == ["2024-01-05", "", "2023-12-31"]
    assert found["at"].tolist() == ["07:30:00", "", "09:00:00"]
    assert found["prediction"].tolist() == ["1.0", "2.0", "3.0"]
    if suffix == "parquet":
        assert found["month"].tolist() == ["2024-01", "", "2023-12"]
        assert found["parts"].tolist() == ["[1]", "", "[2 3]"]


def test_predictions_that_overflow_stay_empty(capsys: Capture) -> None:
    SavedModel(linear([1e200, 1e200], 1.0), ["a", "b"]).write("m.json")
    for bad in ("1e150,0", "1e150,-1e150"):  # inf, and inf − inf
        Path("n.csv").write_text(f"a,b\n0,0\n{bad}\n")
        assert main(["predict", "m.json", "n.csv", "--out", "p.csv"]) == 1
        assert "prediction is too large for a number" in (err := capsys.readouterr().err)
        assert "data row 2" in err
        assert Path("p.csv").read_text() == 'prediction\n1.0\n""\n'


# ---------------------------------------------------------------------------- start-up


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("--version", {"numba", "scipy", "sklearn", "pyarrow", "pandas"}),
        ("--help", {"numpy", "numba", "scipy", "sklearn", "pyarrow", "pandas"}),
        ("predict m.json t.csv", {"numba", "scipy", "sklearn", "matplotlib"}),
        ("cv diabetes --folds loo --gamma 1 --quiet", {"sklearn", "pyarrow", "pandas"}),
        ("cv t.csv --folds 3 --gamma 1 --quiet", {"sklearn", "matplotlib"}),
    ],
)
def test_a_command_imports_what_it_needs(command: str, without: set[str]) -> None:
    Path("t.csv").write_text(rows())
    SavedModel(linear([0.0, 2.0], 1.0), ["a", "b"]).write("m.json")
    script = (
        "import sys\n"
        "from sparsecv.cli.main import main\n"
        "main(sys.argv[1:])\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    root = str(Path(sparsecv.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script, *command.split()],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert set(done.stderr.splitlines()[-1].split()) & without == set()


def test_an_error_to_expect_that_cannot_be_computed_is_said(capsys: Capture) -> None:
    """Five rows of an outer fold cannot have the folds of three rows that were asked for."""
    Path("t.csv").write_text(rows(6), encoding="utf-8")
    document = run_json("cv", "t.csv", "--folds", "size:3", "--gamma", "1")
    assert document["nested"] is None
    words = "note: the error to expect on new data is not computed: nested, outer fold 1 of 6"
    assert words in capsys.readouterr().err
