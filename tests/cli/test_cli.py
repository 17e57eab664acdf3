"""The command line: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit
from support.clocks import WorkClock
from support.commands import Capture, check_model, run_json
from support.inside import main
from support.stand_ins import standing_in
from support.tables import growing_columns, write_csv

import sparsecv
from sparsecv import SparseRidgeCV

# ---------------------------------------------------------------------------- cv


def test_folds_in_order_of_time() -> None:
    X, y = growing_columns()
    write_csv(Path("t.csv"), X, y)
    command = ["cv", "t.csv", "--folds", "time:3", "--gamma", "1", "--rule", "minimum", "--nested"]
    said = run_json(*command)
    assert said["folds"] == {"kind": "time", "k": 3, "sizes": [10, 10, 10]}
    model = SparseRidgeCV(cv=TimeSeriesSplit(3), gammas=[1.0], rule="minimum", nested=True)
    model.fit(X, y)
    assert said["best"]["cv_error"] == pytest.approx(model.cv_error_, rel=1e-12)
    assert said["nested"]["error"] == pytest.approx(model.nested_error_, rel=1e-12)


def test_document(capsys: Capture) -> None:
    """Two constant columns and odd names; every number is that of the estimator."""
    X, y = growing_columns()
    names, every = ["age", "b c", "größe", "x,3", 'q"t'], np.insert(X, [1, 3], [5.0, -1.0], axis=1)
    head = ["age", "two\twords", "b c", "größe", "d", '"x,3"', '"q""t"']
    write_csv(Path("t.csv"), every, y, head)
    arguments = "--folds", "4", "--gamma", "0.1,10", "--seed", "3", "--rule", "minimum"
    document = run_json("cv", "t.csv", *arguments)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert all(word in err for word in ("constant", "'d'"))
    model = SparseRidgeCV(cv=4, gammas=[0.1, 10.0], random_state=3, rule="minimum").fit(X, y)
    assert document["sparsecv"] == sparsecv.__version__
    assert (document["dataset"], document["n"], document["p"]) == ("t", 40, 5)
    assert document["feature_names"] == names
    assert document["folds"] == {"kind": "kfold", "k": 4, "sizes": [10, 10, 10, 10]}
    known = (document[name] for name in ("protocol", "method", "backend", "cpu_count"))
    assert tuple(known) == ("honest", "auto", "auto", os.cpu_count())
    assert document["seconds"] > 0
    assert document["versions"]["numpy"] == np.__version__
    assert [one["gamma"] for one in document["results"]] == [0.1, 10.0]
    for g, one in enumerate(document["results"]):
        assert one["tau"] == [0, 1, 2, 3, 4, 5]
        for key in ("cv_error", "lower", "upper"):
            np.testing.assert_allclose(one[key], model.surface_["cv_error"][g], rtol=1e-12)
        assert (one["mio_by_tau"], one["n_mio"]) == ([0, *[4] * 5], 4)
        assert one["n_nodes"] == model.surface_["n_nodes"][g]
        assert one["seconds"] >= 0
    best, final = document["best"], document["model"]
    assert (best["tau"], best["gamma"]) == (model.tau_, model.gamma_)
    assert best["certified"] is True
    np.testing.assert_allclose(best["cv_error"], model.cv_error_, rtol=1e-12)
    np.testing.assert_allclose(best["lower_bound"], model.cv_error_, rtol=1e-8)
    assert best["tau_1se"] == model.tau_1se_
    check_model(final, model, names)
    np.testing.assert_allclose(final["objective"], model.objective_, rtol=1e-12)
    assert final["lower_bound"] <= final["objective"]


@pytest.mark.parametrize(
    "options",
    [
        ["--protocol", "paper"],
        ["--protocol", "paper", "--scale", "unit-norm"],
        ["--scale", "none"],
        ["--method", "grid"],
        ["--method", "search"],
        ["--jobs", "2"],
        ["--jobs", "-1"],
        ["--folds", "size:7"],
        ["--folds", "40"],
        ["--tau", "2:4"],
        ["--tau", "5,1"],
        ["--gamma", "0.1:10:3"],
        ["--target", "x1"],
        ["--exclude", "x0,x3"],
        ["--time-limit", "100"],
        ["--backend", "native"],
    ],
)
def test_options(options: list[str]) -> None:
    X, y = growing_columns()
    write_csv(Path("t.csv"), X, y)
    rule = ["--rule", "minimum"]  # The default averages models of all sizes.
    document = run_json("cv", "t.csv", "--folds", "4", "--gamma", "1", *rule, *options)
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
    if "--exclude" in chosen:
        assert document["feature_names"] == ["x1", "x2", "x4"]


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e8])
def test_tables_fit_eighty_columns(factor: float, capsys: Capture) -> None:
    X, y = growing_columns()
    long = "a very long column name that goes on and on, far beyond the width of a terminal, really"
    names = ["[bold]b[/bold]", "[red]c[/]", ":smile:", "[/]"]  # No name is markup.
    write_csv(Path("[red]t.csv"), X, factor * y, [f'"{long}"', *names])
    gammas = np.geomspace(1e-3, 1e3, 7)
    command = ["cv", "./[red]t.csv", "--folds", "4", "--gamma", "1e-3:1e3:7", "--size", "5"]
    assert main([*command, "--table"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("[red]t", *names))
    assert all(len(line) <= 80 for line in out.splitlines())
    assert long[:30] in out
    assert out.count("γ=") == 7
    model = SparseRidgeCV(cv=4, random_state=0, gammas=gammas).fit(X, factor * y)
    for h in model.cv_results_["cv_error"].flat:
        assert f"{h:.6g}" in out


@pytest.mark.parametrize(
    ("rule", "more", "problems"),
    [
        ("minimum", [], 11 * 6),  # Five folds and all rows, of the fit and of ten outer folds.
        ("stability", ["--no-nested"], 6),
        ("projected", ["--no-nested"], 6 + 5),  # The second has the first one's models of all rows.
    ],
)
def test_a_checkpoint_holds_every_fold(rule: str, more: list[str], problems: int) -> None:
    write_csv(Path("t.csv"), *growing_columns())
    arguments = ["cv", "t.csv", "--gamma", "0.1,10", "--checkpoint", "kept/here", "--rule", rule]
    arguments += ["--time-limit", "1000", *more]
    first = run_json(*arguments)
    files = sorted(Path("kept/here").iterdir())
    assert len(files) == 2 * problems

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("solved again")

    with standing_in(path_of_a_fold=refuse):
        second = run_json(*arguments)
    assert dict(entries(second)) == dict(entries(first))
    files[0].write_text("{broken", encoding="utf-8")
    third = run_json(*arguments)
    assert [one["cv_error"] for one in third["results"]] == [
        one["cv_error"] for one in first["results"]
    ]


# ---------------------------------------------------------------------------- fit and the rest


LEFT_OUT = {"seconds", "n_nodes"}  # These may differ from run to run.


def entries(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All that a document says, by where it says it."""
    for name, part in enumerate(found) if isinstance(found, list) else found.items():
        if isinstance(part, list | dict):
            yield from entries(part, f"{path}/{name}")
        elif name not in LEFT_OUT:
            yield f"{path}/{name}", part


def test_outer_folds_start_unasked_after_short_fits_alone() -> None:
    """Five seconds of fitting decide, here of a clock that every look at it moves by a second."""
    write_csv(Path("t.csv"), *growing_columns())
    with WorkClock():
        assert run_json("cv", "t.csv", "--gamma", "1")["nested"] is not None
    with WorkClock(by_look=1.0):
        assert run_json("cv", "t.csv", "--gamma", "1")["nested"] is None
        assert run_json("cv", "t.csv", "--gamma", "1", "--nested")["nested"] is not None


def test_arguments_stand_in_no_panel_of_options(capsys: Capture) -> None:
    assert main(["verify", "--help"]) == 0
    panels = capsys.readouterr().out.split("╭─ ")[1:]
    assert [panel.split(" ")[0] for panel in panels if " certificate " in panel] == ["Arguments"]


def test_version_help_and_data_sets(capsys: Capture) -> None:
    for arguments, words in (
        (["--version"], [f"sparsecv {sparsecv.__version__}\n"]),
        (["--help"], ["cv", "fit", "verify", "--install-completion"]),
        (
            ["cv", "-h"],
            ["--folds", "--gamma", "METHOD", f" {SparseRidgeCV().time_limit:g};"],
        ),
        (["fit", "-h"], ["--tau"]),
    ):
        assert main(arguments) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert all(word in out for word in words)
