"""The ledger: what is known of every training problem at every γ and τ.

Problem j < k is the training problem of fold j; problem k is the problem of all rows, whose
solution is the model. Four things are kept apart. The answer to a problem is the support that the
problem's own rows gave, or a support that is proved optimal; the error of the answer on the
held-out rows is the estimate of the fold's error. The incumbent is the best support known from
anywhere, other folds included: it bounds the optimum of its problem from above, and becomes the
answer only where it is proved optimal. An interval holds the error of an optimal support. Where the
answer is proved, its error and both ends of the interval agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Proof, Status, worst
from ..solvers.leaps.all_sizes import attained_margin
from ..solvers.leaps.deleted_rows import DeletedRowSubsets, deleted_fits
from ..solvers.leaps.gamma_trees import Listed
from ..solvers.leaps.open_nodes import OpenNode, prediction_ranges
from ..solvers.ridge_fits import SupportPath, known_path
from ..solvers.supports.rounding import pad_support, stacked
from .bounds import bounds_along_gamma, objective_gap_bound, squared_error_bounds
from .needs import Known
from .results import TIE, mean_over_folds

Array = NDArray[np.float64]
Support = NDArray[np.intp]
Cell = tuple[int, int, int]  # a row (γ), the index of a τ, and a problem
# For leave-one-out a fold's fit follows from the fit of all rows by deleting a row, which divides
# its residual by one minus its leverage, a number from 0 to 1. Where that number is at most this
# share, digits cancel, and the fold is fitted from its own rows instead. A fit by deleting a row
# thus keeps about ten of sixteen digits. The number is a choice.
MIN_RESIDUAL_SHARE = 1e-5
# A larger upper bound on a fold's error counts as ∞, so that sums over folds do not overflow. The
# number is a choice.
MAX_UPPER = 1e290
# The arrays that hold a fold's model: its training objective, its squared error on the held-out
# rows and the number of its support. The arrays "best_objective" and so on hold the best known
# model.
_ANSWER = ("objective", "error", "choice")
# What is known of every cell (γ, τ, problem), in _CELL, and of every row (γ), in _COUNT, before the
# first search.
_CELL: dict[str, Any] = {
    "objective": np.inf,
    "error": 0.0,
    "choice": 0,
    "lower": 0.0,
    "upper": np.inf,
    "best_objective": np.inf,
    "best_error": 0.0,
    "best_choice": 0,
    "bound": 0.0,
    "exact": False,
    "searched": False,
    "left_open": False,
    "imprecise": False,
}
_COUNT: dict[str, Any] = {"n_mio": 0, "n_nodes": 0, "seconds": 0.0}
_STORED = (*_ANSWER, "exact", "searched", "left_open", "lower", "upper", "bound")


class Ledger:
    """Answers, incumbents and intervals of all problems, in arrays of shape (γ, τ, k + 1).

    gammas: The γ of every row. The arrays may have further rows, which have no γ yet.
    objective, error, choice: Training objective of the answer, its squared error on the held-out
        rows (0 for the problem of all rows) and its number in ``supports``. The objective is
        infinite until there is an answer.
    best_objective, best_error, best_choice: Objective, error and number of a fold's incumbent.
    bound: Lower bound on the optimal objective of the problem of all rows; 0 for folds.
    lower, upper: Bounds on the fold's error h_j; 0 and ∞ until something is known.
    exact: Whether the answer is proved optimal.
    searched: Whether a tree was searched for this problem, γ and τ alone.
    left_open: Whether the search of the problem's own rows, which gave its first answer, has proved
        nothing. A later proof leaves this unchanged.
    first: The rows of the γ that were visited first.
    trees: Number of trees that all problems share, shape (γ, τ).
    n_mio, n_nodes, seconds: Mixed-integer problems, nodes and seconds so far, shape (γ,).
    status, history: For every γ the worst limit that was reached, and the steps of Algorithm 1.
    supports: Every distinct support, in the order of its first use.
    imprecise: Whether a tree of the problem's sizes has ended without a proof, which rounding has
        prevented or the room that it needs.
    listed: By problem what the trees of its proofs have listed.
    """

    objective: Array
    error: Array
    choice: NDArray[np.intp]
    best_objective: Array
    best_error: Array
    best_choice: NDArray[np.intp]
    bound: Array
    lower: Array
    upper: Array
    exact: NDArray[np.bool_]
    searched: NDArray[np.bool_]
    left_open: NDArray[np.bool_]
    imprecise: NDArray[np.bool_]
    trees: NDArray[np.intp]
    n_mio: NDArray[np.intp]
    n_nodes: NDArray[np.intp]
    seconds: Array

    def __init__(
        self, data: FoldData, taus: NDArray[np.intp], gammas: Sequence[float] = ()
    ) -> None:
        self.data, self.taus, self.k = data, taus, data.folds.k
        # The largest number of columns of a support; a group of columns counts once in a size.
        self.most = data.constraints.most_columns(int(taus[-1]))
        self.gammas: list[float] = []
        self.first: list[int] = []
        self.status: list[Status] = []
        self.history: list[list[list[float]]] = []
        self.supports: list[Support] = []
        self._numbers: dict[bytes, int] = {}
        self.listed: dict[int, Listed] = {}
        empty = {name: np.full((taus.size, self.k + 1), value) for name, value in _CELL.items()}
        empty["upper"][:, self.k] = 0.0  # The problem of all rows holds nothing out.
        counts = {name: np.array(value) for name, value in _COUNT.items()}
        self._empty = {**empty, **counts, "trees": np.zeros(taus.size, dtype=np.intp)}
        for name, one in self._empty.items():
            setattr(self, name, one[None][:0])
        self.add(gammas)

    def add(self, gammas: Sequence[float]) -> list[int]:
        """Give every γ a row in which nothing is known; return the numbers of the rows."""
        first, needed = len(self.gammas), len(self.gammas) + len(gammas)
        if needed > self.exact.shape[0]:  # The number of rows doubles, so that copies stay few.
            for name, one in self._empty.items():
                more = np.repeat(one[None], max(needed - first, first), axis=0)
                setattr(self, name, np.concatenate([getattr(self, name), more]))
        self.gammas += gammas
        self.status += [Status.OPTIMAL] * len(gammas)
        self.history += [[] for _ in gammas]
        return list(range(first, needed))

    def answered(self, g: int) -> bool:
        """Whether every problem has an answer at every τ."""
        return bool(np.isfinite(self.objective[g]).all())

    def complete(self, g: int) -> bool:
        """Whether every answer is proved, or Algorithm 1 has ended at its tolerance."""
        found = self.history[g] and self.status[g] is Status.OPTIMAL
        return self.answered(g) and bool(found or self.exact[g].all())

    def proved(self, g: int) -> bool:
        """Whether the answers of all folds are proved."""
        return bool(self.exact[g, :, : self.k].all())

    def note_limit(self, g: int, status: Status) -> None:
        """Remember the limit that ended some work at one γ."""
        self.status[g] = worst([self.status[g], status])

    def number(self, support: Support) -> int:
        """The number of a support, which is its position in ``supports``."""
        key = support.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.supports)
            self.supports.append(support)
        return self._numbers[key]

    def support(self, g: int, t: int, j: int) -> Support:
        """The columns of problem j's answer; problem k is that of all rows."""
        return self.supports[int(self.choice[g, t, j])]

    def problem(self, g: int, j: int) -> SparseRidgeProblem:
        """The training problem j at the γ of row g."""
        return self.data.problem(j).replace(gamma=self.gammas[g])

    # what is found

    def take_path(self, g: int, j: int, path: SupportPath, i: int, error: Any = 0.0) -> None:
        """Enter the first answers of problem j at the γ of row g, and what is proved of them.

        path: Supports at several γ, of which position i is taken, that problem j's own rows gave.
            They become the answers where no answer is proved.
        error: Squared errors on the held-out rows, one for every size of the path.
        """
        where = np.searchsorted(self.taus, path.sizes)
        self.left_open[g, where, j] = ~path.proved[i]
        self.note_limit(g, path.status)
        self._take(g, j, path, i, error, ~self.exact[g, where, j])
        self.n_nodes[g] += path.n_nodes[i] if j < self.k else 0
        self.bracket_by_tree(g, j, path, i)

    def take_proofs(
        self, g: int, j: int, path: SupportPath, i: int, error: Any, *, first_of_ties: bool
    ) -> None:
        """Enter what a later path has proved of problem j at the γ of row g.

        Answers of folds stay unless they are proved not to be optimal. Of the problem of all rows
        they give way to better supports.

        path, i, error: As of :meth:`take_path`; the path may have some of the sizes.
        first_of_ties: Whether a proved support becomes the answer even where the answer ties with
            it, because the path names the first of supports that tie.
        """
        where = np.searchsorted(self.taus, path.sizes)
        better = (j == self.k) & (path.objective[i] <= self.objective[g, where, j])
        answers = better | (path.proved[i] & first_of_ties)
        self._take(g, j, path, i, error, answers & ~self.exact[g, where, j])
        self.n_nodes[g] += path.n_nodes[i]

    def _take(
        self, g: int, j: int, path: SupportPath, i: int, error: Any, answers: NDArray[np.bool_]
    ) -> None:
        """Enter the supports of a path as incumbents, some of them as answers, and its proofs.

        answers: For every size of the path whether its support becomes the answer.
        """
        where = np.searchsorted(self.taus, path.sizes)
        at, objective, proved = (g, where, j), path.objective[i], path.proved[i]
        number = np.array([self.number(support) for support in path.at(i)])
        error = np.broadcast_to(error, number.shape)
        tree = path.unfinished.get(i)
        if tree is not None and tree.status in (Status.PRECISION, Status.UNPROVED):
            self.imprecise[at] |= ~proved
        for name, values in zip(_ANSWER, (objective, error, number), strict=True):
            getattr(self, name)[g, where[answers], j] = values[answers]
        if j == self.k:
            bound = np.minimum(path.lower_bound[i], self.objective[at])
            self.bound[at] = np.maximum(self.bound[at], bound)
            self.exact[at] |= proved
            return
        self._enter(g, (where, j), objective, error, number)
        self.searched[at] |= path.searched[i]
        self.n_mio[g] += path.n_trees[i]
        self.prove(g, where[proved], j)

    def bracket_by_tree(self, g: int, j: int, path: SupportPath, i: int) -> None:
        """Intervals of a fold's error from the open nodes of a path's tree, if it was left open."""
        if (tree := path.unfinished.get(i)) is not None and j < self.k:
            where = np.searchsorted(self.taus, path.sizes)
            self.bracket(g, j, tree.open_nodes, where)

    def take_rows(
        self, g: int, folds: NDArray[np.intp], found: DeletedRowSubsets, weight: Array
    ) -> None:
        """Enter incumbents, intervals and proofs from a tree that leave-one-out folds share.

        folds: The folds that hold out the tree's rows, shape (m,).
        weight: Factors of the deleted residuals (``FoldData.deleted_rows``), shape (m,).
        """
        number = np.array([self.number(s) for s in found.supports], dtype=np.intp)[found.choice]
        known = np.where(np.isnan(found.objective), np.inf, found.objective)
        self._enter(g, np.s_[:, folds], known, (weight * found.residual) ** 2, number)
        low, high = squared_error_bounds(weight * found.low, weight * found.high)
        for t in range(self.taus.size):
            usable = np.isfinite(known[t]) & ~self.exact[g, t, folds]
            self.narrow(g, t, folds[usable], low[t, usable], high[t, usable])
            self.prove(g, t, folds[usable & (found.low[t] == found.high[t])])

    def take_models(self, g: int, other: Ledger, row: int) -> None:
        """Take over the models at the γ of row g from a ledger of the same rows in other folds.

        other: A ledger that has the sizes of this ledger, and perhaps larger sizes.
        row: The row of the other ledger that has the same γ.
        """
        m, k = self.taus.size, self.k
        for name in ("objective", "bound", "exact"):
            getattr(self, name)[g, :, k] = getattr(other, name)[row, :m, other.k]
        found = [other.support(row, t, other.k) for t in range(m)]
        self.choice[g, :, k] = [self.number(support) for support in found]

    def take_proof(self, at: Cell, found: Proof) -> None:
        """Enter the support, the bound and the status that a solver returned for one problem."""
        g, t, _ = at
        self.n_nodes[g] += found.n_nodes
        tau, constraints, support = int(self.taus[t]), self.data.constraints, found.support
        if constraints.plain:
            support = pad_support(support, tau, self.data.p)
        else:
            support = constraints.padded(support, tau)
        proved = found.status is Status.OPTIMAL
        self.take(at, support, found.objective, found.lower_bound, proved)

    def take(
        self, at: Cell, support: Support, objective: float, bound: float, proved: bool
    ) -> None:
        """Enter a support of one problem where it is better than the known support, and its proof.

        objective, bound: The support's objective and a lower bound on the least objective, which
            are used for the problem of all rows alone.
        proved: Whether no support of the size is better. A fold may then keep another support that
            ties with this one, which is optimal, too.
        """
        g, t, j = at
        if j < self.k:
            self.offer(g, t, j, support)
            if proved:
                self.prove(g, t, j)
            return
        if objective <= self.objective[at]:
            self.objective[at], self.choice[at] = objective, self.number(support)
        self.bound[at] = max(self.bound[at], min(bound, self.objective[at]))
        self.exact[at] |= proved

    def offer(self, g: int, t: int, folds: NDArray[np.intp] | int, support: Support) -> None:
        """Make a support the incumbent of the folds whose incumbents have larger objectives."""
        folds = np.atleast_1d(folds)
        if folds.size:
            found = self.fits(g, folds, support)
            self._enter(g, (t, folds), *found, np.full(folds.size, self.number(support)))

    def _enter(
        self, g: int, at: Any, objective: Array, error: Array, choice: NDArray[np.intp]
    ) -> None:
        """Make supports the incumbents of the cells whose incumbents have larger objectives.

        at: Index into arrays of shape (τ, k + 1).
        objective, error, choice: Objectives, held-out errors and numbers of the new supports.
        """
        better = objective < self.best_objective[g][at]
        if not better.any():
            return
        for name, values in zip(_ANSWER, (objective, error, choice), strict=True):
            table = getattr(self, "best_" + name)[g]
            table[at] = np.where(better, values, table[at])

    def prove(self, g: int, t: Any, folds: Any) -> None:
        """Mark incumbents as optimal; an incumbent with a smaller objective becomes the answer.

        t, folds: Positions of τ and numbers of folds, as indices into arrays of shape (τ, k + 1).
        """
        at = t, folds
        better = self.best_objective[g][at] < self.objective[g][at] * (1.0 - TIE)
        if np.any(better):
            for name in _ANSWER:
                answer, best = getattr(self, name)[g], getattr(self, "best_" + name)[g]
                answer[at] = np.where(better, best[at], answer[at])
        self.exact[g][at] = True
        self.lower[g][at] = self.upper[g][at] = self.error[g][at]

    def narrow(self, g: int, t: Any, folds: Any, low: Any, high: Any) -> None:
        """Intersect the intervals of some folds' errors with the intervals [low, high].

        Ends that rounding has moved past each other are exchanged. The interval of a proved answer
        is its error, and stays.

        t, folds, low, high: Numbers, or arrays of one shape.
        """
        at = g, t, folds
        low, high = np.maximum(self.lower[at], low), np.minimum(self.upper[at], high)
        high = np.where(high < MAX_UPPER, high, np.inf)
        proved = self.exact[at]
        self.lower[at] = np.where(proved, self.lower[at], np.minimum(low, high))
        self.upper[at] = np.where(proved, self.upper[at], np.maximum(low, high))

    def narrow_by_objective(self, g: int, t: int) -> None:
        """Raise lower bounds by Corollary 3 of the first paper, h_j ≥ u* − u_j, where not exact.

        u_j is the objective of fold j's incumbent, and u* the optimum of all rows, in whose place
        a lower bound is used. Folds are skipped whose training and held-out rows are not all rows.
        """
        left = np.flatnonzero(~self.exact[g, t, : self.k]).tolist()
        folds = np.array([j for j in left if self.data.covers(j)], dtype=np.intp)
        full, best = float(self.bound[g, t, self.k]), self.best_objective[g, t, folds]
        low = np.array([objective_gap_bound(full, float(objective)) for objective in best])
        self.narrow(g, t, folds, low, np.inf)

    def share_bounds(self) -> None:
        """Raise the bounds on the optimum of all rows to what the bounds at other γ and τ imply.

        The optimum falls with τ, so that a bound at a τ holds for every smaller τ. What it implies
        at other γ, ``bounds_along_gamma`` says. A bound stays at most the objective of the answer,
        which rounding could let it exceed. Rows of the arrays beyond the number of γ are spare.
        """
        at = np.s_[: len(self.gammas), :, self.k]
        known = np.maximum.accumulate(self.bound[at][:, ::-1], axis=1)[:, ::-1]
        shared = bounds_along_gamma(np.array(self.gammas), known)
        self.bound[at] = np.maximum(self.bound[at], np.minimum(shared, self.objective[at]))

    def bracket(
        self,
        g: int,
        j: int,
        nodes: Sequence[OpenNode] = (),
        where: NDArray[np.intp] | None = None,
        training: SparseRidgeProblem | None = None,
    ) -> None:
        """Intervals of a fold's error, from a tree's open nodes, at the sizes that are not exact.

        Every open node bounds the predictions ŷ of supports below the node, and Corollary 2 of the
        first paper bounds (y − ŷ)². Without nodes the root counts as open, which gives an interval
        around the fold's ridge fit on all columns.

        where: Positions of the sizes that the tree was searched for; by default all sizes.
        training: The training problem of fold j, where the caller has it at any γ.
        """
        sizes = np.arange(self.taus.size) if where is None else where
        left = sizes[~self.exact[g, sizes, j]]
        if left.size == 0:
            return
        problem = (training or self.data.training(j)).replace(gamma=self.gammas[g])
        H, t = self.data.held_out(j)
        best = [self.supports[c] for c in self.best_choice[g, left, j]]
        known = stacked(best, self.most)
        predicted = known_path(problem, [self.gammas[g]], self.taus[left], known[None]).predict(H)
        upper, sizes = self.best_objective[g, left, j, None], self.taus[left]
        upper = upper + attained_margin(problem, upper)
        root = OpenNode(np.empty(0, dtype=np.intp), np.arange(self.data.p, dtype=np.intp), -1)
        low, high, _ = prediction_ranges(problem, nodes or [root], H, sizes, predicted[0], upper)
        least, most = squared_error_bounds(low - t, high - t)
        for i, size in enumerate(left.tolist()):
            self.narrow(g, size, j, least[i].sum(), most[i].sum())

    def bracket_the_rest(self, rows: Sequence[int], limits: Limits | None = None) -> None:
        """Give intervals to the folds that have none; all folds must have incumbents at every τ.

        All γ of a fold follow one another, as they share the factors of its training rows.

        rows: Rows of the ledger.
        limits: A fold stays without where the time left does not suffice.
        """
        small, large = sorted((self.data.folds.n, self.data.p))
        for j in range(self.k):
            without = [g for g in rows if np.isinf(self.upper[g, :, j]).any()]
            if not without:
                continue
            training = self.data.training(j)
            for g in without:
                # An interval costs about as much as a singular value decomposition, whose
                # operations are counted here. The factor 10 is a choice.
                if limits is None or limits.affords(10.0 * small**2 * large):
                    self.bracket(g, j, training=training)
            training.data.release()
            del training  # The next fold's rows may need the memory.

    def fits(self, g: int, folds: NDArray[np.intp], support: Support) -> tuple[Array, Array]:
        """Training objectives and held-out errors, shape (m,) each, of one support on m folds.

        For several leave-one-out folds both follow from one fit of all rows, unless digits cancel
        (MIN_RESIDUAL_SHARE); every other fold is fitted from its own rows.

        g: The row of γ.
        folds, shape (m,): Numbers of folds, below k.
        support: Increasing columns.
        """
        data = self.data
        objective, error = np.empty(folds.size), np.empty(folds.size)
        alone = np.ones(folds.size, dtype=bool)
        if folds.size > 1 and (deleted := data.deleted_rows) is not None:
            # These rows are centred by the means of all rows and stretched, so that deleting row i
            # gives the problem that is centred without row i of the table. The residual of the
            # deleted row is stretched, too; times factor i it is the residual of the table's row.
            at, whole = deleted.row_of[folds], self.problem(g, self.k)
            found = deleted_fits(whole, support, deleted.rows[at], deleted.targets[at])
            objective[:] = found.objective
            error[:] = (deleted.factor[at] * found.residual) ** 2
            alone = ~(found.one_minus_leverage > MIN_RESIDUAL_SHARE)
        for i in np.flatnonzero(alone):
            j = int(folds[i])
            fit = self.problem(g, j).fit(support)
            H, t = data.held_out(j)
            objective[i] = fit.objective
            error[i] = float(np.sum((t - H[:, support] @ fit.coef) ** 2))
        return objective, error

    # what is returned

    def known(self, rows: Sequence[int] | NDArray[np.intp]) -> Known:
        """What is known of the CV errors at the γ of some rows."""
        at, k, total = list(rows), self.k, self.data.total
        error, std_error = mean_over_folds(self.error[at, :, :k], self.data.fold_weight)
        lower, upper = (
            getattr(self, name)[at, :, :k].sum(axis=2) / total for name in ("lower", "upper")
        )
        exact = np.asarray(self.exact[at, :, :k].all(axis=2))
        gammas, rounding = np.array(self.gammas)[at], self.data.rounding
        lower = np.where(exact, error, np.minimum(lower, error))
        upper = np.where(exact, error, np.maximum(upper, error))
        return Known(gammas, self.taus, error, std_error, lower, upper, exact, rounding)

    def sums(self, name: str) -> Array:
        """An array summed over the folds, shape (γ, τ)."""
        return np.asarray(getattr(self, name)[: len(self.gammas), :, : self.k].sum(axis=2))

    def tables(self, rows: Sequence[int]) -> dict[str, Any]:
        """The tables of :class:`~sparsecv.cv.results.CVResult` at the γ of some rows, by name."""
        at, k, known = list(rows), self.k, self.known(rows)
        models = [[self.support(g, t, k) for t in range(self.taus.size)] for g in at]
        return {
            "gamma": [self.gammas[g] for g in at],
            "taus": [self.taus] * len(at),
            "cv_error": known.error,
            "std_error": known.std_error,
            "lower": known.lower,
            "upper": known.upper,
            "exact": known.exact,
            **{name: getattr(self, name)[at].tolist() for name in _COUNT},
            "mio_by_tau": self.searched[at, :, :k].sum(axis=2) + self.trees[at],
            "supports": [self.supports] * len(at),
            "choice": self.choice[at, :, :k],
            "fold_error": self.error[at, :, :k],
            "most": [self.most] * len(at),
            "models": models,
            "model_objective": self.objective[at, :, k],
            "model_bound": self.bound[at, :, k],
            "model_proved": self.exact[at, :, k],
            "status": [str(self._ended(g)) for g in at],
            "history": [self.history[g] for g in at],
        }

    def _ended(self, g: int) -> Status:
        """How the work at the γ of row g has ended; optimal where everything there is proved."""
        return Status.OPTIMAL if self.complete(g) else worst([self.status[g], Status.UNPROVED])

    def progress(self, g: int) -> Array:
        """What is proved of the problems at the γ of row g, as an array (4, τ, k + 1).

        The array tells whether an answer is finished, and gives the bounds on its error and on
        its objective. Two arrays differ where something has been proved in between.
        """
        finished = self.exact[g] | self.complete(g)
        return np.stack([finished, self.lower[g], self.upper[g], self.bound[g]])

    def stored(self, g: int, problems: NDArray[np.intp]) -> dict[str, Any]:
        """What a checkpoint keeps of some problems at the γ of row g, as JSON values.

        problems, shape (m,): Numbers of problems, in increasing order.
        """
        used, choice = np.unique(self.choice[g][:, problems], return_inverse=True)
        return {
            **{name: getattr(self, name)[g][:, problems].tolist() for name in _STORED},
            **{name: getattr(self, name)[g].tolist() for name in ("trees", *_COUNT)},
            "choice": choice.reshape(-1, problems.size).tolist(),
            "problems": problems.tolist(),
            "supports": [self.supports[c].tolist() for c in used],
            "history": self.history[g] if self.complete(g) else [],
        }

    def restore(self, g: int, stored: dict[str, Any]) -> None:
        """Enter what :meth:`stored` returned for the same γ, τ and folds.

        Answers that are proved in the ledger stay. Answers of folds are taken over where they are
        proved, or where Algorithm 1 had ended; of the problem of all rows the better answer is.
        """
        at = np.array(stored["problems"], dtype=np.intp)
        cells = {
            name: np.array(stored[name], dtype=self._empty[name].dtype).reshape(-1, at.size)
            for name in _STORED
        }
        supports = [np.array(columns, dtype=np.intp) for columns in stored["supports"]]
        cells["choice"] = np.array([self.number(one) for one in supports])[cells["choice"]]
        ended = bool(stored["history"]) and not self.history[g]
        model = (at == self.k) & np.isfinite(cells["objective"])
        for name in ("trees", *_COUNT):
            getattr(self, name)[g] = np.maximum(getattr(self, name)[g], stored[name])
        if ended:
            self.history[g] = stored["history"]
        better = model & (cells["objective"] <= self.objective[g][:, at])
        taken = (cells["exact"] | ended | better) & ~self.exact[g][:, at]
        for name in _ANSWER:
            answers = getattr(self, name)[g]
            answers[:, at] = np.where(taken, cells[name], answers[:, at])
        cells["objective"] = np.where(taken, cells["objective"], np.inf)
        self._enter(g, np.s_[:, at], *(cells[name] for name in _ANSWER))
        self.narrow(g, np.arange(self.taus.size)[:, None], at, cells["lower"], cells["upper"])
        for name in ("exact", "searched", "left_open"):
            getattr(self, name)[g][:, at] |= cells[name]
        for name in ("lower", "upper"):
            ends = getattr(self, name)[g]
            ends[:, at] = np.where(self.exact[g][:, at], self.error[g][:, at], ends[:, at])
        bound = np.minimum(cells["bound"], self.objective[g][:, at])
        self.bound[g][:, at] = np.maximum(self.bound[g][:, at], bound)
