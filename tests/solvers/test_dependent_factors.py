"""Least squares on tables whose factors decide each other, as towns decide their region."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from support.constrained import exact_least_norm_within
from support.folds import about_mean
from support.fresh import draws
from support.inside import UnitConstraints, error_margin, independence
from support.no_ridge_attacks import DependentTable, dependent_tables

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError, UnprovedWarning
from sparsecv.solvers import SparseRidgeProblem

Array = NDArray[np.float64]


def towns_in_regions(n: int, others: int = 0) -> tuple[pd.DataFrame, Array]:
    """Eighteen towns in four regions, year and quarter beside both in one number, five shares."""
    rng = np.random.default_rng(0)
    town, year, quarter = (rng.integers(0, k, n) for k in (18, 20, 4))
    town[:18] = np.arange(18)
    shares = rng.dirichlet(np.full(5, 20.0), n)
    table = pd.DataFrame(
        {
            "town": [f"t{v:02d}" for v in town],
            "region": [f"r{v % 4}" for v in town],
            "year": year + 2001.0,
            "quarter": quarter + 1.0,
            "when": year + 2001.0 + quarter / 4.0,
            **{f"share {i}": share for i, share in enumerate(shares.T)},
            **{f"other {i}": rng.standard_normal(n) for i in range(others)},
        }
    )
    return table, rng.standard_normal(18)[town] + 0.1 * year + rng.standard_normal(n)


@pytest.mark.parametrize("positive", [[], ["when", "share 1"]])
@pytest.mark.parametrize(("n", "others"), [(60, 0), (400, 0), (400, 16), (6000, 16)])
def test_factors_that_decide_each_other_are_proved(
    n: int, others: int, positive: list[str]
) -> None:
    table, y = towns_in_regions(n, others)
    asked = Constraints(positive=positive)
    for tau in (1, 3):
        model = SparseRidge(tau=tau, gamma=0.0, constraints=asked).fit(table, y)
        assert model.status_ == "optimal", (tau, model.gap_)


def test_the_best_model_by_a_criterion_and_its_cv_error_are_proved() -> None:
    table, y = towns_in_regions(200)
    table = table[["year", "town", "region"]]
    assert SparseRidge(tau="bic").fit(table, y).status_ == "optimal"
    model = SparseRidgeCV(cv=5, gammas=[0.0], rule="minimum").fit(table, y)
    assert model.certified_
    assert model.cv_results_["exact"].all()


def test_a_sign_beside_a_factor_is_proved() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((24, 3)), columns=["a", "b", "c"])
    table["level"] = rng.choice(list("abc"), 24)
    y = rng.standard_normal(24) - table["a"]
    for tau in (1, 2, 4):
        model = SparseRidge(tau=tau, gamma=0.0, constraints=Constraints(positive=["a"]))
        assert model.fit(table, y).status_ == "optimal", tau


@pytest.mark.slow
def test_nothing_said_of_dependent_tables_is_wrong() -> None:
    for number, (note, rng) in enumerate(draws(60, 73)):
        wrong = list(dependent_tables(rng, number))
        assert not wrong, f"{note}: {wrong}"


def test_sets_of_atoms_are_as_independent_as_is_said() -> None:
    """Columns of some atoms, which are in a set together, and dependences between them."""
    for note, rng in draws(60, 74):
        p = int(rng.integers(3, 9))
        X = rng.standard_normal((p + 2, p))
        for _ in range(int(rng.integers(1, p - 1))):
            i, j, k = rng.integers(0, p, 3)
            X[:, i] = X[:, j] + float(rng.choice([-1.0, 0.0, 0.1])) * X[:, k]
        X = X[:, np.linalg.norm(X, axis=0) > 0.0]
        X = X / np.linalg.norm(X, axis=0)
        atoms = rng.integers(0, 4, size=X.shape[1])
        found = independence(X, atoms)
        assert found.least > 0.0, note
        for size in range(1, 5):
            for chosen in combinations(range(4), size):
                values = np.linalg.svd(X[:, np.isin(atoms, chosen)], compute_uv=False)
                values = values[values > 1e-9]
                assert found.least <= values.min(initial=1.0) * (1.0 + 1e-9), (note, chosen)


def test_columns_are_together_where_their_coefficients_are() -> None:
    low = np.array([-np.inf, -np.inf, 0.0, -np.inf, -np.inf, -np.inf])
    asked = UnitConstraints.of(6, unit=[0, 0, 1, 1, 2, 3], exclude=[5], bounds=(low, np.inf))
    assert asked.atoms.tolist() == [0, 0, 6, 7, 2, -1]


def test_coefficients_at_a_working_gamma_are_no_longer_than_is_said() -> None:
    """Copies of columns that are off by rounding, with and without signs."""
    for note, rng in draws(40, 75):
        X = rng.standard_normal((12, 4))
        X = np.column_stack([X, X[:, 0], X[:, 1] - X[:, 2]])
        X += 1e-15 * rng.standard_normal(X.shape)
        y = rng.standard_normal(12)
        positive = [1] if rng.random() < 0.5 else []
        problem = SparseRidgeProblem(
            X, y, gamma=0.0, tau=6, constraints=Constraints(positive=positive)
        ).at_unit_length()
        most = problem.longest_coefficients()
        at = problem.replace(gamma=problem.gamma)
        for size in range(1, 7):
            for support in combinations(range(6), size):
                assert np.linalg.norm(at.fit(support).coef) <= most < 1e4, (note, support)


def test_no_time_limit_is_advised_where_digits_are_lacking() -> None:
    """Columns 1e-9 of their length apart, which are neither dependent nor clearly independent."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    X[:, :3] = X[:, 3:] + 1e-9 * rng.standard_normal((30, 3))
    y = X[:, 3] + rng.standard_normal(30)
    with pytest.warns(UnprovedWarning, match="give a gamma > 0") as caught:
        model = SparseRidge(tau=4, gamma=0.0).fit(X, y)
    assert model.status_ == "precision limit"
    assert not any("time_limit" in str(one.message) for one in caught)
    with pytest.raises(InputError, match="give a gamma > 0") as refused:
        model.inference(sigma=1.0)
    assert "time_limit" not in str(refused.value)


def test_held_out_errors_within_signs_are_off_by_no_more_than_is_said() -> None:
    """Features that decide each other, some with signs: errors of four rows that are held out."""
    known = 0
    for note, rng in draws(30, 76):
        drawn = DependentTable.drawn(rng)._replace(asked={"positive": ["number"]})
        rows = np.column_stack([drawn.X, drawn.y])
        train, held = (about_mean(some, rows[4:], True) for some in (rows[4:], rows[:4]))
        X, Z = np.array(train, dtype=float), np.array(held, dtype=float)
        problem = SparseRidgeProblem(
            X[:, :-1], X[:, -1], gamma=0.0, tau=1, **drawn.rules().keywords
        )
        for model in drawn.rules().models(2):
            support = np.array(model)
            _, beta = exact_least_norm_within(train, drawn.rules(), model)
            left = [row[-1] - sum(row[j] * v for j, v in beta.items()) for row in held]
            own = float(np.sum((Z[:, -1] - Z[:, support] @ problem.fit(support).coef) ** 2))
            margin = error_margin.support_margin(problem, support, Z[:, :-1], Z[:, -1], own)
            known += margin < 1e-6 * own
            assert abs(own - float(sum(one**2 for one in left))) <= margin, (note, model)
    assert known > 5


def test_a_factor_of_many_levels_beside_its_regions_is_proved() -> None:
    rng = np.random.default_rng(0)
    town = np.concatenate([np.arange(230), rng.integers(0, 230, 470)])
    table = pd.DataFrame({"town": pd.Categorical(town), "region": [f"r{v % 9}" for v in town]})
    table["number"] = rng.standard_normal(700)
    y = table["number"] + rng.standard_normal(230)[town] + rng.standard_normal(700)
    assert SparseRidge(tau=2, gamma=0.0).fit(table, y).status_ == "optimal"
