"""What cross-validation found: h(γ, τ), its bounds, and which supports gave it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.design import Design
from ..design.folds import Folds
from ..design.model import Model, fitted_model
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.core.rounding import EQUAL_SHARE
from ..solvers.kernels.linalg import stacked

Array = NDArray[np.float64]
# A lower bound below the estimate divided by this factor, and an upper bound above the estimate
# times this factor, is not shown in tables and plots. It counts in every comparison. The factor is
# a choice.
MAX_BOUND_RATIO = 2.0


class GammaResult:
    """Cross-validation at one γ for every wanted τ: the tables of a :class:`CVResult` at that γ.

    Attributes
    ----------
    gamma, taus : float, and ndarray of int, shape (τ,)
        The γ, and the sizes.
    cv_error : ndarray, shape (τ,)
        h(γ, τ) of eq. (2), first paper, the mean squared error of the answers.
    std_error : ndarray, shape (τ,)
        Standard error of ``cv_error`` over folds.
    lower, upper : ndarray, shape (τ,)
        Bounds on the error of optimal supports.
    exact : ndarray of bool, shape (τ,)
        Whether every fold is proved, and rounding may have moved ``cv_error`` by a millionth of
        itself at most. Both bounds then agree with it.
    n_mio, n_nodes, seconds : int, int and float
        Number of trees that were searched at this γ, each for one τ or for all, of their nodes, and
        seconds.
    mio_by_tau : ndarray of int, shape (τ,)
        Of the mixed-integer problems of each τ, one for each fold, how many took part in a tree
        search. Bounds alone have proved the others. A tree that serves all folds counts once.
    supports, choice : list of ndarray, and ndarray of int, shape (τ, k)
        ``supports[choice[t, j]]`` is fold j's support at ``taus[t]``, in the columns that vary.
    fold_error : ndarray, shape (τ, k)
        Squared errors of every fold, summed over its rows.
    most : int
        The largest number of columns of a support.
    models, model_objective, model_bound, model_proved : list of ndarray, and ndarrays, shape (τ,)
        For every τ the best support known of all rows, its training objective, a lower bound on the
        least objective, and whether it is proved to be least (by the method "search", up to a
        millionth of it).
    status : Status
        Optimal where every fold and every model is proved (where only the best τ was searched for:
        where it is known to the tolerance), else the limit met.
    history : ndarray
        Of a search of the best τ, a row [problems solved, index of τ, lower, upper] for every
        change.
    """

    def __init__(self, tables: dict[str, Any], g: int) -> None:
        self._tables, self._g = tables, g

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._tables:
            raise AttributeError(name)
        return self._tables[name][self._g]

    def model(self, design: Design, full: SparseRidgeProblem, t: int) -> Model:
        """The best model known of all rows, whose problem is ``full``, at the t-th size.

        Its CV error is the one at this γ and size.
        """
        bound, proved = float(self.model_bound[t]), bool(self.model_proved[t])
        problem = full.replace(gamma=self.gamma)
        found = fitted_model(design, problem, self.models[t], int(self.taus[t]), bound, proved)
        errors = float(self.cv_error[t]), float(self.std_error[t])
        return replace(found, cv_error=errors[0], std_error=errors[1])

    def padded(self, j: int | None) -> NDArray[np.int64]:
        """Supports of fold j, or of all rows where j is None, shape (τ, most), ended by −1."""
        rows = self.models if j is None else [self.supports[c] for c in self.choice[:, j]]
        return stacked(rows, self.most)


def least(
    surface: Array, taus: NDArray[np.intp], gammas: Array, rounding: float
) -> tuple[int, int]:
    """Position (γ, τ) of the least value of a surface, shape (γ, τ), which has no NaN.

    Of values that differ by rounding alone, the smaller τ and then the larger γ is taken.

    taus, gammas: What the columns and the rows of the surface stand for, in any order.
    rounding: What rounding leaves of the value of a perfect fit, in the units of the surface.
    """
    smallest = surface.min()
    tied = np.argwhere(surface <= smallest + EQUAL_SHARE * abs(smallest) + rounding)
    g, t = min(tied, key=lambda gt: (taus[gt[1]], -gammas[gt[0]]))
    return int(g), int(t)


def mean_over_folds(sums: Array, weight: Array) -> tuple[Array, Array]:
    """The mean over all rows of sums by folds, and its standard error over folds.

    sums, shape (..., k): Sums of squared errors over the rows of every fold.
    weight, shape (k,): Number of rows of every fold, or the sum of their weights; some is above 0.
    Returns mean, std_error, shape (...): The mean is Σ sums / Σ weight. The standard error is the
        root of Σ weight (fold's mean − mean)² / Σ weight / (k − 1); a fold of weight 0 counts as no
        fold, and a single fold has the standard error 0.

    Examples
    --------
    >>> mean, error = mean_over_folds(np.array([2.0, 6.0]), np.array([2.0, 2.0]))
    >>> float(mean), float(error)
    (2.0, 1.0)
    """
    total = weight.sum()
    mean = sums.sum(axis=-1) / total
    of_fold = np.divide(sums, weight, out=np.zeros(sums.shape), where=weight > 0.0)
    spread = (weight * (of_fold - mean[..., None]) ** 2).sum(axis=-1) / total
    return mean, np.sqrt(spread / max(np.count_nonzero(weight) - 1, 1))


def bounds_to_show(lower: Any, estimate: Any, upper: Any) -> tuple[Array, Array]:
    """Bounds on CV errors, with NaN in place of bounds too far from the estimate to be shown.

    A bound that is far off says little, and would stretch the axis of a plot.
    """
    low = np.where(np.multiply(lower, MAX_BOUND_RATIO) >= estimate, lower, np.nan)
    high = np.where(upper <= np.multiply(estimate, MAX_BOUND_RATIO), upper, np.nan)
    return low, high


def bounds_text(lower: float, estimate: float, upper: float) -> str:
    """The interval of a CV error as text; empty where it is a number or an end is too far off."""
    far = bool(np.isnan(bounds_to_show(lower, estimate, upper)).any())
    ends = rounded_bound(lower, up=False), rounded_bound(upper, up=True)
    return "" if far or lower == upper else f"[{', '.join(ends)}]"


def rounded_bound(bound: float, *, up: bool, digits: int = 6) -> str:
    """A bound as text, rounded up or down to so many significant digits, so that it still holds."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    decimal = Context(prec=digits, rounding=rounding).create_decimal(repr(float(bound)))
    return f"{float(decimal):.{digits}g}"


@dataclass(frozen=True)
class Best:
    """The pair (τ, γ) of least CV error on a surface.

    Attributes
    ----------
    gamma_index, tau_index : int
        Position of the pair on the surface.
    gamma, tau : float, int
        The pair.
    cv_error, std_error : float
        h(γ, τ) of the pair, and its standard error over folds.
    upper : float
        Upper bound on the exact h(γ, τ) of the pair; h itself where it is proved.
    lower_bound : float
        Lower bound on the least CV error over the whole surface.
    one_se : int
        The smallest τ of the whole surface whose error, at the γ that is best for that τ, is within
        one standard error of the least.
    one_se_gamma_index : int
        Position of that γ.
    """

    gamma_index: int
    tau_index: int
    gamma: float
    tau: int
    cv_error: float
    std_error: float
    upper: float
    lower_bound: float
    one_se: int
    one_se_gamma_index: int


@dataclass(frozen=True)
class Step:
    """One iteration of the alternating minimisation: the τ step at ``gamma``, then the γ step.

    Attributes
    ----------
    gamma, tau : float, int
        The γ at which the iteration begins, and the best τ at this γ.
    cv_error : float
        h(γ, τ) of the two.
    next_gamma, next_tau : float, int
        The pair that the γ step proposes.
    predicted : float
        h at the proposed pair if every fold kept its support.
    """

    gamma: float
    tau: int
    cv_error: float
    next_gamma: float
    next_tau: int
    predicted: float


class ErrorsOverGamma(NamedTuple):
    """h(γ, τ) at some γ of a range; ∞ where a limit left supports unknown.

    gammas, taus, shape (g,) and (τ,): The pairs.
    cv_error, shape (g, τ): Their CV errors.
    """

    gammas: Array
    taus: NDArray[np.intp]
    cv_error: Array


@dataclass(frozen=True)
class GlobalMinimum:
    """The least CV error over every τ and every γ of a range.

    Attributes
    ----------
    tau, gamma : int, float
        The best pair known.
    upper, lower : float
        Its CV error, rounded up, and a lower bound on h(γ, τ) for every τ searched and every γ of
        the range. Where several supports of a fold are optimal at a γ, the lower bound holds for
        each, except that of supports which tie at every γ the lexicographically first counts: the
        error by another way of breaking such ties may lie below the lower bound.
    span : GammaSpan
        The range of γ: ``low`` and ``high``.
    tolerance : float
        The relative gap (upper − lower)/upper that was asked for.
    status : Status
        Optimal where the gap is at most the tolerance, else the limit that was reached.
    left : ndarray, shape (cells, 3)
        The pairs that cannot be excluded: τ and a low and a high γ. Everywhere else h is proved to
        exceed ``upper``.
    shown : ErrorsOverGamma
        h(γ, τ) at some γ of the range, for pictures.
    n_trees, n_cells : int
        Trees searched for supports, and cells bounded.
    seconds : float
    """

    tau: int
    gamma: float
    upper: float
    lower: float
    span: GammaSpan
    tolerance: float
    status: Status
    left: Array = field(repr=False)
    shown: ErrorsOverGamma = field(repr=False)
    n_trees: int
    n_cells: int
    seconds: float

    def with_size_0(self, lower: float, upper: float) -> GlobalMinimum:
        """The minimum over the sizes searched and the size 0, whose error no γ changes.

        lower, upper: Bounds of the CV error of the size 0; ``self`` is over sizes above 0.
        """
        if lower > self.upper:
            return self
        ends = [[0.0, self.span.low, self.span.high]]
        found = replace(self, left=np.vstack([ends, self.left]), lower=min(self.lower, lower))
        if upper <= self.upper:
            found = replace(found, tau=0, upper=upper)
        closed = found.gap <= self.tolerance
        return replace(
            found, status=Status.OPTIMAL if closed else Status.worst([self.status, Status.UNPROVED])
        )

    @property
    def gap(self) -> float:
        """(upper − lower)/upper; 0 where both are 0."""
        return (self.upper - self.lower) / self.upper if self.upper > 0.0 else 0.0


@dataclass
class CVResult:
    """Cross-validation over a grid of γ and τ.

    Attributes
    ----------
    folds : Folds
        The rows that are held out in turn.
    gammas, taus : ndarray, shape (γ,) and (τ,)
        The ridge weights and the sizes of the grid.
    tables : dict
        For every attribute of :class:`GammaResult` its values along γ; :meth:`table` gives one as
        an array, and ``by_gamma`` all of them at each γ.
    seconds : float
        Wall time of the whole evaluation.
    rounding : float
        CV errors that differ by no more than this number count as equal, too: rounding may leave
        as much of the error of a perfect fit.
    complete : bool
        Whether every h(γ, τ) is exact.
    status : Status
        Optimal where every fold and every model is proved, else the limit that was met.
    by_gamma : list of GammaResult
        The results at every γ.
    tolerance : float or None
        Where only the least CV error at every γ was searched for, the relative tolerance of that
        error; h(γ, τ) then is an interval where τ was ruled out early.
    trace, ended : list of Step, str
        Where τ and γ were minimised in turn, the iterations and how they ended: "converged",
        "cycle", "iterations" or "time limit".
    edge : str
        Where the best γ is at the end of the default grid and the grid could not be extended, a
        text that says why.
    minimum : GlobalMinimum or None
        Where a range of γ was searched, what is proved of the least error in it.
    """

    folds: Folds
    gammas: Array
    taus: NDArray[np.intp]
    tables: dict[str, Any]
    seconds: float
    tolerance: float | None = None
    rounding: float = 0.0
    trace: list[Step] = field(default_factory=list)
    ended: str = ""
    edge: str = ""
    minimum: GlobalMinimum | None = None

    @property
    def complete(self) -> bool:
        """Whether every h(γ, τ) is exact."""
        return bool(self.table("exact").all())

    @property
    def status(self) -> Status:
        """Optimal where every fold and every model is proved, else the limit that was met."""
        return Status.worst(map(Status, self.tables["status"]))

    @property
    def by_gamma(self) -> list[GammaResult]:
        """The results at every γ."""
        return [GammaResult(self.tables, g) for g in range(self.gammas.size)]

    def at(self, positions: NDArray[np.intp]) -> CVResult:
        """The result at the γ of some positions; trace, edge and minimum stay as they are."""
        tables = {name: [along[g] for g in positions] for name, along in self.tables.items()}
        return replace(self, gammas=self.gammas[positions], tables=tables)

    def table(self, name: str) -> Array:
        """An attribute of :class:`GammaResult` at every γ, as an array: (γ, τ) or (γ,)."""
        return np.asarray(self.tables[name])

    def best(self) -> Best:
        """The pair of least CV error; of equal errors the smaller τ, then the larger γ.

        An error that is not proved counts by its estimate. After a search that ended at its
        tolerance, the pair of least upper bound is taken.

        Returns
        -------
        Best
        """
        searched = self.tolerance is not None and self.status is Status.OPTIMAL
        estimates, std_error, upper = (self.table(n) for n in ("cv_error", "std_error", "upper"))
        g, t = least(upper if searched else estimates, self.taus, self.gammas, self.rounding)
        within = estimates.min(axis=0) <= estimates[g, t] + std_error[g, t] + self.rounding
        one_se = int(np.flatnonzero(within)[0])
        of_size = estimates[:, [one_se]], self.taus[[one_se]], self.gammas
        at_one_se, _ = least(*of_size, self.rounding)
        lower, high = float(self.table("lower").min()), float(upper[g, t])
        if self.minimum is not None:  # Between the γ of the surface errors may be lower, too.
            lower = min(lower, self.minimum.lower)
        return Best(
            gamma_index=g,
            tau_index=t,
            gamma=float(self.gammas[g]),
            tau=int(self.taus[t]),
            cv_error=float(estimates[g, t]),
            std_error=float(std_error[g, t]),
            upper=high,
            lower_bound=lower,
            one_se=int(self.taus[one_se]),
            one_se_gamma_index=at_one_se,
        )


def bias_corrected(error: Array, trained: Array | float, without: Array) -> Array:
    """Bias-corrected CV errors (Burman 1989; Section 5 of "Consistent Cross Validation").

    The correction removes the part of the CV error that comes from training on fewer rows.

    error, shape (...): CV errors.
    trained, shape (...): Mean losses on all rows of the models of all rows.
    without, shape (..., k): Mean losses on all rows of the models without each fold.
    Returns: error + trained − the mean of ``without`` over folds.
    """
    return np.asarray(error + trained - without.mean(axis=-1))
