"""Estimates of the risk of any learner: K-fold, leave-p-out, corrected, repeated.

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
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state, indexable

from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.executor import run_units
from ..stability.learners import default_loss, folds_for
from ..stability.losses import Loss, checked_loss

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


class Fits:
    """Losses on all rows of clones fitted to some."""

    def __init__(self, estimator: Any, X: Any, y: Any, loss: Function, n_jobs: int | None) -> None:
        self.estimator, (self.X, self.y) = estimator, indexable(X, y)
        self.loss: Loss = checked_loss(default_loss(estimator) if loss == "auto" else loss)
        self.n, self.n_jobs = len(self.y), n_jobs

    def losses(self, training: Index, params: Mapping[str, Any] | None = None) -> Array:
        """Fit a clone to some rows and measure its losses on all.

        params: Hyperparameters.
        Returns, shape (n,).
        """
        model = clone(self.estimator).set_params(**(params or {}))
        model.fit(_safe_indexing(self.X, training), _safe_indexing(self.y, training))
        return self.loss(model, self.X, self.y)

    def many(self, tasks: Sequence[tuple[Any, ...]]) -> list[Array]:
        """Losses of several fits, in parallel, in the order asked for.

        tasks: Arguments of :meth:`losses`.
        """
        found = dict(run_units(_losses, self, tasks, self.n_jobs, allot=lambda _: Limits()))
        return [found[index] for index in range(len(tasks))]

    def pairs(self, cv: Any, seed: Any) -> list[tuple[Index, Index]]:
        """Training and held-out rows of every fold; K are stratified for a classifier.

        Returns, list of pairs of ndarrays.
        """
        folds = folds_for(self.estimator, cv, self.X, self.y, seed)
        return [folds.split(j) for j in range(folds.k)]


def _losses(fits: Fits, *task: Any) -> Array:
    """The unit of one fit; the last of ``task`` are its limits, which a learner does not take."""
    return fits.losses(*task[:-1])


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
    fits = Fits(estimator, X, y, loss, n_jobs)
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
    fits = Fits(estimator, X, y, loss, n_jobs)
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
    fits = Fits(estimator, X, y, loss, n_jobs)
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
