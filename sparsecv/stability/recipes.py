"""Learners by their names on the command line, with the grids of the papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..estimators import SparseRidge, SparseRidgeCV
from ..selection.learner import largest_tau
from ..solvers.backends.optional_dependencies import missing
from ..solvers.core.column_rules import ResolvedRules

LEARNERS = ("sparse-ridge", "projected", "cart", "xgboost", "svm")


class Recipe(NamedTuple):
    """A learner and its candidates.

    Attributes
    ----------
    estimator : scikit-learn estimator
    param_grid : dict
    start : dict
        Where coordinate descent begins.
    """

    estimator: Any
    param_grid: Mapping[str, Sequence[Any]]
    start: Mapping[str, Any] = MappingProxyType({})


def recipe(
    learner: str,
    n: int,
    p: int,
    *,
    classification: bool = False,
    seed: int = 0,
    taus: Sequence[int] | None = None,
    gammas: Sequence[float] | None = None,
    asked: ResolvedRules | None = None,
) -> Recipe:
    """A learner with the grid of its paper, for n rows and p columns.

    CART and XGBoost have the grids of the stability paper's Section 3.2, and start at depth 5. The
    support vector machine has a sigmoid kernel (Section 7 of the corrected-CV paper): that paper
    minimises the mean loss plus γ_m ||f|| for γ_m from 0.1 to 100. With the square of the norm,
    which scikit-learn has, that is C = 1/(2nγ_m). Sparse ridge has every τ with τ log τ ≤ n, and 20
    γ for which γ/2 runs over the stability paper's [1e-3, 1e3]. Projected has the same τ, and the γ
    that :class:`sparsecv.SparseRidgeCV` visits.

    Parameters
    ----------
    learner : str
        "sparse-ridge", "projected", "cart", "xgboost" or "svm".
    n, p : int
    classification : bool
        Whether the response holds labels.
    seed : int
        Of the learner's own draws.
    taus, gammas : sequence, optional
        Values of τ and γ in place of these grids.
    asked : ResolvedRules, optional
        What is asked of the columns, by sparse ridge and projections.

    Returns
    -------
    Recipe

    Raises
    ------
    InputError
        The learner has no recipe, or is a regression while the response holds labels; τ or γ is
        given for a learner that has neither; or the extra ``trees`` is not installed.

    Examples
    --------
    >>> from sparsecv.stability import recipe
    >>> recipe("cart", n=100, p=5).start
    {'max_depth': 5}
    """
    if learner not in LEARNERS:
        raise InputError(f"learner must be one of {', '.join(LEARNERS)}; got {learner!r}")
    if learner in ("sparse-ridge", "projected"):
        if classification:
            raise InputError(f"{learner} is a regression; try --learner cart, xgboost or svm")
        return _sparse(learner, n, p, taus, gammas, asked)
    if taus is not None or gammas is not None:
        raise InputError(f"--tau and --gamma belong to sparse-ridge; {learner} has its own grid")
    depths, start = range(1, 11), {"max_depth": 5}
    if learner == "cart":
        from sklearn import tree

        kind = tree.DecisionTreeClassifier if classification else tree.DecisionTreeRegressor
        grid = {"max_depth": depths, "min_samples_split": range(2, 11)}
        return Recipe(kind(random_state=seed), grid, start)
    if learner == "xgboost":
        if lacking := missing("xgboost"):
            raise InputError(lacking)
        import xgboost

        kind = xgboost.XGBClassifier if classification else xgboost.XGBRegressor
        parts = [i / 100 for i in range(1, 101)]
        return Recipe(
            kind(random_state=seed, n_jobs=1), {"max_depth": depths, "subsample": parts}, start
        )
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    options: dict[str, Any] = {"kernel": "sigmoid", "gamma": 1.0 / p}
    machine = SVC(random_state=seed, **options) if classification else SVR(**options)
    weights = (1.0 / (2.0 * n * np.geomspace(0.1, 100.0, 20))).tolist()
    name = f"{type(machine).__name__.lower()}__C"
    return Recipe(make_pipeline(StandardScaler(), machine), {name: weights})


def _sparse(
    learner: str,
    n: int,
    p: int,
    taus: Sequence[int] | None,
    gammas: Sequence[float] | None,
    asked: ResolvedRules | None,
) -> Recipe:
    """Sparse ridge or the average's projections; the arguments are those of :func:`recipe`."""
    held: dict[str, Any] = {}
    if asked is not None:
        held = {"constraints": asked.by_position()}
    least, most = (1, p) if asked is None else asked.sizes
    top = max(least, largest_tau(n, most))
    sizes = list(range(least, top + 1)) if taus is None else list(taus)
    if learner == "projected":
        return Recipe(SparseRidgeCV(rule="projected", gammas=gammas, **held), {"taus": sizes})
    weights = np.geomspace(2e-3, 2e3, 20).tolist() if gammas is None else list(gammas)
    grid = {"gamma": weights, "tau": sizes}
    return Recipe(SparseRidge(**held), grid, {"gamma": 1.0 / np.sqrt(n)})
