"""Proofs by trees of all sizes, up to 45 columns: of the sizes that a choice needs, in rounds.

A tree proves all sizes of a problem that are asked of it at once. In the first round it is asked
for all that are open, and the trees of a γ may take their share of the time. Every later round
gives a tree ``GROWTH_OF_ROUNDS`` times the nodes of the round before, and asks for what is needed
alone. A tree that these do not suffice for still bounds the fold's errors, and its γ is left to the
next round where the choice needs it even so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..schedule import GROWTH_OF_ROUNDS, NODES_OF_FIRST_ROUND
from ..solvers.core.plan import share_of_nodes
from ..solvers.core.result import Status
from ..solvers.leaps.gamma_trees import near_first
from ..solvers.ridge_fits import SupportPath
from .estimate import fold_unit
from .executor import Batch, Late
from .fold_proofs import ProofRun, Prover
from .ledger import Ledger
from .needs import Need, of_everything

# A unit of work proves one problem at a γ and at γ near it, at most this many in all. A limit or
# Ctrl-C may end a run after some of the units. Then at most this many γ have both proved and
# unproved folds. The number is a choice.
MOST_NEAR = 32


def ends_first(rows: list[int]) -> list[int]:
    """The last of some rows, the first, the middle one of the rest, and so on by halves.

    What trees list at two γ proves most supports between them. The last γ has the smallest tree.
    """
    if len(rows) < 2:
        return rows

    def halves(some: list[int]) -> list[int]:
        middle = len(some) // 2
        return [some[middle], *halves(some[:middle]), *halves(some[middle + 1 :])] if some else []

    return [rows[-1], rows[0], *halves(rows[1:-1])]


class SizesProver(Prover):
    """Proves by trees of all sizes.

    nodes: The most nodes of a tree at one γ in the current round.
    first_round: Whether no round has ended yet.
    """

    def __init__(self, ledger: Ledger, rows: Sequence[int], work: ProofRun) -> None:
        super().__init__(ledger, rows, work)
        self.nodes = int(NODES_OF_FIRST_ROUND * share_of_nodes(ledger.data.constraints))
        self.first_round = True

    def prove(self, need: Need) -> list[int]:
        """Prove what is needed, the γ of least estimates first.

        The γ near a γ are proved together with it, as one tree may serve all of them. Where a tree
        takes more nodes than the round allows, γ at or below that tree's γ wait for the next round:
        trees of smaller γ are mostly larger.

        Returns: The rows of γ at which something needed stays unproved, because of a limit or
            because digits are lost.
        """
        reached, hard = self.work.limits.reached, -1.0
        while reached(0) is None and self._next(need, set(), -1.0):
            tried, hard = set[int](), -1.0
            while reached(0) is None and (near := self._next(need, tried, hard)):
                tried.update(near)
                hard = max(hard, self._search(need, near))
            self.nodes, self.first_round = self.nodes * GROWTH_OF_ROUNDS, False
        left = self._open(need, with_imprecise=True).any(axis=(1, 2))
        return [int(g) for g in self.rows[left]]

    def _open(self, need: Need, with_imprecise: bool = False) -> NDArray[np.bool_]:
        """What is needed and not proved, of every row, size and problem, shape (γ, τ, k + 1).

        with_imprecise: Whether problems count that no longer search can prove.
        """
        ledger, rows = self.ledger, self.rows
        found = ~ledger.cells.exact[rows]
        if not with_imprecise:
            found &= ~ledger.cells.imprecise[rows]
        if found.any():
            needed = need(ledger.known(rows))
            found[:, :, : ledger.k] &= needed.errors[:, :, None]
            found[:, :, ledger.k] &= needed.models
        return np.asarray(found)

    def _next(self, need: Need, tried: set[int], hard: float) -> list[int]:
        """The rows that are searched next: one of least estimate, and those of γ near it.

        tried: Rows that this round has searched.
        hard: No row of so small a γ is searched.
        """
        gammas = self.ledger.gammas
        some = np.asarray(self._open(need).any(axis=(1, 2)), dtype=bool)
        if not some.any():
            return []
        least = self.ledger.known(self.rows).error.min(axis=1)
        order = [int(self.rows[i]) for i in np.argsort(least, kind="stable") if some[i]]
        left = [g for g in order if g not in tried and gammas[g] > hard]
        if not left:
            return []
        near = near_first(self.ledger.data.full(), gammas, left[0], left)[:MOST_NEAR]
        return sorted(near, key=lambda g: gammas[g])

    def _search(self, need: Need, rows: list[int]) -> float:
        """Search the problems that are needed and open at the γ of some rows.

        What is proved, and intervals of what is not, are entered in the ledger. In the first round
        a tree of which some size is needed proves every open size. That takes it a twenty-fifth
        more nodes at 30 to 42 columns (measured), and a fit proves these sizes at its end, by half
        as many trees again.

        rows: Rows of the ledger, in increasing order of γ, at each of which something is open.
        Returns: The largest γ at which a limit has left a tree open, or −1. Trees that have lost
            digits do not count, as more nodes do not help them.
        """
        ledger, place = self.ledger, {int(g): i for i, g in enumerate(self.rows)}
        places = [place[g] for g in rows]
        needed = self._open(need)[places]
        if self.first_round:
            needed = self._open(of_everything)[places] & needed.any(axis=1, keepdims=True)
        problems = np.flatnonzero(needed.any(axis=(0, 1))).tolist()
        rows_of, tasks = dict[int, list[int]](), []
        for j in problems:
            some = ends_first(
                [g for g, mine in zip(rows, needed[:, :, j], strict=True) if mine.any()]
            )
            gammas, sizes = np.array(ledger.gammas)[some], ledger.taus[needed[:, :, j].any(axis=0)]
            rows_of[j] = some
            tasks.append((j, gammas, sizes, "exact", ledger.listed.get(j, {}), None, self.nodes))
        hard = [-1.0]

        def enter(index: int, found: tuple[SupportPath, Array]) -> Status:
            j, (path, errors) = problems[index], found
            ended, some = Status.OPTIMAL, rows_of[j]
            ledger.listed[j] = path.listed
            ledger.enter_proofs(some, j, path, errors)
            ledger.bracket_by_tree(some, j, path)
            for i in np.flatnonzero(~path.proved.all(axis=1)).tolist():
                ended = path.stopped(i) or Status.TIME_LIMIT
                if ended is not Status.PRECISION:
                    hard.append(ledger.gammas[some[i]])
            return ended

        self.report_cell(rows[0], 0, f"the sizes that count of {len(problems)} problems")
        unit, limits = Late.LEFT_OUT.unit(fold_unit), self.work.limits
        if self.first_round and (left := limits.remaining()) is not None:
            # A γ of large trees leaves their share of the time to those that wait.
            waiting = int(self._open(need).any(axis=(1, 2)).sum())
            limits = limits.within(left * len(rows) / waiting)
        self.work.run(
            Batch(rows, unit, ledger.data, tasks, enter, lambda _: limits.within(), keep=True)
        )
        return max(hard)
