"""The best support of every size, or the n best supports, of one problem in one search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.leaves import Leaves
from ..core.limits import Limits
from ..core.plan import holds_tree
from ..core.problem import SparseRidgeProblem, checked_sizes, checked_support
from ..core.quick_fits import fit_supports
from ..core.result import Answer, Status, Work, nothing_left
from ..core.rows import DEPENDENT_SHARE, LOST_SHARE
from ..core.subset_fit import inflation_factors
from ..core.threads import on_one_thread
from ..core.ties import ranking
from ..kernels.linalg import Array
from ..supports.path import SupportGrower
from ..supports.rounding import stacked
from .open_nodes import RELATIVE_ROUNDING, expand
from .tree import Leaps

# A support counts as proved optimal where rounding leaves no other support more than this share of
# the objective below it, besides the second share, of yᵀy, for fits that leave only rounding errors
# of y.
CERTAIN_SHARE, CERTAIN_SHARE_OF_YY = 1e-5, 1e-20


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
        a size may have fewer units if n is 1; with more, the supports have exactly so many.
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
        if not holds_tree(self.problem):
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
        """Memory that the tree holds."""
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
        lost = problem.data_losses(objective, (s.size for s in every), True)
        lower = np.maximum(np.minimum(objective, bound) - margin - lost, 0.0)
        # No support that the tree has not searched is below these objectives.
        closed = (bound > objective * (1.0 + RELATIVE_ROUNDING)) | (status is Status.OPTIMAL)
        proved = closed & certain(objective, margin + lost, problem.yy, problem.data.off)
        if not problem.constraints.bounded:
            # All columns are one support, so that none is better. What rounding leaves open is how
            # far the objective of its fit is from the optimum.
            everything = self.sizes[row] >= problem.constraints.n_units
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
                more = (s for s in self.starts if rules.units(s).size == size)
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

    Up to 168 columns (with constraints, as long as a tree's matrices fit into memory) the tree
    prunes by the n-th best support of a size. Where a limit ends the search, a support is proved to
    be among the best if no open node can hold a better one. With more columns nothing is searched,
    and the known supports are ranked.

    problem: Its τ is not used. Columns that are zero in every row never enter, but with constraints
        or to fill a support up to its size. Under constraints a size is a number of units, columns
        or groups of columns, and only supports that obey the constraints count.
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

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        starts: Sequence[NDArray[np.intp]],
    ) -> None:
        self.problem, self.sizes, self.starts = problem, sizes, starts
        self.limits = Limits()

    def left_out(self, at: SparseRidgeProblem) -> float:
        """The share of an objective that is not searched for want of a column, which is 0."""
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
        grower = SupportGrower(self.problem, self.sizes.tolist(), self.starts)
        by_size = grower.at(self.problem.gamma, self.starts, self.limits)
        return [[by_size[size]] for size in self.sizes.tolist()]


_EitherTree = Leaps | _Unsearched


def tree_margin(problem: SparseRidgeProblem, objective: Array, tree: _EitherTree) -> Array:
    """What rounding in a tree, and a working γ, may add to these objectives."""
    spread = tree.stretch * coefficient_spread(problem)
    reach = min(tree.reach, working_reach(problem, tree.stretch))
    margin = rounding_margin(objective, problem.yy, reach, spread, problem.data.off)
    margin += tree.left_out(problem) * objective
    return np.asarray(margin + problem.zero_loss(objective))


def rounding_margin(
    value: Array,
    yy: float | Array,
    reach: float | Array,
    spread: float | Array,
    off: float,
    least: float | Array = 0.0,
) -> Array:
    """What is taken off a bound f for rounding: 1e-11 f + 2√f δ + δ², δ = off·(|y| + Σ ℓ_j|β_j|).

    A computed fit is exact for columns and y that are off by the share ``off`` of their lengths, so
    that the root of f is off by δ. The sum is at most reach·|y|, and at most |y| + spread·√f, as a
    support that is better than the best known has (γ/2)|β|² ≤ f. It also has (γ/4)|β|² ≤ f − g, if
    no coefficients have an objective below g at γ/2, so that √(f − g) may take the place of √f.
    docs/theory.md says what the margin rests on.

    value: Objectives f; the result has the same shape.
    yy: yᵀy.
    reach: The number ``reach`` of a tree, see :func:`~.depth_first.begin`.
    spread: The number :func:`coefficient_spread` of the problem; ∞ where γ does not bound β.
    off: ``Rows.off`` of the problem's data.
    least: The number g, where searches work with the given γ; 0 says nothing.
    """
    length, above = np.sqrt(yy), np.maximum(value - least, 0.0)
    # Where reach or spread is ∞ and has the factor 0, fmin takes the other number.
    delta = off * np.fmin(length * reach, length + spread * np.sqrt(above))
    return 1e-11 * value + 2.0 * np.sqrt(value) * delta + delta * delta


def coefficient_spread(problem: SparseRidgeProblem, gamma: float | None = None) -> float:
    """2√(Σ ℓ_j²/γ): Σ ℓ_j|β_j| of a fit of objective 2f is at most this number times √f.

    The working γ at most doubles the objective of a support whose status may be optimal.

    gamma: By default the γ that searches work with.
    """
    return 2.0 * math.sqrt(
        problem.data.sum_of_squares / (problem.gamma if gamma is None else gamma)
    )


def working_reach(problem: SparseRidgeProblem, stretch: float = 1.0) -> float:
    """A number that (|y| + Σ ℓ_j|β_j|)/|y| of optimal fits at a working γ is at most; else ∞.

    stretch: As of ``SparseRidgeProblem.longest_coefficients``.
    """
    length, most = math.sqrt(problem.yy), problem.longest_coefficients(stretch)
    if length == 0.0 or math.isinf(most):
        return math.inf
    return 1.0 + stretch * math.sqrt(problem.data.sum_of_squares) * most / length


def certain(objective: Array, margin: Array, yy: float | Array, off: float) -> NDArray[np.bool_]:
    """Whether a margin for rounding is so small that a finished search counts as proof.

    off: ``Rows.off`` of the data. In a long table rounding hides a larger share of yᵀy, which is
        1.2e6·off²: see :func:`all_certain`.
    """
    share = max(CERTAIN_SHARE_OF_YY, 1.2e6 * off * off)
    small = margin <= CERTAIN_SHARE * objective + share * yy
    return np.asarray(small | (objective <= nothing_left(1.0) * yy))


def all_certain(problem: SparseRidgeProblem, spread: float) -> bool:
    """Whether :func:`rounding_margin` is small enough for :func:`certain` at every objective f.

    Of the margin, 2√f·off·spread·√f is at most 0.9e-5 f here, and 2√f·off·|y| is at most
    0.9e-6 f + off²yᵀy/0.9e-6. Nothing is said of matrices that were given, which are off as well.
    """
    return problem.data.gram is None and 2.0 * problem.data.off * spread <= 0.9e-5


def attained_margin(problem: SparseRidgeProblem, upper: Array) -> Array:
    """What a search may lay above the objective of an optimum, for objectives ≤ ``upper``.

    The optimum is that at the given γ. The working γ adds at most ``zero_loss`` to its objective;
    rounding of the factor adds :func:`rounding_margin`. Where the working γ is the larger one, it
    does not bound the coefficients β, and Σ ℓ_j|β_j| ≤ √p ``_reach`` does.
    """
    reach, spread = np.inf, coefficient_spread(problem)
    if problem.gamma > problem.given_gamma:
        length = math.sqrt(problem.yy) or 1.0
        reach, spread = 1.0 + math.sqrt(problem.p) * problem._reach() / length, np.inf
    with np.errstate(invalid="ignore"):
        margin = rounding_margin(upper, problem.yy, reach, spread, problem.data.off)
    margin += problem.zero_loss(upper)
    return np.minimum(margin, 1e300)  # Ranges multiply it with numbers that may be 0.


def only_support(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> Answer:
    """The answer of the only support that the constraints allow."""
    objective, bound = problem.objective(support), support_bound(problem, support)
    bound = max(bound - problem.data_loss(objective, support.size), 0.0)
    margin = np.array(objective - bound)
    sure = certain(np.array(objective), margin, problem.yy, problem.data.off)
    status = Status.OPTIMAL if sure else Status.PRECISION
    return Answer(
        size=problem.constraints.units(support).size,
        support=support,
        objective=objective,
        lower_bound=bound,
        status=status,
    )


def support_bound(
    problem: SparseRidgeProblem, support: NDArray[np.intp], given_gamma: bool = False
) -> float:
    """The objective of a support, less what rounding can have added to the fit; at least 0.

    The margin is :func:`rounding_margin` with the variance inflation factors of the support: where
    columns nearly depend on each other the bound may be 0.

    given_gamma: Whether no working γ bounds the coefficients, as the bound is for the given γ.
    """
    gamma = problem.given_gamma if given_gamma else problem.gamma
    fit, reach = problem.fit(support), _reach_of(problem, support, gamma)
    spread = coefficient_spread(problem, gamma) if gamma > 0.0 else math.inf
    share = DEPENDENT_SHARE if problem.given_gamma == 0.0 else LOST_SHARE
    if gamma < problem.gamma and reach > 3.0 * support.size / share:
        # Columns count as dependent: their fit is that of some that are not.
        length = math.sqrt(problem.yy) or 1.0
        reach = 1.0 + math.sqrt(support.size) * problem._reach() / length
    if math.isinf(reach) and math.isinf(spread):
        return 0.0
    with np.errstate(invalid="ignore"):
        off = problem.data.off
        margin = rounding_margin(np.array(fit.objective), problem.yy, reach, spread, off)
    return max(float(fit.objective - fit.lacking - margin), 0.0)


def _reach_of(
    problem: SparseRidgeProblem, columns: NDArray[np.intp], gamma: float | None = None
) -> float:
    """A number that (Σ ℓ_j|β_j| + |y|)/|y| of the fit on some columns is at most; ∞ at rank < s.

    gamma: By default the γ that searches work with.
    """
    s = columns.size
    factors = inflation_factors(problem.factor(columns, gamma)[:s, :s])
    return 1.0 + 2.0 * float(np.sqrt(factors).sum())
