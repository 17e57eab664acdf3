"""Ridge fits on given supports at every γ and size, and the record that holds them.

Nothing is searched for here; :func:`sparsecv.solvers.support_path` finds the supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .core.error_margin import moved_by_path, path_margins
from .core.leaves import Leaves
from .core.problem import SparseRidgeProblem
from .core.quick_fits import fit_supports, placed_columns
from .core.result import Answer, Status
from .core.rounding import exact_margin, left_of_perfect_fits
from .kernels.linalg import Array
from .leaps.gamma_trees import Listed
from .supports.path import GrownUnits

Support = NDArray[np.intp]


@dataclass
class SupportPath:
    """Models of one problem along γ, for every size.

    Attributes
    ----------
    gammas : ndarray, shape (γ,)
        The ridge weights as they were given, in the order in which they were answered.
    sizes : ndarray of int, shape (τ,)
        The support sizes, increasing and distinct.
    supports : ndarray of int, shape (γ, τ, most)
        Increasing columns, ended by −1.
    coef : ndarray, shape (γ, τ, most)
        In the order of the supports, 0 beyond their ends.
    objective, lower_bound : ndarray, shape (γ, τ)
        The objective of eq. (1), first paper, from a QR of the support; and a proved lower bound on
        the objectives of all supports of the size, 0 where there is none.
    proved : ndarray of bool, shape (γ, τ)
        The support is optimal.
    searched : ndarray of bool, shape (γ, τ)
        Something was branched on for this size.
    n_nodes, n_trees : ndarray of int, shape (γ,)
        Nodes whose bounds were computed, and trees that were searched, for all sizes together.
    status : Status
        Optimal where everything is proved, else the limit that was met; unproved without one.
    unfinished : dict of int to list of Answer
        By position of γ: answers of searches that were left, with their leaves.
    listed : dict of float to (ndarray, ndarray)
        What trees of all sizes, up to 45 columns, have listed for proofs at other γ.
    grown : dict of float to GrownUnits
        By γ from where a search without a proof goes on to larger sizes, if that was asked for.
    """

    gammas: Array
    sizes: NDArray[np.intp]
    supports: NDArray[np.int64]
    coef: Array
    objective: Array
    lower_bound: Array
    proved: NDArray[np.bool_]
    searched: NDArray[np.bool_]
    n_nodes: NDArray[np.int64]
    n_trees: NDArray[np.int64]
    status: Status = Status.UNPROVED
    unfinished: dict[int, list[Answer]] = field(default_factory=dict)
    listed: Listed = field(default_factory=dict)
    grown: dict[float, GrownUnits] = field(default_factory=dict)

    @classmethod
    def empty(
        cls, gammas: Array, sizes: NDArray[np.intp], supports: NDArray[np.int64]
    ) -> SupportPath:
        """A path of these supports, of which no fit and no bound is known.

        sizes, shape (τ,): The sizes along the second axis of ``supports``.
        """
        shape = supports.shape[:2]
        return cls(
            gammas=gammas,
            sizes=sizes,
            supports=supports,
            coef=np.zeros(supports.shape),
            objective=np.zeros(shape),
            lower_bound=np.zeros(shape),
            proved=np.zeros(shape, dtype=bool),
            searched=np.zeros(shape, dtype=bool),
            n_nodes=np.zeros(gammas.size, dtype=np.int64),
            n_trees=np.zeros(gammas.size, dtype=np.int64),
        )

    @classmethod
    def of(
        cls,
        problem: SparseRidgeProblem,
        gammas: Sequence[float] | Array,
        sizes: NDArray[np.intp],
        supports: NDArray[np.int64],
    ) -> SupportPath:
        """Fits on given supports, nothing proved; ``sizes`` has shape (τ,)."""
        path = cls.empty(np.asarray(gammas, dtype=np.float64), sizes, supports)
        path.coef, path.objective = fit_supports(problem, path.gammas, supports)
        return path

    def after_no_column(self, problem: SparseRidgeProblem) -> SupportPath:
        """This path with the size 0 before its own sizes, whose one support needs no search.

        problem: The problem of the path.
        Raises InputError: The constraints include a column.
        """
        sizes = np.append(problem.constraints.checked_size(0), self.sizes).astype(np.intp)
        shape = self.gammas.size, sizes.size
        longer = replace(
            self.empty(self.gammas, sizes, np.full((*shape, self.supports.shape[2]), -1)),
            n_nodes=self.n_nodes,
            n_trees=self.n_trees,
            status=self.status if self.sizes.size else Status.OPTIMAL,
            unfinished=self.unfinished,
            listed=self.listed,
            grown=self.grown,
        )
        longer.objective[:, 0] = longer.lower_bound[:, 0] = problem.yy
        longer.proved[:, 0] = True
        for name in ("supports", "coef", "objective", "lower_bound", "proved", "searched"):
            getattr(longer, name)[:, 1:] = getattr(self, name)
        return longer

    def support(self, g: int, t: int) -> Support:
        """The columns at the g-th γ and the t-th size."""
        row = self.supports[g, t]
        return np.asarray(row[row >= 0], dtype=np.intp)

    def at(self, g: int) -> list[Support]:
        """The columns at the g-th γ, for every size."""
        return [row[row >= 0] for row in self.supports[g].astype(np.intp)]

    def stopped(self, g: int) -> Status | None:
        """How the searches at the g-th γ ended, if they left a size unproved; else None."""
        answers = self.unfinished.get(g)
        return None if answers is None else Status.worst(one.status for one in answers)

    def leaves(self, g: int) -> Leaves | None:
        """The leaves that hold every better support of every size; None where none are known."""
        answers = self.unfinished.get(g, ())
        return next((one.leaves for one in answers if one.leaves is not None), None)

    @property
    def used(self) -> NDArray[np.intp]:
        """The columns that some support has, increasing."""
        return np.unique(self.supports[self.supports >= 0]).astype(np.intp)

    def predict(self, rows: Array, columns: NDArray[np.intp] | None = None) -> Array:
        """Predictions, shape (γ, τ, r), at rows of shape (r, p); no intercept is added.

        columns, shape (c,): The columns that the rows have where these are fewer, shape (r, c):
            increasing, with those of :attr:`used` among them.
        """
        p = rows.shape[1] if columns is None else int(columns.max(initial=-1)) + 1
        used, places = placed_columns(self.supports, p)
        coef = np.zeros((*self.objective.shape, used.size + 1))  # the place −1 is the last one
        np.put_along_axis(coef, places, self.coef, 2)
        at = used if columns is None else np.searchsorted(columns, used)
        return np.asarray(coef[:, :, :-1] @ rows[:, at].T)

    def squared_errors(
        self, rows: Array, targets: Array, columns: NDArray[np.intp] | None = None
    ) -> Array:
        """Σ (target − prediction)², shape (γ, τ), over rows as those of :meth:`predict`."""
        residual = self.predict(rows, columns)
        residual -= targets
        return np.asarray(np.einsum("gtr,gtr->gt", residual, residual))

    def moved(self, problem: SparseRidgeProblem, rows: Array, targets: Array) -> float:
        """How far rounding may move the residuals of any fit of the path, in length over the rows.

        problem: The problem of the path.
        rows, targets: As those of :meth:`squared_errors`, or of several of its calls together.
        """
        return moved_by_path(problem, self.gammas, self.supports, rows, targets)

    def error_margins(
        self,
        problem: SparseRidgeProblem,
        rows: Array,
        targets: Array,
        errors: Array,
        moved: float,
        room: Array | float = 0.0,
        every: bool = False,
    ) -> Array:
        """How far rounding may have moved the squared errors of supports, shape (γ, τ).

        A number is ∞ where nothing is known.

        Parameters
        ----------
        problem : SparseRidgeProblem
            The problem of the path.
        rows, targets : ndarray, shape (m, p) and (m,)
            Rows that are predicted.
        errors : ndarray, shape (γ, τ)
            What :meth:`squared_errors` gives.
        moved : float
            What :meth:`moved` says of these rows, or of these rows and others together.
        room : ndarray or float
            Margins up to what :func:`exact_margin` says of the error and this number, or what
            rounding leaves of a perfect fit, need not be any smaller; an array broadcasts to
            (γ, τ).
        every : bool
            Whether narrow margins are wanted for supports without a proof of optimality, too. By
            default any number will do for such a support.
        """
        room = room + left_of_perfect_fits(len(targets), problem.yy)
        enough = np.where(self.proved | every, exact_margin(errors, room), np.inf)
        given = self.gammas, self.supports, rows, targets, errors
        return path_margins(problem, *given, enough, moved)
