"""How many rows may be removed before other columns are the best: a proof, and an example.

docs/theory.md proves the bounds ("Rows removed together"). The objective without rows R is that of
all rows less |e_R(β)|², the squared residuals of these rows. A fit on columns that contain a
support bounds it from below, as it knows how far the residuals of the rows can move from its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..design.design import Array
from ..design.fold_data import RowFolds
from ..design.folds import Index, make_folds
from ..solvers.api import best_support
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status, nothing_left
from ..solvers.core.threads import on_one_thread
from ..solvers.leaps.all_sizes import CERTAIN_SHARE, n_best_subsets
from ..solvers.leaps.deleted_rows import deleted_fits
from .row_influence import Influence, Lighter, is_better, scale_ratios

# So many of the best supports of a size are bounded one by one, the others together. It is a
# choice.
LISTED = 200
# Rows are removed in favour of so many of the best supports. It is a choice.
RIVALS = 20
# Rounding moves the predictions of a fit by at most this share of the length of y: some ten times
# what LEAST_SINGULAR_VALUE_OF_QUICK_FITS says, below which columns are not fitted here.
MOVED = 1e-9


class Removals(NamedTuple):
    """What is known of the removal of rows.

    safe: The support stays the best whichever rows are removed, up to so many of them.
    rows: Rows without which another support is better, as few as were found; empty where none were.
    support: The best support known without these rows, in columns of the problem.
    """

    safe: int
    rows: Index
    support: Index


@on_one_thread
def row_removals(
    problem: SparseRidgeProblem,
    data: RowFolds,
    support: Index,
    influence: Influence,
    most: int,
    limits: Limits,
) -> Removals:
    """How many rows may be removed, of at most ``most``, before another support is better.

    problem: All rows, at the γ and τ of the fit.
    data: The rows of the problem.
    support: The fitted support.
    influence: What is best without each row.
    """
    safe, rows, best = int(influence.proved.all()), np.empty(0, dtype=np.intp), support
    if influence.changed.any():
        row = int(np.nanargmin(influence.lead))
        return Removals(0, np.array([row]), influence.supports[row])
    if data.with_folds(make_folds("loo", len(data.given))).deletes_rows:
        removal = Removal(problem, data, support)
        most = min(most, data.n - 2)  # At least two rows are left.
        rows, best = removal.example(most, limits)
        far = rows.size or most + 1
        while 0 < safe < far - 1 and limits.reached(0) is None and removal.stays(safe + 1, limits):
            safe += 1
    if rows.size:
        left = data.without(rows).replace(gamma=problem.given_gamma, tau=problem.tau)
        best = best_support(left, warm_start=best, time_limit=limits.remaining()).support
    return Removals(safe, rows, best)


def largest_sum(values: Array, r: int) -> float:
    """The sum of the r largest values, of which those below 0 count as 0; NaN beside a NaN."""
    return float(np.maximum(np.sort(values)[max(values.size - r, 0) :], 0.0).sum())


class Fit(NamedTuple):
    """A fit of all rows: its objective, and the residual and the leverage of every row, (n,)."""

    objective: float
    residual: Array
    leverage: Array


class Removal:
    """The rows of a problem, and a support that may change where some of them are removed.

    problem: All rows, at the γ and τ of the fit, without bounds on coefficients.
    data: The rows, of which no value is missing.
    support: The fitted support.
    """

    def __init__(self, problem: SparseRidgeProblem, data: RowFolds, support: Index) -> None:
        self.problem, self.data, self.support = problem, data, support
        deleted = data.with_folds(make_folds("loo", len(data.given))).deleted_rows
        assert deleted is not None
        self.deleted = deleted

    def ratios(self, r: int) -> tuple[Array, float]:
        """Bounds on the squared scales of columns without r rows or fewer, over those of all rows.

        Returns: A lower bound for every column, shape (p,), and an upper bound for all of them.
        """
        if self.problem.given_gamma == 0.0 or self.data.design is None:
            return np.ones(self.problem.p), 1.0
        share = largest_sum(self.data.row_shares, r)
        scatter = np.array([[largest_sum(column, r) for column in self.data.scatter_shares.T]])
        # The ratio is a concave function of 1/(1 − w), w the share of the rows' weights, so that it
        # is least at one of the ends.
        least = np.minimum(scale_ratios(scatter, 0.0), scale_ratios(scatter, share))[0]
        return least * (1.0 - MOVED), (1.0 + MOVED) / (1.0 - share)

    def fit(self, problem: SparseRidgeProblem, rows: Array, columns: Index) -> Fit:
        """The fit on some columns; of NaN where these may be dependent up to rounding.

        rows: ``deleted.rows`` in the units of the problem.
        """
        _, targets, factor, _ = self.deleted
        fits = deleted_fits(problem, columns, rows, targets)
        left = np.where(fits.one_minus_leverage > 0.0, fits.one_minus_leverage, np.nan)
        objective = fits.objective[0] + fits.residual[0] ** 2 * left[0]
        return Fit(float(objective), fits.residual * left / factor, 1.0 - left / factor**2)

    def stays(self, r: int, limits: Limits) -> bool:
        """Whether it is proved that the support stays the best without any r rows or fewer."""
        problem, rows = self.problem, self.deleted.rows
        least, most = self.ratios(r)
        if not (least > 0.0).all():
            return False
        heavy = problem.replace(gamma=most * problem.given_gamma)
        fitted = self.fit(heavy, rows, self.support)
        light = Lighter.of(problem, rows, self.deleted.targets, least[None])
        (ranked,) = n_best_subsets(light.problem, [problem.tau], LISTED, limits=limits)
        if any(one.status is not Status.OPTIMAL for one in ranked):
            return False
        listed = [one.support for one in ranked]
        bounds = [(s, 0.0) for s in listed if not np.array_equal(s, self.support)]
        if len(ranked) == LISTED:
            # The search proves up to CERTAIN_SHARE that every other support is above the last.
            last = ranked[-1].objective * (1.0 - 2.0 * CERTAIN_SHARE)
            bounds.insert(0, (np.arange(problem.p), last))
        return all(
            self.is_above(self.fit(light.problem, light.rows, columns), fitted, bound, r)
            for columns, bound in bounds
        )

    def is_above(self, fit: Fit, fitted: Fit, bound: float, r: int) -> bool:
        """Whether some supports stay above the fitted one without any r rows or fewer.

        fit: On columns that contain all of these supports.
        fitted: That of the fitted support.
        bound: A lower bound on the objectives of these supports with all rows.
        """
        length, own = np.sqrt(self.problem.yy), fitted.residual**2
        top = largest_sum(fit.leverage, r) * (1.0 + MOVED) + MOVED
        error = np.sqrt(largest_sum(fit.residual**2, r)) + MOVED * length
        if not top < 1.0:
            return False
        root = np.sqrt(max(bound - fit.objective, 0.0))
        gained, across = (1.0 - top) * root**2, np.sqrt(top) * root
        weight, extra = 1.0 + across / error, across * error
        if root < error * np.sqrt(top) / (1.0 - top):  # The bound is less at a larger root.
            gained, weight, extra = 0.0, 1.0 / (1.0 - top), 0.0
        lost = largest_sum(weight * fit.residual**2 - own, r) + extra
        rounding = MOVED * length * (error + np.sqrt(largest_sum(own, r)) + MOVED * length)
        rounding += MOVED * (fit.objective + fitted.objective) + nothing_left(self.problem.yy)
        return bool(fit.objective + gained - fitted.objective - lost > 4.0 * rounding / (1.0 - top))

    def example(self, most: int, limits: Limits) -> tuple[Index, Index]:
        """Rows, at most so many, without which another support is better; and that support.

        For each of the next best supports the rows are tried whose removal, one by one, favours the
        support most. The fewest rows are returned of which a fit to the other rows confirms it;
        none where none are found.
        """
        problem, rows = self.problem, self.deleted.rows
        found, best = np.empty(0, dtype=np.intp), self.support
        (ranked,) = n_best_subsets(problem, [problem.tau], RIVALS, limits=limits)
        for rival in [one.support for one in ranked]:
            fits = [self.fit(problem, rows, one) for one in (self.support, rival)]
            drops = [fit.residual**2 / (1.0 - fit.leverage) for fit in fits]
            order = np.argsort(drops[0] - drops[1], kind="stable")
            for r in range(2, most + 1):
                whole = self.data.without(order[:r]).replace(gamma=problem.given_gamma)
                if limits.reached(0) is None and is_better(whole, rival, self.support):
                    found, best, most = order[:r], rival, r - 1
                    break
        return np.sort(found), best
