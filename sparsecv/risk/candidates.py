"""Risk of a learner that chooses among candidates: a development set, nested cross-validation.

Text: [N] lecture notes "Hyperparameter tuning and risk estimates".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..errors import InputError
from ..stability.coordinate import Grid
from .deviations import development_set_bound
from .estimates import Array, Fits, Function, Index


@dataclass(frozen=True)
class Development:
    """A choice made on a development set ([N], eq. 1).

    Attributes
    ----------
    params : dict
        Chosen hyperparameters.
    errors : ndarray
        Development error of every candidate.
    value : float
        The least of them: an estimate of the chosen model's risk that is too low on average.
    excess : float
        With probability 1 − δ the chosen model's risk is above the best candidate's by no more.
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
    loss: Function = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Development:
    """Train every candidate on one part and choose by the loss on the other ([N], eq. 1).

    Parameters
    ----------
    estimator, X, y, loss, random_state, n_jobs
        As for :func:`k_fold`.
    param_grid : mapping of str to sequence
        Every combination is a candidate.
    size : float
        Share of the rows in the development set.
    delta, loss_bound : float
        Of the guarantee: losses must lie in [0, loss_bound].

    Returns
    -------
    Development

    Raises
    ------
    InputError
        ``size`` leaves no rows on one side, or a loss above ``loss_bound``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import development_set
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    >>> development_set(Ridge(), {"alpha": [0.1, 10.0]}, X, y, size=0.5, loss_bound=100.0).params
    {'alpha': 0.1}
    """
    fits = Fits(estimator, X, y, loss, n_jobs)
    grid = Grid(dict(param_grid))
    train, held = _split(fits.n, size, random_state)
    losses = fits.many([(train, grid.params(c)) for c in range(grid.size)])
    kept = np.stack([values[held] for values in losses])
    if kept.min() < 0.0:
        raise InputError("a loss is negative: the guarantee needs losses from 0 on")
    if kept.max() > loss_bound:
        raise InputError(
            f"a loss of {kept.max():.6g} exceeds loss_bound {loss_bound:g}: the guarantee needs "
            "a bound on every loss"
        )
    errors = kept.mean(axis=1)
    best = int(np.argmin(errors))
    excess = development_set_bound(
        n_dev=held.size, models=grid.size, delta=delta, loss_bound=loss_bound
    )
    return Development(grid.params(best), errors, float(errors[best]), excess)


@dataclass(frozen=True)
class NestedEstimate:
    """Risk of a learner that chooses its own hyperparameters ([N], eq. 2).

    Attributes
    ----------
    value : float
    parts : ndarray, shape (K,)
        Errors on the outer folds.
    params : list of dict
        Chosen without each of them.
    """

    value: float
    parts: Array
    params: list[dict[str, Any]]


def nested_cv(
    estimator: Any,
    param_grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    inner: str = "cv",
    loss: Function = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> NestedEstimate:
    """Nested cross-validation ([N], Algorithm 1), or its cheaper variant with a development set.

    Parameters
    ----------
    estimator, X, y, loss, random_state, n_jobs
        As for :func:`k_fold`.
    param_grid : mapping of str to sequence
        Every combination is a candidate.
    cv : int, str, splitter or iterable
        The outer folds; inside, the other folds are the inner folds.
    inner : str
        "cv": cross-validation over the other folds. "development": one of them is the development
        set, so a candidate costs one fit per outer fold and not K − 1.

    Returns
    -------
    NestedEstimate

    Raises
    ------
    InputError
        Fewer than 3 folds, or an unknown ``inner``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import nested_cv
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    >>> round(nested_cv(Ridge(), {"alpha": [0.1, 10.0]}, X, y, cv=3).value, 4)
    0.2706
    """
    if inner not in ("cv", "development"):
        raise InputError(f'inner must be "cv" or "development"; got {inner!r}')
    fits = Fits(estimator, X, y, loss, n_jobs)
    grid = Grid(dict(param_grid))
    pairs = fits.pairs(cv, random_state)
    k = len(pairs)
    if k < 3:
        raise InputError(f"nested cross-validation needs at least 3 folds; got {k}")
    if sorted(np.concatenate([held for _, held in pairs]).tolist()) != list(range(fits.n)):
        raise InputError("nested cross-validation needs folds that hold out every row once")
    parts, chosen = [], []
    for t, (train, held) in enumerate(pairs):
        others = [j for j in range(k) if j != t]
        if inner == "development":
            others = [(t + 1) % k]
        tasks = [
            (np.setdiff1d(train, pairs[j][1]), grid.params(c))
            for c in range(grid.size)
            for j in others
        ]
        losses = iter(fits.many(tasks))
        errors = [
            np.mean([next(losses)[pairs[j][1]].mean() for j in others]) for _ in range(grid.size)
        ]
        params = grid.params(int(np.argmin(errors)))
        chosen.append(params)
        parts.append(float(fits.losses(train, params)[held].mean()))
    return NestedEstimate(float(np.mean(parts)), np.array(parts), chosen)


def _split(n: int, size: float, random_state: Any) -> tuple[Index, Index]:
    count = round(size * n)
    if not 1 <= count < n:
        raise InputError(f"a development set of {size!r} of {n} rows leaves one side empty")
    order = check_random_state(random_state).permutation(n)
    return np.sort(order[count:]), np.sort(order[:count])
