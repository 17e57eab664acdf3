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

from ...schedule import PARTS_OF_A_FIRST_INCUMBENT
from ..core.leaves import FREE, IN, OUT, Leaves
from ..core.limits import Limits
from ..core.plan import has_room
from ..core.problem import SparseRidgeProblem
from ..core.rounding import BOUND_SHARE
from ..supports.path import heuristic_support
from ..supports.rounding import complete_support, forward_order, largest, pad_support
from ..supports.sizes import after_swaps
from .gram import GramForm, wants_gram
from .relaxer import Relaxer


@dataclass
class Root:
    """What is known of a problem before branching.

    Screening has left ``units``: columns, or numbers of units of the problem where columns are in
    groups. ``node`` is the node of all supports within these, with the solution of its relaxation.
    Every other support has an objective of at least ``screened_bound``.
    """

    units: NDArray[np.intp]
    node: Leaves
    screened_bound: float = np.inf

    @classmethod
    def of(cls, problem: SparseRidgeProblem) -> Root:
        """The root of a problem before its first relaxation: all units that may be chosen."""
        asked = problem.constraints
        if asked.min_size == problem.tau:  # Nothing is left to choose.
            units = np.flatnonzero(asked.include)
        else:
            units = np.flatnonzero(~asked.exclude)
        state = np.where(asked.include[units], IN, FREE).astype(np.int8)
        return cls(units, Leaves.one(state, np.zeros(0), 0.0, 0.0, unsolved=1))

    @property
    def state(self) -> NDArray[np.int8]:
        """Which units are in every support, shape (m,): free (0) or included (1)."""
        return np.asarray(self.node.state[0])

    @property
    def bound(self) -> float:
        """A lower bound on the objectives of the supports within ``units``."""
        return float(self.node.bound[0])


class Incumbent:
    """The best support known, with the objective of its ridge fit.

    At first that is one of ``starts`` or the support that forward selection finds, under
    constraints one of the search without a proof. ``gram`` is the Gram form of all columns, where
    it is known.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        starts: Sequence[NDArray[np.intp]],
        gram: GramForm | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.problem, self.gram = problem, gram
        self.support, self.objective = np.empty(0, dtype=np.intp), np.inf
        tau, asked = problem.tau, problem.constraints
        if asked.plain:
            starts = [*starts, self._forward()]
        elif not any(asked.allowed(s) and asked.units(s).size == tau for s in starts):
            left = None if limits is None else limits.share(PARTS_OF_A_FIRST_INCUMBENT).remaining()
            starts = [*starts, heuristic_support(problem, warm_starts=starts, time_limit=left)]
        for start in starts:
            self.offer(start)

    def _forward(self) -> NDArray[np.intp]:
        """The support that forward selection finds."""
        problem, gram, none = self.problem, self.gram, np.empty(0, dtype=np.intp)
        if gram is None:
            X, y = problem.triangle[:, : problem.p], problem.triangle[:, problem.p]
            return forward_order(X, y, problem.tau, problem.gamma)
        return complete_support(gram.G, gram.b, problem.gamma / 2.0, none, problem.tau)

    def offer(self, support: NDArray[np.intp]) -> None:
        """Keep a support, cut or filled to τ columns, if it is better.

        Under constraints only supports that obey them are kept.
        """
        tau, asked = self.problem.tau, self.problem.constraints
        if asked.plain:
            chosen = pad_support(np.unique(support)[:tau], tau, self.problem.p, self.support)
        elif asked.allowed(support) and asked.units(support).size <= tau:
            chosen = asked.padded(support, tau)
        else:
            return
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
        the Gram form of its units, None where the root was solved, or a limit reached, before a
        Gram form was needed, where it has no room, or where at most τ units are left.
    """
    root, asked = Root.of(problem), problem.constraints
    single = not (asked.grouped or asked.bounded)
    if gram is None and single and wants_gram(problem) and has_room(problem.p):
        gram = GramForm.of(problem, limits=limits)
    incumbent = Incumbent(problem, starts, gram, limits)
    if asked.min_size == problem.tau:
        return incumbent, root, None
    if not single:
        if not has_room(problem.p):
            return incumbent, root, None
        gram = GramForm.of_units(problem, root.units, limits)
    elif gram is not None and root.units.size < problem.p:
        gram = gram.on(root.units, problem, limits)
    while True:
        relaxer = Relaxer.of(problem, gram, root.units, state=root.state)
        if root.node.lam[0] > 0.0:
            relaxer.start(root.node.beta[0], float(root.node.lam[0]))
        target = incumbent.objective * (1.0 - max(tol, BOUND_SHARE))
        root.node = relaxed_node(relaxer, target, root.bound)
        if root.bound < target and limits.reached(0) is None and single:
            improve_incumbent(incumbent, root, relaxer, gram)
            target = incumbent.objective * (1.0 - max(tol, BOUND_SHARE))
        if root.bound >= target or limits.reached(0) is not None:
            return incumbent, root, gram
        state, least = relaxer.decided(target, including=False)
        root.screened_bound = min(root.screened_bound, least)
        remaining = np.flatnonzero(state != OUT)
        # A relaxation on a smaller matrix pays where a tenth of the columns has gone (a choice).
        shrunk = remaining.size <= 0.9 * state.size
        if shrunk:
            columns = remaining if gram is None else gram.columns_of(remaining)
            state, beta = root.node.state[:, remaining], root.node.beta[:, columns]
            root.units = root.units[remaining]
            root.node = root.node._replace(state=state, beta=beta)
        if remaining.size <= problem.tau:
            return incumbent, root, None
        if gram is None and has_room(remaining.size):
            gram = GramForm.of(problem, root.units, limits=limits)
        elif gram is None:
            return incumbent, root, None
        elif shrunk:
            gram = gram.on(remaining, problem, limits)
        else:
            return incumbent, root, gram


def relaxed_node(relaxer: Relaxer, target: float, least: float = 0.0) -> Leaves:
    """Solve a root's relaxation until its bound reaches ``target`` or no longer rises much.

    The numbers are choices, which decide what time that takes and not what is proved.

    least: A bound of the root that is known before.
    Returns: The root with the solution and the larger bound.
    """
    bound = relaxer.relaxed(
        target, multipliers=20, share=1e-4, rounds=200, gap=1e-5, shortfall_share=0.03
    )
    return relaxer.node._replace(bound=np.array([max(least, bound)]))


def improve_incumbent(
    incumbent: Incumbent, root: Root, relaxer: Relaxer, gram: GramForm | None
) -> None:
    """Improve the rounded relaxation and the incumbent by single swaps among promising columns.

    The better of the two results is offered to ``incumbent``. Every unit is a single column without
    bounds, so that numbers of units are columns.

    relaxer, gram: The relaxation of ``root``, solved, and its Gram form or None.
    """
    problem, w = incumbent.problem, relaxer.terms.w
    shares, include = relaxer.g * relaxer.g / w, problem.constraints.include
    # Columns of largest |β|√w come first. Columns without a coefficient follow by g²/w.
    size = np.abs(relaxer.beta) * np.sqrt(w)
    size = np.where(size > 0.0, size, -1.0 / (1.0 + shares))
    size = np.where(root.state == IN, np.inf, size)
    rounded = root.units[largest(size, problem.tau)]
    # The search keeps the 600 columns of largest g²/w (a choice) and those of both starts.
    promising = np.union1d(root.units[largest(shares, 600)], rounded)
    columns = np.union1d(promising, incumbent.support)
    if gram is not None and np.array_equal(columns, root.units):
        G, b = gram.G, gram.b
    else:
        rows = problem.rows
        G, b = rows[:, columns].T @ rows[:, columns], rows[:, columns].T @ rows[:, problem.p]
    ridge, kept = problem.gamma / 2.0, include[columns]
    starts = [
        complete_support(G, b, ridge, np.searchsorted(columns, start), problem.tau)
        for start in (incumbent.support, rounded)
    ]
    same = np.array_equal(np.sort(starts[0]), np.sort(starts[1]))
    incumbent.offer(columns[after_swaps(G, b, ridge, starts[same:], kept)])
