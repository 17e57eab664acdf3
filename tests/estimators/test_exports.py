"""A model in the classes of scikit-learn, in ONNX, PMML and SQL predicts what it predicted."""

from __future__ import annotations

import shutil
import sqlite3
import xml.etree.ElementTree as xml
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from support.problems import three_matter

import sparsecv
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("tau", [2, 5])
def test_the_pipeline_predicts_the_same(named: bool, tau: int) -> None:
    X, y = three_matter(30, 5)
    table: Any = pd.DataFrame(X, columns=list("abcde")) if named else X
    model = SparseRidge(tau=tau).fit(table, y)
    pipeline = model.to_sklearn()
    np.testing.assert_allclose(pipeline.predict(table), model.predict(table), rtol=1e-12)
    assert pipeline["model"].coef_.shape == (tau,)
    assert pipeline.n_features_in_ == 5
    clone(pipeline).fit(table, y)  # made of scikit-learn's own classes alone
    assert {type(step).__module__.split(".")[0] for _, step in pipeline.steps} == {"sklearn"}


def test_the_pipeline_fills_missing_values(tmp_path: Path) -> None:
    X, y = three_matter(40, 5)
    X[[0, 7, 9], 0] = X[[3, 7], 2] = X[4, 4] = np.nan
    options: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": [3], "missing": "mean"}
    model = SparseRidgeCV(**options).fit(X, y)
    model.save(tmp_path / "m.json")
    new = X.copy()
    new[::3] = np.nan
    for one in (model, sparsecv.load(tmp_path / "m.json")):
        pipeline = one.to_sklearn()
        np.testing.assert_allclose(pipeline.predict(new), model.predict(new), rtol=1e-12)
        assert clone(pipeline)


@pytest.mark.parametrize("others", ["q", "qz"])
def test_the_pipeline_knows_a_text_that_is_the_name_of_the_missing_level(others: str) -> None:
    rng = np.random.default_rng(0)
    texts = np.array([*["(missing)", None] * 10, *list(others) * (40 // len(others))], dtype=object)
    table = pd.DataFrame({"a": rng.normal(size=texts.size), "t": texts})
    y = table["a"] + 2.0 * (table["t"] == "q") + rng.normal(size=texts.size)
    model = SparseRidge(tau=1 + len(others), missing="mean").fit(table, y)
    expected = model.predict(table)
    np.testing.assert_allclose(model.to_sklearn().predict(table), expected, rtol=1e-12)


def with_texts() -> tuple[pd.DataFrame, pd.Series[float]]:
    """Forty rows with two columns of numbers, one text column of three levels and one of two."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=40),
            "town": rng.choice(["Bern", "Rome", "Oslo"], 40),
            "sold": rng.choice(["no", "yes"], 40),
            "b": rng.normal(size=40),
        }
    )
    return table, 2.0 * table["a"] + 3.0 * (table["town"] == "Rome") - (table["sold"] == "yes")


def test_factors_whose_coefficients_are_all_zero_make_no_pipeline() -> None:
    table, _ = with_texts()
    constraints = sparsecv.Constraints(include=["town"])
    model = SparseRidge(tau=2, constraints=constraints).fit(table, np.ones(40))
    assert model.support_.tolist() == [1, 2, 3]
    assert not model.coef_.any()
    with pytest.raises(InputError, match="no column whose coefficient is not 0"):
        model.to_sklearn()


@pytest.mark.parametrize("tau", [1, 2, 4])
def test_text_columns_become_one_hot_columns_of_the_pipeline(tau: int) -> None:
    table, y = with_texts()
    model = SparseRidge(tau=tau).fit(table, y)
    pipeline = model.to_sklearn()
    np.testing.assert_allclose(pipeline.predict(table), model.predict(table), rtol=1e-12)
    assert pipeline.n_features_in_ == 4
    assert clone(pipeline)
    new = table.assign(town="Lima")
    if "town=Rome" in model.get_feature_names_out():
        with pytest.raises(ValueError, match="unknown categories"):
            pipeline.predict(new)
        model.unknown = "zero"
        zero = model.to_sklearn()
        np.testing.assert_allclose(zero.predict(new), model.predict(new), rtol=1e-12)


@pytest.mark.parametrize("unknown", ["error", "zero"])
@pytest.mark.parametrize("hole", [None, np.nan])
@pytest.mark.parametrize("seen", [False, True])
def test_the_pipeline_knows_missing_text(seen: bool, hole: Any, unknown: str) -> None:
    """Missing text is a category, whether or not the rows of the fit had some."""
    table, y = with_texts()
    new = table.astype({"town": object})
    new.loc[[3, 8, 20], "town"] = hole
    new.loc[[3, 5], "a"] = np.nan
    fitted = new if seen else table
    model = SparseRidgeCV(gammas=[1.0], taus=[3], missing="mean", unknown=unknown).fit(fitted, y)
    pipeline = model.to_sklearn()
    np.testing.assert_allclose(pipeline.predict(new), model.predict(new), rtol=1e-12)
    clone(pipeline)


def test_onnx_runs_a_pipeline_with_texts() -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="the extra test brings skl2onnx")
    runtime = pytest.importorskip("onnxruntime", reason="the extra test brings onnxruntime")
    table, y = with_texts()
    model = SparseRidge(tau=3).fit(table, y)
    types = skl2onnx.common.data_types
    texts = [name in ("town", "sold") for name in table]
    kinds = [types.StringTensorType if text else types.DoubleTensorType for text in texts]
    initial = [(name, kind([None, 1])) for name, kind in zip(table, kinds, strict=True)]
    graph = skl2onnx.convert_sklearn(model.to_sklearn(), initial_types=initial)
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    cells = {
        name: table[[name]].to_numpy(object if text else float)
        for name, text in zip(table, texts, strict=True)
    }
    (answer,) = session.run(None, cells)
    np.testing.assert_allclose(answer.ravel(), model.predict(table), rtol=1e-6)


@pytest.mark.parametrize("rule", ["minimum", "projected"])
def test_orbital_turns_the_pipeline_into_sql(rule: str) -> None:
    orbital = pytest.importorskip("orbital", reason="the extra test brings orbital")
    X, y = three_matter(30, 5)
    table = pd.DataFrame(X, columns=["a", "b_2", "C", "select", "e"])
    model = SparseRidgeCV(gammas=[0.5, 20.0], rule=rule).fit(table, y)
    kinds = {name: orbital.types.DoubleColumnType() for name in table.columns}
    parsed = orbital.parse_pipeline(model.to_sklearn(), features=kinds)
    with closing(sqlite3.connect(":memory:")) as database:
        table.to_sql("t", database, index=False)
        query = orbital.export_sql("t", parsed, dialect="sqlite")
        answer = pd.read_sql(query, database)
    found = answer["variable"]  # The other columns are those that the model does not use.
    np.testing.assert_allclose(found, model.predict(table), rtol=1e-12)


def test_sklearn2pmml_writes_the_pipeline(tmp_path: Path) -> None:
    """The coefficients in the PMML file predict what the model predicts."""
    converter = pytest.importorskip("sklearn2pmml", reason="the extra test brings sklearn2pmml")
    X, y = three_matter(30, 5)
    table = pd.DataFrame(X, columns=["a", "two words", "c", "-- d", "ä"])
    model = SparseRidge(tau=3).fit(table, y)
    pipeline = converter.make_pmml_pipeline(
        model.to_sklearn(), active_fields=list(table.columns), target_fields=["y"]
    )
    np.testing.assert_allclose(pipeline.predict(table), model.predict(table), rtol=1e-12)
    if shutil.which("java") is None:
        pytest.skip("sklearn2pmml needs Java to write the file")
    file = tmp_path / "model.pmml"
    try:
        converter.sklearn2pmml(pipeline, str(file))
    except RuntimeError:
        pytest.skip("this sklearn2pmml does not know this version of scikit-learn")
    (equation,) = xml.parse(file).iterfind(".//{*}RegressionTable")
    found = np.full(len(table), float(equation.attrib["intercept"]))
    for term in equation.iterfind("{*}NumericPredictor"):
        found += float(term.attrib["coefficient"]) * table[term.attrib["name"]].to_numpy()
    np.testing.assert_allclose(found, model.predict(table), rtol=1e-12)
