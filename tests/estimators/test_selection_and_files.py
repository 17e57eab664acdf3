"""The estimators as selectors, in grids over folds where columns are constant, and as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from support.inside import Reading, SavedModel, main
from support.models import linear

import sparsecv
from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.design.fold_models import FoldModels
from sparsecv.errors import InputError, LoweredSizeWarning


def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    frame = pd.DataFrame(X, columns=[f"c {j}" for j in range(8)])
    return frame, X @ np.array([9.0, 4, 1, 0.5, 0.25, 0.1, 0, 0]) + 0.01 * rng.standard_normal(60)


@pytest.mark.parametrize("kind", [SparseRidge, SparseRidgeCV])
def test_selection_is_the_support(kind: Any) -> None:
    X, y = data()
    model = SparseRidge(tau=6, gamma=0.1) if kind is SparseRidge else SparseRidgeCV(gammas=0.1)
    model.fit(X, y)
    names = [X.columns[j] for j in model.support_]
    assert model.get_support(indices=True).tolist() == model.support_.tolist()
    assert model.get_feature_names_out().tolist() == names
    np.testing.assert_array_equal(model.transform(X), X[names])
    assert list(model.set_output(transform="pandas").transform(X).columns) == names
    # Sizes of coefficients play no part, as they do there by default.
    assert len(SelectFromModel(model, prefit=True).fit(X, y).get_feature_names_out()) < len(names)
    step = make_pipeline(SparseRidge(tau=3, gamma=0.1), LinearRegression()).fit(X, y)
    assert step[-1].coef_.shape == (3,)


def test_tau_is_clipped_where_a_fold_lacks_columns() -> None:
    X, y = data()
    X["rare"] = 0.0
    X.loc[0, "rare"] = 1.0
    search = GridSearchCV(SparseRidge(), {"tau": [3, 9]}, cv=5)
    with pytest.warns(LoweredSizeWarning, match="tau = 9, but 8 of the 9 columns vary"):
        search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", [SparseRidge, SparseRidgeCV])
def test_saved_and_loaded(kind: Any, named: bool, tmp_path: Path) -> None:
    X, y = data()
    rows: Any = X if named else X.to_numpy()
    model = SparseRidge(tau=3) if kind is SparseRidge else SparseRidgeCV(gammas=[0.1, 1.0])
    model.fit(rows, y)
    model.save(tmp_path / "m.json")
    other = sparsecv.load(tmp_path / "m.json")
    np.testing.assert_array_equal(other.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(other.transform(rows), model.transform(rows))
    assert other.objective_ == model.objective_
    assert other.gap_ == model.gap_
    assert hasattr(other, "feature_names_in_") is named
    other.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "m.json").read_text()


GOOD = SavedModel(linear([0.0, 2.0, 1.0], 0.5), ["a", "b", "c=u"], levels={"c": ["u", "v"]})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "is not a model file"),
        ({"version": 2}, "version 2"),
        ({"features": []}, "'features'"),
        ({"features": ["a", "a", "b"]}, "'features'"),
        ({"support": ["z"]}, "'support'"),
        ({"support": ["b"]}, "'coef'"),
        ({"coef": [1.0, float("nan")]}, "'coef'"),
        ({"coef": [1.0, "2"]}, "'coef'"),
        ({"coef": [1.0, 10**400]}, "'coef'"),
        ({"support": [], "coef": []}, "'support'"),
        ({"intercept": None}, "'intercept'"),
        ({"tau": 0}, "'tau'"),
        ({"tau": True}, "'tau'"),
        ({"tau": 10**400}, "'tau'"),
        ({"gamma": -1.0}, "'gamma'"),
        ({"gamma": 10**400}, "'gamma'"),
        ({"objective": "low"}, "'objective'"),
        ({"levels": {"c": "u"}}, "'levels'"),
        ({"proved": 1}, "'proved'"),
        ({"target": 3}, "'target'"),
    ],
)
def test_damaged_files_are_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    GOOD.write(path)
    assert SavedModel.read(path).document() == GOOD.document()
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for read in (SavedModel.read, sparsecv.load):
        with pytest.raises(InputError, match=words) as caught:
            read(path)
        assert "\n" not in str(caught.value)


UGLY = (
    None,
    True,
    -1,
    10**400,
    -1e308,
    "",
    "hex",
    "a\0b",
    [],
    [[]],
    [None],
    [10**400],
    {},
    {"a": 10**400},
)
RICH = SavedModel(
    linear([0.0, 2.0, 1.0], 0.5),
    ["a", "b", "c=u"],
    levels={"c": ["u", "v"]},
    fills={"a": 1.0, "b": 2.0, "c=u": 0.5},
    intervals=FoldModels(
        np.array([1, 2]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([0.5, 0.25]),
        np.array([0, 1, 0, 1]),
        np.array([0.5, 1.0, 0.0, 2.0]),
    ),
    reading=Reading("latin-1", ",", ".", ("-9",), ","),
)


def damaged(value: Any) -> Iterator[Any]:
    """A JSON value with each of its parts replaced in turn by every ugly one."""
    yield from UGLY
    if isinstance(value, (dict, list)):
        places = value if isinstance(value, dict) else range(len(value))
        for place in places:
            for other in damaged(value[place]):
                changed = copy(value)
                changed[place] = other
                yield changed


def test_whatever_a_model_file_holds_it_is_refused_or_serves(tmp_path: Path) -> None:
    """Each part is replaced by what it is not, and a mistake in code would be raised."""
    path = tmp_path / "m.json"
    RICH.write(path)
    document = json.loads(path.read_text())
    rows = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, np.nan], "c": ["u", "v"]})
    table = str(tmp_path / "t.csv")
    Path(table).write_text("a;b;c\n1;3;u\n2;;v\n")
    served = 0
    for other in damaged(document):
        path.write_text(json.dumps(other))
        with suppress(InputError):
            sparsecv.load(path).predict(rows)
            served += main(["predict", str(path), table, "--coverage", "0.5"]) == 0
    assert served  # Some parts, such as a note, may be another text.
    text = json.dumps(document)
    for end in range(0, len(text), 7):
        path.write_text(text[:end])
        with pytest.raises(InputError):
            sparsecv.load(path)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        SavedModel.read(tmp_path / "none.json")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="holds no JSON"):
        SavedModel.read(tmp_path / "t.csv")
    for text in ("[" * 100_000 + "]" * 100_000, '{"coef": [' + "9" * 5000 + "]}"):
        (tmp_path / "m.json").write_text(text)
        with pytest.raises(InputError, match="nested too deeply or has a number of too many"):
            SavedModel.read(tmp_path / "m.json")
    found = json.loads(json.dumps({"format": "sparsecv model", "version": 1}))
    (tmp_path / "m.json").write_text(json.dumps(found))
    with pytest.raises(InputError, match="'features' is missing"):
        SavedModel.read(tmp_path / "m.json")
    with pytest.raises(InputError, match="cannot write"):
        GOOD.write(tmp_path / "no" / "m.json")


def test_columns_of_a_saved_model() -> None:
    assert list(GOOD.coding().columns.items()) == [("b", ["b"]), ("c", ["c=u", "c=v"])]
    assert list(GOOD.coding(known=["c=u"]).columns) == ["b", "c=u"]


# A file as it was before files said what τ counts, how texts were read and what missing values are:
# τ = 1 counts the factor f, whose three 0/1 columns are all in the model.
EARLIER = {
    "format": "sparsecv model",
    "version": 1,
    "sparsecv": "0.1.0",
    "features": ["a", "f=u", "f=v", "f=w"],
    "named": True,
    "support": ["f=u", "f=v", "f=w"],
    "coef": [-1.0, 0.25, 2.0],
    "intercept": 3.0,
    "target": "y",
    "tau": 1,
    "gamma": 0.5,
    "objective": 2.0,
    "lower_bound": 2.0,
    "proved": True,
    "levels": {"f": ["u", "v", "w"]},
}


def test_models_saved_before_sizes_counted_coefficients_predict_as_they_did(tmp_path: Path) -> None:
    path, again = tmp_path / "m.json", tmp_path / "again.json"
    path.write_text(json.dumps(EARLIER), encoding="utf-8")
    model = sparsecv.load(path)
    rows = pd.DataFrame({"a": [1.0, 2.0, 0.0], "f": ["w", "u", "v"]})
    np.testing.assert_array_equal(model.predict(rows), [5.0, 2.0, 3.25])
    assert (model.tau_, model.gamma_, model.status_) == (1, 0.5, "optimal")
    model.save(again)
    assert json.loads(again.read_text(encoding="utf-8"))["counts"] == "features"
    np.testing.assert_array_equal(sparsecv.load(again).predict(rows), model.predict(rows))
    rows.to_csv(tmp_path / "t.csv", index=False)
    assert main(["predict", str(path), str(tmp_path / "t.csv"), "--out", f"{tmp_path}/p.csv"]) == 0
    assert pd.read_csv(tmp_path / "p.csv").iloc[:, -1].tolist() == [5.0, 2.0, 3.25]
    path.write_text(json.dumps(EARLIER | {"counts": "columns"}), encoding="utf-8")
    with pytest.raises(InputError, match="'counts'"):
        sparsecv.load(path)


@pytest.mark.parametrize("count", ["coefficients", "groups"])
def test_a_saved_model_says_what_its_size_counts(
    count: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    f = rng.integers(0, 3, 60)
    X = pd.DataFrame({"a": rng.standard_normal(60), "f": np.array(["u", "v", "w"])[f]})
    y = 3.0 * f + 0.1 * rng.standard_normal(60)
    rules = Constraints(count=count)
    says, size = ("coefficients", 2) if count == "coefficients" else ("features", 1)
    model = SparseRidgeCV(rule="minimum", taus=[size], constraints=rules).fit(X, y)
    for name, one in (("chosen", model), ("other", model.at_size(size))):
        one.save(f"{name}.json")
        found = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
        assert (found["counts"], found["tau"], len(found["support"])) == (says, size, 3)
        np.testing.assert_array_equal(sparsecv.load(f"{name}.json").predict(X), one.predict(X))
    X.assign(y=y).to_csv("t.csv", index=False)
    Path("rules.json").write_text(json.dumps({"count": count}), encoding="utf-8")
    asked = ["--constraints", "rules.json", "--save", "s.json", "--json", "r.json", "--quiet"]
    assert main(["fit", "t.csv", "--tau", str(size), *asked]) == 0
    for name in ("s.json", "r.json"):
        found = json.loads(Path(name).read_text(encoding="utf-8"))
        assert (found["counts"], found["tau"]) == (says, size)
    # Numbers alone have the same sizes in both ways.
    SparseRidge(tau=1).fit(X[["a"]], y).save("n.json")
    assert json.loads(Path("n.json").read_text(encoding="utf-8"))["counts"] == "features"
