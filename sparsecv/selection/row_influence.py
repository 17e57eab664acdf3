"""Which rows a choice hangs on: the best support of its size without each row, or group of rows.

One tree lists the best supports of all problems that each lack one row, and bounds every other
support. A fit to the remaining rows scales the columns by these rows, which changes the ridge term
a little: the tree works with a ridge weight that is at most that of any such fit, so that its
bounds hold for all of them, and the supports on its lists are compared at the weights of the fit.

Without row i the problem has the columns centred and scaled by the other rows. Scaling changes the
ridge term: column j's squared scale is d_ij times that of all rows, d_ij = a(1 − a s_ij), where a =
W/(W − w_i), w_i is the row's weight, W the sum of the weights, and s_ij the row's share of the
column's scatter. An objective grows with the ridge weight of each column. So the tree of deleted
rows works with min_i d_ij over the rows that share it, and its bounds hold for each of them. Of the
supports on its lists those that may be best are fitted with the row's own d_ij. Where another
support may be better than the tree's lists and its bound say, the row is solved alone. By a
criterion the tree lists the best supports of every size, and its bound of a size counts times w(k),
the weight that the criterion gives a size of k on the rows that are left.

The module adds what ``row_influence`` returns. Without it nobody knows whether one row decides
which columns are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..cv.estimate import row_blocks
from ..cv.plan import RunPlan
from ..cv.settings import Settings
from ..design.design import Array
from ..design.fold_data import RowFolds
from ..design.folds import Index, make_folds
from ..errors import InputError
from ..solvers.api import best_support
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.core.rounding import BOUND_SHARE, SUM_SHARE
from ..solvers.core.rows import Rows
from ..solvers.core.threads import on_one_thread
from ..solvers.core.ties import ranking
from ..solvers.leaps.deleted_rows import LEAST_ONE_MINUS_LEVERAGE, deleted_fits
from ..solvers.leaps.gamma_range import NearBest
from ..solvers.leaps.gathering import Comparison
from ..solvers.leaps.table import TreeTable
from .criteria import criterion_weights
from .result import Result

# A row is solved alone where, without it, the squared scale of a column is less than this share of
# that of all rows. A column has at most two such rows, and others would pay for them with a smaller
# ridge weight in the bounds of the tree. It is a choice.
LEAST_SCALE_RATIO = 0.5
# The rows that change the scales most, one in so many, share a tree of their own for that reason.
# It is a choice.
ROWS_PER_ROW_OF_LARGE_CHANGE = 10


# How supports of all sizes are compared on rows of so much weight, of so many columns that vary.
Weights = Callable[[float, int], Comparison]


@dataclass(frozen=True)
class Influence:
    """What is best without each row, or without each group of rows.

    supports: For every row or group the best support known without it, in columns of the problem:
        the fitted support wherever no other is better, or as good and before it by the rule of
        :mod:`~sparsecv.solvers.core.ties`, which is lexicographic order for supports of one size.
    lead, shape (m,): By what share the objective of the best other support lies above that of the
        fitted support, at least; below 0 where the other is better, and 0 where the other ties and
        is taken. By a criterion values take the place of objectives. NaN where the fitted support
        is the best, and the search has not looked for the second.
    proved, shape (m,): Whether no other support is better than that of ``supports``.
    changed, shape (m,): Whether that is another support than the fitted one.
    """

    supports: list[Index]
    lead: Array
    proved: NDArray[np.bool_]
    changed: NDArray[np.bool_]


class Lighter(NamedTuple):
    """The problem of all rows with a ridge weight that no fit without one of some rows goes below.

    problem: The problem, its columns divided by some lengths.
    rows, targets, shape (m, p) and (m,): What deleting each row takes from it.
    raised, shape (m, p): What the ridge term has above γ/2 without each row; never below 0.
    """

    problem: SparseRidgeProblem
    rows: Array
    targets: Array
    raised: Array

    @classmethod
    def of(cls, problem: SparseRidgeProblem, rows: Array, targets: Array, ratios: Array) -> Lighter:
        """The problem for some rows.

        rows, targets: What deleting each row takes from the problem of all rows, ``problem``.
        ratios, shape (m, p): Squared scales of the columns without each row, over those of all;
            above 0.
        """
        # The share taken off is far above the rounding of a ratio.
        least = np.where((ratios == 1.0).all(axis=0), 1.0, ratios.min(axis=0) * (1.0 - SUM_SHARE))
        lengths = np.append(np.sqrt(least), 1.0)
        whole = Rows(problem.data.rows / lengths, shared=True)
        whole.n, whole.lost = problem.n, problem.data.lost
        how: dict[str, Any] = {"gamma": problem.given_gamma, "constraints": problem.constraints}
        lighter = SparseRidgeProblem.from_rows(whole, tau=problem.tau, **how)
        raised = 0.5 * problem.given_gamma * np.maximum(ratios / least - 1.0, 0.0)
        return cls(lighter, rows / lengths[:-1], targets, raised)

    def objectives(self, support: Index, some: Index) -> Array:
        """Objectives of a support without each of some rows; NaN where digits are lost.

        some: Positions of the rows among ``rows``.
        """
        Z, t, raised = self.rows[some], self.targets[some], self.raised[some][:, support]
        Z, fits = Z[:, support], deleted_fits(self.problem, support, Z, t)
        value, s = fits.objective.copy(), support.size
        if raised.any() and (fits.one_minus_leverage > 0.0).any():
            R = self.problem.factor(support, self.problem.given_gamma)
            T = R[:s, :s]
            spread = sla.cho_solve((T, False), Z.T)
            # Without a row the lighter problem has these coefficients b, and the matrix M of its
            # normal equations. With D = diag(raised) added to the ridge term the least objective is
            # larger by b'Db − b'D(M + D)⁻¹Db.
            coef = (sla.solve_triangular(T, R[:s, s])[:, None] - spread * fits.residual).T
            pull = raised * coef
            A = T.T @ T - Z[:, :, None] * Z[:, None, :] + raised[:, :, None] * np.eye(s)
            moved = np.linalg.solve(A, pull[:, :, None])[:, :, 0]
            value += np.einsum("ij,ij->i", pull, coef - moved)
        kept = fits.one_minus_leverage >= LEAST_ONE_MINUS_LEVERAGE
        return np.where(kept & (fits.rounding <= BOUND_SHARE * value), value, np.nan)


def chosen_support(result: Result) -> tuple[SparseRidgeProblem, RowFolds, Index]:
    """The problem of all rows that a fit has solved, its rows, and its support, of its columns.

    Its τ is the size of the support where a criterion has chosen that.

    Raises InputError: The columns are not the best for the response, or the rows are not in memory.
    """
    result.refuse_projection()
    data, model = result.table.data.rows_for("what single rows decide needs"), result.model
    problem = data.full().replace(gamma=model.gamma, tau=max(model.tau, 1))
    return problem, data, np.searchsorted(result.design.kept, model.support)


def parts_of(result: Result) -> dict[Any, Index]:
    """The rows of every group under its label; of a fit without groups each row by itself.

    Raises InputError: One group has all rows, so that no row is left without the group.
    """
    groups = result.table.source.groups
    if groups is None:
        return dict(enumerate(np.arange(result.table.source.n)[:, None]))
    labels = np.unique(groups).tolist()
    if len(labels) == 1:
        raise InputError(f"no row is left without group {labels[0]!r}, which has all rows")
    return {label: np.flatnonzero(groups == label) for label in labels}


def comparison_on_rows(result: Result) -> Weights | None:
    """How a criterion that has chosen the size compares supports on fewer rows; else None."""
    name, own = result.criterion, int(result.design.protocol.intercept)
    if name is None:
        return None
    return lambda weight, p: criterion_weights(name, weight, p, own)


@on_one_thread
def row_influence(
    problem: SparseRidgeProblem,
    data: RowFolds,
    support: Index,
    parts: Sequence[Index],
    limits: Limits,
    weights: Weights | None = None,
) -> Influence:
    """The best support of its size, or by a criterion, without each of some parts of the rows.

    Without a part means: as a fit to the other rows, centred and scaled by them, has it. Single
    rows share a tree; what the tree leaves open, and groups of rows, are solved one by one.

    problem: All rows, at the γ and τ of the fit.
    data: The rows of the problem.
    support: The fitted support, in columns of the problem.
    parts: The positions of the rows of every part; none has all rows.
    limits: Once one is reached, parts are left as they are, and count as not proved.
    weights: How supports of all sizes are compared, by a criterion; by default supports of the
        problem's τ are compared by their objectives.
    """
    m = len(parts)
    no = np.zeros(m, dtype=np.bool_)
    found = Influence([support] * m, np.full(m, np.nan), no, no.copy())
    if support.size == 0 and weights is None:  # The size 0 has one support.
        return replace(found, proved=~no)
    loo = RowFolds(data.rows, make_folds("loo", len(data.rows.given)))
    deleted, plan = loo.deleted_rows, RunPlan.of(Settings(), loo, deadline=limits)
    at_most = problem.constraints.weighted
    compared, of = [fixed_size(problem.tau, at_most)], np.zeros(m, dtype=np.intp)
    if weights is not None:
        rest = [data.weight * (1.0 - data.rows.row_shares[part].sum()) for part in parts]
        distinct, of = np.unique(rest, return_inverse=True)
        # Rows without which a column varies no more are not deleted from a tree.
        compared = [weights(weight, data.p) for weight in distinct.tolist()]
    single = all(part.size == 1 for part in parts)
    if deleted and plan.one_tree_for_rows and single:
        row = np.concatenate(parts)
        ratios = np.ones((m, data.p))
        if problem.given_gamma > 0.0:
            ratios = scale_ratios(data.rows.scatter_shares, data.rows.row_shares[:, None])[row]
        for block in _blocks_by_scale(ratios.min(axis=1)):
            own = deleted.rows[row[block]], deleted.targets[row[block]], ratios[block]
            lighter = Lighter.of(problem, *own)
            _by_tree(found, lighter, support, block, compared, of[block], limits)
    for i in np.flatnonzero(~found.proved).tolist():
        if limits.reached(0) is not None:
            break
        left = data.without(parts[i]).replace(gamma=problem.given_gamma, tau=problem.tau)
        how = None if weights is None else weights(rest[i], int((left.data.squares > 0.0).sum()))
        _alone(found, left, i, how, limits)
    return found


def fixed_size(size: int, at_most: bool = False) -> Comparison:
    """A comparison by the objectives of supports of one size or, with ``at_most``, of smaller ones.

    With ``at_most`` supports of every size up to the given one count.
    """
    return Comparison(np.where(at_most | (np.arange(size + 1) == size), 1.0, np.inf))


def scale_ratios(scatter: Array, weight: Array | float) -> Array:
    """Squared scales of columns without some rows, over those of all rows.

    scatter: What the rows add to the scatter of every column, as a share; 0 for columns that are
        not scaled, whose ratio is 1.
    weight: The rows' share of all weights, less than 1.
    """
    rest = 1.0 / (1.0 - weight)
    ratio = np.where(scatter.any(axis=0), rest * (1.0 - rest * scatter), 1.0)
    return np.asarray(ratio, dtype=np.float64)


def _blocks_by_scale(least: Array) -> Iterator[Index]:
    """Yield the rows that share a tree: those that change scales alike, from the least change on.

    least, shape (m,): The smallest ratio of scales of every row.
    """
    order = np.argsort(-least, kind="stable")
    order = order[least[order] >= LEAST_SCALE_RATIO]
    often = order.size
    if (least != 1.0).any():
        often -= order.size // ROWS_PER_ROW_OF_LARGE_CHANGE
    for part in (order[:often], order[often:]):
        for block in row_blocks(part.size):
            yield part[block]


def _listed(
    lighter: Lighter, compared: Sequence[Comparison], of: Index, limits: Limits
) -> tuple[NDArray[np.uint64], Array, Array]:
    """What a tree lists without each row of ``lighter``, m of them.

    compared, of: Ways to compare supports, and for each row the position of its way among them.
    Returns: Supports as bit masks over the problem's units, shape (m, k); lower bounds on their
        values, ∞ where the list has ended; and on the values of all others, shape (m,).
    """
    problem, units = lighter.problem, TreeTable(lighter.problem).units.size
    numbers = [one.of_units(TreeTable(problem)) for one in compared]
    least = np.array([one[0] for one in numbers])
    sizes = np.unique(np.concatenate([one[1] for one in numbers]))
    if least[:, units].min() < np.inf:
        sizes = np.append(sizes, units)
    if sizes.size == 0:  # Columns of zeros would have to fill the size.
        return np.empty((of.size, 0), np.uint64), np.empty((of.size, 0)), np.full(of.size, -np.inf)
    near = NearBest.nothing(problem.given_gamma, sizes.size, of.size)
    every = np.ones((sizes.size, of.size), dtype=np.bool_)
    # The tree has a list for every number of units.
    near.search(problem.by_units(), sizes, every, limits, (lighter.rows, lighter.targets))
    weight = least[of][:, sizes].T
    with np.errstate(invalid="ignore"):  # An objective of 0 leaves the row open.
        bounds, others = weight[:, :, None] * near.objective, (weight * near.others).min(axis=0)
    masks = near.masks.swapaxes(0, 1).reshape(of.size, -1)
    return masks, bounds.swapaxes(0, 1).reshape(of.size, -1), others


def _by_tree(
    found: Influence,
    lighter: Lighter,
    support: Index,
    block: Index,
    compared: Sequence[Comparison],
    of: Index,
    limits: Limits,
) -> None:
    """Enter what one tree says of the parts with these numbers, the single rows of ``lighter``.

    Entries of ``found`` change where the tree proves which support is best without a row; the
    others stay as they are.

    support: The fitted support.
    block, shape (m,): The numbers of the parts, in the order of the rows of ``lighter``.
    compared, of: As :func:`_listed` takes them.
    """
    problem, rules = lighter.problem, lighter.problem.constraints
    table, rows = TreeTable(problem), np.arange(block.size)

    def values(one: Index, some: Index) -> Array:
        """The values of a support without some of the rows."""
        weights = np.array([_weight(table, how, one) for how in compared])
        with np.errstate(invalid="ignore"):  # ∞ times 0 is NaN, which leaves a row open.
            return np.asarray(lighter.objectives(one, some) * weights[of[some]])

    masks, bounds, rest = _listed(lighter, compared, of, limits)
    if compared[0].weight[0] < np.inf and not rules.include.any():
        # The support of no column is listed beside those of the tree.
        masks = np.column_stack([masks, np.zeros(rows.size, dtype=np.uint64)])
        bounds = np.column_stack([bounds, values(np.empty(0, dtype=np.intp), rows)])
    own = rules.mask(support)
    fitted = values(support, rows)
    # Other supports on a list are fitted where their bounds do not say that they are worse.
    other = np.isfinite(bounds) & (masks != own)
    tried = other & ~(bounds > fitted[:, None])
    rest = np.minimum(rest, np.where(other & ~tried, bounds, np.inf).min(axis=1, initial=np.inf))
    least, best = np.full(rows.size, np.inf), np.full(rows.size, -1)
    second = least.copy()
    options = np.unique(masks[tried])
    for number, mask in enumerate(options):
        here = np.flatnonzero((tried & (masks == mask)).any(axis=1))
        value = values(rules.columns_in(mask), rows[here])
        best[here[value < least[here]]] = number
        second[here] = np.minimum(second[here], np.maximum(least[here], value))
        least[here] = np.minimum(least[here], value)  # A NaN stays, and leaves the row open.
    with np.errstate(invalid="ignore", divide="ignore"):
        proved = np.minimum(fitted, least) <= rest * (1.0 + BOUND_SHARE)
        proved &= fitted > problem.nothing_left
        lead = np.minimum(least, rest) / fitted - 1.0
    # Of supports that may tie the problem without the row decides, solved alone.
    proved &= np.abs(lead) > BOUND_SHARE
    proved &= (lead > 0.0) | (np.minimum(second, rest) > least * (1.0 + BOUND_SHARE))
    for i in np.flatnonzero(proved).tolist():
        found.proved[block[i]], found.lead[block[i]] = True, lead[i]
        if lead[i] < 0.0:
            found.changed[block[i]] = True
            found.supports[block[i]] = rules.columns_in(options[best[i]])


def _alone(
    found: Influence,
    left: SparseRidgeProblem,
    i: int,
    comparison: Comparison | None,
    limits: Limits,
) -> None:
    """Solve the problem without the rows of part i, and enter what is found in ``found``.

    left: The problem of the rows that are left.
    comparison: How supports of all sizes are compared; None for those of the problem's τ.
    limits: Where one is reached the part counts as not proved, with the best support known.
    """
    support = found.supports[i]
    if comparison is None:
        how: dict[str, Any] = {"time_limit": limits.remaining(), "stop": limits.stop}
        answer = best_support(left, tol=0.0, warm_start=support, **how)
        both = [support, answer.support]
        first = both[ranking([left.fit(one) for one in both], both)[0]]
    else:
        best = comparison.best(left, limits)
        if best is None:  # Too few rows are left for any support.
            return
        answer, _ = best
        first = answer.support
    found.proved[i] = answer.status is Status.OPTIMAL
    lead = lead_of(left, support, answer.support, comparison)
    if lead < 0.0 or (answer.proved and not np.array_equal(first, support)):
        found.supports[i], found.lead[i], found.changed[i] = answer.support, lead, True


def lead_of(
    problem: SparseRidgeProblem, support: Index, other: Index, comparison: Comparison | None = None
) -> float:
    """By what share another support is better than a support, as a number below 0; else 0.

    A support whose objective is smaller by no more than rounding may explain is not better. By a
    comparison values take the place of objectives.
    """
    own, least = problem.objective(support), problem.objective(other)
    if comparison is not None:
        table = TreeTable(problem)
        weights = [_weight(table, comparison, one) for one in (support, other)]
        if math.isinf(weights[0]):  # The rows that are left are too few for the support.
            return 0.0 if math.isinf(weights[1]) else -1.0
        own, least = own * weights[0], least * weights[1]
    better = least < own * (1.0 - BOUND_SHARE) - problem.nothing_left
    return least / own - 1.0 if better else 0.0


def _weight(table: TreeTable, comparison: Comparison, support: Index) -> float:
    """What a comparison weighs the objective of a support by."""
    members = np.isin(np.arange(table.units.size), table.members(support))
    return float(comparison.weights(table, members[None])[0])
