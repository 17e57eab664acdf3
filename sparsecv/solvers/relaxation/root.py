"""The root of a branch-and-bound search: incumbent, relaxation, screening, and the columns left.

Screening at the root takes columns out for good, so the search goes on with smaller matrices; and
once fewer columns than rows are left a diagonal can be extracted from their Gram matrix, which
tightens the relaxation and screens more. The rounds end when little more goes.
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
from ..supports.beam import LocalSearch
from ..supports.greedy import complete_support, forward_order
from ..supports.rounding import largest, pad_support
from .dual_bound import OUT
from .gram import TOLERANCE, GramForm
from .relaxer import Relaxer


class RootSettings(NamedTuple):
    """Tuning numbers of the root; they decide what time it takes, not what it proves."""

    # The root is relaxed and screened again where at most this share of its columns is left.
    # A larger share repeats the relaxation for fewer columns less.
    shrunk_share: float = 0.9
    # The local search looks at so many columns of largest g²/w and at the incumbent's. Twice as
    # many cost four times the memory and time of its Gram matrix.
    searched_columns: int = 600
    # Newton steps try so many values of √λ, and end where Σz is within this share of τ. More
    # values, or a smaller share, solve the root more exactly and take more steps.
    multipliers: int = 20
    cardinality_share: float = 1e-4
    # Coordinate descent ends after so many rounds, at this relative gap, or where value − bound is
    # at most that share of target − bound: the relaxation then does not reach the target.
    rounds: int = 200
    gap: float = 1e-5
    hopeless_share: float = 0.03


SETTINGS = RootSettings()


@dataclass
class Root:
    """What is known before branching.

    ``columns`` may be in a support better than ``upper`` by more than the tolerance; every support
    with another column has an objective of at least ``slack``. ``bound`` holds for all supports
    within ``columns``; ``beta`` and ``root_lam`` (√λ) solve the relaxation on them.
    """

    columns: NDArray[np.intp]
    beta: Array
    root_lam: float
    bound: float
    slack: float

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Go on with some of the columns.

        mask: Over the columns left.
        """
        self.columns, self.beta = self.columns[mask], self.beta[mask]


def relax(root: Root, relaxer: Relaxer, target: float) -> None:
    """Solve the root's relaxation until its bound passes ``target`` or the bound stalls."""
    room = False
    if relaxer.form[1].shape[0] == 0:
        stop = (SETTINGS.multipliers, SETTINGS.cardinality_share)
        bound, room = relaxer.newton(target, *stop)
        root.bound = max(root.bound, bound)
    if not room:
        limits = (SETTINGS.gap, SETTINGS.rounds, SETTINGS.hopeless_share)
        root.bound = max(root.bound, relaxer.descend(target, *limits))
    root.root_lam = float(relaxer.root_lam[0])


def rounded(root: Root, relaxer: Relaxer) -> NDArray[np.intp]:
    """The columns of largest |β|√w; where fewer have a coefficient, then those of largest g²/w."""
    w = relaxer.terms.w
    size = np.abs(relaxer.beta) * np.sqrt(w)
    size = np.where(size > 0.0, size, -1.0 / (1.0 + relaxer.g * relaxer.g / w))
    return root.columns[largest(size, relaxer.picks)]


class Incumbent:
    """The best support known, by a fresh fit.

    gram: Of the same data, for forward selection.
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
        """Offer what forward selection finds."""
        problem, p, tau = self.problem, self.problem.p, self.problem.tau
        if self.gram is None:
            base = problem._base
            self.offer(forward_order(base[:, :p], base[:, p], tau, problem.gamma))
        else:
            none, ridge = np.empty(0, dtype=np.intp), problem.gamma / 2.0
            self.offer(complete_support(self.gram.G, self.gram.b, ridge, none, tau))

    def offer(self, support: NDArray[np.intp]) -> bool:
        """Keep a support, cut or filled to τ columns, if it is better.

        Returns: Whether it is.
        """
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
    incumbent: Incumbent,
    tol: float,
    gram: GramForm | None,
    limits: Limits,
) -> tuple[Root, GramForm | None]:
    """Relax and screen at the root until little more is screened.

    incumbent: Improved on the way.
    tol: Relative gap.
    gram: Of all columns.
    Returns: Of the columns left; None where the relaxation alone settles it, or the time is up.
    """
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
            return root, gram
        bound = relaxer.bound()
        state, least = relaxer.decided(bound, target, including=False)
        root.slack, out = min(root.slack, least), state == OUT
        left = int(out.size - out.sum())
        shrunk = left <= SETTINGS.shrunk_share * out.size
        if shrunk:
            root.keep(~out)
        if left <= problem.tau:
            return root, gram
        if gram is None:
            gram = GramForm.of(problem, root.columns, limits=limits)
        elif shrunk:
            gram = gram.on(np.flatnonzero(~out), problem.rank_bound, limits)
        else:
            return root, gram


def improve_incumbent(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    root: Root,
    relaxer: Relaxer,
    gram: GramForm | None,
) -> None:
    """Round the relaxation, and search around it and the incumbent among promising columns."""
    shares = relaxer.g * relaxer.g / relaxer.terms.w
    columns = np.union1d(
        root.columns[largest(shares, SETTINGS.searched_columns)], incumbent.support
    )
    if gram is not None and columns.size == root.columns.size:
        G, b = gram.G, gram.b
    else:
        rows = problem._rows  # products only: a long table need not be factored for them
        G, b = rows[:, columns].T @ rows[:, columns], rows[:, columns].T @ rows[:, problem.p]
    search = LocalSearch(G, b, problem.gamma / 2.0, problem.tau)
    for start in (incumbent.support, rounded(root, relaxer)):
        search.enter(np.searchsorted(columns, start))
    incumbent.offer(columns[search.best])
