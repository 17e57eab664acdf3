"""Supports, coefficients and proofs of one problem at every γ and size: the unit of work above."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .answers import SOLVERS, PathProblem
from .core.limits import Limits
from .core.problem import SparseRidgeProblem
from .core.threads import on_one_thread, threads_for
from .kernels.linalg import Array
from .leaps.all_sizes import best_subsets
from .leaps.gamma_trees import Listed
from .ridge_fits import Support, SupportPath
from .supports.path import GrownUnits


def support_path(
    problem: SparseRidgeProblem,
    gammas: Sequence[float] | Array,
    sizes: ArrayLike,
    *,
    solver: str = "exact",
    limits: Limits | None = None,
    listed: Listed | None = None,
    grown: dict[float, GrownUnits] | None = None,
) -> SupportPath:
    """Solve eq. (1), first paper, for every γ and size.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Gives the data; its γ and τ are not used.
    gammas : sequence of float
        Ridge weights, best in order: trees start from the γ before.
    sizes : sequence of int
        In 0..p, increasing. The size 0 has one support, which needs no search.
    solver : str
        "exact" solves every problem to optimality. "heuristic" proves nothing: it finds supports by
        forward steps and swaps (:class:`SupportGrower`), at every γ independently. "rounding" takes
        the columns of the relaxation's largest coefficients, as in the stability paper. "estimate"
        answers like "heuristic" what a search with few nodes leaves unproved. Up to 45 columns that
        search is a tree of 200,000 nodes, or of 20,000 where the tree of the γ before was not
        finished; beyond 45 columns it is a shorter tree, or a look at each support where supports
        are few. "auto" is like "estimate", but up to 45 columns trees have no limit of nodes,
        and every γ has an equal share of the time that is left.
    limits : Limits, optional
        Once they are reached, a γ takes the supports of the nearest γ that was answered. The first
        γ, which has none, is answered as by "heuristic", with hardly a swap.
    listed : optional
        What another path of the problem has ``listed``. It proves sizes for all solvers with trees.
    grown : optional
        What a path of the problem's smaller sizes has ``grown``. Searches without a proof go on
        from there. Where it is given, if only as an empty dictionary, this path has it, too.

    Returns
    -------
    SupportPath
        Of supports tied within rounding up to 45 columns the lexicographically first.

    Raises
    ------
    ValueError
        Sizes out of 0..p, γ < 0, or an unknown solver.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, support_path
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> path = support_path(SparseRidgeProblem(X, y, gamma=1.0, tau=1), [0.1, 1.0], [1, 2])
    >>> path.support(0, 1), bool(path.proved.all())
    (array([1, 3]), True)
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}; got {solver!r}")
    every = np.asarray(sizes)
    some = every[1:] if every.size and every.flat[0] == 0 else every
    if every.size == 1 and some.size == 0:
        given, no_size = np.asarray(gammas, dtype=np.float64), np.empty(0, dtype=np.intp)
        none = np.empty((given.size, 0, 0), dtype=np.int64)
        return SupportPath.empty(given, no_size, none).after_no_column(problem)
    path, limits = PathProblem(problem, gammas, some, listed, grown), limits or Limits()
    with threads_for(problem):
        for g in range(len(path.at)):
            reached = limits.reached(0)
            if reached is None:
                SOLVERS[solver].answer(path, g, limits)
            else:
                path.pass_over(g, limits, reached)
        found = path.fitted()
        return found if some.size == every.size else found.after_no_column(problem)


@on_one_thread
def path_of_one_tree(
    problem: SparseRidgeProblem, sizes: ArrayLike, starts: Sequence[Support], limits: Limits
) -> SupportPath:
    """Answer every size at the problem's γ by one tree of all sizes, whether it ends or not.

    starts: Supports that the tree starts from.
    """
    path = PathProblem(problem, [problem.given_gamma], sizes)
    path.take(0, best_subsets(path.at[0], sizes=path.sizes, warm_starts=starts, limits=limits))
    return path.fitted()
