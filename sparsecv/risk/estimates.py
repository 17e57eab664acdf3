"""Estimates of the risk of any learner: K-fold, leave-p-out, corrected and repeated.

[C] denotes "Consistent Cross-Validation with Stable Learners" and [N] the lecture notes
"Hyperparameter tuning and risk estimates". By the last table of [N], cross-validation estimates the
risk of a learner with fixed hyperparameters on a typical sample; nested cross-validation estimates
the risk of a learner that chooses its own hyperparameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, indexable

from ..design.folds import Folds, Index
from ..errors import InputError
from ..selection.partial_errors import losses_of
from ..stability.learners import EstimatorLearner, folds_for
from ..stability.losses import checked_loss

Array = NDArray[np.float64]
Function = str | Callable[[Any, Any], Any]


@dataclass(frozen=True)
class RiskEstimate:
    """An estimate of the risk.

    Attributes
    ----------
    value : float
        The estimate, which is the mean of ``parts``.
    parts : ndarray
        Errors of folds, of subsets of the rows, or of repetitions.
    standard_error : float
        Standard error of the mean of ``parts``, as if the parts were independent. Folds are not
        quite independent, and repetitions of one data set say nothing about other data sets.
    exact : bool
        False where only a random sample of the subsets was evaluated.
    """

    value: float
    parts: Array
    standard_error: float
    exact: bool = True

    @classmethod
    def of(cls, parts: Iterable[float], exact: bool = True) -> RiskEstimate:
        """The estimate that is the mean of some parts.

        Parameters
        ----------
        parts : iterable of float
        exact : bool
            False where ``parts`` are a sample of all parts.

        Returns
        -------
        RiskEstimate
        """
        found = np.asarray(list(parts), dtype=np.float64)
        spread = float(found.std(ddof=1) / np.sqrt(found.size)) if found.size > 1 else np.nan
        return cls(float(found.mean()), found, spread, exact)


class Fits:
    """Fits clones of an estimator to subsets of the rows, and returns their losses on all rows.

    candidates: Hyperparameters of the clones; a task names a candidate by its position.
    loss, n_jobs: As for :func:`k_fold`.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        candidates: Sequence[Mapping[str, Any]] = ({},),
        *,
        loss: Function = "auto",
        n_jobs: int | None = None,
    ) -> None:
        X, y = indexable(X, y)
        measure = checked_loss(loss, estimator)
        self.learner = EstimatorLearner(estimator, candidates, X, y, measure)
        self.n, self.n_jobs = len(y), n_jobs

    def losses(self, tasks: Iterable[tuple[Index, int]]) -> list[Array]:
        """The losses on all rows, shape (n,), of every task (training rows, candidate)."""
        todo = [(rows, [candidate]) for rows, candidate in tasks]
        found = dict(losses_of(self.learner, todo, self.n_jobs))
        return [found[index][0] for index in range(len(todo))]

    def folds(self, cv: Any, seed: Any) -> Folds:
        """The folds that ``cv`` describes; K folds are stratified for a classifier."""
        return folds_for(self.learner.estimator, cv, self.learner.X, self.learner.y, seed)

    def cross_validated(self, cv: Any, seed: Any, corrected: bool) -> RiskEstimate:
        """The K-fold estimate, or the bias-corrected estimate of :func:`corrected_k_fold`."""
        folds = self.folds(cv, seed)
        pairs = [folds.split(j) for j in range(folds.k)]
        whole = self.losses([(np.arange(self.n), 0)] if corrected else [])
        errors = []
        for (_, held), losses in zip(pairs, self.losses((t, 0) for t, _ in pairs), strict=True):
            error = losses[held].mean()
            errors.append(error + whole[0].mean() - losses.mean() if corrected else error)
        return RiskEstimate.of(errors)


def k_fold(
    estimator: Any, X: Any, y: Any, *, cv: Any = 5, random_state: Any = 0, **options: Any
) -> RiskEstimate:
    """K-fold cross-validation: the mean over folds of the folds' mean losses (eq. 2.1 of [C]).

    Parameters
    ----------
    estimator : scikit-learn estimator
    X, y : array-like, shape (n, p) and (n,)
    cv : int, str, splitter or iterable
        K, "loo", "size:M", a splitter or index pairs.
    random_state : int, RandomState or None
        Seed of the random folds.
    **options
        ``loss``, a str or callable as in :class:`~sparsecv.StabilityCV`; ``n_jobs``, the number of
        fits that run at a time, as in joblib.

    Returns
    -------
    RiskEstimate

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import k_fold
    >>> X, y = [[0], [1], [2], [3], [4], [5]], [0, 1, 2, 3, 4, 6]
    >>> round(k_fold(Ridge(), X, y, cv=3).value, 4)
    0.314
    """
    return Fits(estimator, X, y, **options).cross_validated(cv, random_state, corrected=False)


def leave_one_out(estimator: Any, X: Any, y: Any, **options: Any) -> RiskEstimate:
    """Leave-one-out: unbiased for the risk of the learner on n − 1 rows (Theorem 1 of [N]).

    Parameters
    ----------
    estimator, X, y, **options
        As for :func:`k_fold`.

    Returns
    -------
    RiskEstimate

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import leave_one_out
    >>> leave_one_out(Ridge(), [[0], [1], [2]], [0, 1, 3]).parts.size
    3
    """
    return k_fold(estimator, X, y, cv="loo", **options)


def leave_p_out(
    estimator: Any,
    X: Any,
    y: Any,
    p: int,
    *,
    most: int = 1000,
    random_state: Any = 0,
    **options: Any,
) -> RiskEstimate:
    """Leave-p-out: the mean, over all sets of p rows, of the mean loss on the held-out set.

    Parameters
    ----------
    estimator, X, y, random_state, **options
        As for :func:`k_fold`.
    p : int
        Number of rows in a held-out set.
    most : int
        If there are more sets, this many sets are drawn at random and ``exact`` is False.

    Returns
    -------
    RiskEstimate

    Raises
    ------
    InputError
        p is not in 1..n−1, or ``most`` is below 1.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import leave_p_out
    >>> leave_p_out(Ridge(), [[0], [1], [2], [3]], [0, 1, 3, 3], p=2).parts.size
    6
    """
    fits = Fits(estimator, X, y, **options)
    n = fits.n
    if isinstance(p, bool) or not isinstance(p, Integral) or not 1 <= p < n:
        raise InputError(f"leave-p-out needs p from 1 to n - 1 = {n - 1}; got {p!r}")
    if most < 1:
        raise InputError(f"most must be at least 1; got {most}")
    exact = comb(n, p) <= most
    if exact:
        held = [np.array(rows) for rows in itertools.combinations(range(n), p)]
    else:
        rng = check_random_state(random_state)
        held = [np.sort(rng.choice(n, size=p, replace=False)) for _ in range(most)]
    losses = fits.losses((np.setdiff1d(np.arange(n), rows), 0) for rows in held)
    parts = (values[rows].mean() for values, rows in zip(losses, held, strict=True))
    return RiskEstimate.of(parts, exact)


def corrected_k_fold(
    estimator: Any, X: Any, y: Any, *, cv: Any = 5, random_state: Any = 0, **options: Any
) -> RiskEstimate:
    """Bias-corrected K-fold error (Burman 1989; Section 5 of [C]).

    The estimate is R_CV + R̂[A([n]), [n]] − (1/K) Σ_j R̂[A(T_j), [n]], where R̂[A(T), [n]] is the mean
    loss on all rows of the model trained on the rows T. The correction removes the part of the
    error that comes from training on fewer rows. ``parts`` are the folds' mean losses, each with
    the fold's own correction.

    Parameters
    ----------
    estimator, X, y, cv, random_state, **options
        As for :func:`k_fold`.

    Returns
    -------
    RiskEstimate

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import corrected_k_fold
    >>> X, y = [[0], [1], [2], [3], [4], [5]], [0, 1, 2, 3, 4, 6]
    >>> round(corrected_k_fold(Ridge(), X, y, cv=3).value, 4)
    0.2506
    """
    return Fits(estimator, X, y, **options).cross_validated(cv, random_state, corrected=True)


def repeated_k_fold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    k: int = 5,
    repeats: int = 10,
    corrected: bool = False,
    random_state: Any = 0,
    **options: Any,
) -> RiskEstimate:
    """K-fold error averaged over several random partitions.

    Parameters
    ----------
    estimator, X, y, random_state, **options
        As for :func:`k_fold`.
    k, repeats : int
        Folds and partitions.
    corrected : bool
        Whether the bias-corrected error is averaged (:func:`corrected_k_fold`).

    Returns
    -------
    RiskEstimate
        ``parts`` are the partitions' estimates. The standard error measures how much the estimate
        depends on the drawn partitions, not the distance of the estimate from the risk.

    Raises
    ------
    InputError
        ``repeats`` is below 1.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sparsecv.risk import repeated_k_fold
    >>> repeated_k_fold(Ridge(), [[0], [1], [2], [3]], [0, 1, 3, 3], k=2, repeats=3).parts.size
    3
    """
    if repeats < 1:
        raise InputError(f"repeats must be at least 1; got {repeats}")
    seeds = check_random_state(random_state).randint(0, 2**31 - 1, size=repeats).tolist()
    fits = Fits(estimator, X, y, **options)
    return RiskEstimate.of(fits.cross_validated(k, seed, corrected).value for seed in seeds)
