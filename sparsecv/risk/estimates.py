"""Estimates of the risk of any learner: K-fold, leave-p-out, corrected, repeated, nested.

Texts: [C] "Consistent Cross-Validation with Stable Learners", [N] lecture notes "Hyperparameter
tuning and risk estimates". What each one estimates ([N], last table): cross-validation the risk of
a learner on a typical sample, nested cross-validation that of a learner which chooses its own
hyperparameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state, indexable

from ..errors import InputError
from ..stability.coordinate import Grid
from ..stability.learners import default_loss, folds_for
from ..stability.losses import Loss, checked_loss
from .bounds import development_set_bound

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Function = str | Callable[[Any, Any], Any]


@dataclass(frozen=True)
class RiskEstimate:
    """An estimate of the risk.

    Attributes
    ----------
    value : float
    parts : ndarray
        What it is the mean of: errors of folds, subsets or repetitions.
    standard_error : float
        Of the mean of ``parts``, as if they were independent (folds are not quite; repetitions
        of one data set say nothing about other data sets).
    exact : bool
        False where subsets were sampled.
    """

    value: float
    parts: Array
    standard_error: float
    exact: bool = True

    @classmethod
    def of(cls, parts: Iterable[float], exact: bool = True) -> RiskEstimate:
        """Their mean, and its standard error.

        Parameters
        ----------
        parts : iterable of float
        exact : bool
            False where they are a sample of all parts.

        Returns
        -------
        RiskEstimate
        """
        found = np.asarray(list(parts), dtype=np.float64)
        spread = float(found.std(ddof=1) / np.sqrt(found.size)) if found.size > 1 else np.nan
        return cls(float(found.mean()), found, spread, exact)


class _Fits:
    """Losses on all rows of clones fitted to some."""

    def __init__(self, estimator: Any, X: Any, y: Any, loss: Function, n_jobs: int | None) -> None:
        self.estimator, (self.X, self.y) = estimator, indexable(X, y)
        self.loss: Loss = checked_loss(default_loss(estimator) if loss == "auto" else loss)
        self.n, self.n_jobs = len(self.y), n_jobs

    def losses(self, training: Index, params: Mapping[str, Any] | None = None) -> Array:
        """Shape (n,)."""
        model = clone(self.estimator).set_params(**(params or {}))
        model.fit(_safe_indexing(self.X, training), _safe_indexing(self.y, training))
        return self.loss(model, self.X, self.y)

    def many(self, tasks: Sequence[tuple[Any, ...]]) -> list[Array]:
        """In parallel, in order."""
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self.losses)(*task) for task in tasks
        )
        return list(found)

    def pairs(self, cv: Any, seed: Any) -> list[tuple[Index, Index]]:
        """Training and held-out rows of every fold; K are stratified for a classifier."""
        folds = folds_for(self.estimator, cv, self.X, self.y, seed)
        return [folds.split(j) for j in range(folds.k)]


def k_fold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    loss: Function = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> RiskEstimate:
    """K-fold cross-validation: the mean over folds of their mean losses (eq. 2.1 of [C]).

    Parameters
    ----------
    estimator : scikit-learn estimator
    X, y : array-like, shape (n, p) and (n,)
    cv : int, str, splitter or iterable
        K, "loo", "size:M", a splitter or index pairs.
    loss : str or callable
        As in :class:`~sparsecv.StabilityCV`.
    random_state : int, RandomState or None
        Of the shuffle.
    n_jobs : int, optional

    Returns
    -------
    RiskEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import k_fold
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    >>> round(k_fold(Ridge(), X, y, cv=3).value, 4)
    0.314
    """
    fits = _Fits(estimator, X, y, loss, n_jobs)
    pairs = fits.pairs(cv, random_state)
    losses = fits.many([(train,) for train, _ in pairs])
    return RiskEstimate.of(
        values[held].mean() for values, (_, held) in zip(losses, pairs, strict=True)
    )


def leave_one_out(
    estimator: Any, X: Any, y: Any, *, loss: Function = "auto", n_jobs: int | None = None
) -> RiskEstimate:
    """Leave-one-out: unbiased for the risk of the learner on n − 1 rows (Theorem 1 of [N]).

    Parameters
    ----------
    estimator, X, y, loss, n_jobs
        As for :func:`k_fold`.

    Returns
    -------
    RiskEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import leave_one_out
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    >>> leave_one_out(Ridge(), X, y).parts.size
    6
    """
    return k_fold(estimator, X, y, cv="loo", loss=loss, n_jobs=n_jobs)


def leave_p_out(
    estimator: Any,
    X: Any,
    y: Any,
    p: int,
    *,
    most: int = 1000,
    loss: Function = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> RiskEstimate:
    """Leave-p-out: the mean over all sets of p rows of their mean loss.

    Parameters
    ----------
    estimator, X, y, loss, random_state, n_jobs
        As for :func:`k_fold`.
    p : int
        Rows held out.
    most : int
        Where there are more sets than this, so many are drawn at random and ``exact`` is False.

    Returns
    -------
    RiskEstimate

    Raises
    ------
    InputError
        p out of 1..n−1, or ``most`` below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import leave_p_out
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    >>> leave_p_out(Ridge(), X, y, p=2).parts.size
    15
    """
    fits = _Fits(estimator, X, y, loss, n_jobs)
    n = fits.n
    if isinstance(p, bool) or not isinstance(p, (int, np.integer)) or not 1 <= p < n:
        raise InputError(f"leave-p-out needs p from 1 to n - 1 = {n - 1}; got {p!r}")
    if most < 1:
        raise InputError(f"most must be at least 1; got {most}")
    if comb(n, int(p)) <= most:
        held = [np.array(rows, dtype=np.intp) for rows in itertools.combinations(range(n), p)]
    else:
        rng = check_random_state(random_state)
        held = [np.sort(rng.choice(n, size=p, replace=False)) for _ in range(most)]
    every = np.arange(n)
    losses = fits.many([(np.setdiff1d(every, rows),) for rows in held])
    parts = (values[rows].mean() for values, rows in zip(losses, held, strict=True))
    return RiskEstimate.of(parts, exact=comb(n, int(p)) <= most)


def corrected_k_fold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    loss: Function = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> RiskEstimate:
    """Bias-corrected K-fold error (Burman 1989; Section 5 of [C]).

    R_CV + R̂[A([n]), [n]] − (1/K) Σ_j R̂[A(T_j), [n]]: what the folds lose by their fewer rows is
    taken off, as far as losses on the rows seen show it. ``parts`` are the K-fold terms with each
    fold's own correction.

    Parameters
    ----------
    estimator, X, y, cv, loss, random_state, n_jobs
        As for :func:`k_fold`.

    Returns
    -------
    RiskEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import corrected_k_fold
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    >>> round(corrected_k_fold(Ridge(), X, y, cv=3).value, 4)
    0.2506
    """
    fits = _Fits(estimator, X, y, loss, n_jobs)
    pairs = fits.pairs(cv, random_state)
    whole, *losses = fits.many([(np.arange(fits.n),), *((train,) for train, _ in pairs)])
    return RiskEstimate.of(
        values[held].mean() + whole.mean() - values.mean()
        for values, (_, held) in zip(losses, pairs, strict=True)
    )


def repeated_k_fold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    k: int = 5,
    repeats: int = 10,
    corrected: bool = False,
    loss: Function = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> RiskEstimate:
    """K-fold error averaged over several random partitions.

    Parameters
    ----------
    estimator, X, y, loss, random_state, n_jobs
        As for :func:`k_fold`.
    k, repeats : int
        Folds and partitions.
    corrected : bool
        Of the bias-corrected error (:func:`corrected_k_fold`).

    Returns
    -------
    RiskEstimate
        ``parts`` are the partitions' estimates; their standard error is what the choice of
        partition leaves undecided, not the error of the estimate.

    Raises
    ------
    InputError
        Fewer than 1 repetition.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import repeated_k_fold
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    >>> repeated_k_fold(Ridge(), X, y, k=3, repeats=2).parts.size
    2
    """
    if repeats < 1:
        raise InputError(f"repeats must be at least 1; got {repeats}")
    rng = check_random_state(random_state)
    once = corrected_k_fold if corrected else k_fold
    seeds = rng.randint(0, 2**31 - 1, size=repeats)
    options: dict[str, Any] = {"cv": k, "loss": loss, "n_jobs": n_jobs}
    return RiskEstimate.of(
        once(estimator, X, y, random_state=int(seed), **options).value for seed in seeds
    )


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
    fits = _Fits(estimator, X, y, loss, n_jobs)
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
    fits = _Fits(estimator, X, y, loss, n_jobs)
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
