"""The best support of every size, or the n best supports, of one problem in one search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.leaves import Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes, checked_support
from ..core.quick_fits import fit_supports
from ..core.result import Answer, Status, Work
from ..core.rounding import BOUND_SHARE, certain, support_bound, tree_margin
from ..core.threads import on_one_thread
from ..core.ties import ranking
from ..kernels.linalg import Array, stacked
from ..supports.weighted import support_grower
from .open_nodes import expand
from .tree import Leaps


@on_one_thread
def best_subsets(
    problem: SparseRidgeProblem,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    limits: Limits | None = None,
) -> list[Answer]:
    """Solve eq. (1), first paper, for every size in ``sizes`` in one leaps-and-bounds tree.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Its τ gives the default sizes 1..τ.
    sizes : array of int, optional
        Support sizes wanted.
    warm_starts : iterable of supports, optional
        Incumbents of any size; greedy steps from each also serve the other sizes.
    limits : Limits, optional
        Seconds, nodes, and a flag that another thread may raise; none by default. Bounds stay
        valid where a limit ends the search.

    Returns
    -------
    list of Answer
        One for every size, the least size first. Supports tied within rounding are compared by a
        fresh QR fit; of those still tied the lexicographically first is returned. Nodes and seconds
        are those of the whole tree.

    Raises
    ------
    ValueError
        Sizes out of 1..p, a warm start that names columns outside 0..p−1, or a bad limit.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, best_subsets
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> [found.support.tolist() for found in best_subsets(problem)]
    [[1], [1, 2]]
    """
    return SizesTree(problem, sizes, warm_starts).run(limits or Limits())


class SizesTree:
    """A search for the best supports of some sizes, which stops at a limit and goes on from there.

    problem, sizes, warm_starts: As in :func:`best_subsets`.
    n: How many of the best supports of every size are wanted. With constraints the best support of
        a size may have fewer units if n is 1; with more, the supports have exactly so many. Where
        units count more than once, supports have at most the size.
    tree: A tree of the problem for these sizes that was begun elsewhere.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: ArrayLike | None = None,
        warm_starts: Iterable[ArrayLike] = (),
        n: int = 1,
        tree: _EitherTree | None = None,
    ) -> None:
        self.problem = problem.at_unit_length() if tree is None else problem
        self.sizes, self.n = checked_sizes(problem, sizes), n
        self.starts = [checked_support(problem.p, s) for s in warm_starts]
        self.tree = tree or self._begun()

    def _begun(self) -> _EitherTree:
        """The search at its root."""
        if not self.problem.holds_tree():
            return _Unsearched(self.problem, self.sizes, self.starts)
        tree = Leaps(self.problem, self.sizes, n_best=self.n)
        tree.seed(self.starts)
        return tree

    @property
    def n_nodes(self) -> int:
        """Nodes searched so far."""
        return self.tree.n_nodes

    @property
    def n_bytes(self) -> float:
        """Bytes of the tree's arrays (:attr:`Leaps.n_bytes`); 0 where no tree has room."""
        return float(self.tree.n_bytes)

    def run(self, limits: Limits, wanted: NDArray[np.bool_] | None = None) -> list[Answer]:
        """Search until a limit is reached; a limit of nodes counts those of earlier calls, too.

        wanted: As in :meth:`Leaps.narrow`; all sizes by default.
        Returns: The best support of every size.
        """
        return [found for found, *_ in self.ranked(limits, wanted)]

    def ranked(self, limits: Limits, wanted: NDArray[np.bool_] | None = None) -> list[list[Answer]]:
        """Search as :meth:`run` does.

        Returns: For every size its n best supports, the best first. The lower bound of an answer
            holds for all supports of its size that are not listed before it.
        """
        limits, problem, tree = limits.within(), self.problem, self.tree
        if wanted is not None and isinstance(tree, Leaps):
            tree.narrow(wanted)
        status = tree.run(limits)
        supports = self._supports()
        row = np.repeat(np.arange(self.sizes.size), [len(some) for some in supports])
        every = [support for some in supports for support in some]
        objective, bound = support_objectives(problem, every), tree.open_bound()[row]
        margin = tree_margin(problem, objective, tree)
        lost = problem.data_losses(objective, (s.size for s in every), given_gamma=True)
        lower = np.maximum(np.minimum(objective, bound) - margin - lost, 0.0)
        # No support that the tree has not searched is below these objectives.
        closed = (bound > objective * (1.0 + BOUND_SHARE)) | (status is Status.OPTIMAL)
        proved = closed & certain(objective, margin + lost, problem.yy, problem.data.off)
        if not problem.constraints.bounded:
            # All columns are one support, so that none is better: its own fit alone is looked at.
            # Smaller supports stand behind it in its list where units count more than once.
            everything = self.sizes[row] >= problem.constraints.cost.sum()
            everything &= np.diff(row, prepend=-1) > 0
            for i in np.flatnonzero(everything & ~proved).tolist():
                proved[i] = only_support(problem, every[i]).proved
        work, leaves = Work(tree.n_nodes, limits.elapsed()), None
        if not proved.all():
            # Where the tree has ended, rounding alone leaves a size open, and no leaf holds it.
            leaves = tree.open_leaves()
            leaves = leaves if leaves.size else None
        unproved = Status.PRECISION if status is Status.OPTIMAL else status
        ranked: list[list[Answer]] = [[] for _ in supports]
        for i, support in enumerate(every):
            some, value, sure = ranked[row[i]], float(objective[i]), bool(proved[i])
            if some:
                value, sure = max(value, some[-1].objective), sure and some[-1].proved
            answer = Answer(
                size=int(self.sizes[row[i]]),
                support=support,
                objective=value,
                lower_bound=float(lower[i]),
                status=Status.OPTIMAL if sure else unproved,
                work=work,
                leaves=None if sure else leaves,
            )
            some.append(answer)
        return ranked

    def _supports(self) -> list[list[NDArray[np.intp]]]:
        """For every size the n best of the supports that the tree lists, the best first.

        If n is above 1, starts of the size count as well: the tree has no columns of zeros.
        """
        problem, rules, found = self.problem, self.problem.constraints, []
        for size, listed in zip(self.sizes.tolist(), self.tree.candidates(self.n), strict=True):
            if self.n > 1:
                own = ((s, rules.size_of(s)) for s in self.starts)
                more = (s for s, k in own if k == size or (rules.weighted and k < size))
                listed = [np.array(s, np.intp) for s in {tuple(s) for s in (*listed, *more)}]
            order = [0]
            if len(listed) != 1:
                order = ranking([problem.fit(support) for support in listed], listed)
            found.append([listed[j] for j in order[: self.n]])
        return found


@on_one_thread
def n_best_subsets(
    problem: SparseRidgeProblem,
    sizes: Sequence[int] | NDArray[np.intp],
    n: int,
    *,
    known: Sequence[NDArray[np.intp]] = (),
    limits: Limits | None = None,
) -> list[list[Answer]]:
    """The n best supports of every size, or all where there are fewer, from one tree.

    The tree prunes by the n-th best support of a size. It takes up to 168 columns
    (``MAX_COLUMNS``), or under constraints as many as leave room in memory for its matrices. Where
    a limit ends the search, a support is proved to be among the best if no open node can hold a
    better one. With more columns nothing is searched, and the known supports are ranked.

    problem: Its τ is not used. Columns that are zero in every row never enter, but with constraints
        or to fill a support up to its size. Under constraints a size is a number of units or, where
        these count more than once, what they count together; only supports that obey the
        constraints count.
    known: Good supports of any size.
    Returns: For every size, in the order of :func:`checked_sizes`, its best supports, the best
        first; of supports whose objectives are equal the lexicographically first comes first. A
        support is proved where no support but those before it has a smaller objective, up to
        rounding, and its lower bound holds for all supports but those before it.
    """
    known = [support for support in known if problem.constraints.allowed(support)]
    found = SizesTree(problem, sizes, known, max(n, 2)).ranked(limits or Limits())
    return [some[:n] for some in found]


def support_objectives(problem: SparseRidgeProblem, supports: Sequence[NDArray[np.intp]]) -> Array:
    """The objectives of some supports at the γ that the user named."""
    rows = stacked(supports, max([1, *(s.size for s in supports)]))
    _, objective = fit_supports(problem, np.array([problem.given_gamma]), rows[None])
    return np.asarray(objective[0])


class _Unsearched:
    """What stands for a tree of too many columns: grown supports, and one bound for all sizes.

    problem, sizes, starts: As of :class:`SizesTree`.
    """

    n_nodes, n_bytes, stretch = 0, 0, 1.0
    reach = 1e100  # Only the ridge bounds the coefficients.
    inflation = 0.0  # Nothing is updated.

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        starts: Sequence[NDArray[np.intp]],
    ) -> None:
        self.problem, self.sizes, self.starts = problem, sizes, starts
        self.limits = Limits()

    def left_out(self, at: SparseRidgeProblem) -> float:
        """Nothing is passed over that :meth:`open_bound` does not bound."""
        return 0.0

    def run(self, limits: Limits) -> Status:
        """Search nothing; the limit that was reached. Growing supports ends at the limits, too."""
        self.limits = limits
        return limits.reached(0) or Status.NODE_LIMIT

    def open_leaves(self) -> Leaves:
        """The node of all supports."""
        return Leaves.root(self.problem.p, self.problem.p)

    def open_bound(self) -> Array:
        """The objective of the ridge fit on all columns, for every size."""
        (whole,) = expand(self.problem, self.open_leaves(), np.zeros((0, self.problem.p)))
        return whole.loss.repeat(self.sizes.size)

    def candidates(self, n: int) -> list[list[NDArray[np.intp]]]:
        """A good support of every size, grown from the starts; none if n > 1."""
        if n > 1:
            return [[] for _ in self.sizes]
        grower = support_grower(self.problem, self.sizes.tolist(), self.starts)
        by_size = grower.at(self.problem.gamma, self.starts, self.limits)
        return [[by_size[size]] for size in self.sizes.tolist()]


_EitherTree = Leaps | _Unsearched


def only_support(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> Answer:
    """The answer of a support that no other can beat, from its own fit alone.

    That is the only support that the constraints allow or, without bounds on coefficients, that of
    all columns. The status is OPTIMAL, or PRECISION where rounding hides too much of the objective.
    """
    objective, bound = problem.objective(support), support_bound(problem, support)
    bound = max(bound - problem.data_loss(objective, support.size), 0.0)
    margin = np.array(objective - bound)
    sure = certain(np.array(objective), margin, problem.yy, problem.data.off)
    status = Status.OPTIMAL if sure else Status.PRECISION
    return Answer(
        size=problem.constraints.size_of(support),
        support=support,
        objective=objective,
        lower_bound=bound,
        status=status,
    )
