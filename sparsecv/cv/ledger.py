"""The ledger: what is known of every training problem at every γ and τ.

Problem j < k is the training problem of fold j; problem k is the problem of all rows, whose
solution is the model. Four things are kept apart. The answer to a problem is the support that the
problem's own rows gave, or a support that is proved optimal; the error of the answer on the
held-out rows is the estimate of the fold's error. The incumbent is the best support known from
anywhere, other folds included: it bounds the optimum of its problem from above, and becomes the
answer only where it is proved optimal. An interval holds the errors of all optimal supports. Where
the answer is proved, its error and both ends of the interval agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.core.leaves import Leaves
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer, Status, worst
from ..solvers.leaps.all_sizes import attained_margin
from ..solvers.leaps.deleted_rows import DeletedRowSubsets, deleted_fits
from ..solvers.leaps.gamma_trees import Listed
from ..solvers.leaps.open_nodes import prediction_ranges
from ..solvers.ridge_fits import SupportPath, known_path
from ..solvers.supports.rounding import stacked
from .arrays import MODEL, CellProofs, Models, SearchWork, Supports
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


class Ledger:
    """Answers, incumbents and intervals of all problems, in arrays of shape (γ, τ, k + 1).

    gammas: The γ of every row. The arrays may have further rows, which have no γ yet.
    first: The rows of the γ that were visited first.
    status, history: For every γ the worst limit that was reached, and the steps of Algorithm 1.
    answer: The models that answer the problems.
    best: The incumbents of the folds.
    cells: What is proved and was searched of every cell.
    work: What the searches at every γ have taken.
    supports: Every distinct support, in the order of its first use.
    listed: By problem what the trees of its proofs have listed.
    """

    def __init__(
        self, data: FoldData, taus: NDArray[np.intp], gammas: Sequence[float] = ()
    ) -> None:
        self.data, self.taus = data, taus
        self.gammas: list[float] = []
        self.first: list[int] = []
        self.status: list[Status] = []
        self.history: list[list[list[float]]] = []
        shape = taus.size, self.k + 1
        self.answer, self.best, self.cells = Models(shape), Models(shape), CellProofs(shape)
        self.work, self.supports = SearchWork(taus.size), Supports()
        self.listed: dict[int, Listed] = {}
        self.add(gammas)

    @property
    def _most(self) -> int:
        """The largest number of columns of a support; a group of columns counts once in a size."""
        return self.data.constraints.most_columns(int(self.taus[-1]))

    @property
    def k(self) -> int:
        """The number of folds, which is the number of the problem of all rows."""
        return self.data.folds.k

    def add(self, gammas: Sequence[float]) -> list[int]:
        """Give every γ a row in which nothing is known; return the numbers of the rows."""
        first, needed = len(self.gammas), len(self.gammas) + len(gammas)
        # The number of rows doubles, so that copies stay few.
        if needed > self.cells.exact.shape[0]:
            for arrays in (self.answer, self.best, self.cells, self.work):
                arrays.grow(max(needed - first, first))
        self.gammas += gammas
        self.status += [Status.OPTIMAL] * len(gammas)
        self.history += [[] for _ in gammas]
        return list(range(first, needed))

    def answered(self, g: int) -> bool:
        """Whether every problem has an answer at every τ."""
        return bool(np.isfinite(self.answer.objective[g]).all())

    def complete(self, g: int) -> bool:
        """Whether every answer is proved, or Algorithm 1 has ended at its tolerance."""
        found = self.history[g] and self.status[g] is Status.OPTIMAL
        return self.answered(g) and bool(found or self.cells.exact[g].all())

    def proved(self, g: int) -> bool:
        """Whether the answers of all folds are proved."""
        return bool(self.cells.exact[g, :, : self.k].all())

    def note_limit(self, g: int, status: Status) -> None:
        """Remember the limit that ended some work at one γ."""
        self.status[g] = worst([self.status[g], status])

    def support(self, g: int, t: int, j: int) -> Support:
        """The columns of problem j's answer; problem k is that of all rows."""
        return self.supports[int(self.answer.choice[g, t, j])]

    def problem(self, g: int, j: int) -> SparseRidgeProblem:
        """The training problem j at the γ of row g."""
        return self.data.problem(j).replace(gamma=self.gammas[g])

    # what is found

    def take_path(self, rows: Sequence[int], j: int, path: SupportPath, error: Any = 0.0) -> None:
        """Enter the first answers of problem j at some γ, and what is proved of them.

        rows: The row of every γ of the path.
        path: Supports that problem j's own rows gave. They become the answers where no answer is
            proved.
        error: Squared errors on the held-out rows, shape (γ, τ) of the path.
        """
        at = self._cells_of(rows, j, path)
        self.cells.left_open[at] = ~path.proved
        for g in rows:
            self.note_limit(g, path.status)
        self._take(at, path, error, ~self.cells.exact[at])
        if j < self.k:
            self.work.n_nodes[rows] += path.n_nodes
        self.bracket_by_tree(rows, j, path)

    def take_proofs(
        self, rows: Sequence[int], j: int, path: SupportPath, error: Any, *, first_of_ties: bool
    ) -> None:
        """Enter what a later path has proved of problem j at some γ.

        Answers of folds stay unless they are proved not to be optimal. Of the problem of all rows
        they give way to better supports.

        rows, path, error: As of :meth:`take_path`; the path may have some of the sizes.
        first_of_ties: Whether a proved support becomes the answer even where the answer ties with
            it, because the path names the first of supports that tie.
        """
        at = self._cells_of(rows, j, path)
        better = (j == self.k) & (path.objective <= self.answer.objective[at])
        answers = better | (path.proved & first_of_ties)
        self._take(at, path, error, answers & ~self.cells.exact[at])
        self.work.n_nodes[rows] += path.n_nodes

    def _cells_of(self, rows: Sequence[int], j: int, path: SupportPath) -> tuple[Any, Any, int]:
        """The index of the cells of problem j that a path has answered, of shape (γ, τ)."""
        return np.array(rows)[:, None], np.searchsorted(self.taus, path.sizes), j

    def _take(
        self, at: tuple[Any, Any, int], path: SupportPath, error: Any, answers: NDArray[np.bool_]
    ) -> None:
        """Enter the supports of a path as incumbents, some of them as answers, and its proofs.

        answers, shape (γ, τ): Whether a support of the path becomes the answer.
        """
        rows, where, j = at
        number = np.array(
            [[self.supports.number(s) for s in path.at(i)] for i in range(path.gammas.size)]
        )
        found = path.objective, np.zeros(number.shape) + error, number
        for i in path.unfinished:
            if path.stopped(i) in (Status.PRECISION, Status.UNPROVED):
                self.cells.imprecise[rows[i], where, j] |= ~path.proved[i]
        self.answer.put(at, found, answers)
        if j == self.k:
            bound = np.minimum(path.lower_bound, self.answer.objective[at])
            self.cells.bound[at] = np.maximum(self.cells.bound[at], bound)
            self.cells.exact[at] |= path.proved
            return
        self._enter(at, *found)
        self.cells.searched[at] |= path.searched
        self.work.n_mio[rows[:, 0]] += path.n_trees
        g, t = np.nonzero(path.proved)
        self.prove(rows[g, 0], where[t], j)

    def bracket_by_tree(self, rows: Sequence[int], j: int, path: SupportPath) -> None:
        """Intervals of a fold's errors from the leaves of a path's trees that were left open."""
        where = np.searchsorted(self.taus, path.sizes)
        for i in path.unfinished if j < self.k else ():
            self.bracket(rows[i], j, path.leaves(i), where)

    def take_rows(
        self, g: int, folds: NDArray[np.intp], found: DeletedRowSubsets, weight: Array
    ) -> None:
        """Enter incumbents, intervals and proofs from a tree that leave-one-out folds share.

        folds: The folds that hold out the tree's rows, shape (m,).
        weight: Factors of the deleted residuals (``FoldData.deleted_rows``), shape (m,).
        """
        numbers = [self.supports.number(support) for support in found.supports]
        number = np.array(numbers, dtype=np.intp)[found.choice]
        known = np.where(np.isnan(found.objective), np.inf, found.objective)
        every = np.arange(self.taus.size)[:, None]
        self._enter((g, every, folds), known, (weight * found.residual) ** 2, number)
        low, high = squared_error_bounds(weight * found.low, weight * found.high)
        for t in range(self.taus.size):
            usable = np.isfinite(known[t]) & ~self.cells.exact[g, t, folds]
            self.narrow(g, t, folds[usable], low[t, usable], high[t, usable])
            self.prove(g, t, folds[usable & (found.low[t] == found.high[t])])

    def take_models(self, g: int, other: Ledger, row: int) -> None:
        """Take over what is known of all rows at the γ of row g from a ledger of other folds.

        Support, objective and bound of the problem of all rows do not depend on the folds. This
        problem has the last place, k, behind those of the k folds.

        other: Of the same table, with the sizes of this ledger, and perhaps larger sizes.
        row: The row of the other ledger that has the same γ.
        """
        m, k = self.taus.size, self.k
        theirs = np.s_[row, :m, other.k]
        self.answer.objective[g, :, k] = other.answer.objective[theirs]
        self.cells.bound[g, :, k] = other.cells.bound[theirs]
        self.cells.exact[g, :, k] = other.cells.exact[theirs]
        found = [other.support(row, t, other.k) for t in range(m)]
        self.answer.choice[g, :, k] = [self.supports.number(support) for support in found]

    def take_proof(self, at: Cell, found: Answer) -> None:
        """Enter the support, the bound and the status that a solver returned for one problem."""
        g, t, _ = at
        self.work.n_nodes[g] += found.n_nodes
        tau, constraints, support = int(self.taus[t]), self.data.constraints, found.support
        support = constraints.padded(support, tau)
        self.take(at, support, found.objective, found.lower_bound, found.proved)

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
        if objective <= self.answer.objective[at]:
            self.answer.objective[at] = objective
            self.answer.choice[at] = self.supports.number(support)
        self.cells.bound[at] = max(self.cells.bound[at], min(bound, self.answer.objective[at]))
        self.cells.exact[at] |= proved

    def offer(self, g: int, t: int, folds: NDArray[np.intp] | int, support: Support) -> None:
        """Make a support the incumbent of the folds whose incumbents have larger objectives."""
        folds = np.atleast_1d(folds)
        if folds.size:
            found = self.fits(g, folds, support)
            self._enter((g, t, folds), *found, np.full(folds.size, self.supports.number(support)))

    def _enter(self, at: Any, objective: Array, error: Array, choice: NDArray[np.intp]) -> None:
        """Make supports the incumbents of the cells whose incumbents have larger objectives.

        at: Index into arrays of shape (γ, τ, k + 1).
        objective, error, choice: Objectives, held-out errors and numbers of the new supports.
        """
        better = objective < self.best.objective[at]
        if better.any():
            self.best.put(at, (objective, error, choice), better)

    def prove(self, g: Any, t: Any, folds: Any) -> None:
        """Mark incumbents as optimal; an incumbent with a smaller objective becomes the answer.

        g, t, folds: Rows, positions of τ and numbers of folds, as indices into arrays of shape
            (γ, τ, k + 1).
        """
        at = g, t, folds
        better = self.best.objective[at] < self.answer.objective[at] * (1.0 - TIE)
        if np.any(better):
            self.answer.put(at, self.best.of(at), better)
        self.cells.exact[at] = True
        self.cells.lower[at] = self.cells.upper[at] = self.answer.error[at]

    def narrow(self, g: int, t: Any, folds: Any, low: Any, high: Any) -> None:
        """Intersect the intervals of some folds' errors with the intervals [low, high].

        Ends that rounding has moved past each other are exchanged. The interval of a proved answer
        is its error, and stays.

        t, folds, low, high: Numbers, or arrays that broadcast together; no cell occurs twice.
            [low, high] must hold the error of every optimal support, or the intersection is wrong.
        """
        at = g, t, folds
        low, high = np.maximum(self.cells.lower[at], low), np.minimum(self.cells.upper[at], high)
        high = np.where(high < MAX_UPPER, high, np.inf)
        proved = self.cells.exact[at]
        self.cells.lower[at] = np.where(proved, self.cells.lower[at], np.minimum(low, high))
        self.cells.upper[at] = np.where(proved, self.cells.upper[at], np.maximum(low, high))

    def narrow_by_objective(self, g: int, t: int) -> None:
        """Raise lower bounds by Corollary 3 of the first paper, h_j ≥ u* − u_j, where not exact.

        u_j is the objective of fold j's incumbent, and u* the optimum of all rows, in whose place
        a lower bound is used. Folds are skipped whose training and held-out rows are not all rows.
        """
        left = np.flatnonzero(~self.cells.exact[g, t, : self.k]).tolist()
        folds = np.array([j for j in left if self.data.covers(j)], dtype=np.intp)
        full, best = float(self.cells.bound[g, t, self.k]), self.best.objective[g, t, folds]
        low = np.array([objective_gap_bound(full, float(objective)) for objective in best])
        self.narrow(g, t, folds, low, np.inf)

    def share_bounds(self) -> None:
        """Raise the bounds on the optimum of all rows to what the bounds at other γ and τ imply.

        The optimum falls with τ, so that a bound at a τ holds for every smaller τ. It rises with γ
        and is concave, so that bounds at two γ hold in between as well, on a straight line, as
        ``bounds_along_gamma`` says. A bound stays at most the objective of the answer,
        which rounding could let it exceed. Rows of the arrays beyond the number of γ are spare.
        """
        at = np.s_[: len(self.gammas), :, self.k]
        bound = self.cells.bound[at]
        known = np.maximum.accumulate(bound[:, ::-1], axis=1)[:, ::-1]
        shared = bounds_along_gamma(np.array(self.gammas), known)
        bound[:] = np.maximum(bound, np.minimum(shared, self.answer.objective[at]))

    def bracket(
        self,
        g: int,
        j: int,
        leaves: Leaves | None = None,
        where: NDArray[np.intp] | None = None,
        training: SparseRidgeProblem | None = None,
    ) -> None:
        """Intervals of a fold's error, from a tree's leaves, at the sizes that are not exact.

        Every leaf bounds the predictions ŷ of supports below the leaf, and Corollary 2 of the first
        paper bounds (y − ŷ)². Without leaves the root counts as open, which gives an interval
        around the fold's ridge fit on all columns.

        where: Positions of the sizes that the tree was searched for; by default all sizes.
        training: The training problem of fold j, where the caller has it at any γ.
        """
        sizes = np.arange(self.taus.size) if where is None else where
        left = sizes[~self.cells.exact[g, sizes, j]]
        if left.size == 0:
            return
        problem = (training or self.data.training(j)).replace(gamma=self.gammas[g])
        H, t = self.data.held_out(j)
        best = [self.supports[c] for c in self.best.choice[g, left, j]]
        known = stacked(best, self._most)
        predicted = known_path(problem, [self.gammas[g]], self.taus[left], known[None]).predict(H)
        upper, sizes = self.best.objective[g, left, j, None], self.taus[left]
        upper = upper + attained_margin(problem, upper)
        leaves = Leaves.root(problem.p, problem.p) if leaves is None else leaves
        low, high = prediction_ranges(problem, leaves, H, sizes, predicted[0], upper)
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
        open_ends = np.isinf(self.cells.upper[list(rows), :, : self.k])
        without: NDArray[np.bool_] = np.logical_or.reduce(open_ends, axis=1)
        for j in np.flatnonzero(without.any(axis=0)).tolist():
            training = self.data.training(j)
            for g in np.array(rows)[without[:, j]].tolist():
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
        error, std_error = mean_over_folds(self.answer.error[at, :, :k], self.data.fold_weight)
        lower, upper = (
            side[at, :, :k].sum(axis=2) / total for side in (self.cells.lower, self.cells.upper)
        )
        exact = np.asarray(self.cells.exact[at, :, :k].all(axis=2))
        gammas, rounding = np.array(self.gammas)[at], self.data.rounding
        lower = np.where(exact, error, np.minimum(lower, error))
        upper = np.where(exact, error, np.maximum(upper, error))
        return Known(gammas, self.taus, error, std_error, lower, upper, exact, rounding)

    def sums(self, values: Array) -> Array:
        """An array of the ledger, such as ``cells.lower``, summed over the folds, shape (γ, τ)."""
        return np.asarray(values[: len(self.gammas), :, : self.k].sum(axis=2))

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
            "n_mio": self.work.n_mio[at].tolist(),
            "n_nodes": self.work.n_nodes[at].tolist(),
            "seconds": self.work.seconds[at].tolist(),
            "mio_by_tau": self.cells.searched[at, :, :k].sum(axis=2) + self.work.trees[at],
            "supports": [self.supports] * len(at),
            "choice": self.answer.choice[at, :, :k],
            "fold_error": self.answer.error[at, :, :k],
            "most": [self._most] * len(at),
            "models": models,
            "model_objective": self.answer.objective[at, :, k],
            "model_bound": self.cells.bound[at, :, k],
            "model_proved": self.cells.exact[at, :, k],
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
        finished = self.cells.exact[g] | self.complete(g)
        return np.stack([finished, self.cells.lower[g], self.cells.upper[g], self.cells.bound[g]])

    @property
    def _stored(self) -> dict[str, NDArray[Any]]:
        """The arrays of cells that a checkpoint keeps, by name."""
        kept = "exact", "searched", "left_open", "lower", "upper", "bound"
        cells = self.cells.named()
        return {**self.answer.named(), **{name: cells[name] for name in kept}}

    def stored(self, g: int, problems: NDArray[np.intp]) -> dict[str, Any]:
        """What a checkpoint keeps of some problems at the γ of row g, as JSON values.

        problems, shape (m,): Numbers of problems, in increasing order.
        """
        used, choice = np.unique(self.answer.choice[g][:, problems], return_inverse=True)
        return {
            **{name: array[g][:, problems].tolist() for name, array in self._stored.items()},
            **{name: array[g].tolist() for name, array in self.work.named().items()},
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
        every = g, np.arange(self.taus.size)[:, None], at
        cells = {
            name: np.array(stored[name], dtype=array.dtype).reshape(-1, at.size)
            for name, array in self._stored.items()
        }
        supports = [np.array(columns, dtype=np.intp) for columns in stored["supports"]]
        cells["choice"] = np.array([self.supports.number(one) for one in supports])[cells["choice"]]
        ended = bool(stored["history"]) and not self.history[g]
        model = (at == self.k) & np.isfinite(cells["objective"])
        for name, counts in self.work.named().items():
            counts[g] = np.maximum(counts[g], stored[name])
        if ended:
            self.history[g] = stored["history"]
        better = model & (cells["objective"] <= self.answer.objective[g][:, at])
        taken = (cells["exact"] | ended | better) & ~self.cells.exact[g][:, at]
        self.answer.put(every, tuple(cells[name] for name in MODEL), taken)
        cells["objective"] = np.where(taken, cells["objective"], np.inf)
        self._enter(every, *(cells[name] for name in MODEL))
        self.narrow(*every, cells["lower"], cells["upper"])
        known = self.cells
        for name in ("exact", "searched", "left_open"):
            self._stored[name][g][:, at] |= cells[name]
        for side in (known.lower, known.upper):
            proved = known.exact[g][:, at]
            side[g][:, at] = np.where(proved, self.answer.error[g][:, at], side[g][:, at])
        bound = np.minimum(cells["bound"], self.answer.objective[g][:, at])
        self.cells.bound[g][:, at] = np.maximum(self.cells.bound[g][:, at], bound)
