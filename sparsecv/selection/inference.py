"""p-values and intervals of coefficients that know that their columns were searched for.

The statistic of column j of the selected support S is its least-squares coefficient z = ηᵀy. Given
what y has across η, z is normal, and truncated to the set R of values at which S is selected
(:mod:`sparsecv.solvers.leaps.selection_event`), so that tails within R give exact p-values (Lee,
Sun, Sun and Taylor 2016). The choice of a size by a criterion is part of the event. Where σ is
estimated, the residual sums of squares of the fit that has z = m and of the fit on all columns are
given as well, and z has a truncated t distribution.

**Where σ is estimated.** Let ρ be the residual sum of squares of the fit on all columns and ν its
degrees of freedom, n − 1 less the rank of the columns (n less the rank without an intercept), and
let m now be a linear function of the columns. Test ηᵀm = μ. What the columns explain across η, the
direction of what they leave, and

    Q = (z − μ)²/|η|² + ρ

are a sufficient statistic for all that is not tested, σ among it: for μ = 0 they are what the
response has across η and its sum of squares. Everything is conditioned on these three. The first
two are independent of z and ρ. (z − μ)/(σ|η|) is normal and ρ/σ² is χ² with ν degrees of freedom,
independent of each other, so that given Q the density of z is proportional to

    (Q − (z − μ)²/|η|²)^(ν/2 − 1)  on |z − μ| ≤ |η|√Q,

in which σ does not occur: with density φ(u)·r^(ν/2 − 1)e^(−r/2) of u = (z − μ)/(σ|η|) and r = ρ/σ²,
the exponentials make e^(−Q/2σ²), and r is Q/σ² − u². Without a search that is the t-test of the fit
on all columns. As z moves, Q is kept, so ρ changes with z, and y moves on a curve, e what all
columns leave of y,

    y(z) = c + zd + (√(ρ(z)/ρ) − 1)·e,  ρ(z) = ρ + ((z_obs − μ)² − (z − μ)²)/|η|².

Every objective has ρ(z) as a part, f_T = f_T(c + zd) + ρ(z) − ρ, which is again a polynomial of
degree 2. For a given size all comparisons have the same weight, the common part cancels, and R is
that of the line. For a criterion w(|T|)(f_T + ρ(z) − ρ) are compared, so that R is another set, and
depends on μ. Therefore

- the p-value, twice the smaller tail of this variable at μ = 0 within R(0), is uniform given S, and
  so exact, if ηᵀm = 0;
- for a given size the interval of the means that are not rejected is exact: relative to its value
  at z_obs, the density is (1 + (z_obs − z)(z_obs + z − 2μ)/(ρ|η|²))^(ν/2 − 1). It grows with μ for
  z > z_obs, and falls for z < z_obs, and so the ratio of the tails is monotone in μ;
- for a criterion the means that are not rejected, each within its own R(μ), hold ηᵀm with
  probability ``level``, but they need not be an interval, as R(μ) changes with μ. One tree gives
  R at 0 and at means at growing distances from z_obs. An end is looked for by further trees between
  the outermost mean that is not rejected and its neighbour, and is a mean at which a tail is
  (1 − level)/2 (:mod:`.interval_ends`). It is infinite where the outermost mean that was tried is
  not rejected, and where rounding or a limit leaves it open. Stretches between two means that were
  tried may be missed.

As ν → ∞ with ρ/ν → σ² the density becomes the normal one. Where σ is given, the normal law is used.

The module adds what ``inference`` returns. Without it a model has coefficients and no p-values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri

from ..design.design import Array
from ..design.prepare import Prepared
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status, Work
from ..solvers.core.rounding import OWN_SHARE
from ..solvers.leaps.gathering import Comparison
from ..solvers.leaps.selection_event import selection_events
from .criteria import check_one_tree, least_squares
from .interval_ends import ends_of_own_sets
from .near_best import compared
from .result import Result
from .truncated import Truncated

# Residual degrees of freedom from which on the error's standard deviation is estimated: with 30 of
# them the estimate is off by some 13 %, and tests take that into account. The value is a choice.
LEAST_DEGREES = 30
NOT_THE_BEST = "inference needs columns that are proved to be the best: {}"


class Spread(NamedTuple):
    """The standard deviation σ of the errors, given or estimated.

    value, source: σ in the units of y, and where it comes from, in words.
    degrees: The degrees of freedom of an estimate; ∞ for a σ that is given.
    """

    value: float
    source: str = "given"
    degrees: float = math.inf


@dataclass(frozen=True)
class Tests:
    """The coefficients of a model that are tested, and the search that tells which laws they have.

    columns, shape (k,): Their numbers among the raw columns.
    std_errors, shape (k,): The standard errors that least squares has within the model, in the
        units of X and y; NaN where the other columns of the model determine the column.
    spread: Of the errors.
    event: How the columns were selected, in words.
    problem, support, comparison: What the model is the best of, the columns of the problem that it
        has, and what it was compared by.
    directions, shape (k, r): Unit vectors of the rows of ``problem.triangle``, along which a
        coefficient changes while all others stay; zeros where others determine the column.
    unit: σ in the units of the problem.
    """

    columns: NDArray[np.intp]
    std_errors: Array
    spread: Spread
    event: str
    problem: SparseRidgeProblem
    support: NDArray[np.intp]
    comparison: Comparison
    directions: Array
    unit: float

    @property
    def own(self) -> NDArray[np.intp]:
        """Positions of the coefficients whose columns no other columns of the model determine."""
        return np.flatnonzero(~np.isnan(self.std_errors))

    @property
    def changing(self) -> bool:
        """Whether the set at which the same columns are selected depends on the mean assumed.

        It does where σ is estimated and a criterion weighs sizes unequally.
        """
        counted = self.comparison.weight[np.isfinite(self.comparison.weight)]
        return self.spread.degrees < math.inf and bool((counted != counted[0]).any())

    def laws(
        self, places: NDArray[np.intp], means: Array, limits: Limits | None = None
    ) -> tuple[list[Truncated], Status, Work]:
        """The laws that coefficients have given the search, in standard errors, by one tree.

        places, shape (d,): Positions of the coefficients among those that are tested, which may
            repeat; each is one of ``own``.
        means, shape (d,): The mean that is assumed of each, in standard errors.
        limits: Limits of the tree; where one is reached, the sets are known less closely.
        Returns: For every place a law, whose numbers are in standard errors; how the tree has
            ended; and what it took.
        """
        directions, unit, curves = self.directions[places], self.unit, None
        observed = directions @ self.problem.triangle[:, -1]
        if self.changing:
            squares = self.spread.degrees * unit**2
            curves = np.array([[-1.0, 2.0 * away, squares] for away in unit * means - observed])
        events, status, work = selection_events(
            self.problem, self.support, self.comparison, directions, limits, curves
        )
        laws = [
            Truncated(x / unit, (x + one.inner) / unit, (x + one.outer) / unit, self.spread.degrees)
            for x, one in zip(observed.tolist(), events, strict=True)
        ]
        return laws, status, work


@dataclass(frozen=True)
class Inference:
    """p-values and confidence intervals of the columns of a model.

    Arrays hold NaN for columns that the other columns of the model determine.

    tests: Of the columns that enter models alone.
    laws: Of the coefficients that other columns do not determine, where 0 is expected.
    status: Optimal where the search has ended, else what stopped it.
    work: What the search took.
    """

    tests: Tests
    laws: Sequence[Truncated]
    status: Status
    work: Work

    def _of_all(self, values: Any) -> Array:
        """An array over all coefficients from one over those with laws; NaN for the others."""
        found = np.full((self.tests.columns.size, *np.shape(values)[1:]), np.nan)
        found[self.tests.own] = values
        return found

    @property
    def coef(self) -> Array:
        """The least-squares coefficients within the model."""
        return self.tests.std_errors * self._of_all([law.x for law in self.laws])

    def regions(self) -> list[Array]:
        """For every coefficient the intervals (m, 2) of values that select the same columns.

        The values are in units of the coefficient. Where the search has not ended the intervals
        hold values, too, that may select others. A column that others determine has none.
        """
        found = [np.empty((0, 2))] * self.tests.columns.size
        for i, law in zip(self.tests.own.tolist(), self.laws, strict=True):
            found[i] = self.tests.std_errors[i] * law.outer
        return found

    def p_values(self) -> Array:
        """Two numbers for each column, shape (k, 2), between which its selective p-value lies.

        They are equal up to rounding where the search has ended.
        """
        return self._of_all(np.reshape([law.p_value() for law in self.laws], (-1, 2)))

    def hidden(self, level: float) -> NDArray[np.bool_]:
        """Whether a column surely matters though its p-value is not below 1 − level, shape (k,).

        Its coefficient exceeds Scheffé's bound: with probability ``level`` no coefficient of any
        subset is off by more than √(p·F) standard errors, where F is the quantile of level
        ``level`` of Fisher's distribution of p and ν degrees of freedom, however the subset was
        found. A large p-value then comes from what the test conditions on.
        """
        p, degrees = self.tests.problem.p, self.tests.spread.degrees
        known = math.isinf(degrees)
        square = chdtri(p, 1.0 - level) if known else p * fdtri(p, degrees, level)
        far = np.abs(self._of_all([law.x for law in self.laws])) > math.sqrt(square)
        return np.asarray(far & (self.p_values()[:, 1] >= 1.0 - level))

    def intervals(self, level: float, limits: Limits | None = None) -> tuple[Array, Status]:
        """Ends of confidence intervals, which may be infinite, and how the searches have ended.

        An end is a coefficient at which a tail is (1 − level)/2 within the set that belongs to this
        coefficient (:mod:`.interval_ends`).

        level: The probability with which an interval holds its coefficient, between 0 and 1.
        limits: Of the searches for sets; where a limit is reached, intervals are wider.
        Returns: An array of shape (k, 2), and OPTIMAL or the limit that a search for another set
            has met. The search for ``laws`` has a status of its own, and widens intervals, too.
        """
        own, statuses = self.tests.own, [Status.OPTIMAL]
        if self.tests.changing:
            here = (limits or Limits()).within()

            def laws(places: NDArray[np.intp], means: Array) -> list[Truncated]:
                found, status, _ = self.tests.laws(own[places], means, here)
                statuses.append(status)
                return found

            ends = ends_of_own_sets(laws, np.array([law.x for law in self.laws]), level)
        else:
            ends = np.reshape([law.interval(level) for law in self.laws], (-1, 2))
        return self._of_all(ends) * self.tests.std_errors[:, None], Status.worst(statuses)


def infer(result: Result, sigma: float | None = None, limits: Limits | None = None) -> Inference:
    """Test the coefficients of a model whose columns a search has selected.

    sigma: Standard deviation of the errors, in the units of y; by default it is estimated from the
        fit on all columns.
    limits: Of the search; where a limit is reached, p-values are known within intervals.
    Raises InputError: The fit is one that the theory does not cover, or sigma cannot be estimated.
    """
    return inferred(tests_of(result, sigma), limits)


def inferred(tests: Tests, limits: Limits | None = None) -> Inference:
    """The laws of the coefficients that are tested, from which p-values and intervals follow.

    The law of a coefficient is its distribution given that the search has selected the same
    columns, where 0 is expected.

    Raises InputError: An observed coefficient lies outside the set that its law is limited to, so
        that the columns of the model are not proved to be the best ones.
    """
    laws, status, work = tests.laws(tests.own, np.zeros(tests.own.size), limits)
    for law in laws:
        if not ((law.outer[:, 0] <= law.x) & (law.x <= law.outer[:, 1])).any():
            # The observed coefficient lies outside every interval at which the same columns may be
            # selected. If no limit has ended the tree, rounding is the reason.
            ended = Status.PRECISION if status is Status.OPTIMAL else status
            raise InputError(NOT_THE_BEST.format(ended.remedy))
    return Inference(tests, laws, status, work)


def tests_of(result: Result, sigma: float | None) -> Tests:
    """The coefficients of a model that are tested: those of columns that enter models alone.

    The coefficients of groups are left out. Parameters and errors are those of :func:`infer`; the
    model has to be proved.
    """
    design, model = result.design, result.model
    spread = covered_spread(result.table, result.problem, sigma)
    if not model.proved:
        raise InputError(NOT_THE_BEST.format(result.status.remedy))
    problem, comparison = compared(result, "inference")
    by = result.criterion
    event = f"best of size {model.tau}" if by is None else f"least {by.upper()}"
    support, rules = np.searchsorted(design.kept, model.support), problem.constraints
    if by is None and not rules.weighted:  # Supports of fewer units do not count.
        weight = np.full(rules.units(support).size + 1, np.inf)
        weight[-1], comparison = 1.0, Comparison(weight)
    alone = [j for j in support.tolist() if rules.columns[rules.unit[j]].size == 1]
    left = np.zeros((len(alone), len(problem.triangle)))
    for i, j in enumerate(alone):
        left[i] = left_of(problem, support, j)
    lengths = np.linalg.norm(left, axis=1)
    lengths = np.where(lengths > 0.0, lengths, np.nan)
    directions = np.nan_to_num(left / lengths[:, None])
    errors = spread.value / (lengths * design.scale[alone])
    unit = spread.value / design.y_scale
    return Tests(
        design.kept[alone], errors, spread, event, problem, support, comparison, directions, unit
    )


def covered_spread(table: Prepared, problem: SparseRidgeProblem, sigma: float | None) -> Spread:
    """The spread of the errors of a fit that the theory covers, as far as the table says.

    problem: That of all rows; its γ and τ are not used.
    sigma: What was given; None for an estimate.
    Raises InputError: The theory does not cover such a fit, sigma is not above 0, or too few
        degrees of freedom are left to estimate it.
    """
    if table.holds_out:
        raise InputError(
            "inference does not cover a choice by cross-validation: fit SparseRidge(tau='bic'), or "
            "choose columns on one half of the rows and test them on the other"
        )
    if table.source.weights is not None:
        raise InputError("inference serves no weights of rows (sample_weight): fit without them")
    if table.fills is not None:
        raise InputError(
            "inference serves no missing values that are filled in: leave out rows or columns that "
            "have them"
        )
    # Bounds on coefficients and too many columns are refused.
    check_one_tree(problem, what="inference", instead="go without it")
    if sigma is not None:
        if not (isinstance(sigma, Real) and 0.0 < sigma < math.inf):
            raise InputError(f"sigma must be a number above 0; got {sigma!r}")
        return Spread(float(sigma))
    design = table.design
    squares, rank = least_squares(problem.data, np.arange(problem.p), design.total)
    free = round(design.total) - rank - int(design.protocol.intercept)
    if free < LEAST_DEGREES:
        raise InputError(
            f"sigma cannot be estimated: the fit on all columns leaves {max(free, 0)} degrees of "
            f"freedom, and {LEAST_DEGREES} are needed; give the errors' standard deviation, in "
            "Python as inference(sigma=...), or fewer columns"
        )
    if not squares > 0.0:
        raise InputError("sigma cannot be estimated: the fit on all columns leaves no errors")
    words = f"residuals of the fit on all columns, {free} degrees of freedom"
    return Spread(math.sqrt(squares / free) * design.y_scale, words, free)


def left_of(problem: SparseRidgeProblem, support: NDArray[np.intp], j: int) -> Array:
    """What the other columns of a support leave of column j; zeros where they determine it.

    Columns are those of the problem's triangle, whose products are those of the scaled columns.
    """
    table, others = problem.triangle[:, : problem.p], support[support != j]
    columns = table[:, others] / np.linalg.norm(table[:, others], axis=0)
    left = np.array(table[:, j])
    for _ in range(2):  # The second step restores the digits that the first step has lost.
        left -= columns @ np.linalg.lstsq(columns, left, rcond=problem.data.dependent_share)[0]
    determined = np.linalg.norm(left) <= OWN_SHARE * np.linalg.norm(table[:, j])
    return np.zeros_like(left) if determined else left
