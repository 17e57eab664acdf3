"""Algorithm 1 of the stability paper: λ and a candidate θ from models that leave out folds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .fold_losses import Array, PartialErrors

# The weights λ of the stability that are compared by default. The values are a choice.
DEFAULT_LAMBDAS = (0.0, *np.logspace(-4.0, 4.0, 10).tolist())


class StabilityWeights(NamedTuple):
    """What Algorithm 1 of the stability paper finds, for every weight λ of the stability.

    Lines are those of the algorithm; θ is the number of a candidate.

    Attributes
    ----------
    lambdas : ndarray, shape (l,), increasing
        The weights λ.
    inner_choice : ndarray of int, shape (l, k)
        θ chosen without fold t (line 23); of equal values the smaller number.
    outer : ndarray, shape (l, k)
        m_{λ,t}: error on fold t of the model chosen without fold t (line 25).
    choice : ndarray of int, shape (l,)
        θ that minimises criterion (7) on all rows, for every λ; of equal values the smaller number.
    """

    lambdas: Array
    inner_choice: NDArray[np.intp]
    outer: Array
    choice: NDArray[np.intp]

    @property
    def nested_error(self) -> Array:
        """m̄_λ, shape (l,): the means of ``outer`` over folds (line 28)."""
        return np.asarray(self.outer.mean(axis=1))

    @property
    def best(self) -> int:
        """Position of λ*: the least nested error; of equal errors the smaller λ."""
        return int(np.argmin(self.nested_error))

    @property
    def lambda_(self) -> float:
        """λ*."""
        return float(self.lambdas[self.best])

    @property
    def theta(self) -> int:
        """θ*, by its number."""
        return int(self.choice[self.best])


def checked_lambdas(lambdas: ArrayLike | None) -> Array:
    """Distinct weights λ ≥ 0, increasing, shape (l,); by default 0 and ten from 1e-4 to 1e4.

    Raises InputError: No weight, or a weight that is negative or not a number.
    """
    try:
        values = np.unique(np.asarray(DEFAULT_LAMBDAS if lambdas is None else lambdas, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.size == 0 or not (np.isfinite(values).all() and values[0] >= 0.0):
        raise InputError(f"lambdas must be numbers >= 0; got {lambdas!r}")
    return values


def criterion(errors: PartialErrors, weight: float) -> Array:
    """Criterion (7): k-fold error + λ·μ̂_h of every candidate, shape (m,).

    Parameters
    ----------
    errors : PartialErrors
        Errors of m candidates.
    weight : float
        λ ≥ 0.

    Returns
    -------
    ndarray, shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.stability.algorithm import criterion
    >>> from sparsecv.stability.fold_losses import PartialErrors
    >>> held_out, change = np.array([[1.0, 3.0], [2.0, 2.5]]), np.array([1.0, 0.0])
    >>> errors = PartialErrors(held_out, change, None, None, change, held_out)
    >>> criterion(errors, 0.5)
    array([2.5 , 2.25])
    """
    return np.asarray(errors.cv_error + weight * errors.stability)


def select(errors: PartialErrors, lambdas: ArrayLike | None = None) -> StabilityWeights:
    """Choose λ and a candidate by Algorithm 1 of the stability paper; every λ uses the same fits.

    Parameters
    ----------
    errors : PartialErrors
        With the errors of models without two folds.
    lambdas : array, optional
        Weights λ of the stability; 0 alone is ordinary nested cross-validation.

    Returns
    -------
    StabilityWeights

    Raises
    ------
    InputError
        There is no λ, a λ is negative or no finite number, or ``errors`` lacks the errors of models
        without two folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.stability.algorithm import select
    >>> from sparsecv.stability.fold_losses import PartialErrors
    >>> held_out, change = np.array([[1.0, 3.0, 2.0], [2.0, 2.5, 2.0]]), np.array([1.0, 0.0])
    >>> inner, inner_change = held_out, np.array([[1.0] * 3, [0.0] * 3])
    >>> errors = PartialErrors(held_out, change, inner, inner_change, change, held_out)
    >>> select(errors, [0.0, 1.0]).choice
    array([0, 1])
    """
    weights = checked_lambdas(lambdas)
    if errors.inner is None or errors.inner_stability is None:
        raise InputError("choosing lambda needs errors with two folds left out (nested=True)")
    pairs = [errors.inner + weight * errors.inner_stability for weight in weights]
    inner_choice = np.array([np.argmin(values, axis=0) for values in pairs])
    outer = errors.held_out[inner_choice, np.arange(errors.held_out.shape[1])]
    choice = np.array([np.argmin(criterion(errors, float(weight))) for weight in weights])
    return StabilityWeights(weights, inner_choice, outer, choice)
