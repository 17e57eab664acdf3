"""The root of a branch-and-bound search: incumbent, relaxation, screening, and the columns left.

Screening at the root removes columns for good, so that the search goes on with smaller matrices.
Once fewer columns than rows are left, a diagonal can be extracted from the Gram matrix, which
tightens the relaxation and screens more. The root ends where few more columns are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..supports.greedy import complete_support, forward_order
from ..supports.local_search import LocalSearch
from ..supports.rounding import largest, pad_support
from .dual_bound import OUT
from .gram import TOLERANCE, GramForm, wants_gram
from .relaxer import Relaxer


class RootSettings(NamedTuple):
    """Tuning numbers of the root: choices that decide what time it takes, not what it proves."""

    # The root is relaxed and screened again, on a smaller Gram matrix, where screening leaves at
    # most this share of its columns. With a share twice as near to 1 it is solved again for half as
    # many columns less.
    shrunk_share: float = 0.9
    # The local search uses this many columns of largest g²/w, and the incumbent's.
    searched_columns: int = 600
    # Newton steps end after this many values of √λ, the multiplier of the cardinality constraint; a
    # call from β = 0 has a number of its own instead, ``NewtonSettings.path_multipliers``.
    multipliers: int = 20
    # Newton steps end where Σz deviates from τ by at most this share of τ.
    cardinality_share: float = 1e-4
    # Coordinate descent at the root ends after this many rounds, with the best bound so far. A
    # round is one dual bound and up to 8 passes over the active columns, those with a coefficient
    # or whose gradient asks for one.
    rounds: int = 200
    # Coordinate descent ends where value − bound is at most this share of the value, both those of
    # the relaxation and not the incumbent's.
    gap: float = 1e-5
    # Coordinate descent ends as well where the relaxation's value is below the target, and value −
    # bound is at most this share of target − bound: no bound will reach the target, which is the
    # incumbent's objective less the relative gap asked for.
    shortfall_share: float = 0.03


SETTINGS = RootSettings()


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


def relax(root: Root, relaxer: Relaxer, target: float) -> None:
    """Solve the root's relaxation until its bound reaches ``target`` or no longer rises much."""
    solved = False
    if relaxer.form[1].shape[0] == 0:
        stop = (SETTINGS.multipliers, SETTINGS.cardinality_share)
        bound, solved = relaxer.newton(target, *stop)
        root.bound = max(root.bound, bound)
    if not solved:  # the columns are too many for Newton steps, or there is no Gram matrix
        limits = (SETTINGS.gap, SETTINGS.rounds, SETTINGS.shortfall_share)
        root.bound = max(root.bound, relaxer.descend(target, *limits))
    root.root_lam = float(relaxer.root_lam[0])


def rounded(root: Root, relaxer: Relaxer) -> NDArray[np.intp]:
    """The τ columns of largest |β|√w, and of largest g²/w where fewer have a coefficient."""
    w = relaxer.terms.w
    size = np.abs(relaxer.beta) * np.sqrt(w)
    size = np.where(size > 0.0, size, -1.0 / (1.0 + relaxer.g * relaxer.g / w))
    return root.columns[largest(size, relaxer.to_choose)]


class Incumbent:
    """The best support known, with the objective of its ridge fit.

    gram: The Gram form of the problem, for forward selection.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        starts: Sequence[NDArray[np.intp]],
        gram: GramForm | None = None,
    ) -> None:
        self.problem, self.gram = problem, gram
        self.support, self.objective = np.empty(0, dtype=np.intp), np.inf
        for start in starts:
            self.offer(start)

    def select_forward(self) -> None:
        """Offer the support that forward selection finds."""
        problem, p, tau = self.problem, self.problem.p, self.problem.tau
        if self.gram is None:
            base = problem.triangle
            self.offer(forward_order(base[:, :p], base[:, p], tau, problem.gamma))
        else:
            none, ridge = np.empty(0, dtype=np.intp), problem.gamma / 2.0
            self.offer(complete_support(self.gram.G, self.gram.b, ridge, none, tau))

    def offer(self, support: NDArray[np.intp]) -> bool:
        """Whether a support, cut or filled to τ columns, is better; the better support is kept."""
        tau, p = self.problem.tau, self.problem.p
        chosen = pad_support(np.unique(support)[:tau], tau, p, self.support)
        if np.array_equal(chosen, self.support):
            return False
        objective = self.problem.objective(chosen)
        if objective < self.objective:
            self.support, self.objective = chosen, objective
            return True
        return False


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
        Gram form was needed.
    """
    if gram is None and wants_gram(problem):
        gram = GramForm.of(problem, limits=limits)
    incumbent = Incumbent(problem, starts, gram)
    incumbent.select_forward()
    p = problem.p
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    while True:
        relaxer = Relaxer.of(problem, gram, root.columns)
        if root.root_lam > 0.0:
            relaxer.start(root.beta, root.root_lam)
        root.beta = relaxer.beta
        target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
        relax(root, relaxer, target)
        if root.bound < target and limits.reached(0) is None:
            improve_incumbent(problem, incumbent, root, relaxer, gram)
            target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
        if root.bound >= target or limits.reached(0) is not None:
            return incumbent, root, gram
        bound = relaxer.bound()
        state, least = relaxer.decided(bound, target, including=False)
        root.screened_bound, left = min(root.screened_bound, least), np.flatnonzero(state != OUT)
        shrunk = left.size <= SETTINGS.shrunk_share * state.size
        if shrunk:
            root.columns, root.beta = root.columns[left], root.beta[left]
        if left.size <= problem.tau:
            return incumbent, root, gram
        if gram is None:
            gram = GramForm.of(problem, root.columns, limits=limits)
        elif shrunk:
            gram = gram.on(left, problem.rank_bound, limits)
        else:
            return incumbent, root, gram


def improve_incumbent(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    root: Root,
    relaxer: Relaxer,
    gram: GramForm | None,
) -> None:
    """Improve the rounded relaxation and the incumbent by single swaps among promising columns."""
    shares = relaxer.g * relaxer.g / relaxer.terms.w
    columns = np.union1d(
        root.columns[largest(shares, SETTINGS.searched_columns)], incumbent.support
    )
    if gram is not None and columns.size == root.columns.size:
        G, b = gram.G, gram.b
    else:
        rows = problem.rows
        G, b = rows[:, columns].T @ rows[:, columns], rows[:, columns].T @ rows[:, problem.p]
    search = LocalSearch(G, b, problem.gamma / 2.0, problem.tau)
    for start in (incumbent.support, rounded(root, relaxer)):
        search.enter(np.searchsorted(columns, start))
    incumbent.offer(columns[search.best])
