"""Every rule under constraints on columns: models obey, projections are the best ones allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.constrained import Rules, best_of_every_size, random_rules, resolved
from support.inside import RULES, FixedSupports, RowFolds, RowTable, UnitConstraints, make_folds
from support.studies import averaged_model

from sparsecv import SparseRidgeCV
from sparsecv.stability import SparseRidgeLearner

pytestmark = pytest.mark.filterwarnings("ignore")
ALL = ("include", "groups", "positive", "bounds")


def table(seed: int, n: int = 40, p: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.choice([0.2, 1.0, 5.0], size=p) + rng.normal(size=(n, 1))
    return X, X @ rng.normal(size=p) + rng.normal(size=n) + 3.0


def obeys(model: SparseRidgeCV, rules: Rules, union: bool = False) -> bool:
    used = model.support_.tolist()
    units = [u for u, columns in enumerate(rules.units) if set(columns) & set(used)]
    whole = sorted(j for u in units for j in rules.units[u]) == used
    within = (rules.lower <= model.coef_).all() and (model.coef_ <= rules.upper).all()
    return bool(whole and within and len(units) == model.tau_ and rules.allows(frozenset(units)))


@pytest.mark.parametrize("rule", RULES)
def test_models_of_every_rule_obey(rule: str) -> None:
    for seed in range(3):
        X, y = table(seed)
        rules = random_rules(np.random.default_rng(seed), X.shape[1], ALL)
        model = SparseRidgeCV(cv=4, rule=rule, gammas=[0.1, 1.0, 30.0], **rules.keywords)
        model.fit(X, y)
        assert model.rule_ == rule
        assert obeys(model, rules)
        assert model.certified_


def test_the_alternation_obeys() -> None:
    for kinds in (("positive",), ("bounds", "groups"), ("exclude", "include")):
        X, y = table(11)
        rules = random_rules(np.random.default_rng(5), X.shape[1], kinds)
        model = SparseRidgeCV(cv=4, rule="minimum", **rules.keywords).fit(X, y)
        assert obeys(model, rules)
        assert model.cv_error_ == pytest.approx(model.surface_["cv_error"].min(), rel=1e-9)
        assert model.trace_


def test_the_step_of_gamma_knows_bounded_fits() -> None:
    X, y = table(4)
    rng = np.random.default_rng(8)
    for _ in range(20):
        p = X.shape[1]
        low, high = -rng.exponential(0.3, p), rng.exponential(0.3, p)
        asked = UnitConstraints.of(p, bounds=(low, high))
        data = RowFolds(RowTable(X, y, True, constraints=asked), make_folds(4, y.size, seed=0))
        supports = [np.sort(rng.choice(p, size=4, replace=False)) for _ in range(4)]
        gamma = float(10.0 ** rng.uniform(-1, 2))
        fixed = FixedSupports.of(data, supports, gamma)
        for near in (gamma, gamma * (1.0 + 1e-7)):
            total = 0.0
            for j, support in enumerate(supports):
                H, t = data.held_out(j)
                fit = data.training(j).replace(gamma=near).fit(support)
                total += float(np.sum((t - H[:, support] @ fit.coef) ** 2))
            assert fixed.at(near)[0] == pytest.approx(total / y.size, rel=1e-9)


def test_projections_are_the_best_that_are_allowed() -> None:
    for seed in range(4):
        X, y = table(seed, 30, 6)
        rules = random_rules(np.random.default_rng([7, seed]), 6, ALL if seed else ("include",))
        options: dict[str, Any] = {"cv": 3, "gammas": [0.5, 20.0]}
        model = SparseRidgeCV(rule="projected", **options, **rules.keywords).fit(X, y)
        spread = X.std(axis=0)
        run = model._run_
        average, intercept = averaged_model(run.study, run.choice.projection.average)
        target = X @ average + intercept
        for size in model.path_["tau"]:
            found = model.at_size(int(size))
            gamma = float(found.gamma_)
            best = best_of_every_size(X, target, gamma, rules, spread)
            least, optima = best[size]
            assert found.objective_ == pytest.approx(least, rel=1e-6, abs=1e-9)
            right = dict(optima).get(tuple(found.support_.tolist()))
            assert right is not None
            np.testing.assert_allclose(found.coef_ * spread, right[:-1], atol=1e-5)


def test_losses_of_the_rule_stability_equal_enumeration() -> None:
    rng = np.random.default_rng(3)
    for seed in range(4):
        X, y = table(seed, 20, 6)
        rules = random_rules(rng, 6, ALL)
        asked = resolved(6, **rules.keywords)
        least, most = asked.sizes
        learner = SparseRidgeLearner(X, y, range(least, most + 1), [0.3, 4.0], asked=asked)
        rows = np.sort(rng.choice(20, size=15, replace=False))
        found = learner.predictions(rows, range(learner.size))
        spread = X[rows].std(axis=0)
        for c in range(learner.size):
            g, t = divmod(c, most - least + 1)
            gamma = (0.3, 4.0)[g]
            best = best_of_every_size(X[rows], y[rows], gamma, rules, spread)
            beta = best[least + t][1][0][1]
            np.testing.assert_allclose(found[c], (X / spread) @ beta[:-1] + beta[-1], atol=1e-6)
