"""Best supports of one or several sizes at one γ, whatever the number of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...schedule import HALVES, NODES_PER_ROOT, SUPPORTS_PER_NODE
from ..core.limits import Limits
from ..core.plan import (
    ALONE,
    EVERY,
    LEAPS,
    Way,
    few_supports,
    ways,
)
from ..core.problem import SparseRidgeProblem, checked_sizes, checked_support
from ..core.result import Answer, Status, Work
from ..core.threads import on_one_thread
from ..core.ties import first_answer
from ..leaps.all_sizes import SizesTree, only_support
from ..relaxation.gram import GramForm, wants_gram
from ..supports.path import SupportGrower
from ..supports.rounding import pad_support
from .enumeration import enumerated
from .search import MAX_OPEN_BYTES
from .single import SizeAlone


@on_one_thread
def solve_sizes(
    problem: SparseRidgeProblem,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    limits: Limits | None = None,
) -> list[Answer]:
    """Solve eq. (1), first paper, for every size in ``sizes``, whatever the number of columns.

    Up to 45 columns (or groups of columns) this is :func:`best_subsets`. Where its tree is large,
    as for large γ and many columns that are worth nearly the same, every size is first tried alone
    by branch and bound. With more columns the all-sizes tree is cut short: the tree proves the
    sizes near p and gives every other size an incumbent, and each size left is solved alone by
    branch and bound, started from the support of the size below.

    Parameters
    ----------
    problem, sizes, warm_starts
        As in :func:`best_subsets`.
    limits : Limits, optional
        Seconds for all sizes together, and a flag that another thread may raise.

    Returns
    -------
    list of Answer
        One for every size, the least size first, with the nodes and seconds of all searches
        together. Leaves are those of the all-sizes tree.

    Raises
    ------
    ValueError
        Sizes or warm starts that :func:`best_subsets` refuses.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, solve_sizes
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> [found.support.tolist() for found in solve_sizes(problem, sizes=[1, 2])]
    [[1], [1, 3]]
    """
    limits, wanted = (limits or Limits()).within(), checked_sizes(problem, sizes)
    starts = [checked_support(problem.p, start) for start in warm_starts]
    search = SizeSearch(problem, wanted, starts).run(limits)
    work = Work(search.n_nodes, limits.elapsed())
    return [replace(found, work=work) for found in search.answers]


class SizeSearch:
    """Answers of some sizes of a problem, by the searches of :func:`ways` in turn.

    A search starts from the supports and bounds of those before it.

    problem: The problem, whose τ is not used.
    sizes, shape (k,): The sizes wanted, as the constraints count them, increasing and distinct.
    starts: Supports of any size.
    tol: Relative gap at which a size counts as solved.
    worst_gap: With a larger relative gap a size whose search has ended is not proved.
    n_jobs: Threads that share a tree of branch and bound.
    tree: A tree of the sizes that was begun elsewhere.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        starts: Sequence[NDArray[np.intp]] = (),
        *,
        tol: float = 0.0,
        worst_gap: float = np.inf,
        n_jobs: int | None = None,
        tree: SizesTree | None = None,
    ) -> None:
        self.problem, self.sizes, self.starts = problem.at_unit_length(), sizes, list(starts)
        self.how: dict[str, Any] = {"tol": tol, "n_jobs": n_jobs}
        self.worst_gap, self.tree = max(tol, worst_gap), tree
        self.answers = [Answer.nothing_known(size) for size in sizes.tolist()]
        # Every search of a single size is kept under the position of its size, and can go on.
        self.searches: dict[int, SizeAlone] = {}
        self.shared_gram: GramForm | None = None
        self.n_trees = 0  # Trees that were begun.
        # Searches of single sizes have taken so many nodes, and so much work, in which the
        # relaxation of a root counts as ``NODES_PER_ROOT`` nodes.
        self.nodes_alone = self.work_alone = 0

    @property
    def open(self) -> list[int]:
        """Positions of the sizes that are not proved."""
        return [i for i, found in enumerate(self.answers) if not found.proved]

    @property
    def n_nodes(self) -> int:
        """Nodes of all searches so far."""
        return self.nodes_alone + (0 if self.tree is None else self.tree.n_nodes)

    def run(self, limits: Limits) -> SizeSearch:
        """Search until every size is proved, a limit is reached, or nothing is left to try.

        The searches of :func:`ways` take their turns. ``answers`` take what they find.

        limits: A limit of nodes counts those of all searches together, and those that a given tree
            had before.
        Returns: This object.
        """
        problem, ended = self.problem, False
        asked = problem.constraints
        if asked.min_size == self.sizes[0]:  # Nothing is left to choose for the first size.
            included = asked.columns_of(np.flatnonzero(asked.include))
            self.answers[0] = only_support(problem, included)
        had = 0 if self.tree is None else self.tree.n_nodes
        if self.open and self.tree is not None:
            # What a tree that was begun elsewhere knows counts before another search begins.
            ended = self.by_tree(Way(LEAPS), limits.within(nodes=had))
            if self.is_over(limits):
                return self
        passed = False
        for way in ways(problem, self.sizes.tolist()) if self.open else ():
            if way.search == LEAPS:
                passed = way.nodes is not None and had >= max(way.nodes, 1)
            # A tree that was begun elsewhere has had the nodes of this turn. It goes on for another
            # turn before sizes are searched alone, as a tree that ends lists supports.
            if passed and way.search != EVERY:
                continue
            if way.search == LEAPS and not ended:
                ended = self.by_tree(way, way.within(limits.after(self.nodes_alone)))
            elif way.search == ALONE and not ended:
                self.alone(way, limits)
            elif way.search == EVERY:
                self.every(way, limits.after(self.n_nodes))
            if self.is_over(limits):
                break
        return self

    def is_over(self, limits: Limits) -> bool:
        """Whether every size is proved, or a limit is reached, which open sizes get as status."""
        reached = limits.reached(self.n_nodes)
        if reached is not None:
            for i in self.open:
                self.answers[i] = replace(self.answers[i], status=reached)
        return not self.open or reached is not None

    def enter(self, i: int, found: Answer) -> None:
        """Take over the support of a later search if it is as good, its bound and its status.

        A search that is proved has the first of the supports that tie. Where an earlier support is
        kept that ties with it, exchanges lead to the first.
        """
        if found.proved and found.gap > self.worst_gap:
            found = replace(found, status=Status.PRECISION)
        answer = self.answers[i].joined(found, found.work)
        if answer.proved and answer.support is not found.support:
            answer = first_answer(self.problem, answer)
        self.answers[i] = answer

    def by_tree(self, way: Way, limits: Limits) -> bool:
        """Search the tree of all sizes, or go on with it, for the sizes that are not proved.

        way: Says whether supports are grown first, in at most half of the time left.
        Returns: Whether the tree has ended, so that more time would prove no further size.
        """
        problem, unproved = self.problem, np.zeros(self.sizes.size, dtype=bool)
        if self.tree is None:
            if way.grown:
                grower = SupportGrower(problem, self.sizes, self.starts)
                grown = grower.at(problem.gamma, self.starts, limits.share(HALVES))
                self.starts += grown.values()
            self.tree = SizesTree(problem, self.sizes, self.starts)
        # This way comes before all others, so that no other tree has been begun at its first turn.
        self.n_trees = max(self.n_trees, 1)
        unproved[self.open] = True
        found = self.tree.run(limits, unproved)
        for i in self.open:
            self.enter(i, found[i])
        return Status.worst(one.status for one in found) in (Status.OPTIMAL, Status.PRECISION)

    def alone(self, way: Way, limits: Limits) -> None:
        """Search the open sizes alone, each from its support and that of the size below.

        Sizes get equal shares of the time or, where the way limits nodes, of its nodes. What easy
        sizes leave goes to the others: a size whose share of the time has ended, and not the time
        of all, has another turn. A size without a support is searched whatever the limits, so that
        it has one. Answers are written to ``answers``.

        way: Its ``nodes`` limit the nodes of all turns of all searches of single sizes together;
            None where they have no limit.
        """
        todo = [i for i in self.open if i not in self.searches or self.searches[i].can_go_on]
        while todo:
            for done, i in enumerate(todo):
                known = np.isfinite(self.answers[i].objective)
                if known and limits.reached(self.n_nodes) is not None:
                    return
                share, nodes = limits.share(float(len(todo) - done)), None
                if way.nodes is not None:
                    nodes = max(way.nodes - self.work_alone, 0) // (len(todo) - done)
                if nodes != 0 or not known:
                    self.one_alone(i, limits.within(share.remaining()), nodes)
            todo = [i for i in todo if self.answers[i].status is Status.TIME_LIMIT]
            if way.nodes is not None:
                return

    def one_alone(self, i: int, limits: Limits, more_nodes: int | None) -> None:
        """Begin or go on with the search of one size alone, for so many nodes more.

        Writes the answer of the size, and counts nodes. With a limit of nodes, small nodes are
        enumerated as far as that takes no longer than the nodes allowed.

        i: Place of the size in ``sizes``.
        more_nodes: None without a limit. A search that begins has ``NODES_PER_ROOT`` fewer, for the
            relaxation of its root.
        """
        problem, size, known = self.problem, int(self.sizes[i]), self.answers[i]
        if i not in self.searches:
            near = [known.support for known in self.answers[max(i - 1, 0) : i + 1][::-1]]
            starts = [support for support in near if support.size] or self.starts
            at_size = problem.replace(tau=size)
            self.searches[i] = SizeAlone(at_size, starts, gram=self.gram(limits), **self.how)
            self.n_trees += 1
            more_nodes = None if more_nodes is None else max(more_nodes - NODES_PER_ROOT, 1)
            self.work_alone += NODES_PER_ROOT
        search = self.searches[i]
        if known.objective < search.answer.objective:
            search.offer(known.support)
        before, supports = search.answer.n_nodes, np.inf
        limits = limits.after(self.n_nodes - before)  # The search counts its own nodes.
        if more_nodes is not None:
            supports = float(SUPPORTS_PER_NODE * (before + more_nodes))
            limits = limits.within(nodes=before + more_nodes)
        found = search.run(limits, supports)
        self.nodes_alone += found.n_nodes - before
        self.work_alone += found.n_nodes - before
        if problem.constraints.plain:
            found = replace(found, support=pad_support(found.support, size, problem.p))
        if found.proved:
            found = first_answer(problem, found)
        self.enter(i, found)
        if sum(each.n_bytes for each in self.searches.values()) > MAX_OPEN_BYTES:
            del self.searches[i]  # A later turn begins anew.

    def gram(self, limits: Limits) -> GramForm | None:
        """The Gram form that all sizes share, where there are several and it is worth its time."""
        several = len(self.open) > 1 and self.problem.constraints.plain
        if self.shared_gram is None and several and wants_gram(self.problem):
            self.shared_gram = GramForm.of(self.problem, limits=limits)
        return self.shared_gram

    def every(self, way: Way, limits: Limits) -> None:
        """Visit every support of the open sizes that have few."""
        problem = self.problem
        few = [i for i in self.open if few_supports(problem, [self.sizes[i]], way.supports)]
        if few:
            starts = [*self.starts, *(self.answers[i].support for i in few)]
            for i, found in zip(
                few, enumerated(problem, self.sizes[few], starts, limits), strict=True
            ):
                self.enter(i, found)
