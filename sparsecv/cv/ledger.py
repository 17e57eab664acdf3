"""The ledger: what is known of every fold at every γ and τ.

Four things are kept apart. A fold's answer is the support that its own training rows gave, or one
that is proved optimal; its error is the estimate. Its incumbent is the best support known from
anywhere (other folds, all rows): it bounds the fold's optimum from above, and becomes the answer
only where it is proved. An interval holds the error at an optimal support. A proof makes all agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData, RowFolds
from ..solvers.core.result import Status, worst
from ..solvers.leaps.deleted_rows import DeletedRowSubsets, deleted_fits
from ..solvers.leaps.open_nodes import OpenNode, prediction_ranges
from ..solvers.ridge_fits import SupportPath, known_path
from ..solvers.supports.rounding import stacked
from .bounds import objective_gap_bound, squared_error_bounds
from .checkpoint_file import checked_array, checked_number, checked_support
from .results import TIE, GammaResult, mean_over_folds

Array = NDArray[np.float64]
Support = NDArray[np.intp]
_ARRAYS = (
    "choice",
    "exact",
    "searched",
    "lower",
    "upper",
    "model_bound",
    "model_proved",
    "whole_trees",
)
_ANSWER = ("objective", "error", "choice")
SAFE = 1e-5  # least 1 − leverage at which a row is deleted from a fit instead of refitting


class Page:
    """One γ: answers, incumbents, intervals of h_j, shape (τ, k), in units of y²; and models.

    taus, shape (τ,).
    objective, error, choice: Training objective of the answer, its squared error on the fold, and
        its number in ``supports``. The objective is infinite until there is an answer.
    best_objective, best_error, best_choice: The same of the incumbent, whose objective is never
        above the answer's.
    lower, upper: h_j lies between them; 0 and ∞ until something is known.
    exact: The answer is proved optimal; error, lower and upper agree.
    searched: Something was branched on for this fold and τ alone.
    models, model_objective, model_bound, model_proved: The best supports known of all rows, one per
        τ.
    n_mio, n_nodes, whole_trees, seconds: Counts: mixed-integer problems, nodes, trees of all rows
        per τ, time spent.
    """

    def __init__(self, data: FoldData, gamma: float, taus: NDArray[np.intp]) -> None:
        self.data, self.gamma, self.taus = data, gamma, taus
        shape = (taus.size, data.folds.k)
        self.objective, self.error = np.full(shape, np.inf), np.zeros(shape)
        self.choice = np.zeros(shape, dtype=np.intp)
        self.best_objective, self.best_error = np.full(shape, np.inf), np.zeros(shape)
        self.best_choice = np.zeros(shape, dtype=np.intp)
        self.lower, self.upper = np.zeros(shape), np.full(shape, np.inf)
        self.exact = np.zeros(shape, dtype=bool)
        self.searched = np.zeros(shape, dtype=bool)
        self.supports: list[Support] = []
        self._seen: dict[bytes, int] = {}
        self.models: list[Support] = []
        self.model_objective, self.model_bound = np.zeros(taus.size), np.zeros(taus.size)
        self.model_proved = np.zeros(taus.size, dtype=bool)
        self.n_mio, self.n_nodes, self.seconds = 0, 0, 0.0
        self.whole_trees = np.zeros(taus.size, dtype=np.intp)
        self.status = Status.OPTIMAL
        self.history: list[list[float]] = []

    @property
    def answered(self) -> bool:
        """Whether every fold has an answer at every τ."""
        return bool(self.models) and bool(np.isfinite(self.objective).all())

    @property
    def complete(self) -> bool:
        """Whether every fold and every model is proved, or a search found what it looked for."""
        proved = bool(self.exact.all()) and bool(self.model_proved.all())
        found = bool(self.history) and self.status is Status.OPTIMAL
        return bool(self.models) and (proved or found)

    def met(self, status: Status) -> None:
        """Remember a limit that was met."""
        self.status = worst([self.status, status])

    def take_fold(self, j: int, path: SupportPath, g: int, error: Array) -> None:
        """Enter what fold j's training rows gave, from a path along γ at its position g.

        Answers that are proved stay; the path's proved sizes become exact.

        j, g: Fold, and position on the path.
        error, shape (γ, τ): Squared errors on the fold.
        """
        found = path.objective[g], error[g], np.array([self.index(s) for s in path.at(g)])
        unproved = ~self.exact[:, j]
        for name, values in zip(_ANSWER, found, strict=True):
            getattr(self, name)[unproved, j] = values[unproved]
        self._enter(np.s_[:, j], *found)
        self.searched[:, j] |= path.searched[g]
        self.n_nodes += int(path.n_nodes[g])
        self.n_mio += int(path.n_trees[g])
        self._prove((np.flatnonzero(path.proved[g]), j))
        tree = path.unfinished.get(g)
        if tree is not None:
            self.bracket(j, tree.open_nodes)

    def take_rows(self, folds: NDArray[np.intp], found: DeletedRowSubsets, weight: Array) -> None:
        """Enter what a tree gave that leave-one-out folds share: what is proved, and incumbents.

        folds, shape (m,).
        found: Of the rows that these folds hold out.
        weight, shape (m,): What a deleted residual is multiplied by.
        """
        number = np.array([self.index(s) for s in found.supports], dtype=np.intp)[found.choice]
        known = np.where(np.isnan(found.objective), np.inf, found.objective)
        self._enter(np.s_[:, folds], known, (weight * found.residual) ** 2, number)
        low, high = squared_error_bounds(weight * found.low, weight * found.high)
        for t in range(self.taus.size):
            usable = np.isfinite(known[t]) & ~self.exact[t, folds]
            self.narrow(t, folds[usable], low[t, usable], high[t, usable])
            self.prove(t, folds[usable & (found.low[t] == found.high[t])])

    def _enter(self, at: Any, objective: Array, error: Array, choice: NDArray[np.intp]) -> None:
        """Make supports the incumbents of some cells where they are better than what is known."""
        better = objective < self.best_objective[at]
        if not better.any():
            return
        for name, values in zip(_ANSWER, (objective, error, choice), strict=True):
            table = getattr(self, "best_" + name)
            table[at] = np.where(better, values, table[at])

    def take_models(self, path: SupportPath, g: int) -> None:
        """Enter the models of all rows; those proved already stay."""
        if not self.models:
            self.models = [np.empty(0, dtype=np.intp)] * self.taus.size
        for t in np.flatnonzero(~self.model_proved):
            self.models[t] = path.support(g, int(t))
            self.model_objective[t] = path.objective[g, t]
            self.model_bound[t] = path.lower_bound[g, t]
            self.model_proved[t] = path.proved[g, t]

    def improve_model(
        self, t: int, support: Support, objective: float, bound: float, proved: bool
    ) -> None:
        """Enter what a search found of the model of all rows, where that is better than is known.

        objective, bound: Of the support, and a lower bound on the optimum.
        """
        if objective <= self.model_objective[t]:
            self.models[t], self.model_objective[t] = support, objective
        bound = min(bound, float(self.model_objective[t]))
        self.model_bound[t] = max(float(self.model_bound[t]), bound)
        self.model_proved[t] |= proved

    def same_models(self, other: Page) -> None:
        """Take over the models of the same rows in other folds.

        other: Of the same sizes, or of more that are larger.
        """
        m = self.taus.size
        self.models = list(other.models[:m])
        for name in ("model_objective", "model_bound", "model_proved"):
            setattr(self, name, getattr(other, name)[:m].copy())

    def bracket(self, j: int, nodes: Sequence[OpenNode] = ()) -> None:
        """Corollary 2's interval for a fold's sizes that are not exact, from open nodes.

        Without nodes the root is open: an interval around the fold's ridge fit.
        """
        left = np.flatnonzero(~self.exact[:, j])
        if left.size == 0:
            return
        root = OpenNode(np.empty(0, dtype=np.intp), np.arange(self.data.p, dtype=np.intp), -1)
        problem = self.data.training(j).replace(gamma=self.gamma)
        H, t = self.data.held_out(j)
        best = [self.supports[c] for c in self.best_choice[left, j]]
        known = stacked(best, int(self.taus[-1]))
        path = known_path(problem, [self.gamma], self.taus[left], known[None])
        predicted = path.predict(H)[0]
        low, high, _ = prediction_ranges(
            problem,
            nodes or [root],
            H,
            self.taus[left],
            predicted,
            self.best_objective[left, j, None],
        )
        least, most = squared_error_bounds(low - t, high - t)
        for i, t_low, t_high in zip(left, least.sum(axis=1), most.sum(axis=1), strict=True):
            self.narrow(int(i), np.array([j]), np.array([t_low]), np.array([t_high]))

    def offer(self, t: int, folds: NDArray[np.intp], support: Support) -> None:
        """Make a support the incumbent of those folds where it is better than what is known."""
        if folds.size:
            found = self.fits(folds, support)
            self._enter((t, folds), *found, np.full(folds.size, self.index(support)))

    def prove(self, t: int, folds: NDArray[np.intp]) -> None:
        """Enter that the incumbents are optimal: they become the answers, unless those are as
        good.
        """
        self._prove((t, folds))

    def _prove(self, at: Any) -> None:
        """The same of the cells at an index of the tables."""
        if (better := self.best_objective[at] < self.objective[at] * (1.0 - TIE)).any():
            for name in _ANSWER:
                answer, best = getattr(self, name), getattr(self, "best_" + name)
                answer[at] = np.where(better, best[at], answer[at])
        self.exact[at] = True
        self.lower[at] = self.upper[at] = self.error[at]

    def narrow(self, t: int, folds: NDArray[np.intp], low: Array, high: Array) -> None:
        """Intersect with another interval of h_j; ends that rounding has crossed are exchanged.

        folds, shape (m,).
        low, high, shape (m,).
        """
        low = np.maximum(self.lower[t, folds], low)
        high = np.minimum(self.upper[t, folds], high)
        self.lower[t, folds], self.upper[t, folds] = np.minimum(low, high), np.maximum(low, high)

    def narrow_by_objective(self, t: int, full_lower: float) -> None:
        """h_j ≥ u* − u_j where not exact: Corollary 3, main paper, for all folds at once.

        u* is of all rows, so a fold's training and held-out rows must be all rows.

        full_lower: u*, or any lower bound on the optimal objective of all rows.
        """
        left = np.flatnonzero(~self.exact[t]).tolist()
        folds = np.array([j for j in left if self.data.folds.covers(j)], dtype=np.intp)
        low = [objective_gap_bound(full_lower, float(u)) for u in self.best_objective[t, folds]]
        self.narrow(t, folds, np.array(low), np.full(folds.size, np.inf))

    def bound_the_rest(self) -> None:
        """Bracket the folds that nothing has; every fold must have an incumbent at every τ."""
        for j in np.flatnonzero(~np.isfinite(self.upper).all(axis=0)):
            self.bracket(int(j))

    def fits(self, folds: NDArray[np.intp], support: Support) -> tuple[Array, Array]:
        """Training objective and held-out error of one support on some of the folds.

        folds, shape (m,).
        Returns objective, error, shape (m,).
        """
        data = self.data
        objective, error = np.empty(folds.size), np.empty(folds.size)
        alone = np.ones(folds.size, dtype=bool)
        if isinstance(data, RowFolds) and data.folds.leave_one_out and folds.size > 1:
            rows, targets, weight = data.deleted_rows()
            at = data.row_of[folds]
            found = deleted_fits(
                data.full().replace(gamma=self.gamma), support, rows[at], targets[at]
            )
            objective[:] = found.objective
            error[:] = (weight[at] * found.residual) ** 2
            alone = ~(found.remain > SAFE)
        for i in np.flatnonzero(alone):
            j = int(folds[i])
            fit = data.training(j).replace(gamma=self.gamma).fit(support)
            H, t = data.held_out(j)
            objective[i] = fit.objective
            error[i] = float(np.sum((t - H[:, support] @ fit.coef) ** 2))
        return objective, error

    def support(self, t: int, j: int) -> Support:
        """The answer's columns."""
        return self.supports[int(self.choice[t, j])]

    def sums(self) -> tuple[Array, Array]:
        """Bounds on Σ_j h_j, shape (τ,) each."""
        return self.lower.sum(axis=1), self.upper.sum(axis=1)

    def summary(self) -> GammaResult:
        """Cross-validation at this γ, as it stands."""
        rows = self.data.total
        exact = np.asarray(self.exact.all(axis=1))
        error, std_error = mean_over_folds(self.error, self.data.fold_weight)
        lower = np.where(exact, error, np.minimum(self.lower.sum(axis=1) / rows, error))
        upper = np.where(exact, error, np.maximum(self.upper.sum(axis=1) / rows, error))
        status = self.status
        if status is not Status.OPTIMAL and exact.all() and self.model_proved.all():
            status = Status.OPTIMAL
        supports, choice = self._in_order()
        return GammaResult(
            gamma=self.gamma,
            taus=self.taus,
            cv_error=error,
            std_error=std_error,
            lower=lower,
            upper=upper,
            exact=exact,
            n_mio=self.n_mio,
            n_nodes=self.n_nodes,
            mio_by_tau=self.searched.sum(axis=1).astype(np.intp) + self.whole_trees,
            seconds=self.seconds,
            supports=supports,
            choice=choice,
            fold_error=self.error,
            models=self.models,
            model_objective=self.model_objective,
            model_bound=self.model_bound,
            model_proved=self.model_proved,
            status=str(status),
            history=self.history,
        )

    def _in_order(self) -> tuple[list[Support], NDArray[np.intp]]:
        """Supports in use and each cell's number, whichever fold came in first."""
        used, first, number = np.unique(self.choice, return_index=True, return_inverse=True)
        order = np.argsort(first)
        supports = [self.supports[c] for c in used[order]] if self.supports else []
        return supports, np.argsort(order)[number].reshape(self.choice.shape).astype(np.intp)

    def index(self, support: Support) -> int:
        """Number of a support, each distinct one stored once."""
        key = support.tobytes()
        if key not in self._seen:
            self._seen[key] = len(self.supports)
            self.supports.append(support)
        return self._seen[key]

    def proved(self) -> dict[str, Any] | None:
        """Plain lists and numbers for a checkpoint; None where nothing is proved."""
        if not (self.exact.any() or self.complete):
            return None
        lists = {name: getattr(self, name).tolist() for name in _ARRAYS}
        lists |= {
            name: [s.tolist() for s in getattr(self, name)] for name in ("supports", "models")
        }
        plain = {name: getattr(self, name) for name in ("gamma", "seconds", "history")}
        counts = {name: int(getattr(self, name)) for name in ("n_mio", "n_nodes")}
        return {**plain, **counts, **lists, "taus": self.taus.tolist(), "status": str(self.status)}

    def restore(self, stored: dict[str, Any]) -> None:
        """Enter what :meth:`proved` gave; errors and objectives are computed afresh.

        What is proved on this page stays. A page without models takes over everything.

        Raises ValueError, TypeError, KeyError: Something is missing, out of range or of another
            shape; nothing is entered then.
        """
        if stored["gamma"] != self.gamma or stored["taus"] != self.taus.tolist():
            raise ValueError("it is of other γ or τ")
        p = self.data.p
        supports = [checked_support(s, p) for s in stored["supports"]]
        models = [checked_support(s, p) for s in stored["models"]]
        arrays = {name: checked_array(name, stored[name], getattr(self, name)) for name in _ARRAYS}
        if len(models) != self.taus.size or not supports:
            raise ValueError("supports are missing")
        choice = arrays["choice"]
        if choice.min() < 0 or choice.max() >= len(supports):
            raise ValueError("a support is named that is not there")
        sizes = np.array([support.size for support in supports])
        if (sizes[choice] > self.taus[:, None]).any():
            raise ValueError("a support has too many columns")
        if any(model.size > tau for model, tau in zip(models, self.taus, strict=True)):
            raise ValueError("a model has too many columns")
        if (arrays["lower"] > arrays["upper"]).any():
            raise ValueError("a lower bound exceeds its upper bound")
        status = Status(stored["status"])
        n_mio, n_nodes = (int(checked_number(name, stored[name])) for name in ("n_mio", "n_nodes"))
        seconds = float(checked_number("seconds", stored["seconds"]))
        if not isinstance(stored["history"], list):
            raise ValueError("the history is not a list")
        history = [[float(checked_number("history", v)) for v in row] for row in stored["history"]]
        number = np.array([self.index(support) for support in supports])[choice]
        empty, added = not self.models, arrays["exact"] & ~self.exact
        for t in range(self.taus.size):
            if empty or (arrays["model_proved"][t] and not self.model_proved[t]):
                self.models[t : t + 1] = [models[t]]
                self.model_bound[t] = arrays["model_bound"][t]
                self.model_proved[t] = arrays["model_proved"][t]
        if empty:
            self.status, self.history = status, history
            self.n_mio, self.n_nodes, self.seconds = n_mio, n_nodes, seconds
            self.searched, self.whole_trees = arrays["searched"], arrays["whole_trees"]
        self._refit(np.ones_like(added) if empty else added, number)
        narrower = ~self.exact & ~added
        self.lower[narrower] = np.maximum(self.lower, arrays["lower"])[narrower]
        self.upper[narrower] = np.minimum(self.upper, arrays["upper"])[narrower]
        self.exact |= added
        for bounds in (self.lower, self.upper):
            bounds[added] = self.error[added]

    def _refit(self, cells: NDArray[np.bool_], number: NDArray[np.intp]) -> None:
        """Have some cells answer with stored supports, by their numbers; and refit all models."""
        data, most = self.data, int(self.taus[-1])
        rows = stacked(self.models, most)[None]
        self.model_objective = known_path(data.full(), [self.gamma], self.taus, rows).objective[0]
        self.model_bound = np.minimum(self.model_bound, self.model_objective)
        self.choice = np.where(cells, number, self.choice)
        if isinstance(data, RowFolds) and data.folds.leave_one_out:
            for t in range(self.taus.size):
                for c in np.unique(number[t, cells[t]]):
                    folds = np.flatnonzero(cells[t] & (number[t] == c))
                    objective, error = self.fits(folds, self.supports[int(c)])
                    self.objective[t, folds], self.error[t, folds] = objective, error
        else:
            for j in np.flatnonzero(cells.any(axis=0)):
                here = cells[:, j]
                rows = stacked([self.supports[c] for c in self.choice[:, j]], most)[None]
                path = known_path(data.training(int(j)), [self.gamma], self.taus, rows)
                error = path.squared_errors(*data.held_out(int(j)))[0]
                self.objective[here, j], self.error[here, j] = path.objective[0, here], error[here]
        self._enter(np.s_[:, :], self.objective, self.error, self.choice)
