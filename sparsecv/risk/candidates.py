"""The risk of a learner that chooses its hyperparameters by a development set or nested folds.

[N] denotes the lecture notes "Hyperparameter tuning and risk estimates".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.utils import indexable

from ..design.folds import checked_partition
from ..errors import InputError
from ..stability.fold_losses import Array, losses_of, losses_without
from ..stability.learners import EstimatorLearner, folds_for
from ..stability.losses import checked_loss
from .deviations import development_set_bound
from .estimates import RiskEstimate, losses_on_all_rows


@dataclass(frozen=True)
class Development:
    """A choice made on a development set ([N], eq. 1).

    Attributes
    ----------
    params : dict
        Chosen hyperparameters.
    errors : ndarray, shape (m,)
        Development error of every candidate: its mean loss on the development set.
    value : float
        The least of ``errors``: too low, on average, for the risk of the chosen model.
    excess : float
        With probability 1 − δ the risk of the chosen model exceeds the least risk of all
        candidates by at most this number.
    """

    params: dict[str, Any]
    errors: Array
    value: float
    excess: float


def development_set(
    estimator: Any,
    param_grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any,
    *,
    size: float = 0.2,
    delta: float = 0.05,
    loss_bound: float = 1.0,
    random_state: Any = 0,
    **options: Any,
) -> Development:
    """Train every candidate on one part of the rows; choose the least mean loss on the other part.

    This is eq. (1) of [N].

    Parameters
    ----------
    estimator, X, y, random_state, **options
        As for :func:`k_fold`.
    param_grid : mapping of str to sequence
        Every combination is a candidate.
    size : float
        Share of the rows in the development set, between 0 and 1; the number of rows is rounded.
    delta, loss_bound : float
        ``excess`` holds with probability 1 − delta, for losses in [0, loss_bound].

    Returns
    -------
    Development

    Raises
    ------
    InputError
        ``size`` leaves one part without rows, or a loss is negative or above ``loss_bound``.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import development_set
    >>> X, y = [[0], [1], [2], [3], [4], [5]], [0, 1, 2, 3, 4, 6]
    >>> development_set(Ridge(), {"alpha": [0.1, 10.0]}, X, y, size=0.5, loss_bound=100.0).params
    {'alpha': 0.1}
    """
    X, y = indexable(X, y)
    learner, n_jobs = _learner(estimator, param_grid, X, y, **options)
    n, models = len(y), len(learner.candidates)
    count = round(size * n) if isinstance(size, Real) and 0.0 < size < 1.0 else 0
    if not 1 <= count < n:
        raise InputError(f"a development set of {size!r} of {n} rows leaves one side empty")
    train, held = train_test_split(np.arange(n), test_size=count, random_state=random_state)
    losses = losses_on_all_rows(learner, [(np.sort(train), c) for c in range(models)], n_jobs)
    kept = np.stack(losses)[:, held]  # Those of the development set, shape (candidates, count).
    if kept.min() < 0.0:
        raise InputError("a loss is negative: the guarantee needs losses from 0 on")
    if kept.max() > loss_bound:
        raise InputError(
            f"a loss of {kept.max():.6g} exceeds loss_bound {loss_bound:g}: the guarantee needs "
            "a bound on every loss"
        )
    errors = kept.mean(axis=1)
    best = int(np.argmin(errors))
    excess = development_set_bound(n_dev=count, models=models, delta=delta, loss_bound=loss_bound)
    return Development(dict(learner.candidates[best]), errors, float(errors[best]), excess)


def _learner(
    estimator: Any, grid: Any, X: Any, y: Any, *, loss: Any = "auto", n_jobs: int | None = None
) -> tuple[EstimatorLearner, int | None]:
    """The learner whose candidates are all combinations of a grid, and ``n_jobs`` as it came.

    Callers hand on their options unread, of which the learner takes the loss.

    grid: A mapping of the names of hyperparameters to lists of values.
    loss, n_jobs: The options of :func:`~sparsecv.risk.k_fold`.
    Raises InputError: The loss has an unknown name.
    """
    candidates = list(ParameterGrid(dict(grid)))
    return EstimatorLearner(estimator, candidates, X, y, checked_loss(loss, estimator)), n_jobs


@dataclass(frozen=True)
class NestedEstimate(RiskEstimate):
    """Risk of a learner that chooses its own hyperparameters ([N], eq. 2).

    Attributes
    ----------
    parts : ndarray, shape (K,)
        Errors on the outer folds; ``value`` is their mean.
    exact : bool
        True.
    params : list of dict
        For every outer fold, the hyperparameters that were chosen without the fold's rows.
    """

    params: Sequence[dict[str, Any]] = ()


def nested_cv(
    estimator: Any,
    param_grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    inner: str = "cv",
    random_state: Any = 0,
    **options: Any,
) -> NestedEstimate:
    """Nested cross-validation ([N], Algorithm 1), or its cheaper variant with a development set.

    Parameters
    ----------
    estimator, X, y, random_state, **options
        As for :func:`k_fold`.
    param_grid : mapping of str to sequence
        Every combination is a candidate.
    cv : int, str, splitter or iterable
        The outer folds. Without an outer fold, the other folds are the inner folds.
    inner : str
        "cv": cross-validation over the other folds. "development": the fold after the outer fold is
        the development set, and the first one after the last, so that a candidate costs one fit per
        outer fold and not (K − 1)/2. Of candidates of equal error the first one is chosen.

    Returns
    -------
    NestedEstimate

    Raises
    ------
    InputError
        There are fewer than 3 folds, they do not hold out every row once, or ``inner`` is unknown.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import nested_cv
    >>> X, y = [[0], [1], [2], [3], [4], [5]], [0, 1, 2, 3, 4, 6]
    >>> round(nested_cv(Ridge(), {"alpha": [0.1, 10.0]}, X, y, cv=3).value, 4)
    0.2706
    """
    if inner not in ("cv", "development"):
        raise InputError(f'inner must be "cv" or "development"; got {inner!r}')
    X, y = indexable(X, y)
    learner, n_jobs = _learner(estimator, param_grid, X, y, **options)
    folds = folds_for(estimator, cv, X, y, random_state)
    label, k = checked_partition(folds.label, len(y), nested=True)
    models = len(learner.candidates)
    pairs = list(combinations(range(k), 2))
    if inner == "development":
        pairs = [(t, (t + 1) % k) for t in range(k)]
    fit = partial(losses_of, learner, n_jobs=n_jobs)
    # The entry (t, j, c) is the error on fold j of candidate c, trained without the folds t and j.
    errors = np.full((k, k, models), np.nan)
    left_out = [(pair, [c]) for pair in pairs for c in range(models)]
    for (t, j), [c], [losses] in losses_without(fit, label, left_out):
        errors[t, j, c] = losses[label == j].mean()
        if inner == "cv":  # The same model is also tested on fold t.
            errors[j, t, c] = losses[label == t].mean()
    # Of every outer fold t the candidate of least mean over the folds j that were computed.
    chosen = np.nanmean(errors, axis=1).argmin(axis=1).tolist()
    parts = np.empty(k)
    best = [((t,), [c]) for t, c in enumerate(chosen)]
    for (t,), _, [losses] in losses_without(fit, label, best):
        parts[t] = losses[label == t].mean()
    return NestedEstimate(parts, params=[dict(learner.candidates[c]) for c in chosen])
