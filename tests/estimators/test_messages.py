"""What users pass by mistake is named in one line that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import PredefinedSplit
from support.problems import regression

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError

QUICK: dict[str, Any] = {"gammas": [1.0], "taus": [1], "rule": "minimum"}


def rows(n: int = 30, p: int = 3) -> tuple[Any, Any]:
    return regression(n, p, {0: 1.0})


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("kind", [np.asarray, pd.Series, pd.Categorical])
@pytest.mark.parametrize("cv", [3, "loo"])
def test_a_row_without_a_group_is_named(missing: Any, kind: Any, cv: Any) -> None:
    X, y = rows()
    groups = np.repeat(np.arange(6), 5).astype(object)
    groups[3] = missing
    with pytest.raises(InputError, match="row 3 has no group"):
        SparseRidgeCV(cv=cv, **QUICK).fit(X, y, groups=kind(groups))


def test_groups_of_text_and_numbers_are_refused() -> None:
    X, y = rows()
    groups = np.array([*range(15), *["a"] * 15], dtype=object)
    with pytest.raises(InputError, match="make all of them text"):
        SparseRidgeCV(**QUICK).fit(X, y, groups=groups)


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("never", [0, 5])
def test_fold_numbers_are_those_of_predefined_split(kind: Any, never: int) -> None:
    X, y = rows()
    numbers = np.arange(30) % 3
    numbers[:never] = -1
    found = SparseRidgeCV(cv=kind(numbers), **QUICK).fit(X, y)
    same = SparseRidgeCV(cv=PredefinedSplit(numbers), **QUICK).fit(X, y)
    assert found.folds_.k == 3
    assert found.cv_error_ == same.cv_error_
    for j in range(3):
        np.testing.assert_array_equal(found.folds_.split(j)[1], np.flatnonzero(numbers == j))


@pytest.mark.parametrize("numbers", [np.arange(29) % 3, np.linspace(0.0, 2.0, 30), [0, 1, 2]])
def test_other_fold_numbers_are_refused(numbers: Any) -> None:
    X, y = rows()
    with pytest.raises(InputError, match="a whole number for each of the 30 rows"):
        SparseRidgeCV(cv=numbers, **QUICK).fit(X, y)


def test_a_generator_draws_the_folds() -> None:
    X, y = rows()
    found = [
        SparseRidgeCV(random_state=np.random.default_rng(seed), **QUICK).fit(X, y).folds_.label
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_a_lazy_frame_is_to_be_collected() -> None:
    X, y = rows()
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    with pytest.raises(InputError, match=r"pass X\.collect\(\)"):
        SparseRidge(tau=1).fit(frame.lazy(), y)
    model = SparseRidge(tau=1).fit(frame, y)
    with pytest.raises(InputError, match=r"pass X\.collect\(\)"):
        model.predict(frame.lazy())


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_text_in_the_response_is_named(kind: str) -> None:
    X, y = rows()
    texts = list(map(str, y))
    texts[4] = "12 EUR"
    made = {
        "array": np.array(texts),
        "pandas": pd.Series(texts, name="price"),
        "polars": pl.Series("price", texts),
    }
    name = "y" if kind == "array" else r"y \(price\)"
    with pytest.raises(InputError, match=f"{name} holds '12 EUR' in row 4"):
        SparseRidge(tau=1).fit(X, made[kind])


@pytest.mark.parametrize("library", [pd, pl])
def test_text_among_numbers_to_predict_is_named(library: Any) -> None:
    X, y = rows()
    model = SparseRidge(tau=2).fit(library.DataFrame({"a": X[:, 0], "b": X[:, 1]}), y)
    new = library.DataFrame({"a": ["0.5", "1.5"], "b": ["2.0", "a lot"]})
    with pytest.raises(
        InputError, match="column 'b' holds 'a lot', which is no number, data row 2"
    ):
        model.predict(new)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("name", ["b", "town"])
def test_a_column_that_predict_lacks_is_named(library: Any, name: str) -> None:
    X, y = rows()
    table = {"a": X[:, 0], "b": X[:, 1], "town": ["Bern", "Rome", "Oslo"] * 10}
    model = SparseRidge(tau=2).fit(library.DataFrame(table), y)
    less = {key: values for key, values in table.items() if key != name}
    with pytest.raises(InputError, match=f"X lacks the column '{name}'"):
        model.predict(library.DataFrame(less))
    with pytest.raises(InputError, match="X has 'c', which fit has not seen"):
        model.predict(library.DataFrame(table | {"c": X[:, 2]}))


@pytest.mark.parametrize("text", [False, True])
def test_a_number_means_the_column_of_that_name(text: bool) -> None:
    X, y = rows()
    table = pd.DataFrame(X, columns=[2, 1, 0])
    if text:
        table[7] = ["Bern", "Rome", "Oslo"] * 10
    model = SparseRidge(tau=1, constraints=Constraints(include=[2])).fit(table, y)
    assert model.support_.tolist() == [0]
    last = SparseRidge(tau=1, constraints=Constraints(include=[0])).fit(table, y)
    assert last.support_.tolist() == [2]
    with pytest.raises(InputError, match="there is no column 3"):
        SparseRidge(tau=1, constraints=Constraints(include=[3])).fit(table, y)


def test_nested_error_says_what_it_needs() -> None:
    model = SparseRidgeCV(**QUICK).fit(*rows())
    for name in ("nested_error_", "nested_std_error_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"{name} needs a fit with nested=True"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="has no attribute 'other_'"):
        _ = model.other_
