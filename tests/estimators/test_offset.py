"""``offset``: what is fitted is y less the offset, and predictions add it again."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from support.commands import Capture, run_json
from support.inside import main

import sparsecv
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError
from sparsecv.verify import check

RNG = np.random.default_rng(8)
X = RNG.standard_normal((60, 4)) * [1.0, 5.0, 0.2, 1.0] + 3.0
OFFSET = 50.0 * RNG.standard_normal(60)
Y = X[:, 0] + 0.3 * X[:, 1] + RNG.standard_normal(60) + OFFSET
WEIGHTS, GROUPS = RNG.integers(1, 4, 60), RNG.integers(0, 12, 60)
# What a fit says, apart from how long it took.
SAID = ["coef_", "intercept_", "objective_", "lower_bound_", "status_"]


@pytest.mark.parametrize(
    ("model", "how", "more"),
    [
        (SparseRidge(tau=2), {}, []),
        (SparseRidge(tau="bic"), {"sample_weight": WEIGHTS}, []),
        (SparseRidgeCV(cv=4), {"sample_weight": WEIGHTS}, ["cv_error_", "cv_error_bounds_"]),
        (
            SparseRidgeCV(cv="loo", rule="minimum", gammas=[1.0, 10.0], nested=4),
            {"groups": GROUPS},
            ["cv_error_", "nested_error_", "nested_std_error_"],
        ),
        (SparseRidgeCV(cv="time:4", fit_intercept=False), {}, ["cv_error_"]),
    ],
)
def test_a_fit_is_that_of_y_less_the_offset(
    model: Any, how: dict[str, Any], more: list[str]
) -> None:
    with_offset = clone(model).fit(X, Y, offset=OFFSET, **how)
    plain = clone(model).fit(X, Y - OFFSET, **how)
    for name in [*SAID, *more]:
        np.testing.assert_array_equal(getattr(with_offset, name), getattr(plain, name))
    new = np.arange(60.0)
    np.testing.assert_array_equal(with_offset.predict(X, offset=new), plain.predict(X) + new)
    assert with_offset.score(X, Y, offset=OFFSET) > 0.99
    assert "y less offset" in " ".join(with_offset.summary().split())


def test_the_mean_alone_predicts_the_offset_of_each_row_and_the_intercept() -> None:
    none = SparseRidge(tau=0).fit(X, Y, offset=pd.Series(OFFSET, name="base"))
    predicted = f"none: the model predicts {none.intercept_:.6g} plus base for every row"
    assert predicted in " ".join(none.summary().split())
    np.testing.assert_array_equal(none.predict(X, offset=OFFSET), OFFSET + none.intercept_)


def test_the_offset_goes_along_with_files_pickles_sizes_and_intervals(tmp_path: Path) -> None:
    model = SparseRidgeCV().fit(X, Y, offset=pd.Series(OFFSET, name="base"))
    plain = SparseRidgeCV().fit(X, Y - OFFSET)
    model.save(tmp_path / "m.json", intervals=True)
    loaded = sparsecv.load(tmp_path / "m.json")
    predicted = plain.predict(X) + OFFSET
    for one in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(one.predict(X, OFFSET), predicted, rtol=1e-12)
    ends = plain.predict_interval(X) + OFFSET[:, None]
    for one in (model, loaded):
        np.testing.assert_allclose(one.predict_interval(X, offset=OFFSET), ends, rtol=1e-12)
    small = model.at_size(1)
    np.testing.assert_array_equal(small.predict(X, OFFSET), plain.at_size(1).predict(X) + OFFSET)
    loaded.save(tmp_path / "again.json", intervals=True)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "m.json").read_text()


def test_a_certificate_says_what_its_response_is(tmp_path: Path) -> None:
    path = tmp_path / "proof.txt"
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SparseRidge(tau=2).fit(frame, pd.Series(Y, name="price"), offset=OFFSET)
    made = model.certificate(path)
    assert "price less offset" in made.text
    assert Path(f"{path}.csv").read_text().splitlines()[0].endswith(",price less offset")
    assert check(str(path), f"{path}.csv") == made.claim


REFUSED: dict[str, Any] = {
    "one number per row": lambda: SparseRidge().fit(X, Y, offset=OFFSET[:-1]),
    r"shape == \(\)": lambda: SparseRidge().fit(X, Y, offset=1.0),
    "offset must be finite": lambda: SparseRidgeCV().fit(X, Y, offset=np.full(60, np.nan)),
    "offset must be numbers": lambda: SparseRidge().fit(X, Y, offset=["a"] * 60),
    "too large for a number": lambda: SparseRidge().fit(X, Y + 1e308, offset=np.full(60, -1e308)),
    "y less an offset": lambda: fitted().predict(X),
    "pass predict": lambda: fitted().score(X, Y),
    "expected ..,.: one number": lambda: fitted().predict(X[:2], OFFSET),
    "without an offset": lambda: SparseRidge().fit(X, Y).predict(X, OFFSET),
    "add no offset": lambda: fitted().to_sklearn(),
}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fitted() -> SparseRidge:
    return SparseRidge(tau=1).fit(X, Y, offset=OFFSET)


@pytest.mark.parametrize("words", REFUSED)
def test_an_offset_that_cannot_be_used_is_refused(words: str) -> None:
    with pytest.raises(InputError, match=words):
        REFUSED[words]()


def write(path: str, skip: str = "") -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(base=OFFSET, y=Y)
    frame.drop(columns=[skip] * bool(skip)).to_csv(path, index=False)


@pytest.mark.parametrize("missing", [[], ["--missing", "mean"]])
def test_the_command_fits_saves_and_predicts_with_an_offset(
    missing: list[str], capsys: Capture
) -> None:
    write("t.csv")
    how = ["--folds", "4", "--nested", *missing]
    found = run_json("cv", "t.csv", "--offset", "BASE", *how, "--save", "m.json")
    model = SparseRidgeCV(cv=4, nested=True).fit(X, Y, offset=OFFSET)
    assert (found["offset"], found["target"]) == ("base", "y")
    assert found["feature_names"] == list("abcd")
    assert found["chosen"]["cv_error"] == pytest.approx(model.cv_error_, rel=1e-9)
    assert main(["predict", "m.json", "t.csv"]) == 0
    shown = np.array(capsys.readouterr().out.split()[1:], dtype=float)
    np.testing.assert_allclose(shown, model.predict(X, OFFSET), rtol=1e-9)
    assert main(["cv", "t.csv", "--offset", "base", *how]) == 0
    shown_text = " ".join(capsys.readouterr().out.split())
    assert "response y less base" in shown_text
    assert "base was taken off y" in shown_text


def test_intervals_of_the_command_have_the_offset(capsys: Capture) -> None:
    write("t.csv")
    assert main(["cv", "t.csv", "--offset", "base", "--save", "m.json", "--quiet"]) == 0
    assert main(["predict", "m.json", "t.csv", "--coverage", "0.8"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.split()[1:]]
    ends = SparseRidgeCV().fit(X, Y, offset=OFFSET).predict_interval(X, 0.8, offset=OFFSET)
    np.testing.assert_allclose(np.array(rows, dtype=float)[:, 1:], ends, rtol=1e-9)


def test_fit_takes_an_offset() -> None:
    write("t.csv")
    found = run_json("fit", "t.csv", "--tau", "2", "--offset", "base", "--inference")
    model = SparseRidge(tau=2).fit(X, Y - OFFSET)
    assert found["model"]["objective"] == pytest.approx(model.objective_, rel=1e-12)
    p_values = model.inference()["p_high"]
    assert sorted(found["inference"]["p_high"]) == pytest.approx(sorted(p_values), rel=1e-9)


@pytest.mark.parametrize("missing", [[], ["--missing", "mean"]])
def test_rows_without_an_offset_have_no_prediction(missing: list[str], capsys: Capture) -> None:
    write("t.csv")
    how = ["--tau", "1", "--quiet", "--save", "m.json", *missing]
    assert main(["fit", "t.csv", "--offset", "base", *how]) == 0
    Path("new.csv").write_text("a,b,c,d,base\n1,2,3,4,\n1,2,3,4,5\n")
    assert main(["predict", "m.json", "new.csv"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1] in ("", '""')
    assert float(out.splitlines()[2]) > 5.0
    assert "missing value in column 'base', data row 1" in err
    Path("new.csv").write_text("a,b,c,d\n1,2,3,4\n")
    assert main(["predict", "m.json", "new.csv"]) == 2
    assert "'base'" in capsys.readouterr().err
