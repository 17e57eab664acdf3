"""How many rows may be removed before other columns are the best: a proof, and an example.

The objective without rows R is that of
all rows less |e_R(β)|², the squared residuals of these rows. A fit on columns that contain a
support bounds it from below, as it knows how far the residuals of the rows can move from its own.
Where that does not suffice, a tree removes rows one by one.

What is proved is that no removal of up to r rows changes the best support S. Let q(β) be the
objective of all rows, with the intercept as one more column that has no penalty. Let F be columns
that contain a support T, f the least value of q on F, e the residuals of that fit, and H its hat
matrix, whose diagonal entries are the leverages h_i. The entry of rows i and j about their means is
√(w_i w_j)/W plus that of the columns, and the ridge term adds rows that are never removed.

**Lemma.** For rows R let s_i, i ∈ R, be numbers such that diag(s) − H_RR has no negative
eigenvalue, and let s_i < c ≤ 1. If T ⊆ F, every β that is 0 outside of T has q(β) − |e_R(β)|² ≥ f +
(1 − c)(q(β) − f) − Σ_R e_i² c/(c − s_i).

*Proof.* On F, q(β) = f + X with X = |A(β − β_F)|², where A has the columns of F and the rows of the
ridge term. The residuals of R at β are e_R − A_R(β − β_F). With A = QU, Q of orthonormal columns,
A_R(β − β_F) = Q_R v with |v|² = X and Q_R Q_Rᵀ = H_RR. For numbers t_i > 0, (e_i − (Q_R v)_i)² ≤ (1
+ 1/t_i)e_i² + (1 + t_i)(Q_R v)_i². With t_i = c/s_i − 1 the last factor is c/s_i and the first is
c/(c − s_i). As diag(s) − Q_R Q_Rᵀ has no negative eigenvalue, no eigenvalue of diag(s)^(−½) Q_R
Q_Rᵀ diag(s)^(−½) exceeds 1, nor does one of Q_Rᵀ diag(s)⁻¹ Q_R, so that Σ (Q_R v)_i² c/s_i ≤ cX.
(Where s_i = 0, row i of Q_R is 0, and t_i may be as large as one likes.) So |e_R(β)|² ≤ cX + Σ_R
e_i² c/(c − s_i). ∎

The objective of S without R is at most f_S − |e_S,R|², that of the coefficients of all rows. So S
stays the best if for every other support T the bound of T exceeds this, for every R of up to r
rows:

- for each of the 200 best supports T with F = T and c = 1: f_T − f_S must exceed the sum of the r
  largest positive values of e_T,i²/(1 − s_i) − e_S,i²;
- for all others with F all columns, and x the least objective that they may have, less f: f + (1 −
  c)x − f_S must exceed the sum of the r largest positive values of e_F,i² c/(c − s_i) − e_S,i². Any
  c will do. Taken is η + E√(η/x), η the largest s_i and E² the sum of the r largest e_F,i², or 1
  where that is less: where all s_i are equal it is the best one.

The numbers s_i must serve every R of up to r rows. One choice is the sum of the r largest leverages
for all of them, as no eigenvalue of H_RR exceeds its trace. A better one, after Gershgorin, is s_i
= h_i plus the r − 1 largest of the numbers |h_ij| d_j/d_i, j ≠ i, for any d > 0. For Σ_i s_i x_i² −
xᵀH_RR x is at least the sum over the pairs i < j of R of |h_ij|(x_i² d_j/d_i + x_j² d_i/d_j − 2|x_i
x_j|), and these are squares. With d_i = √h_i no term exceeds h_j, because |h_ij| ≤ √(h_i h_j), so
that no s_i exceeds the sum of the r largest leverages. (Leverages below 1/n count as 1/n in d.) The
s_i of a row that no other row resembles is near h_i, and the rows of large leverage no longer weigh
on all others.

Where the bound does not suffice for a support, a tree over the rows goes on. The row i of the
largest e_T,i²/(1 − h_i) − e_S,i² is either not removed, or it is, and then r − 1 further rows are
removed from the problems without it. Those fits follow exactly: f becomes f − e_i²/(1 − h_i), e
becomes e + h_·i e_i/(1 − h_i), H becomes H + h_·i h_i·/(1 − h_i); for all other supports the lemma
says what they have without row i. A tree has at most 100 nodes. With r = 0 the two objectives are
compared.

What holds for r rows holds for fewer. A sum of single rows' e²/(1 − h) is no bound: of two copies
of a row with e = 1 and h = 0.3 each takes 1.43 off the objective, and both together take off 5.
Columns are scaled by the rows that are left (``row_influence``). For up to r rows the squared scale
of column j is at least min(1 − s, a(1 − as)) times that of all rows, with a = W/(W − w), w the sum
of the r largest weights and s that of the column's r largest s_ij, as a(1 − as) is concave in a. It
is at most a times that of all rows. The supports T are bounded at the smaller ridge weights, and S
at the larger.

Rounding: supports whose columns may be nearly dependent (a singular value below 10⁻⁶ at columns of
length 1) are not bounded. The residuals e and the rows of Q of others are off by at most m = 10⁻⁹,
of ℓ_y and of 1. Removing row i makes that at most 4m/(1 − h_i)²: with a = e_i/(1 − h_i), a is off
by at most mℓ_y/(1 − h_i) + m|e_i|/(1 − h_i)², and both terms of e + h_·i a by what a and h_·i are.
Every s_i is raised by m r√n, as d_j/d_i ≤ √n. The inequality must hold by four times m(ℓ_y(√f +
√f_S) + mℓ_y² + f + f_S), f and f_S those of all rows, times the largest c/(c − s_i). The bound of
the other supports is one of leaps and bounds.

The module adds what ``row_removals`` returns. Without it the question is answered for single rows
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..design.deleted_rows import DeletedRows
from ..design.design import Array
from ..design.fold_data import RowFolds
from ..design.folds import Index, make_folds
from ..schedule import NODES_OF_REMOVED_ROWS
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.core.rounding import CERTAIN_SHARE, MOVED_SHARE
from ..solvers.core.threads import on_one_thread
from ..solvers.leaps.all_sizes import n_best_subsets
from ..solvers.leaps.deleted_rows import LEAST_ONE_MINUS_LEVERAGE
from .row_influence import Influence, Lighter, lead_of, row_influence, scale_ratios

# So many of the best supports of a size are bounded one by one, the others together. It is a
# choice.
LISTED = 200
# Rows are removed in favour of so many of the best supports. It is a choice.
RIVALS = 20
# Products of all pairs of at most so many rows are taken, which need 32 MB. It is a choice.
MAX_ROWS_OF_PAIRS = 2000


class Removals(NamedTuple):
    """What is known of the removal of rows.

    safe: The support stays the best whichever rows are removed, up to so many of them.
    rows: Positions of rows without which another support is better, or ties and is taken before it;
        as few as were found, and empty where none were.
    support: The best support known without these rows, in columns of the problem; the fitted one
        where there are no such rows.
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
    unit: int | None = None,
) -> Removals:
    """How many rows may be removed, of at most ``most``, before another support is better.

    problem: All rows, at the γ and τ of the fit.
    data: The rows of the problem.
    support: The fitted support, of at least one column.
    influence: What is best without each row by itself, in the order of the rows.
    most: At least 1. More rows than leave two are never removed together.
    limits: Once one is reached, no further number of rows is proved or tried.
    unit: Where it is given, supports count that lack this unit of columns, which the fitted support
        has: rows are removed until the best support lacks it.
    """
    rules, rivals = problem.constraints, problem

    def lost(found: Influence) -> NDArray[np.bool_]:
        """For each part of rows, whether another support, or one without the unit, is best then.

        With a unit the best support has to be proved: where it is not, a support that has the unit
        may be better than the best known one, which lacks it.
        """
        if unit is None:
            return found.changed
        lacking = [unit not in rules.units(one) for one in found.supports]
        return np.array(lacking, dtype=np.bool_) & found.proved

    if unit is not None:
        barred = replace(rules, exclude=rules.exclude | (np.arange(rules.n_units) == unit))
        if rules.include[unit] or barred.max_size + rules.cost[unit] <= problem.tau:
            # Supports that lack it are no better than what they become with it.
            return Removals(most, np.empty(0, dtype=np.intp), support)
        how: dict[str, Any] = {"gamma": problem.given_gamma, "constraints": barred}
        tau = min(problem.tau, barred.max_size)
        rivals = SparseRidgeProblem.from_rows(problem.data, tau=tau, **how)
    if (first := lost(influence)).any():
        row = int(np.nanargmin(np.where(first, influence.lead, np.inf)))
        return Removals(0, np.array([row]), influence.supports[row])
    safe, rows, best = int(influence.proved.all()), list[int](), support
    deleted = RowFolds(data.rows, make_folds("loo", len(data.rows.given))).deleted_rows
    # Where no tree has room, the next best supports are not known, of which every proof speaks.
    if deleted is not None and problem.holds_tree():
        removal = Removal(problem, data, deleted, support, rivals)
        most = min(most, data.n - 2)  # At least two rows are left.
        rows, best = removal.example(most, limits)
        if rows and unit is not None:
            # A third support, which has the unit, may be better than the rival.
            without = row_influence(problem, data, support, [np.array(rows)], limits)
            if not lost(without)[0]:
                rows, best = [], support
        tried, far = rows, len(rows) or most + 1
        while 0 < safe < far - 1 and limits.reached(0) is None:
            found = removal.open_rows(safe + 1, limits)
            if found is not None:
                tried = found or rows
                break
            safe += 1
        if tried:
            without = row_influence(problem, data, support, [np.array(tried)], limits)
            if lost(without)[0]:
                rows, best = sorted(tried), without.supports[0]
    return Removals(safe, np.array(rows, dtype=np.intp), best)


def largest_sum(values: Array, r: int) -> float:
    """The sum of the r largest values, of which those below 0 count as 0; NaN if a value is NaN."""
    return float(np.maximum(np.sort(values)[max(values.size - r, 0) :], 0.0).sum())


class Fit(NamedTuple):
    """A fit on columns that contain some supports, and the rows that may be removed from it.

    objective: Its objective.
    least: A lower bound on the objectives of the supports.
    residual, shape (m,): The residuals of the rows.
    basis, shape (m, k): Their block of the hat matrix is the product of this and its transpose.
    length, root: The length of y, and the root of the objective with all rows.
    nothing_left: An objective of at most this number may be 0 but for rounding.
    moved: Rounding moves residuals by at most this share of the length of y.
    """

    objective: float
    least: float
    residual: Array
    basis: Array
    length: float
    root: float
    nothing_left: float
    moved: float = MOVED_SHARE

    @property
    def leverage(self) -> Array:
        """The leverage of every row."""
        return np.asarray(np.einsum("ij,ij->i", self.basis, self.basis))

    def keeping(self, i: int) -> Fit:
        """The same fit, from which row i is not removed."""
        residual, basis = np.delete(self.residual, i), np.delete(self.basis, i, axis=0)
        return self._replace(residual=residual, basis=basis)

    def without(self, i: int) -> Fit:
        """The fit without row i; of NaN where the row's leverage leaves no digits."""
        u, e = self.basis[i], float(self.residual[i])
        h = float(u @ u)
        left = 1.0 - h if 1.0 - h > LEAST_ONE_MINUS_LEVERAGE else np.nan
        objective, across = self.objective - e * e / left, self.basis @ u
        turn = (1.0 / np.sqrt(left) - 1.0) / h if h > 0.0 else 0.0
        # Leverages that rounding may have moved to 1 bound nothing.
        most = h + self.moved if h + self.moved < 1.0 else np.nan
        value, weight = self.bound(e * e, np.array([most]))
        return self._replace(
            objective=objective,
            least=max(objective, value - float(weight[0]) * e * e),
            residual=self.residual + across * (e / left),
            basis=self.basis + turn * np.outer(across, u),
            moved=4.0 * self.moved / left**2,
        ).keeping(i)

    def spreads(self, r: int) -> Iterator[Array]:
        """Yield numbers s of the rows, of which diag(s_R) − H_RR has no negative eigenvalue.

        H is the hat matrix and R any r rows or fewer. The first numbers cost little, and later ones
        are mostly smaller.
        """
        h = self.leverage
        off, last = self.moved * r * np.sqrt(h.size), h.size - r + 1
        yield np.full(h.size, max(largest_sum(h, r) + off, np.finfo(np.float64).tiny))
        if 0 < r <= h.size <= MAX_ROWS_OF_PAIRS:
            root = np.sqrt(np.maximum(h, 1.0 / h.size))
            pairs = np.abs(self.basis @ self.basis.T) * root / root[:, None]
            np.fill_diagonal(pairs, 0.0)
            yield h + np.partition(pairs, min(last, h.size - 1), axis=1)[:, last:].sum(axis=1) + off

    def bound(self, square: float, spread: Array) -> tuple[float, Array]:
        """What the lemma says of the objectives without any rows R.

        square: The largest |e_R|². spread, shape (m,): As :meth:`spreads` says, above 0.
        Returns: A number, and weights of rows. The objectives are at least that number less the
            weighted squares of the residuals of R.
        """
        top, x, c = float(spread.max(initial=0.0)), self.least - self.objective, 1.0
        if x > 0.0:
            c = min(1.0, top + (np.sqrt(square) + self.moved * self.length) * np.sqrt(top / x))
        return self.objective + (1.0 - c) * x, c / (c - spread)

    def is_above(self, own: Fit, r: int) -> bool:
        """Whether the supports are proved to stay above another fit without any r rows or fewer.

        own: A fit of the same rows. Without rows R its objective is at most what it is now, less
            the squares of its residuals in R, as its coefficients may stay.
        """
        moved = max(self.moved, own.moved)
        off = self.length * (self.root + own.root + moved * self.length)
        # Rounding moves the two objectives and the two sums of squares by at most this each.
        off = moved * (off + self.root**2 + own.root**2) + self.nothing_left
        for spread in self.spreads(r):
            if spread.max(initial=0.0) < 1.0:
                value, weight = self.bound(largest_sum(self.residual**2, r), spread)
                value -= largest_sum(weight * self.residual**2 - own.residual**2, r)
                if value - own.objective > 4.0 * off * weight.max(initial=1.0):
                    return True
        return False

    def open_rows(self, own: Fit, r: int, limits: Limits) -> list[int] | None:
        """Try to prove what :meth:`is_above` proves by a tree: a node removes a row, or keeps it.

        own: As of :meth:`is_above`.
        Returns: None where it is proved; else rows at which the tree has ended, r or fewer, perhaps
            none.
        """
        nodes = [(self, own, np.arange(self.residual.size), list[int]())]
        for _ in range(NODES_OF_REMOVED_ROWS):
            fit, other, rows, removed = nodes.pop()
            if not fit.is_above(other, r - len(removed)):
                if len(removed) == r or rows.size == 0 or limits.reached(0) is not None:
                    return removed
                gain = fit.residual**2 / (1.0 - fit.leverage) - other.residual**2
                i = int(np.argmax(gain))
                rest, more = np.delete(rows, i), [*removed, int(rows[i])]
                nodes.append((fit.keeping(i), other.keeping(i), rest, removed))
                nodes.append((fit.without(i), other.without(i), rest, more))
            if not nodes:
                return None
        return []


class Removal(NamedTuple):
    """The rows of a problem, and a fitted support that may not be the best without some of them.

    problem: All rows, at the γ and τ of the fit, without bounds on coefficients.
    data: The rows, of which no value is missing.
    deleted: The rows as they are deleted one by one.
    support: The fitted support.
    rivals: The same problem, with the constraints on the supports that it is compared with.
    """

    problem: SparseRidgeProblem
    data: RowFolds
    deleted: DeletedRows
    support: Index
    rivals: SparseRidgeProblem

    def ratios(self, r: int) -> tuple[Array, float]:
        """Bounds on the squared scales of columns without r rows or fewer, over those of all rows.

        Returns: A lower bound for every column, shape (p,), and an upper bound for all of them.
        """
        if self.problem.given_gamma == 0.0 or self.data.rows.design is None:
            return np.ones(self.problem.p), 1.0
        # Removed rows have at most this share of all weight. A squared scale is the scatter of the
        # column divided by the weight, and without rows its scatter is no larger, so that the ratio
        # is at most 1/(1 − share).
        share = largest_sum(self.data.rows.row_shares, r)
        scatter = np.array([[largest_sum(column, r) for column in self.data.rows.scatter_shares.T]])
        # The ratio is a concave function of 1/(1 − w), w the share of the rows' weights, so that it
        # is least at one of the ends.
        least = np.minimum(scale_ratios(scatter, 0.0), scale_ratios(scatter, share))[0]
        return least * (1.0 - MOVED_SHARE), (1.0 + MOVED_SHARE) / (1.0 - share)

    def fit(
        self, problem: SparseRidgeProblem, rows: Array, columns: Index, least: float = 0.0
    ) -> Fit:
        """The fit on some columns; of NaN where these may be dependent up to rounding.

        problem: All rows, at the ridge weights of the fit.
        rows: ``deleted.rows`` in the units of the problem: divided as its columns are.
        columns: Columns of the problem.
        least: A lower bound on the objectives of the supports that the columns contain.
        """
        _, targets, factor, _ = self.deleted
        (R, _, surely_independent), s = problem.sure_factor(columns), columns.size
        if not surely_independent:
            R = np.full_like(R, np.nan)
        # A deleted row is its own row times a factor, which stands for the mean that it moves.
        across = sla.solve_triangular(R[:s, :s], rows[:, columns].T, trans=1, check_finite=False).T
        residual = (targets - across @ R[:s, s]) / factor
        basis = np.column_stack([across, np.sqrt(factor**2 - 1.0)]) / factor[:, None]
        objective, root, length = R[s, s] ** 2, abs(R[s, s]), np.sqrt(problem.yy)
        known = objective, max(objective, least), residual, basis, length, root
        return Fit(*known, problem.nothing_left)

    def open_rows(self, r: int, limits: Limits) -> list[int] | None:
        """Try to prove that the support stays the best without any r rows or fewer.

        The next best supports are proved to stay above it one by one, and all further supports
        together, by the objective of the last one that is listed.

        limits: The limits of the search for the next best supports, and of the proofs.
        Returns: None where it is proved; else rows at which a proof has ended, r or fewer, perhaps
            none.
        """
        problem, rows = self.problem, self.deleted.rows
        least, most = self.ratios(r)
        if not (least > 0.0).all():
            return []
        heavy = problem.replace(gamma=most * problem.given_gamma)
        fitted = self.fit(heavy, rows, self.support)
        light = Lighter.of(self.rivals, rows, self.deleted.targets, least[None])
        (ranked,) = n_best_subsets(light.problem, [self.rivals.tau], LISTED, limits=limits)
        if any(one.status is not Status.OPTIMAL for one in ranked):
            return []
        listed = [one.support for one in ranked]
        bounds = [(s, 0.0) for s in listed if not np.array_equal(s, self.support)]
        if len(ranked) == LISTED:
            # The search proves up to CERTAIN_SHARE that every other support is above the last.
            last = ranked[-1].objective * (1.0 - 2.0 * CERTAIN_SHARE)
            rules = self.rivals.constraints
            allowed = np.flatnonzero(~rules.exclude[rules.unit])
            bounds.insert(0, (allowed, last))
        for columns, bound in bounds:
            fit = self.fit(light.problem, light.rows, columns, bound)
            if (found := fit.open_rows(fitted, r, limits)) is not None:
                return found
        return None

    def example(self, most: int, limits: Limits) -> tuple[list[int], Index]:
        """From 2 to ``most`` rows without which another support is better, and that support.

        Single rows are not tried, as ``row_influence`` has tried them. For each of the next best
        supports, rows are left out in the order of how much each alone favours it over the fitted
        support, until a fit to the rows left confirms that it is better. The fewest such rows are
        returned, in increasing order; no rows and the fitted support where none are confirmed.

        limits: Once one of them is reached nothing more is tried.
        """
        problem, rows = self.problem, self.deleted.rows
        found, best = list[int](), self.support
        (ranked,) = n_best_subsets(self.rivals, [self.rivals.tau], RIVALS, limits=limits)
        rivals = [one.support for one in ranked]
        for rival in (one for one in rivals if not np.array_equal(one, self.support)):
            fits = [self.fit(problem, rows, one) for one in (self.support, rival)]
            drops = [fit.residual**2 / (1.0 - fit.leverage) for fit in fits]
            order = np.argsort(drops[0] - drops[1], kind="stable")
            for r in range(2, most + 1):
                if limits.reached(0) is not None:
                    return found, best
                whole = self.data.without(order[:r]).replace(gamma=problem.given_gamma)
                if lead_of(whole, self.support, rival) < 0.0:
                    found, best, most = sorted(order[:r].tolist()), rival, r - 1
                    break
        return found, best
