"""Supports, coefficients and proofs of one problem at every γ and size: the unit of work above."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .answers import SOLVERS, Asked, AtGamma, PathProblem, Supports
from .core.limits import Limits
from .core.problem import SparseRidgeProblem
from .core.result import Status, worst
from .core.threads import on_one_thread, threads_for
from .kernels.linalg import Array
from .leaps.all_sizes import best_subsets, coefficient_spread, rounding_margin
from .leaps.gamma_trees import Listed
from .ridge_fits import Support, SupportPath, fit_supports


def support_path(
    problem: SparseRidgeProblem,
    gammas: Sequence[float] | Array,
    sizes: ArrayLike,
    *,
    solver: str = "exact",
    limits: Limits | None = None,
    listed: Listed | None = None,
) -> SupportPath:
    """Solve eq. (1), first paper, for every γ and size.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Gives the data; its γ and τ are not used.
    gammas : sequence of float
        Ridge weights, best in order: trees start from the γ before.
    sizes : sequence of int
        In 1..p.
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

    Returns
    -------
    SupportPath
        Of supports tied within rounding up to 45 columns the lexicographically first.

    Raises
    ------
    ValueError
        Sizes out of 1..p, γ < 0, or an unknown solver.

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
    path, limits = PathProblem(problem, gammas, sizes, listed), limits or Limits()
    answers: list[AtGamma] = []
    with threads_for(problem):
        for g, at in enumerate(path.at):
            asked, previous = Asked(path, at, len(path.at) - g), answers[-1] if answers else None
            reached = limits.reached(0)
            if reached is None:
                answers.append(SOLVERS[solver].answer(asked, previous, limits))
                continue
            supports = asked.grown(None, limits) if previous is None else _nearest(path, answers)
            answers.append(AtGamma.of_supports(supports, reached))
        return _fitted(path, answers)


@on_one_thread
def path_of_one_tree(
    problem: SparseRidgeProblem, sizes: ArrayLike, starts: Sequence[Support], limits: Limits
) -> SupportPath:
    """Answer every size at the problem's γ by one tree of all sizes, whether it ends or not.

    starts: Supports that the tree starts from.
    """
    path = PathProblem(problem, [problem.given_gamma], sizes)
    found = best_subsets(path.at[0], sizes=path.sizes, warm_starts=starts, limits=limits)
    return _fitted(path, [AtGamma.of_answers(found, path.most)])


def _nearest(path: PathProblem, answers: list[AtGamma]) -> Supports:
    """The supports of the answered γ that is nearest to the first γ without an answer."""
    logs = np.log([at.gamma for at in path.at[: len(answers) + 1]])
    return answers[int(np.argmin(np.abs(logs[:-1] - logs[-1])))].supports


def _fitted(path: PathProblem, answers: list[AtGamma]) -> SupportPath:
    """The answers at all γ, with fits of their supports.

    What a tree has proved gets the fitted objective, less rounding, as its lower bound.
    """
    supports = np.array([one.supports for one in answers])
    # The result names the γ that the user gave. The problems may work with another γ, because
    # a tiny one takes the place of 0.
    gammas, sizes = np.array([at.given_gamma for at in path.at]), path.sizes
    coef, objective = fit_supports(path.problem, gammas, supports)
    bound = np.array([one.lower_bound for one in answers])
    some = [g for g, one in enumerate(answers) if one.reach > 0.0]
    if some:
        bound[some] = np.maximum(bound[some], _tree_bounds(path, answers, some, objective[some]))
    proved = np.array([one.proved for one in answers])
    left = [] if proved.all() else [Status.UNPROVED]
    return SupportPath(
        gammas=gammas,
        sizes=sizes,
        supports=supports,
        coef=coef,
        objective=objective,
        lower_bound=np.minimum(bound, objective),
        proved=proved,
        searched=np.array([one.searched for one in answers]),
        n_nodes=np.array([one.n_nodes for one in answers]),
        n_trees=np.array([one.n_trees for one in answers]),
        status=worst([*(one.status for one in answers), *left]),
        unfinished={g: one.unfinished for g, one in enumerate(answers) if one.unfinished},
        listed=path.listed,
    )


def _tree_bounds(
    path: PathProblem, answers: list[AtGamma], some: list[int], objective: Array
) -> Array:
    """What trees of all sizes bound objectives by, less rounding, at some γ; 0 where by nothing.

    objective, shape (some, τ): Of the supports.
    """
    assert path.trees is not None
    tree, at = path.trees.tree, [path.at[g] for g in some]
    reach = np.array([answers[g].reach for g in some])
    spread = tree.stretch * np.array([coefficient_spread(one) for one in at])
    margin = rounding_margin(objective, path.problem.yy, reach[:, None], spread[:, None])
    margin += np.array([tree.left_out(one) for one in at])[:, None] * objective
    losses = [one.data_losses(best, path.sizes) for one, best in zip(at, objective, strict=True)]
    bound = np.minimum(objective, np.array([answers[g].tree_bound for g in some]))
    return np.asarray(np.maximum(bound - margin - losses, 0.0))
