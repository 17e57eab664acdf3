"""The command line: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

import sparsecv
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.cli.main import main
from sparsecv.cv import engine

Array = NDArray[np.float64]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A plain 80-column terminal, and nothing the command changes left behind."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with np.errstate():
        yield


def write_csv(path: Path, X: Array, y: Array, names: list[str] | None = None) -> Path:
    names = names or [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, "y"])]
    lines += [",".join(repr(float(v)) for v in (*row, t)) for row, t in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(n: int = 40, p: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * 10.0 ** np.arange(p) + np.arange(p)
    return X, 2.0 * X[:, 0] + X[:, 2] / 50.0 + rng.standard_normal(n) + 4.0


def hard_csv(path: Path, factor: float = 1.0) -> Path:
    """60 correlated columns and much noise: no tree ends soon."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 60))
    for j in range(1, 60):
        X[:, j] = 0.7 * X[:, j - 1] + 0.7 * X[:, j]
    y = X[:, ::4].sum(axis=1) + 8.0 * rng.standard_normal(120)
    return write_csv(path, X, factor * y)


def run_json(*arguments: str, status: int = 0) -> dict[str, Any]:
    path = Path("out.json")
    assert main([*arguments, "--json", str(path), "--quiet"]) == status
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


# ---------------------------------------------------------------------------- cv


def test_document() -> None:
    X, y = table()
    names = ["age", "b c", "größe", "x,3", 'q"t']
    write_csv(Path("t.csv"), X, y, ["age", "b c", "größe", '"x,3"', '"q""t"'])
    arguments = "--folds", "4", "--gamma", "0.1,10", "--seed", "3", "--rule", "minimum"
    document = run_json("cv", "t.csv", *arguments)
    model = SparseRidgeCV(cv=4, gammas=[0.1, 10.0], random_state=3, rule="minimum").fit(X, y)
    assert set(document) >= {
        "sparsecv", "dataset", "n", "p", "feature_names", "folds", "protocol", "method",
        "backend", "results", "best", "model", "seconds", "cpu_count", "versions",
    }  # fmt: skip
    assert document["sparsecv"] == sparsecv.__version__
    assert (document["dataset"], document["n"], document["p"]) == ("t", 40, 5)
    assert document["feature_names"] == names
    assert document["folds"] == {"kind": "kfold", "k": 4, "sizes": [10, 10, 10, 10]}
    assert (document["protocol"], document["method"]) == ("honest", "auto")
    assert document["seconds"] > 0
    assert document["cpu_count"] == os.cpu_count()
    assert document["versions"]["numpy"] == np.__version__
    assert [one["gamma"] for one in document["results"]] == [0.1, 10.0]
    for g, one in enumerate(document["results"]):
        assert set(one) >= {
            "gamma", "tau", "cv_error", "lower", "upper", "n_mio", "n_nodes", "seconds",
            "mio_by_tau",
        }  # fmt: skip
        assert one["tau"] == [1, 2, 3, 4, 5]
        for key in ("cv_error", "lower", "upper"):
            np.testing.assert_allclose(one[key], model.surface_["cv_error"][g], rtol=1e-12)
        assert one["mio_by_tau"] == [4] * 5
        assert one["n_mio"] == 4
        assert one["n_nodes"] == model.surface_["n_nodes"][g]
    best = document["best"]
    assert (best["tau"], best["gamma"]) == (model.tau_, model.gamma_)
    assert best["certified"] is True
    np.testing.assert_allclose(best["cv_error"], model.cv_error_, rtol=1e-12)
    np.testing.assert_allclose(best["lower_bound"], model.cv_error_, rtol=1e-8)
    assert best["tau_1se"] == model.tau_1se_
    final = document["model"]
    assert final["support"] == [names[c] for c in model.support_]
    np.testing.assert_allclose(final["coef"], model.coef_[model.support_], rtol=1e-12)
    np.testing.assert_allclose(final["intercept"], model.intercept_, rtol=1e-12)
    np.testing.assert_allclose(final["objective"], model.objective_, rtol=1e-12)
    assert final["lower_bound"] <= final["objective"]


def test_built_in_data() -> None:
    X, y = load_diabetes(return_X_y=True, scaled=False)
    document = run_json("cv", "diabetes", "--folds", "loo", "--gamma", "0.1")
    assert document["folds"]["kind"] == "loo"
    assert (document["n"], document["p"]) == (442, 10)
    assert document["results"][0]["n_mio"] == 1
    model = SparseRidgeCV(cv="loo", gammas=0.1).fit(X, y)
    np.testing.assert_allclose(
        document["results"][0]["cv_error"], model.cv_results_["cv_error"], rtol=1e-12
    )
    assert run_json("cv", "synthetic", "--folds", "5", "--gamma", "1")["p"] == 20


@pytest.mark.parametrize(
    "options",
    [
        ["--protocol", "paper"],
        ["--protocol", "paper", "--scale", "unit-norm"],
        ["--scale", "none"],
        ["--no-intercept"],
        ["--method", "grid"],
        ["--jobs", "2"],
        ["--jobs", "-1"],
        ["--folds", "size:7"],
        ["--folds", "40"],
        ["--tau", "2:4"],
        ["--tau", "5,1"],
        ["--gamma", "0.1:10:3"],
        ["--target", "x1"],
        ["--drop", "x0,x3"],
        ["--time-limit", "100"],
        ["--backend", "native"],
    ],
)
def test_options(options: list[str]) -> None:
    X, y = table()
    write_csv(Path("t.csv"), X, y)
    document = run_json("cv", "t.csv", "--folds", "4", "--gamma", "1", *options)
    assert document["best"]["certified"]
    chosen = dict(zip(options[::2], options[1::2], strict=False))
    expected = {"--protocol": "protocol", "--scale": "scale", "--method": "method"}
    for option, key in expected.items():
        if option in chosen:
            assert document[key] == chosen[option]
    results = document["results"]
    if "--tau" in chosen:
        assert results[0]["tau"] == ([2, 3, 4] if chosen["--tau"] == "2:4" else [1, 5])
    if "--gamma" in chosen:
        np.testing.assert_allclose([one["gamma"] for one in results], [0.1, 1.0, 10.0])
    if "--target" in chosen:
        assert document["feature_names"] == ["x0", "x2", "x3", "x4", "y"]
    if "--drop" in chosen:
        assert document["feature_names"] == ["x1", "x2", "x4"]
    if options[0] == "--no-intercept":
        model = SparseRidgeCV(cv=4, gammas=1.0, fit_intercept=False, random_state=0).fit(X, y)
        np.testing.assert_allclose(document["best"]["cv_error"], model.cv_error_, rtol=1e-12)
        assert document["model"]["intercept"] == 0.0


def test_printed_tables(capsys: Capture) -> None:
    X, y = table()
    write_csv(Path("t.csv"), X, y)
    assert main(["cv", "t.csv", "--folds", "4", "--gamma", "0.1,10", "--rule", "minimum"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    model = SparseRidgeCV(cv=4, gammas=[0.1, 10.0], random_state=0, rule="minimum").fit(X, y)
    for h in model.cv_results_["cv_error"].ravel():
        assert f"{h:.6g}" in out
    assert f"chosen by the rule minimum: τ = {model.tau_}, γ = {model.gamma_:g}" in out
    assert "proved the least on this grid" in " ".join(out.split())
    assert "4 folds" in out
    for c in model.support_:
        assert f"x{c}" in out
    assert f"{model.intercept_:.6g}" in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e8])
def test_tables_fit_eighty_columns(factor: float, capsys: Capture) -> None:
    X, y = table()
    long = "a very long column name that goes on and on, far beyond the width of a terminal, really"
    write_csv(Path("t.csv"), X, factor * y, [f'"{long}"', "b", "[red]c[/]", "d", "e"])
    assert main(["cv", "t.csv", "--folds", "4"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "…" not in out
    assert out.count("γ=") >= 10
    gammas = np.geomspace(1e-4, 1e4, 10)
    model = SparseRidgeCV(cv=4, random_state=0, gammas=gammas).fit(X, factor * y)
    for h in model.cv_results_["cv_error"].flat:
        assert f"{h:.6g}" in out


def test_names_are_not_markup(capsys: Capture) -> None:
    X, y = table()
    write_csv(Path("[red]t.csv"), X, y, ["[bold]a[/bold]", "[/]", "c", ":smile:", "e"])
    assert main(["cv", "./[red]t.csv", "--folds", "4", "--gamma", "1", "--tau", "5"]) == 0
    out = capsys.readouterr().out
    for name in ("[red]t", "[bold]a[/bold]", "[/]", ":smile:"):
        assert name in out


def test_quiet(capsys: Capture) -> None:
    write_csv(Path("t.csv"), *table())
    assert main(["cv", "t.csv", "--folds", "4", "--gamma", "1", "--quiet"]) == 0
    assert main(["fit", "t.csv", "--tau", "2", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_plot(capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    write_csv(Path("$a_{$.csv"), *table())
    assert main(["cv", "./$a_{$.csv", "--folds", "4", "--plot", "p.png"]) == 0
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == ""


def test_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(Path("t.csv"), *table())
    arguments = ["cv", "t.csv", "--folds", "4", "--gamma", "0.1,10", "--checkpoint", "kept/here"]
    arguments += ["--rule", "minimum", "--time-limit", "1000"]  # and no comparisons
    first = run_json(*arguments)
    files = sorted(Path("kept/here").iterdir())
    assert len(files) == 2

    def refuse(pages: list[Any], *_: Any, **__: Any) -> None:
        assert not pages, "solved again"

    with monkeypatch.context() as patch:
        patch.setattr(engine, "fill_pages", refuse)
        second = run_json(*arguments)
    for document in (first, second):
        for part in (document, *document["results"]):
            del part["seconds"]
    assert second == first
    files[0].write_text("{broken", encoding="utf-8")
    third = run_json(*arguments)
    for one, other in zip(first["results"], third["results"], strict=True):
        assert one["cv_error"] == other["cv_error"]


def test_constant_columns_are_one_line_on_stderr(capsys: Capture) -> None:
    X, y = table()
    X[:, 1], X[:, 3] = 5.0, -1.0
    write_csv(Path("t.csv"), X, y, ["a", "two\twords", "c", "d", "e"])
    assert main(["cv", "t.csv", "--folds", "4", "--gamma", "1", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "constant" in err
    assert "'d'" in err
    document = run_json("cv", "t.csv", "--folds", "4", "--gamma", "1")
    assert document["p"] == 3
    assert document["feature_names"] == ["a", "c", "e"]


def test_one_hot() -> None:
    X, y = table()
    lines = write_csv(Path("t.csv"), X, y).read_text().splitlines()
    text = ["colour," + lines[0]]
    text += [f"{('red', 'green', 'blue')[i % 3]},{line}" for i, line in enumerate(lines[1:])]
    Path("t.csv").write_text("\n".join(text))
    document = run_json("cv", "t.csv", "--folds", "4", "--gamma", "1", "--one-hot")
    assert document["p"] == 8


# ---------------------------------------------------------------------------- fit and the rest


def test_fit(capsys: Capture) -> None:
    X, y = table()
    write_csv(Path("t.csv"), X, y)
    document = run_json("fit", "t.csv", "--tau", "2", "--gamma", "3")
    model = SparseRidge(tau=2, gamma=3.0).fit(X, y)
    assert (document["tau"], document["gamma"], document["status"]) == (2, 3.0, "optimal")
    assert document["model"]["support"] == [f"x{c}" for c in model.support_]
    np.testing.assert_allclose(document["model"]["coef"], model.coef_[model.support_], rtol=1e-12)
    np.testing.assert_allclose(document["model"]["objective"], model.objective_, rtol=1e-12)
    assert main(["fit", "t.csv", "--tau", "2", "--gamma", "3"]) == 0
    out = capsys.readouterr().out
    assert "optimal" in out
    assert f"{model.intercept_:.6g}" in out


def test_fit_of_a_large_table_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(Path("t.csv"), *table())
    whole = run_json("fit", "t.csv", "--tau", "2")
    monkeypatch.setattr("sparsecv.design.prepare.IN_MEMORY_BYTES", 0)
    streamed = run_json("fit", "t.csv", "--tau", "2")
    assert streamed["model"]["support"] == whole["model"]["support"]
    np.testing.assert_allclose(streamed["model"]["coef"], whole["model"]["coef"], rtol=1e-8)


def test_version_and_help(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"sparsecv {sparsecv.__version__}\n", "")
    for arguments, words in (
        (["--help"], ["cv", "fit", "datasets"]),
        (["cv", "--help"], ["--folds", "--gamma", "--checkpoint"]),
        (["fit", "--help"], ["--tau"]),
    ):
        assert main(arguments) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert all(word in out for word in words)


def test_no_command_prints_the_help(capsys: Capture) -> None:
    assert main([]) in (0, 2)
    out, err = capsys.readouterr()
    assert "Usage" in out + err
    assert "error: \n" not in err


def test_datasets(capsys: Capture) -> None:
    for arguments in (["datasets"], ["datasets", "list"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert "diabetes" in out
        assert "built in" in out
        assert all(len(line) <= 80 for line in out.splitlines())
    assert main(["datasets", "show", "diabetes"]) == 0
    out = capsys.readouterr().out
    assert "442" in out
    assert "licence" in out


# ---------------------------------------------------------------------------- limits


@pytest.mark.parametrize("folds", ["5", "loo"])
def test_time_limit_exits_with_one(folds: str, capsys: Capture) -> None:
    hard_csv(Path("hard.csv"))
    arguments = ["cv", "hard.csv", "--folds", folds, "--gamma", "0.01", "--tau", "1,12,20"]
    document = run_json(*arguments, "--time-limit", "1", status=1)
    assert capsys.readouterr().err == ""
    (one,) = document["results"]
    assert None in one["cv_error"]
    for h, kept, lower, upper in zip(
        one["cv_error"], one["incumbent"], one["lower"], one["upper"], strict=True
    ):
        assert 0 <= lower <= kept <= upper
        if h is not None:
            assert lower == h == upper
    best = document["best"]
    assert best["certified"] is False
    assert best["lower_bound"] <= best["cv_error"] <= best["upper_bound"]
    assert best["lower_bound"] == min(one["lower"])
    assert document["model"]["lower_bound"] <= document["model"]["objective"]


@pytest.mark.parametrize("factor", [1.0, 1e8])
def test_time_limit_as_printed(factor: float, capsys: Capture) -> None:
    hard_csv(Path("hard.csv"), factor)
    arguments = ["cv", "hard.csv", "--gamma", "0.01,1", "--tau", "1,12", "--time-limit", "0.5"]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "not proved" in out
    assert "proved best" not in out
    assert "interval" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "…" not in out


def test_duplicate_columns_are_no_gap(capsys: Capture) -> None:
    """Rounding margins are wide there; the tree has proved the model all the same."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 4))
    write_csv(Path("t.csv"), X[:, [0, 1, 2, 3, 0, 1]], X[:, 0] - X[:, 1] + rng.standard_normal(30))
    for folds in ("loo", "5"):
        assert main(["cv", "t.csv", "--folds", folds, "--gamma", "1e-8"]) == 0
        out = capsys.readouterr().out
        assert "(optimal)" in out
        assert "gap" not in out


def test_fit_under_a_time_limit(capsys: Capture) -> None:
    hard_csv(Path("hard.csv"))
    document = run_json("fit", "hard.csv", "--tau", "15", "--time-limit", "0.5", status=1)
    assert document["status"] == "time limit"
    assert document["model"]["gap"] > 0


def test_fit_with_threads() -> None:
    hard_csv(Path("hard.csv"))
    arguments = ["fit", "hard.csv", "--tau", "3", "--gamma", "50"]
    one = run_json(*arguments)
    two = run_json(*arguments, "--jobs", "2")
    assert one["status"] == two["status"] == "optimal"
    assert two["model"]["support"] == one["model"]["support"]
    assert two["model"]["objective"] == pytest.approx(one["model"]["objective"], rel=1e-12)


# ---------------------------------------------------------------------------- bad input

GOOD = "a,b,y\n1,2,3\n2,1,4\n3,5,5\n4,4,9\n"
BAD_TABLES = {
    "nan": ("a,b,y\n1,2,3\n2,nan,4\n3,5,5\n", ["'b'", "row 2"]),
    "empty cell": ("a,b,y\n1,2,3\n2,,4\n3,5,5\n", ["'b'", "row 2"]),
    "inf": ("a,b,y\n1,2,3\n2,1,4\n-inf,5,5\n", ["'a'", "row 3"]),
    "text": ("a,b,y\n1,u,3\n2,v,4\n3,u,5\n", ["'b'", "--one-hot"]),
    "date": ("a,b,y\n1,2020-01-05,3\n2,2020-01-06,4\n3,2020-01-06,5\n", ["'b'", "date"]),
    "text target": ("a,b,y\n1,2,u\n2,1,v\n3,5,u\n", ["'y'", "target"]),
    "duplicates": ("a,a,y\n1,2,3\n2,1,4\n3,5,5\n", ["'a'", "duplicate"]),
    "empty": ("", ["empty"]),
    "header only": ("a,b,y\n", ["no data rows"]),
    "one row": ("a,b,y\n1,2,3\n", ["at least 2"]),
    "ragged": ("a,b,y\n1,2,3\n2,1\n3,5,5\n", ["line 3"]),
    "one column": ("y\n1\n2\n", ["no feature columns"]),
    "all constant": ("a,b,y\n1,2,3\n1,2,4\n1,2,5\n", ["constant"]),
    "overflow": ("a,b,y\n1e200,2,3\n2e200,1,4\n-3e200,5,5\n", ["'a'"]),
    "overflow of y": ("a,b,y\n1,2,3e200\n2,1,4e200\n3,5,-5e200\n", ["response"]),
}


def complaint(capsys: Capture, arguments: list[str], words: list[str], status: int = 2) -> None:
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("sparsecv: error: ")
    for word in words:
        assert word in err, f"{word!r} not in {err!r}"


@pytest.mark.parametrize("kind", BAD_TABLES)
@pytest.mark.parametrize(
    "command", [["cv", "t.csv", "--folds", "2"], ["fit", "t.csv", "--tau", "1"]]
)
def test_bad_tables(kind: str, command: list[str], capsys: Capture) -> None:
    text, words = BAD_TABLES[kind]
    Path("t.csv").write_text(text)
    complaint(capsys, command, words)


BAD_OPTIONS: list[tuple[list[str], list[str]]] = [
    (["--target", "z"], ["'z'", "target"]),
    (["--drop", "z"], ["--drop", "'z'"]),
    (["--drop", "a,b"], ["no feature columns"]),
    (["--folds", "5"], ["5 folds", "there are 4"]),
    (["--folds", "1"], ["at least 2 folds"]),
    (["--folds", "0"], ["at least 2 folds"]),
    (["--folds", "-2"], ["folds"]),
    (["--folds", "many"], ["folds", "'many'"]),
    (["--folds", "size:3"], ["size 3", "there are 4"]),
    (["--folds", "size:0"], ["size:M"]),
    (["--folds", "²"], ["folds"]),
    (["--tau", "0"], ["tau", "got 0"]),
    (["--tau", "3"], ["p = 2", "got 3"]),
    (["--tau", "1:3"], ["p = 2", "got 3"]),
    (["--tau", "x"], ["--tau", "'x'"]),
    (["--tau", "1.5"], ["--tau"]),
    (["--tau", "1:99999999999"], ["--tau"]),
    (["--tau", "99999999999999999999"], ["--tau"]),
    (["--gamma", "0"], ["gamma", "> 0"]),
    (["--gamma", "-1"], ["gamma", "> 0"]),
    (["--gamma", "nan"], ["gamma"]),
    (["--gamma", "x"], ["--gamma", "'x'"]),
    (["--gamma", "1:2"], ["--gamma"]),
    (["--gamma", "2:1:3"], ["--gamma"]),
    (["--gamma", "1:10:99999999999"], ["--gamma"]),
    (["--method", "fast"], ["method", "'fast'"]),
    (["--backend", "abacus"], ["backend", "'abacus'"]),
    (["--backend", "highs", "--method", "exact"], ["backend highs", "grid or search"]),
    (["--backend", "highs", "--method", "bounds"], ["backend highs", "grid or search"]),
    (["--protocol", "kind"], ["protocol", "'kind'"]),
    (["--scale", "big"], ["scale", "'big'"]),
    (["--protocol", "paper", "--no-intercept"], ["paper"]),
    (["--time-limit", "-1"], ["--time-limit"]),
    (["--time-limit", "nan"], ["time"]),
    (["--time-limit", "soon"], ["--time-limit", "seconds"]),
    (["--seed", "x"], ["--seed"]),
    (["--seed", "-1"], ["--seed"]),
    (["--jobs", "0"], ["--jobs"]),
    (["--jobs", "-2"], ["--jobs"]),
    (["--fold", "2"], ["--fold"]),
    (["--json"], ["--json"]),
    (["another.csv"], ["another.csv"]),
    (["--json", "no/such/folder.json"], ["--json", "no/such"]),
    (["--json", "."], ["--json"]),
    (["--plot", "no/such/folder.png"], ["--plot", "no/such"]),
    (["--plot", "p.xyz"], ["--plot", "xyz"]),
    (["--checkpoint", "t.csv"], ["--checkpoint", "t.csv"]),
]


@pytest.mark.parametrize(("options", "words"), BAD_OPTIONS, ids=lambda v: " ".join(v))
def test_bad_options(options: list[str], words: list[str], capsys: Capture) -> None:
    Path("t.csv").write_text(GOOD)
    complaint(capsys, ["cv", "t.csv", "--quiet", "--folds", "2", "--gamma", "1", *options], words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cv"], ["data"]),
        (["cv", "missing.csv"], ["missing.csv"]),
        (["cv", "diabetis"], ["'diabetes'"]),
        (["cv", "empty"], ["folder"]),
        (["cv", "binary.csv"], ["binary.csv", "UTF-8"]),
        (["cv", "binary.parquet"], ["binary.parquet"]),
        (["cv", "binary.npy"], ["binary.npy"]),
        (["fit", "t.csv"], ["--tau"]),
        (["fit", "t.csv", "--tau", "0"], ["tau"]),
        (["fit", "t.csv", "--tau", "3"], ["p = 2"]),
        (["fit", "t.csv", "--tau", "1", "--gamma", "0"], ["gamma"]),
        (["fit", "t.csv", "--tau", "1", "--tol", "-1"], ["--tol"]),
        (["fit", "t.csv", "--tau", "1", "--tol", "nan"], ["--tol"]),
        (["fit", "t.csv", "--tau", "one"], ["--tau"]),
        (["fit", "t.csv", "--tau", "1", "--time-limit", "-1"], ["time"]),
        (["fit", "t.csv", "--tau", "1", "--backend", "abacus"], ["backend"]),
        (["fit", "t.csv", "--tau", "1", "--jobs", "0"], ["--jobs"]),
        (["datasets", "list", "diabetes"], ["'list diabetes'"]),
        (["cv", "t.csv", "--folds", "9" * 5000], ["folds", "999"]),
        (["cv", "t.csv", "--folds", "size:" + "9" * 5000], ["folds", "999"]),
        (["datasets", "show"], ["NAME"]),
        (["datasets", "show", "nothing"], ["'nothing'"]),
        (["datasets", "drop"], ["'drop'"]),
        (["frobnicate"], ["frobnicate"]),
        (["--frobnicate"], ["--frobnicate"]),
    ],
    ids=lambda v: " ".join(v),
)
def test_bad_commands(arguments: list[str], words: list[str], capsys: Capture) -> None:
    Path("t.csv").write_text(GOOD)
    Path("empty").mkdir()
    for name in ("binary.csv", "binary.parquet", "binary.npy"):
        Path(name).write_bytes(b"\x00\xff\xfe\x01junk")
    complaint(capsys, arguments, words)


def test_files_are_tried_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that cannot be written is refused before hours of work, not after."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("searched first")

    monkeypatch.setattr("sparsecv.design.prepare.prepare", refuse)
    Path("t.csv").write_text(GOOD)
    for option, path in (("--json", "no/x.json"), ("--plot", "no/x.png"), ("--plot", "x.xyz")):
        assert main(["cv", "t.csv", "--folds", "2", option, path]) == 2


def test_tiny_gamma_on_dependent_columns(capsys: Capture) -> None:
    X, y = table()
    X[:, 1] = X[:, 0]
    write_csv(Path("t.csv"), X, y)
    complaint(capsys, ["cv", "t.csv", "--folds", "4", "--gamma", "1e-30"], ["gamma"])
    complaint(capsys, ["fit", "t.csv", "--tau", "2", "--gamma", "1e-30"], ["gamma"])


def test_two_rows(capsys: Capture) -> None:
    Path("t.csv").write_text("a,b,y\n1,2,3\n2,1,4\n")
    for options in ([], ["--protocol", "paper"], ["--no-intercept"], ["--scale", "none"]):
        for gamma in ("1e-8", "1", "1e8"):
            assert main(["cv", "t.csv", "--folds", "loo", "--gamma", gamma, *options]) == 0
    assert capsys.readouterr().err == ""
    complaint(capsys, ["cv", "t.csv"], ["5 folds"])


# ---------------------------------------------------------------------------- as a process

ANNOUNCED = """
import sys
from sparsecv.cv import engine

real = engine.Prover.run

def announced(self):
    print("proving", file=sys.stderr, flush=True)
    return real(self)

engine.Prover.run = announced
from sparsecv.cli.main import main
main()
"""


def start(*arguments: str, script: str | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, *(["-c", script] if script else ["-m", "sparsecv"]), *arguments]

    def default_interrupt() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it

    root = str(Path(sparsecv.__file__).parents[1])
    paths = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        preexec_fn=None if os.name == "nt" else default_interrupt,
    )


def finish(process: subprocess.Popen[str], timeout: float = 120.0) -> tuple[str, str]:
    try:
        return process.communicate(timeout=timeout)
    finally:
        process.kill()


def test_module_as_a_process() -> None:
    write_csv(Path("t.csv"), *table())
    process = start("cv", "t.csv", "--folds", "4", "--gamma", "1", "--json", "o.json")
    out, err = finish(process)
    assert (process.returncode, err) == (0, "")
    assert "chosen by the rule" in out
    assert json.loads(Path("o.json").read_text())["n"] == 40
    process = start("cv", "t.csv", "--folds", "400")
    out, err = finish(process)
    assert (process.returncode, out) == (2, "")
    assert err.count("\n") == 1


def test_output_that_cannot_show_greek(monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(Path("t.csv"), *table())
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    process = start("cv", "t.csv", "--folds", "4", "--gamma", "1")
    out, err = finish(process)
    assert (process.returncode, err) == (0, "")
    assert "CV error" in out


def interrupt(process: subprocess.Popen[str], after: str, wait: float) -> str:
    """Send SIGINT a while after a line on stderr; what was left on stderr by the end, soon."""
    assert process.stderr is not None
    for line in process.stderr:
        if after in line:
            break
    else:
        pytest.fail(f"ended before {after!r}, status {process.wait()}")
    time.sleep(wait)
    assert process.poll() is None, "the tree ended before it could be interrupted"
    process.send_signal(signal.SIGINT)
    return finish(process, 600.0)[1]  # the trees take hours; kernels are compiled to their end


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to another process")
@pytest.mark.parametrize(("folds", "jobs"), [("5", "1"), ("5", "2"), ("loo", "2")])
def test_interrupt_during_folds(folds: str, jobs: str) -> None:
    """What is known when Ctrl-C comes is written, and says what is proved."""
    hard_csv(Path("hard.csv"))
    process = start(
        *("cv", "hard.csv", "--gamma", "1000,0.01", "--time-limit", "9000", "--jobs", jobs),
        *("--folds", folds, "--json", "o.json", "--tau", "12,20", "--prove", "all"),
        script=ANNOUNCED,
    )
    err = interrupt(process, "proving", 1.0)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    results = json.loads(Path("o.json").read_text())["results"]
    assert [one["gamma"] for one in results] == [1000.0, 0.01]
    for one in results:
        assert all(0.0 <= low <= up for low, up in zip(one["lower"], one["upper"], strict=True))


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to another process")
@pytest.mark.parametrize(
    "arguments", [["cv", "--tau", "15:20", "--gamma", "0.01"], ["fit", "--tau", "20"]]
)
def test_interrupt_of_the_command(arguments: list[str]) -> None:
    hard_csv(Path("hard.csv"))
    process = start(arguments[0], "hard.csv", *arguments[1:])
    err = interrupt(process, "60 columns", 1.5)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
