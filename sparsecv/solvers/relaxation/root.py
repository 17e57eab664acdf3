"""The root of a branch-and-bound search: incumbent, relaxation, screening, and the columns left.

Screening at the root removes columns for good, so that the search goes on with smaller matrices.
Once fewer columns than rows are left, a diagonal can be extracted from the Gram matrix, which
tightens the relaxation and screens more. The root ends where few more columns are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.plan import has_room
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..supports.rounding import complete_support, forward_order, largest, pad_support
from ..supports.swaps import swapped
from .dual_bound import OUT
from .gram import TOLERANCE, GramForm, wants_gram
from .relaxer import Relaxer


@dataclass
class Root:
    """What is known of a problem before branching.

    Screening has left ``columns``. Every support within these has an objective of at least
    ``bound``, and every other support one of at least ``screened_bound``. ``beta`` and ``root_lam``
    (√λ) solve the relaxation on ``columns``.
    """

    columns: NDArray[np.intp]
    beta: Array
    root_lam: float
    bound: float
    screened_bound: float


class Incumbent:
    """The best support known, with the objective of its ridge fit.

    At first that is one of ``starts`` or the support that forward selection finds. ``gram`` is the
    Gram form of the problem, where it is known.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        starts: Sequence[NDArray[np.intp]],
        gram: GramForm | None = None,
    ) -> None:
        self.problem, self.gram = problem, gram
        self.support, self.objective = np.empty(0, dtype=np.intp), np.inf
        p, tau, none = problem.p, problem.tau, np.empty(0, dtype=np.intp)
        if gram is None:
            X, y = problem.triangle[:, :p], problem.triangle[:, p]
            forward = forward_order(X, y, tau, problem.gamma)
        else:
            forward = complete_support(gram.G, gram.b, problem.gamma / 2.0, none, tau)
        for start in (*starts, forward):
            self.offer(start)

    def offer(self, support: NDArray[np.intp]) -> None:
        """Keep a support, cut or filled to τ columns, if it is better."""
        tau, p = self.problem.tau, self.problem.p
        chosen = pad_support(np.unique(support)[:tau], tau, p, self.support)
        if np.array_equal(chosen, self.support):
            return
        objective = self.problem.objective(chosen)
        if objective < self.objective:
            self.support, self.objective = chosen, objective


def reduced_root(
    problem: SparseRidgeProblem,
    starts: Sequence[NDArray[np.intp]],
    tol: float,
    gram: GramForm | None,
    limits: Limits,
) -> tuple[Incumbent, Root, GramForm | None]:
    """Relax and screen at the root until few more columns are removed.

    starts: Good supports; another one is selected forward.
    tol: Relative gap at which the problem counts as solved.
    gram: The Gram form of all columns, where it is known.
    Returns: The best support found, whose ``gram`` is that of all columns or None; the root; and
        the Gram form of its columns, None where the root was solved, or a limit reached, before a
        Gram form was needed, or where it has no room.
    """
    if gram is None and wants_gram(problem) and has_room(problem.p):
        gram = GramForm.of(problem, limits=limits)
    incumbent, p = Incumbent(problem, starts, gram), problem.p
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    while True:
        relaxer = Relaxer.of(problem, gram, root.columns)
        if root.root_lam > 0.0:
            relaxer.start(root.beta, root.root_lam)
        root.beta = relaxer.beta
        target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
        relax(root, relaxer, target)
        if root.bound < target and limits.reached(0) is None:
            improve_incumbent(incumbent, root, relaxer, gram)
            target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
        if root.bound >= target or limits.reached(0) is not None:
            return incumbent, root, gram
        bound = relaxer.bound()
        state, least = relaxer.decided(bound, target, including=False)
        root.screened_bound, left = min(root.screened_bound, least), np.flatnonzero(state != OUT)
        # A relaxation on a smaller matrix pays where a tenth of the columns has gone (a choice).
        shrunk = left.size <= 0.9 * state.size
        if shrunk:
            root.columns, root.beta = root.columns[left], root.beta[left]
        if left.size <= problem.tau:
            return incumbent, root, gram
        if gram is None and has_room(left.size):
            gram = GramForm.of(problem, root.columns, limits=limits)
        elif gram is None:
            return incumbent, root, None
        elif shrunk:
            gram = gram.on(left, problem.rank_bound, limits)
        else:
            return incumbent, root, gram


def relax(root: Root, relaxer: Relaxer, target: float) -> None:
    """Solve the root's relaxation until its bound reaches ``target`` or no longer rises much.

    The numbers are choices, which decide what time that takes and not what is proved.
    """
    solved = False
    if relaxer.form[1].shape[0] == 0:
        # Newton steps try at most 20 values of √λ, until Σz deviates from τ by at most 1e-4 τ.
        bound, solved = relaxer.newton(target, 20, 1e-4)
        root.bound = max(root.bound, bound)
    if not solved:  # the columns are too many for Newton steps, or there is no Gram matrix
        # Descent takes at most 200 rounds. It ends once value − bound is at most 1e-5 of the
        # value. Where the value is below the target, no bound reaches the target, and descent
        # ends once value − bound is at most 0.03 (target − bound).
        bound = relaxer.descend(target, 1e-5, 200, 0.03)
        root.bound = max(root.bound, bound)
    root.root_lam = float(relaxer.root_lam[0])


def improve_incumbent(
    incumbent: Incumbent, root: Root, relaxer: Relaxer, gram: GramForm | None
) -> None:
    """Improve the rounded relaxation and the incumbent by single swaps among promising columns."""
    problem, w = incumbent.problem, relaxer.terms.w
    shares = relaxer.g * relaxer.g / w
    # The search keeps the 600 columns of largest g²/w (a choice) and those of the incumbent.
    columns = np.union1d(root.columns[largest(shares, 600)], incumbent.support)
    if gram is not None and columns.size == root.columns.size:
        G, b = gram.G, gram.b
    else:
        rows = problem.rows
        G, b = rows[:, columns].T @ rows[:, columns], rows[:, columns].T @ rows[:, problem.p]
    # Columns of largest |β|√w come first. Columns without a coefficient follow by g²/w.
    size = np.abs(relaxer.beta) * np.sqrt(w)
    size = np.where(size > 0.0, size, -1.0 / (1.0 + shares))
    ridge = problem.gamma / 2.0
    for start in (incumbent.support, root.columns[largest(size, relaxer.to_choose)]):
        places = complete_support(G, b, ridge, np.searchsorted(columns, start), problem.tau)
        incumbent.offer(columns[swapped(G, b, ridge, places)])
