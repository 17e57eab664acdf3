"""What a choice needs to have proved: pairs (γ, τ) whose CV error or model decides it.

A need is a function of what is known of the CV errors. It is asked again whenever proofs have
changed what is known, and nothing is left to prove for a choice once all it names is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.rounding import EQUAL_SHARE
from .results import Array, CVResult, least


class Known(NamedTuple):
    """What is known of the CV errors h(γ, τ) at some γ and every τ.

    gammas, shape (γ,), and taus, shape (τ,): The pairs.
    error, std_error, lower, upper, shape (γ, τ): Estimates of h, their standard errors over folds,
        and bounds on h; where ``exact`` says so the estimate and both bounds agree.
    rounding: Errors that differ by no more than this number count as equal.
    settled, shape (γ, τ): Whether all folds are proved. Such an error is not exact where rounding
        may have moved it by more than a millionth, which no search can change.
    """

    gammas: Array
    taus: NDArray[np.intp]
    error: Array
    std_error: Array
    lower: Array
    upper: Array
    exact: NDArray[np.bool_]
    rounding: float
    settled: NDArray[np.bool_]

    @classmethod
    def of(cls, result: CVResult) -> Known:
        """What a result knows of all its pairs; only errors that are exact count as settled."""
        return cls(
            result.gammas,
            result.taus,
            error=result.table("cv_error"),
            std_error=result.table("std_error"),
            lower=result.table("lower"),
            upper=result.table("upper"),
            exact=result.table("exact").astype(bool),
            rounding=result.rounding,
            settled=result.table("exact").astype(bool),
        )

    def can_be_below(self, error: float) -> NDArray[np.bool_]:
        """The pairs whose h may be below an error by more than rounding, shape (γ, τ)."""
        return np.asarray(self.lower < error * (1.0 - 2.0 * EQUAL_SHARE) - self.rounding)

    def least(self) -> tuple[int, int]:
        """Position (γ, τ) of the least estimate."""
        return least(self.error, self.taus, self.gammas, self.rounding)


class Needed(NamedTuple):
    """Pairs (γ, τ) that have to be proved, as arrays (γ, τ) of bool.

    errors: Pairs whose CV error has to be exact, for which every fold has to be proved.
    models: Pairs whose model of all rows has to be proved.
    """

    errors: NDArray[np.bool_]
    models: NDArray[np.bool_]


# A function that takes what is known by now, and returns what a choice needs to have proved.
Need = Callable[[Known], Needed]


def of_minimum(known: Known) -> Needed:
    """The pair of least estimate, and all pairs whose h may be smaller."""
    at, models = known.least(), np.zeros(known.error.shape, dtype=bool)
    errors = known.can_be_below(float(known.error.min()))
    errors[at] = models[at] = True
    return Needed(errors, models)


def of_one_se(known: Known) -> Needed:
    """What the minimum needs, all smaller sizes within its standard error, and the choice itself.

    The limit of the rule is the least h plus its standard error. A smaller size than the chosen
    one has to have no h below the limit, and no γ may have a smaller h at the chosen size.
    """
    errors, models = of_minimum(known)
    g, t = known.least()
    limit = float(known.error[g, t] + known.std_error[g, t]) + known.rounding
    size = int(np.flatnonzero(known.error.min(axis=0) <= limit)[0])
    errors[:, :size] |= known.lower[:, :size] <= limit
    g = least(known.error[:, [size]], known.taus[[size]], known.gammas, known.rounding)[0]
    errors[:, size] |= known.can_be_below(float(known.error[g, size]))[:, size]
    errors[g, size] = models[g, size] = True
    return Needed(errors, models)


def of_everything(known: Known) -> Needed:
    """Every CV error and every model."""
    every = np.ones(known.error.shape, dtype=bool)
    return Needed(every, every)
