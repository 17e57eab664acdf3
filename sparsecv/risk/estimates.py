"""Estimates of the risk of any learner: K-fold, leave-p-out, corrected and repeated.

[C] denotes "Consistent Cross-Validation with Stable Learners" and [N] the lecture notes
"Hyperparameter tuning and risk estimates". By the last table of [N], cross-validation estimates the
risk of a learner with fixed hyperparameters on a typical sample; nested cross-validation estimates
the risk of a learner that chooses its own hyperparameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import LeavePOut, ShuffleSplit
from sklearn.utils import check_random_state, indexable

from ..cv.results import bias_corrected
from ..errors import InputError
from ..stability.fold_losses import Array, Index, losses_of
from ..stability.learners import EstimatorLearner, folds_for
from ..stability.losses import checked_loss


@dataclass(frozen=True)
class RiskEstimate:
    """An estimate of the risk.

    Attributes
    ----------
    parts : ndarray
        Errors of folds, of subsets of the rows, or of repetitions.
    exact : bool
        False where only a random sample of the subsets was evaluated. A random partition into folds
        is no such sample.
    """

    parts: Array
    exact: bool = True

    @property
    def value(self) -> float:
        """The estimate, which is the mean of ``parts``."""
        return float(self.parts.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean of ``parts``, as if the parts were independent.

        Folds are not quite independent, and repetitions of one data set say nothing about other
        data sets. The number is NaN where there is one part.
        """
        n = self.parts.size
        return float(self.parts.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def losses_on_all_rows(
    learner: EstimatorLearner, tasks: list[tuple[Index, int]], n_jobs: int | None
) -> list[Array]:
    """Losses of models on all rows, an array of shape (n,) for each task, in their order.

    tasks: Of each model the positions of its training rows, and the number of its candidate.
    """
    found = dict(losses_of(learner, [(rows, [c]) for rows, c in tasks], n_jobs))
    return [found[number][0] for number in range(len(tasks))]


def _errors(
    estimator: Any,
    X: Any,
    y: Any,
    cv: Any,
    seed: Any,
    *,
    corrected: bool = False,
    loss: Any = "auto",
    n_jobs: int | None = None,
) -> Array:
    """Mean losses of the folds, shape (k,), each with its own correction if they are corrected.

    seed: The seed of random folds. The other arguments are those of :func:`k_fold`.
    corrected: Whether the mean loss on all rows of the model of all rows is added to each number,
        and that of the fold's model is taken off.
    """
    X, y = indexable(X, y)
    learner = EstimatorLearner(estimator, [{}], X, y, checked_loss(loss, estimator))
    folds = folds_for(estimator, cv, X, y, seed)
    splits = list(folds.splits())
    tasks = [(train, 0) for train, _ in splits]
    if corrected:
        tasks.append((np.arange(len(y)), 0))
    losses = losses_on_all_rows(learner, tasks, n_jobs)  # The model of all rows is the last.
    errors = np.array([one[held].mean() for one, (_, held) in zip(losses, splits, strict=False)])
    if corrected:
        without = np.array([one.mean() for one in losses[:-1]])
        # A fold's error is corrected by the fold's own model alone.
        errors = bias_corrected(errors, losses[-1].mean(), without[:, None])
    return errors


def k_fold(
    estimator: Any, X: Any, y: Any, *, cv: Any = 5, random_state: Any = 0, **options: Any
) -> RiskEstimate:
    """K-fold cross-validation: the mean over folds of the folds' mean losses (eq. 2.1 of [C]).

    Every fold counts alike, whatever its number of rows.

    Parameters
    ----------
    estimator : scikit-learn estimator
    X, y : array-like, shape (n, p) and (n,)
    cv : int, str, splitter or iterable
        K, "loo", "size:M", "time:K", a splitter or index pairs.
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
    return RiskEstimate(_errors(estimator, X, y, cv, random_state, **options))


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
        If there are more sets, this many sets are drawn at random, some perhaps several times, and
        ``exact`` is False.

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
    n = len(indexable(X, y)[1])
    if isinstance(p, bool) or not isinstance(p, Integral) or not 1 <= p < n:
        raise InputError(f"leave-p-out needs p from 1 to n - 1 = {n - 1}; got {p!r}")
    if not isinstance(most, Integral) or most < 1:
        raise InputError(f"most must be a whole number >= 1; got {most!r}")
    exact = comb(n, p) <= most
    draws = ShuffleSplit(most, test_size=int(p), random_state=random_state)
    splits = list((LeavePOut(int(p)) if exact else draws).split(np.zeros(n)))
    return RiskEstimate(_errors(estimator, X, y, splits, None, **options), exact)


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
    return RiskEstimate(_errors(estimator, X, y, cv, random_state, corrected=True, **options))


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
    if not isinstance(repeats, Integral) or repeats < 1:
        raise InputError(f"repeats must be a whole number >= 1; got {repeats!r}")
    seeds = check_random_state(random_state).randint(0, 2**31 - 1, size=repeats).tolist()
    parts = [
        _errors(estimator, X, y, k, seed, corrected=corrected, **options).mean() for seed in seeds
    ]
    return RiskEstimate(np.array(parts))
