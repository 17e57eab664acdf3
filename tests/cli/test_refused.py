"""Tables, options and commands that are refused, each in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.commands import Capture, complaint
from support.tables import growing_columns, write_csv

from sparsecv.cli.main import main

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
    (["--gamma", "-1"], ["gamma", ">= 0"]),
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
    (["--no-intercept"], ["--no-intercept is gone", "fit_intercept=False"]),
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
        (["fit", "t.csv", "--tau", "1", "--gamma", "-1"], ["gamma"]),
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


SOME = "a,b,w,y\n" + "".join(f"{i % 5},{i * i % 7},{int(i < 2)},{i % 4}\n" for i in range(12))
PAIRS = "a,b,w,t,y\n" + "".join(f"{i % 5},{i * i % 7},{1 + i % 3},{i},{i % 4}\n" for i in range(12))
TOGETHER: list[tuple[list[str], list[str]]] = [
    (["cv", "pairs.csv", "--folds", "12", "--nested"], ["outer fold 1 of 12", "11 rows"]),
    (["cv", "pairs.csv", "--folds", "size:6", "--nested"], ["outer fold 1 of 12", "11"]),
    (["cv", "pairs.csv", "--json", "o.json", "--save", "o.json"], ["--json", "--save", "o.json"]),
    (["cv", "pairs.csv", "--json", "x" * 300], ["--json"]),
    (["cv", "pairs.csv", "--sql", "x" * 300], ["--sql"]),
    (["fit", "pairs.csv", "--tau", "1", "--save", "x" * 300], ["--save"]),
    (["fit", "pairs.csv", "--tau", "1", "--plot", "x" * 300 + ".png"], ["--plot"]),
    (["stability", "pairs.csv", "--json", "x" * 300], ["--json"]),
    (["benchmark", "--datasets", "diabetes,pears", "--gamma", "1"], ["pears"]),
    (["benchmark", "--datasets", "diabetes", "--folds", "5,1000", "--gamma", "1"], ["1000 folds"]),
    (["benchmark", "--datasets", "diabetes", "--ways", "", "--gamma", "1"], ["--ways"]),
    (["stability", "some.csv", "--weights", "w", "--test", "0.1"], ["no test row", "--test"]),
    (["benchmark", "--csv", "x" * 300], ["--csv"]),
    (["cv", "x" * 300 + ".csv"], ["xxx", "too long"]),
    (["cv", "x" * 300], ["xxx", "too long"]),
    (["cv", "pairs.csv", "--constraints", "x" * 300], ["--constraints", "too long"]),
    (["cv", "pairs.csv", "--n-best", "9" * 9], ["--n-best", "100000"]),
]


@pytest.mark.parametrize(("arguments", "words"), TOGETHER, ids=lambda v: " ".join(v)[:60])
def test_what_cannot_go_together_is_refused_before_the_fit(
    arguments: list[str], words: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*_: Any, **__: Any) -> None:
        raise AssertionError("searched first")

    monkeypatch.setattr("sparsecv.cv.engine.Surface.visit", searched)
    monkeypatch.setattr("sparsecv.solvers.api.best_support", searched)
    monkeypatch.setattr("sparsecv.stability.StabilityCV.fit", searched)
    Path("pairs.csv").write_text(PAIRS)
    Path("gaps.csv").write_text(PAIRS.replace("\n3,", "\n,"))
    Path("some.csv").write_text(SOME)
    complaint(capsys, [*arguments, "--quiet"], words)
    assert sorted(path.name for path in Path().iterdir()) == ["gaps.csv", "pairs.csv", "some.csv"]


def test_more_threads_than_there_is_work(capsys: Capture) -> None:
    Path("pairs.csv").write_text(PAIRS)
    known = ["--jobs", "1000000", "--gamma", "1", "--quiet"]
    assert main(["cv", "pairs.csv", "--no-nested", *known]) == 0
    assert main(["fit", "pairs.csv", "--tau", "1", *known]) == 0


def test_ranges_of_gamma_at_the_ends_of_the_numbers() -> None:
    """Rounding may leave a γ outside every range of supports."""
    write_csv(Path("t.csv"), *growing_columns())
    for span in ("1e-320:1e-319", "1e-301:1e-300", "1e300:1e308"):
        known = ["cv", "t.csv", "--gamma", f"global:{span}", "--tau", "1", "--no-nested"]
        assert main([*known, "--quiet"]) == 0


def test_weights_that_leave_a_fold_nothing_to_train_on(capsys: Capture) -> None:
    Path("t.csv").write_text(SOME)
    for seed in "012":
        known = ["cv", "t.csv", "--weights", "w", "--folds", "3", "--rule", "projected"]
        complaint(capsys, [*known, "--seed", seed, "--quiet"], ["weight 0"])


def test_tiny_gamma_on_dependent_columns(capsys: Capture) -> None:
    X, y = growing_columns()
    X[:, 1] = X[:, 0]
    write_csv(Path("t.csv"), X, y)
    for gamma in ("0", "1e-30"):
        assert main(["cv", "t.csv", "--quiet", "--folds", "4", "--gamma", gamma]) == 0
        assert main(["fit", "t.csv", "--quiet", "--tau", "2", "--gamma", gamma]) == 0
    assert capsys.readouterr().err == ""


def test_two_rows(capsys: Capture) -> None:
    Path("t.csv").write_text("a,b,y\n1,2,3\n2,1,4\n")
    for options in ([], ["--protocol", "paper"], ["--scale", "none"]):
        for gamma in ("1e-8", "1", "1e8"):
            known = ["--folds", "loo", "--gamma", gamma, "--no-nested"]
            assert main(["cv", "t.csv", *known, *options]) == 0
    assert capsys.readouterr().err == ""
    complaint(capsys, ["cv", "t.csv"], ["5 folds"])
