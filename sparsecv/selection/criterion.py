"""Choosing θ and λ: criterion (7), eq. (8) and Algorithm 1 of the stability paper, on grids."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .partial_errors import Array, PartialErrors

DEFAULT_LAMBDAS = (0.0, *np.logspace(-4.0, 4.0, 10).tolist())


@dataclass(frozen=True)
class Selection:
    """What Algorithm 1 returns.

    Attributes
    ----------
    lambdas : ndarray, shape (l,), increasing
    outer : ndarray, shape (l, k)
        m_{λ,t}: error on fold t of the model chosen without it (line 25).
    nested_error : ndarray, shape (l,)
        m̄_λ, their means (line 28).
    inner_choice : ndarray of int, shape (l, k)
        θ chosen without fold t (line 23).
    choice : ndarray of int, shape (l,)
        θ that minimises criterion (7) on all rows, for every λ.
    best : int
        Position of λ*: the least nested error, ties to the smaller λ.
    """

    lambdas: Array
    outer: Array
    nested_error: Array
    inner_choice: NDArray[np.intp]
    choice: NDArray[np.intp]
    best: int

    @property
    def lambda_(self) -> float:
        """λ*."""
        return float(self.lambdas[self.best])

    @property
    def theta(self) -> int:
        """θ*, by its number."""
        return int(self.choice[self.best])


def checked_lambdas(lambdas: ArrayLike | None) -> Array:
    """Distinct weights λ ≥ 0, increasing; by default 0 and ten from 1e-4 to 1e4.

    Returns, shape (l,).
    Raises InputError: None given, or one that is negative or not a number.
    """
    if lambdas is None:
        return np.array(DEFAULT_LAMBDAS)
    if isinstance(lambdas, Real):
        lambdas = [float(lambdas)]
    try:
        values = np.unique(np.asarray(lambdas, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        raise InputError(f"lambdas must be numbers >= 0; got {lambdas!r}") from None
    if values.size == 0 or not (np.isfinite(values).all() and values[0] >= 0.0):
        raise InputError(f"lambdas must be numbers >= 0; got {lambdas!r}")
    return values


def criterion(errors: PartialErrors, weight: float) -> Array:
    """Criterion (7): k-fold error + λ·μ̂_h of every candidate, shape (m,).

    Parameters
    ----------
    errors : PartialErrors
    weight : float
        λ ≥ 0.

    Returns
    -------
    ndarray, shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.stability import PartialErrors, criterion
    >>> held_out, change = np.array([[1.0, 3.0], [2.0, 2.5]]), np.array([1.0, 0.0])
    >>> errors = PartialErrors(held_out, change, None, None, change, held_out)
    >>> criterion(errors, 0.5)
    array([2.5 , 2.25])
    """
    return np.asarray(errors.cv_error + weight * errors.stability)


def select(errors: PartialErrors, lambdas: ArrayLike | None = None) -> Selection:
    """Algorithm 1 on a finite grid: all fits are shared by every λ.

    Parameters
    ----------
    errors : PartialErrors
        With two folds left out, too.
    lambdas : array, optional
        Weights of the stability; 0 alone is ordinary nested cross-validation.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        λ < 0, or errors without the inner ones.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.stability import PartialErrors, select
    >>> held_out, change = np.array([[1.0, 3.0, 2.0], [2.0, 2.5, 2.0]]), np.array([1.0, 0.0])
    >>> inner, inner_change = held_out, np.array([[1.0] * 3, [0.0] * 3])
    >>> errors = PartialErrors(held_out, change, inner, inner_change, change, held_out)
    >>> select(errors, [0.0, 1.0]).choice
    array([0, 1])
    """
    weights = checked_lambdas(lambdas)
    if errors.inner is None or errors.inner_stability is None:
        raise InputError("choosing lambda needs errors with two folds left out (nested=True)")
    k = errors.held_out.shape[1]
    inner_choice = np.empty((weights.size, k), dtype=np.intp)
    choice = np.empty(weights.size, dtype=np.intp)
    for a, weight in enumerate(weights):
        inner_choice[a] = np.argmin(errors.inner + weight * errors.inner_stability, axis=0)
        choice[a] = np.argmin(criterion(errors, float(weight)))
    outer = errors.held_out[inner_choice, np.arange(k)]
    nested = outer.mean(axis=1)
    return Selection(weights, outer, nested, inner_choice, choice, int(np.argmin(nested)))
