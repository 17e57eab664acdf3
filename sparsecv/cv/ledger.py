"""The ledger: what is known of every training problem at every γ and τ.

A cell (g, t, j) is problem j at the γ of row g and the t-th size τ. Problem j < k is the training
problem of fold j; problem k is the problem of all rows, whose solution is the model. Four things
are kept apart. The answer to a problem is the support that the problem's own rows gave, or a
support that is proved optimal; the error of the answer on the held-out rows is the estimate of the
fold's error. The incumbent is the best support known from anywhere, other folds included: it bounds
the optimum of its problem from above, and becomes the answer only where it is proved optimal. An
interval holds the errors of all optimal supports. Where the answer is proved, its error and both
ends of the interval agree.

In every function ``g`` is the number of a γ, in the order in which they were added, ``t`` the
position of a size in ``taus``, and ``j`` the number of a problem; ``folds`` are numbers below k.
Errors are sums of squared errors over the rows that a fold holds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.core.error_margin import MAX_SHARED
from ..solvers.core.leaves import Leaves
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer, Status
from ..solvers.core.rounding import EQUAL_SHARE, exact_margin
from ..solvers.core.ties import first_by_exchanges, has_ties
from ..solvers.kernels.linalg import stacked
from ..solvers.leaps.deleted_rows import DeletedRowSubsets, deleted_fits
from ..solvers.leaps.gamma_trees import Listed
from ..solvers.leaps.open_nodes import prediction_ranges
from ..solvers.ridge_fits import SupportPath
from .arrays import MODEL, CellProofs, GammaLedger, Models, SearchWork, Supports
from .fold_bounds import bounds_along_gamma, objective_gap_bound, squared_error_bounds
from .margins import Margins
from .needs import Known
from .results import mean_over_folds

Array = NDArray[np.float64]
Support = NDArray[np.intp]
Cell = tuple[int, int, int]  # (g, t, j): a γ, a size and a problem, each by its number
# For leave-one-out a fold's fit follows from the fit of all rows by deleting a row, which divides
# its residual by one minus its leverage, a number from 0 to 1. Where that number is at most this
# share, digits cancel, and the fold is fitted from its own rows instead. A fit by deleting a row
# thus keeps about ten of sixteen digits. The number is a choice.
MIN_RESIDUAL_SHARE = 1e-5
# A larger upper bound on a fold's error counts as ∞, so that sums over folds do not overflow. The
# number is a choice.
MAX_UPPER = 1e290


class Ledger(GammaLedger):
    """Answers, incumbents and intervals of all problems, in arrays of shape (γ, τ, k + 1).

    first_rows: The rows that were added first, whose trees tell whether one is tried at other γ.
    status, history: For every γ the worst limit that was reached, and the steps of Algorithm 1.
    answer: The models that answer the problems.
    incumbent: The incumbents of the folds; for the problem of all rows the answer is its incumbent.
    cells: What is proved and was searched of every cell.
    work: What the searches at every γ have taken.
    supports: Every distinct support, in the order of its first use; models name them by number.
    listed: By problem what the trees of its proofs have listed, for its proofs at other γ.
    margins: Says how far rounding may have moved the errors of answers.
    """

    def __init__(
        self, data: FoldData, taus: NDArray[np.intp], gammas: Sequence[float] = ()
    ) -> None:
        super().__init__(taus)
        self.data = data
        self.first_rows: list[int] = []
        self.status: list[Status] = []
        self.history: list[list[list[float]]] = []
        shape = taus.size, self.k + 1
        self.answer, self.incumbent = Models(shape), Models(shape)
        self.cells, self.work, self.supports = CellProofs(shape), SearchWork(taus.size), Supports()
        self.sized = self.answer, self.incumbent, self.cells
        self.arrays = *self.sized, self.work
        self.listed: dict[int, Listed] = {}
        self.margins = Margins(data)
        self.add(gammas)

    @property
    def _max_columns(self) -> int:
        """The most columns of a support of the largest size, where a group may count as one."""
        return self.data.constraints.most_columns(int(self.taus[-1]))

    @property
    def k(self) -> int:
        """The number of folds, which is the number of the problem of all rows."""
        return self.data.folds.k

    def extended(self, taus: NDArray[np.intp]) -> Ledger:
        """A ledger of more sizes, which knows what this ledger knows if its sizes come first there.

        Nodes and trees are counted from 0 there, and Algorithm 1 has no history; seconds go on.

        taus: The sizes of the new ledger, increasing. If there are others than those of this ledger
            before its last size, nothing is known there.
        """
        other, rows = Ledger(self.data, taus), len(self.gammas)
        if other.go_on_from(self):
            other.work.seconds[:rows] = self.work.seconds[:rows]
            other.first_rows, other.status = self.first_rows, self.status.copy()
            other.supports = self.supports
        return other

    def add(self, gammas: Sequence[float]) -> list[int]:
        """Give every γ, which has no row yet, one in which nothing is known; return their numbers.

        The rows of the first call that adds any are ``first_rows``.
        """
        rows = super().add(gammas)
        self.first_rows = self.first_rows or rows
        self.status += [Status.OPTIMAL] * len(gammas)
        self.history += [[] for _ in gammas]
        return rows

    def answered(self, g: int) -> bool:
        """Whether every problem, that of all rows included, has an answer at every τ."""
        return bool(np.isfinite(self.answer.objective[g]).all())

    def complete(self, g: int) -> bool:
        """Whether every answer is proved, or Algorithm 1 has ended at its tolerance."""
        search_ended = bool(self.history[g]) and self.status[g] is Status.OPTIMAL
        return self.answered(g) and (search_ended or bool(self.cells.exact[g].all()))

    def proved(self, g: int) -> bool:
        """Whether every fold's answer is proved at every τ; that of all rows does not count."""
        return bool(self.cells.exact[g, :, : self.k].all())

    def worsen_status(self, g: int, status: Status) -> None:
        """Give one γ the worse of its status and that by which some work at the γ has ended."""
        self.status[g] = Status.worst([self.status[g], status])

    def support(self, g: int, t: int, j: int) -> Support:
        """The columns of problem j's answer, in increasing order; there has to be an answer."""
        return self.supports[int(self.answer.choice[g, t, j])]

    def problem(self, g: int, j: int) -> SparseRidgeProblem:
        """The training problem j at the γ of row g, with a placeholder for τ."""
        return self.data.problem(j).replace(gamma=self.gammas[g])

    # supports and proofs enter

    def enter_answers(self, rows: Sequence[int], j: int, path: SupportPath, error: Any) -> None:
        """Enter the first answers of problem j at some γ, and what is proved of them.

        rows: The row of every γ of the path.
        path: Supports that problem j's own rows gave. They become the answers where no answer is
            proved.
        error: Sums of squared errors of the supports on the rows that fold j holds out, shape
            (γ, τ) of the path; 0 for the problem of all rows.
        """
        at = self._cells_of(rows, j, path)
        self.cells.left_open[at] = ~path.proved
        for g in rows:
            self.worsen_status(g, path.status)
        self._enter_path(at, path, error, replaces=~self.cells.exact[at])
        if j < self.k:  # The counts of first answers are those of the folds.
            self.work.n_nodes[rows] += path.n_nodes
        self.grown[j] |= path.grown
        self.bracket_by_tree(rows, j, path)

    def enter_proofs(self, rows: Sequence[int], j: int, path: SupportPath, error: Any) -> None:
        """Enter what a later path has proved of problem j at some γ.

        Answers of folds give way to proved supports alone, which are the first of those that tie.
        The answer of the problem of all rows gives way to any better support.

        rows, path, error: As of :meth:`enter_answers`; the path may have some of the sizes.
        """
        at = self._cells_of(rows, j, path)
        better = (j == self.k) & (path.objective <= self.answer.objective[at])
        replaces = better | path.proved
        self._enter_path(at, path, error, replaces=replaces & ~self.cells.exact[at])
        self.work.n_nodes[rows] += path.n_nodes

    def _cells_of(self, rows: Sequence[int], j: int, path: SupportPath) -> tuple[Any, Any, int]:
        """The index of the cells of problem j that a path has answered, of shape (γ, τ).

        rows: The row of every γ of the path.
        """
        return np.array(rows)[:, None], np.searchsorted(self.taus, path.sizes), j

    def _enter_path(
        self, at: tuple[Any, Any, int], path: SupportPath, error: Any, replaces: NDArray[np.bool_]
    ) -> None:
        """Enter the supports of a path as incumbents, some of them as answers, and its proofs.

        at: The cells of the path (:meth:`_cells_of`).
        error: As of :meth:`enter_answers`.
        replaces, shape (γ, τ): Whether a support of the path replaces the answer.
        """
        rows, where, j = at
        number = np.array(
            [[self.supports.number(s) for s in path.at(i)] for i in range(path.gammas.size)]
        )
        models = path.objective, np.zeros(number.shape) + error, number
        for i in path.unfinished:
            if path.stopped(i) in (Status.PRECISION, Status.UNPROVED):
                self.cells.imprecise[rows[i], where, j] |= ~path.proved[i]
        self._answer(at, models, replaces)
        if j == self.k:
            bound = np.minimum(path.lower_bound, self.answer.objective[at])
            self.cells.bound[at] = np.maximum(self.cells.bound[at], bound)
            self.cells.exact[at] |= path.proved
            return
        self._improve(at, *models)
        self.cells.searched[at] |= path.searched
        self.work.n_mio[rows[:, 0]] += path.n_trees
        of_gamma, of_size = np.nonzero(path.proved)
        self.mark_proved(rows[of_gamma, 0], where[of_size], j)

    def bracket_by_tree(self, rows: Sequence[int], j: int, path: SupportPath) -> None:
        """Narrow a fold's intervals by the leaves of a path's trees that a limit has left open.

        rows, path: As of :meth:`enter_answers`. Nothing is done for the problem of all rows, j = k.
        """
        where = np.searchsorted(self.taus, path.sizes)
        for i in path.unfinished if j < self.k else ():
            self.bracket(rows[i], j, path.leaves(i), where)

    def enter_deleted_rows(
        self, g: int, folds: NDArray[np.intp], found: DeletedRowSubsets, factor: Array
    ) -> None:
        """Enter incumbents, intervals and proofs from a tree that leave-one-out folds share.

        The tree was searched for all sizes above 0.

        folds: The folds that hold out the tree's rows, shape (m,).
        found: The results of the tree, NaN for a row that cannot be deleted without loss of digits:
            its fold is left as it is.
        factor: What multiplies the residual of every deleted row, so that its square is the fold's
            error (``FoldData.deleted_rows``), shape (m,).
        """
        numbers = [self.supports.number(support) for support in found.supports]
        number = np.array(numbers, dtype=np.intp)[found.choice]
        objective = np.where(np.isnan(found.objective), np.inf, found.objective)
        some = np.flatnonzero(self.taus)
        every = some[:, None]
        error = (factor * found.residual) ** 2
        self._improve((g, every, folds), objective, error, number)
        low, high = squared_error_bounds(factor * found.low, factor * found.high)
        usable = np.isfinite(objective) & ~self.cells.exact[g, every, folds]
        # The tree has ended for a fold where it bounds the residual to a single number. Its
        # support is the first of those that tie.
        ended = usable & (found.low == found.high)
        margin = self._margins_of_open(g, folds, error, usable & ~ended, number)
        low = np.minimum(low, np.maximum(error - margin, 0.0))
        high = np.maximum(high, error + margin)
        for i, t in enumerate(some.tolist()):
            here = usable[i]
            self.narrow(g, t, folds[here], low[i, here], high[i, here])
            self._answer((g, t, folds), (objective[i], error[i], number[i]), ended[i])
            self.mark_proved(g, t, folds[ended[i]])

    def enter_no_column(self, g: int) -> None:
        """Answer all folds at the size 0, if it is a size, by its one support, which is proved."""
        if self.taus[0] == 0:
            folds = np.arange(self.k)
            self.offer(g, 0, folds, np.empty(0, dtype=np.intp))
            self.mark_proved(g, 0, folds)

    def _margins_of_open(
        self,
        g: int,
        folds: NDArray[np.intp],
        error: Array,
        left_open: NDArray[np.bool_],
        number: NDArray[np.intp],
    ) -> Array:
        """How far rounding may have moved errors that a shared tree has left open, (τ, m); else 0.

        The fit of all rows gives the margins. They are ∞ where it gives none, and the tree then
        says nothing of the fold's error.

        folds, shape (m,): Numbers of the folds.
        error, left_open, number, shape (τ, m): The squared errors, whether their margins are
            wanted, and the numbers of the supports.
        """
        margin = np.zeros(error.shape)
        if left_open.any():
            errors = np.zeros((1, len(error), self.k))
            wanted = np.zeros(errors.shape, dtype=bool)
            wanted[0][:, folds] = left_open
            errors[0][:, folds] = np.where(left_open, error, 0.0)
            place = {j: i for i, j in enumerate(folds.tolist())}

            def supports(_: int, j: int) -> NDArray[np.int64]:
                some = [] if j not in place else number[left_open[:, place[j]], place[j]].tolist()
                return stacked([self.supports[c] for c in some], self._max_columns)

            gammas = np.array([self.gammas[g]])
            found = self.margins.by_deleting(gammas, errors, wanted, supports)[0]
            margin[left_open] = found[:, folds][left_open]
        return margin

    def copy_models(self, g: int, other: Ledger, other_row: int) -> None:
        """Take over what is known of all rows at the γ of row g from a ledger of other folds.

        Support, objective and bound of the problem of all rows do not depend on the folds.

        other: A ledger of the same table, whose first sizes are those of this ledger.
        other_row: The row of the other ledger that has the same γ, at which all rows have answers.
        """
        m, k = self.taus.size, self.k
        theirs = np.s_[other_row, :m, other.k]
        self.answer.objective[g, :, k] = other.answer.objective[theirs]
        self.cells.bound[g, :, k] = other.cells.bound[theirs]
        self.cells.exact[g, :, k] = other.cells.exact[theirs]
        models = [other.support(other_row, t, other.k) for t in range(m)]
        self.answer.choice[g, :, k] = [self.supports.number(support) for support in models]

    def enter_solution(self, cell: Cell, found: Answer) -> None:
        """Enter the support, the bound and the status that a solver returned for one problem.

        A support of fewer columns than the size is filled up, as supports of the ledger are.
        """
        g, t, _ = cell
        self.work.n_nodes[g] += found.n_nodes
        tau, constraints, support = int(self.taus[t]), self.data.constraints, found.support
        support = constraints.padded(support, tau)
        self.enter_support(cell, support, found.objective, found.lower_bound, proved=found.proved)

    def enter_support(
        self, cell: Cell, support: Support, objective: float, bound: float, *, proved: bool
    ) -> None:
        """Enter a support of one problem where it is better than the known support, and its proof.

        objective, bound: The support's objective and a lower bound on the least objective, which
            are used for the problem of all rows alone: a fold's objective is computed here.
        proved: Whether no support of the size is better.
        """
        g, t, j = cell
        if j < self.k:
            self.offer(g, t, j, support)
            if proved:
                self.prove_incumbents(g, t, j)
            return
        # A support that is proved is the first of those that tie, and stays.
        if not self.cells.exact[cell] and objective <= self.answer.objective[cell]:
            self.answer.objective[cell] = objective
            self.answer.choice[cell] = self.supports.number(support)
        # A bound above an attained objective is off by rounding.
        bound = min(bound, self.answer.objective[cell])
        self.cells.bound[cell] = max(self.cells.bound[cell], bound)
        if proved:
            self._settle(cell)
        self.cells.exact[cell] |= proved

    def offer(self, g: int, t: int, folds: NDArray[np.intp] | int, support: Support) -> None:
        """Make a support the incumbent of the folds whose incumbents have larger objectives."""
        folds = np.atleast_1d(folds)
        if folds.size:
            objective, error = self.fits(g, folds, support)
            number = np.full(folds.size, self.supports.number(support))
            self._improve((g, t, folds), objective, error, number)

    def _improve(self, at: Any, objective: Array, error: Array, number: NDArray[np.intp]) -> None:
        """Make supports the incumbents of the cells whose incumbents have larger objectives.

        at: Index of the cells into arrays of shape (γ, τ, k + 1).
        objective, error, number: Objectives, held-out errors and numbers of the new supports.
        """
        better = objective < self.incumbent.objective[at]
        if better.any():
            self.incumbent.put(at, (objective, error, number), better)

    def _answer(self, at: Any, values: tuple[Any, ...], where: NDArray[np.bool_]) -> None:
        """Replace some answers, whose margins are then unknown; arguments as of ``Models.put``."""
        self.answer.put(at, values, where)
        self.cells.margin[at] = np.where(where, np.nan, self.cells.margin[at])

    def prove_incumbents(self, g: int, t: int, folds: NDArray[np.intp] | int) -> None:
        """Mark incumbents as optimal that are proved by bounds, which do not tell ties apart.

        Of supports that tie with an incumbent the first that exchanges lead to is the answer.
        """
        for j in np.atleast_1d(folds).tolist():
            self._settle((g, t, j))
        self.mark_proved(g, t, folds)

    def _settle(self, cell: Cell) -> None:
        """Let the first of the supports that tie answer a problem, as far as exchanges lead.

        Where every row is a fold, exchanges are tried that may tie with all rows.
        """
        g, t, j = cell
        best = self.answer
        if j < self.k and self.incumbent.objective[cell] < self.answer.objective[cell]:
            best = self.incumbent
        support, whole = self.supports[int(best.choice[cell])], self.problem(g, self.k)
        if j < self.k and self.data.deleted_rows is not None and not has_ties(whole, support):
            return
        problem = whole if j == self.k else self.problem(g, j)
        first = first_by_exchanges(problem, support)
        if np.array_equal(first, self.support(*cell)):
            return
        objective, error = np.array([problem.objective(first)]), np.zeros(1)
        if j < self.k:
            objective, error = self.fits(g, np.array([j]), first)
        models = objective, error, np.array([self.supports.number(first)])
        self._answer((g, t, np.array([j])), models, np.ones(1, dtype=np.bool_))

    def mark_proved(self, g: Any, t: Any, folds: Any) -> None:
        """Mark incumbents as optimal, and set the intervals to the errors of the answers.

        An incumbent with a smaller objective than the answer becomes the answer. One that ties with
        it does not: the caller has made the first of supports that tie the answer.

        g, t, folds: Rows, positions of τ and numbers of folds, as indices into arrays of shape
            (γ, τ, k + 1).
        """
        at = g, t, folds
        better = self.incumbent.objective[at] < self.answer.objective[at] * (1.0 - EQUAL_SHARE)
        if np.any(better):
            self._answer(at, self.incumbent.of(at), better)
        self.cells.exact[at] = True
        self.cells.lower[at] = self.cells.upper[at] = self.answer.error[at]

    # intervals narrow

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
        """Raise the lower bounds of unproved folds by Corollary 3 of the first paper.

        The error of fold j is at least u* − u_j, where u_j is the objective of its incumbent, and
        u* the optimum of all rows, in whose place a lower bound is used. The corollary does not
        hold for a fold whose training and held-out rows are not all rows; such folds are skipped.
        """
        unproved = np.flatnonzero(~self.cells.exact[g, t, : self.k]).tolist()
        folds = np.array([j for j in unproved if self.data.covers(j)], dtype=np.intp)
        full, upper = float(self.cells.bound[g, t, self.k]), self.incumbent.objective[g, t, folds]
        low = np.array([objective_gap_bound(full, float(objective)) for objective in upper])
        self.narrow(g, t, folds, low, np.inf)

    def share_bounds(self) -> None:
        """Raise the bounds on the optimum of all rows to what the bounds at other γ and τ imply.

        The optimum falls with τ, so that a bound at a τ holds for every smaller τ. It rises with γ
        and is concave, so that bounds at two γ hold in between as well, on a straight line, as
        ``bounds_along_gamma`` says. A bound stays at most the objective of the answer,
        which rounding could let it exceed.
        """
        at = np.s_[: len(self.gammas), :, self.k]  # Further rows of the arrays have no γ yet.
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
        """Narrow the intervals of fold j's error by a tree's leaves, at the sizes without a proof.

        An optimal support is the incumbent or lies below a leaf. Every leaf bounds the predictions
        ŷ of supports below the leaf, and Corollary 2 of the first paper bounds (y − ŷ)². The
        incumbent's own error has the margin that rounding may have moved it by.

        j: The number of a fold, which has an incumbent at every one of these sizes.
        leaves: What a search has left open. Without leaves the root counts as open, which gives an
            interval around the fold's ridge fit on all columns.
        where: Positions of the sizes that the tree was searched for; by default all sizes.
        training: The training problem of fold j, where the caller has it at any γ.
        """
        places = np.arange(self.taus.size) if where is None else where
        places = places[~self.cells.exact[g, places, j]]
        if places.size == 0:
            return
        problem = (training or self.data.training(j)).replace(gamma=self.gammas[g])
        (rows, targets), sizes = self.data.held_out(j), self.taus[places]
        incumbents = [self.supports[c] for c in self.incumbent.choice[g, places, j]]
        known = stacked(incumbents, self._max_columns)
        predicted = SupportPath.of(problem, [self.gammas[g]], sizes, known[None]).predict(rows)
        upper = self.incumbent.objective[g, places, j, None]
        leaves = Leaves.root(problem.p, problem.p) if leaves is None else leaves
        low, high = prediction_ranges(problem, leaves, rows, sizes, predicted[0], upper)
        sides = squared_error_bounds(low - targets, high - targets)
        least, most = (side.sum(axis=1) for side in sides)
        gamma, own = np.array([self.gammas[g]]), np.square(predicted - targets).sum(axis=2)
        enough = exact_margin(most[None])
        margin = self.margins.of_fold(j, gamma, own, enough, lambda *_: known, [g], problem)[0]
        least = np.minimum(least, np.maximum(own[0] - margin, 0.0))
        self.narrow(g, places, j, least, np.maximum(most, own[0] + margin))

    def bracket_the_rest(self, rows: Sequence[int], limits: Limits | None = None) -> None:
        """Give intervals to the folds that have none; all folds must have incumbents at every τ.

        All γ of a fold follow one another, as they share the factors of its training rows.

        rows: The numbers of the γ.
        limits: A fold is passed over where the time that remains does not suffice for its interval.
        """
        small, large = sorted((self.data.folds.n, self.data.p))
        open_ends = np.isinf(self.cells.upper[list(rows), :, : self.k])
        lacks_interval: NDArray[np.bool_] = np.logical_or.reduce(open_ends, axis=1)
        for j in np.flatnonzero(lacks_interval.any(axis=0)).tolist():
            training = self.data.training(j)
            for g in np.array(rows)[lacks_interval[:, j]].tolist():
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

        folds, shape (m,): Numbers of folds.
        support: Increasing columns.
        """
        data = self.data
        objective, error = np.empty(folds.size), np.empty(folds.size)
        alone = np.ones(folds.size, dtype=bool)
        if folds.size > 1 and (deleted := data.deleted_rows) is not None:
            # These rows are centred by the means of all rows and stretched, so that deleting row i
            # gives the problem that is centred without row i of the table. The residual of the
            # deleted row is stretched, too; times factor i it is the residual of the table's row.
            held_out, whole = deleted.row_of[folds], self.problem(g, self.k)
            found = deleted_fits(whole, support, deleted.rows[held_out], deleted.targets[held_out])
            objective[:] = found.objective
            error[:] = (deleted.factor[held_out] * found.residual) ** 2
            # A NaN, which compares as false, is fitted alone, too.
            alone = ~(found.one_minus_leverage > MIN_RESIDUAL_SHARE)
        for i in np.flatnonzero(alone):
            j = int(folds[i])
            fit = self.problem(g, j).fit(support)
            rows, targets = data.held_out(j)
            objective[i] = fit.objective
            error[i] = float(np.sum((targets - rows[:, support] @ fit.coef) ** 2))
        return objective, error

    # what is returned

    def known(self, rows: Sequence[int] | NDArray[np.intp]) -> Known:
        """What is known of the CV errors at the γ of some rows, at which every fold has answers.

        An error whose folds are all proved is exact where rounding may have moved it by at most a
        millionth; elsewhere its bounds are widened by what rounding may have moved it by. Rounding
        may leave an estimate outside its bounds; the bounds then give way to it.
        """
        at, k, total = list(rows), self.k, self.data.total
        error, std_error = mean_over_folds(self.answer.error[at, :, :k], self.data.fold_weight)
        margin = self._margins(at).sum(axis=2) / total
        sides = (self.cells.lower, self.cells.upper)
        lower, upper = (side[at, :, :k].sum(axis=2) / total for side in sides)
        proved = np.asarray(self.cells.exact[at, :, :k].all(axis=2))
        exact = proved & (margin <= exact_margin(error, self.data.rounding))
        lower, upper = np.where(proved, error, lower), np.where(proved, error, upper)
        lower = np.where(exact, error, np.maximum(np.minimum(lower, error) - margin, 0.0))
        upper = np.where(exact, error, np.maximum(upper, error) + margin)
        gammas, rounding = np.array(self.gammas)[at], self.data.rounding
        return Known(
            gammas, self.taus, error, std_error, lower, upper, exact, rounding, settled=proved
        )

    def _margins(self, rows: list[int]) -> Array:
        """How far rounding may have moved the errors of proved answers, shape (γ, τ, k); else 0.

        A margin is computed where it is asked for first.

        rows: The numbers of the γ.
        """
        k, cells = self.k, self.cells
        proved, margin = cells.exact[rows, :, :k], cells.margin[rows, :, :k]
        missing = proved & np.isnan(margin)
        if missing.any():

            def supports(g: int, j: int) -> NDArray[np.int64]:
                some = [self.support(rows[g], t, j) for t in range(self.taus.size)]
                return stacked(some, self._max_columns)

            gammas, errors = np.array(self.gammas)[rows], self.answer.error[rows, :, :k]
            margin[missing] = self.margins.of(gammas, errors, missing, supports)[missing]
            cells.margin[rows, :, :k] = margin
        return np.where(proved, margin, 0.0)

    def blur(self, g: int) -> tuple[Array, Array]:
        """Errors of the answers at the γ of row g, and how far rounding may have moved them.

        Both are sums over all folds, one number for every size above 0. Beyond 45 columns
        (``MAX_SHARED``) there is one number, that of the size of least error.
        """
        errors = self.answer.error[g, :, : self.k]
        sizes = np.flatnonzero(self.taus)  # Rounding of columns does not reach the size 0.
        if self.data.p > MAX_SHARED:
            sizes = sizes[[int(errors[sizes].sum(axis=1).argmin())]]

        def supports(_: int, j: int) -> NDArray[np.int64]:
            return stacked([self.support(g, t, j) for t in sizes.tolist()], self._max_columns)

        errors, gammas = errors[sizes][None], np.array([self.gammas[g]])
        every = np.ones(errors.shape, dtype=bool)
        margins = self.margins.of(gammas, errors, every, supports)
        return errors[0].sum(axis=1), margins[0].sum(axis=1)

    def sums(self, values: Array) -> Array:
        """An array of the ledger, such as ``cells.lower``, summed over the folds.

        values, shape (rows, τ, k + 1): Rows that have no γ yet are left out.
        Returns, shape (γ, τ): The sums, in which the problem of all rows has no part.
        """
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
            "most": [self._max_columns] * len(at),
            "models": models,
            "model_objective": self.answer.objective[at, :, k],
            "model_bound": self.cells.bound[at, :, k],
            "model_proved": self.cells.exact[at, :, k],
            "status": [
                str(self._ended(g, exact=bool((of_gamma | ~settled).all())))
                for g, of_gamma, settled in zip(at, known.exact, known.settled, strict=True)
            ],
            "history": [self.history[g] for g in at],
        }

    def _ended(self, g: int, exact: bool) -> Status:
        """How the work at the γ of row g has ended; optimal where everything there is proved.

        exact: Whether rounding leaves alone every CV error whose folds are all proved.
        """
        ended = [] if self.complete(g) else [self.status[g], Status.UNPROVED]
        return Status.worst([Status.OPTIMAL, *ended, *([] if exact else [Status.PRECISION])])

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

        Supports are numbered anew, by their places in the list ``supports`` that is kept.

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
        Only answers that are taken over become incumbents.
        """
        problems = np.array(stored["problems"], dtype=np.intp)
        at, cells = (g, np.arange(self.taus.size)[:, None], problems), self.cells
        new = {
            name: np.array(stored[name], dtype=array.dtype).reshape(-1, problems.size)
            for name, array in self._stored.items()
        }
        supports = [np.array(columns, dtype=np.intp) for columns in stored["supports"]]
        new["choice"] = np.array([self.supports.number(one) for one in supports])[new["choice"]]
        for name, counts in self.work.named().items():
            counts[g] = np.maximum(counts[g], stored[name])
        search_ended = bool(stored["history"]) and not self.history[g]
        if search_ended:
            self.history[g] = stored["history"]
        of_all_rows = (problems == self.k) & np.isfinite(new["objective"])
        better = of_all_rows & (new["objective"] <= self.answer.objective[at])
        taken = (new["exact"] | search_ended | better) & ~cells.exact[at]
        self._answer(at, tuple(new[name] for name in MODEL), taken)
        new["objective"] = np.where(taken, new["objective"], np.inf)
        self._improve(at, *(new[name] for name in MODEL))
        self.narrow(*at, new["lower"], new["upper"])
        for name in ("exact", "searched", "left_open"):
            self._stored[name][at] |= new[name]
        for side in (cells.lower, cells.upper):
            side[at] = np.where(cells.exact[at], self.answer.error[at], side[at])
        bound = np.minimum(new["bound"], self.answer.objective[at])
        cells.bound[at] = np.maximum(cells.bound[at], bound)
