"""Branch-and-bound for one problem at fixed (γ, τ), at any p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status, Work, relative_gap
from ..core.threads import on_one_thread
from ..relaxation.diagonal import MOST_COLUMNS, STEPS, Fitted, fit_diagonal, interior
from ..relaxation.gram import TOLERANCE, GramForm, wants_gram
from ..relaxation.perspective import perspective_relaxation
from ..relaxation.root import Incumbent, Root, reduced_root
from ..supports.beam import LocalSearch
from .certificate import Certificate, start_from
from .sdp_nodes import RefittedTree
from .search import Search, Tree
from .settings import SETTINGS

# A finished search whose bounds leave a larger relative gap than this to rounding is no proof:
# "precision limit". Doubling the number calls less precise results optimal.
WORST_GAP = 2e-6


@on_one_thread
def branch_and_bound(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    limits: Limits | None = None,
    gram: GramForm | None = None,
    n_jobs: int | None = None,
    certificate: Certificate | None = None,
) -> Proof:
    """Solve eq. (1), main paper, at the problem's γ and τ.

    Parameters
    ----------
    problem : SparseRidgeProblem
    warm_starts : supports
        Of at most τ columns.
    tol : float
        Relative gap at which the search stops.
    limits : Limits, optional
    gram : GramForm, optional
        Of the same data, to share among several γ and τ.
    n_jobs : int, optional
        Threads that share the tree, as in joblib; 1 by default. The result is as good with any
        number, but which of several tied supports is returned may change.
    certificate : Certificate, optional
        Leaves of a neighbouring problem's tree at the same τ and columns, to start from.

    Returns
    -------
    Proof
        The lower bound holds at whatever moment the search stops.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, branch_and_bound
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> found = branch_and_bound(problem)
    >>> found.support, round(found.objective, 3), found.lower_bound <= found.objective
    (array([1, 3]), 5.333, True)
    """
    limits = limits or Limits()
    if gram is None and wants_gram(problem):
        gram = GramForm.of(problem, limits=limits)
    incumbent = Incumbent(problem, warm_starts, gram)
    if certificate is not None and gram is not None:
        return _transferred(problem, incumbent, certificate, gram, tol, limits)
    incumbent.select_forward()
    whole = gram
    root, gram = reduced_root(problem, incumbent, tol, gram, limits)
    target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
    work = Work(1, limits.elapsed())
    if root.bound >= target:
        return _proof(problem, incumbent, min(root.slack, root.bound), Status.OPTIMAL, work, tol)
    if root.columns.size <= problem.tau:  # any other support holds a column screened out
        incumbent.offer(root.columns)
        return _proof(problem, incumbent, root.slack, Status.OPTIMAL, work, tol)
    if gram is None:  # out of time before there was anything to branch on
        status = limits.reached(0) or Status.TIME_LIMIT
        return _proof(problem, incumbent, min(root.slack, root.bound), status, work, tol)
    return _searched(problem, incumbent, root, gram, whole, tol, limits, n_jobs)


def _searched(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    root: Root,
    gram: GramForm,
    whole: GramForm | None,
    tol: float,
    limits: Limits,
    n_jobs: int | None,
) -> Proof:
    """The trees below the root, by Gram matrices of its columns and, where at hand, of all."""
    tree = Tree(gram, problem, tol)
    inside = np.isin(incumbent.support, root.columns)
    tree.enter(np.searchsorted(root.columns, incumbent.support[inside]))
    tree.now["upper"] = np.minimum(tree.now["upper"], incumbent.objective)
    tree.start(root.beta, root.root_lam, root.bound)
    tree.now["quick"] = SETTINGS.rough_nodes
    tree.now["undecided"] = SETTINGS.rough_undecided_share
    tree.now["wide"] = 1.0
    first = last = Search(tree)
    p, searches, relaxed, fitted = root.columns.size, [first], 0.0, None
    ended = first.run(limits, min(SETTINGS.fitting_supports * p**3, SETTINGS.head_start_supports))
    if ended is None and not gram.scaled and p <= MOST_COLUMNS:
        fitted = Fitted(interior(gram), root.beta, root.root_lam, root.bound)
        fitted = _fit(gram, problem, first, fitted, limits, SETTINGS.trial_steps)
        if fitted.bound > first.bound:
            fitted = _fit(gram, problem, first, fitted, limits)
    if (
        fitted is not None
        and fitted.bound > first.bound
        and _closes(fitted, SETTINGS.refit_share, root, first)
    ):
        last = _restarted(RefittedTree, fitted, first, gram, n_jobs)
        searches.append(last)
        ended = last.run(limits)
    else:
        ended = ended or first.run(limits, SETTINGS.head_start_supports)
        if ended is not Status.OPTIMAL:
            relaxed = _relaxed(problem, whole, limits)
        if ended is None:  # not an easy one: worth a better support and a better diagonal first
            last = _better_start(problem, first, root, gram, fitted, limits, n_jobs)
            # one that goes on with the first tree deals its nodes out: what it knows is all
            searches = [last] if last.trees[0] is first.trees[0] else [first, last]
            ended = last.run(limits)
    status = ended or Status.TIME_LIMIT
    incumbent.offer(root.columns[last.support])
    bound = min(root.slack, max(search.bound for search in searches))
    bound = max(min(bound, _overlooked(problem, gram, searches)), relaxed)
    if relaxed == 0.0 and relative_gap(incumbent.objective, bound) > max(tol, WORST_GAP):
        bound = max(bound, _relaxed(problem, whole, limits))
    nodes = 1 + sum(search.n_nodes for search in searches)
    branched = sum(search.n_branched for search in searches)
    work = Work(nodes, limits.elapsed(), branched, tuple(last.history))
    return _proof(problem, incumbent, bound, status, work, tol)


def _relaxed(problem: SparseRidgeProblem, gram: GramForm | None, limits: Limits) -> float:
    """What the relaxation proves alone, converged and from the rows: it may keep more digits."""
    left, bound, p = limits.remaining(), 0.0, problem.p
    for extract in (True, False) if gram is None or not gram.scaled else (False,):
        within = Limits(
            None if left is None else SETTINGS.relaxation_share * left, None, limits.stop
        )
        if within.affords(SETTINGS.operations_per_entry * p * p):
            found = perspective_relaxation(problem, extract=extract, gram=gram, limits=within)
            bound = max(bound, found.bound)
    return bound


def _fit(
    gram: GramForm,
    problem: SparseRidgeProblem,
    first: Search,
    start: Fitted,
    limits: Limits,
    steps: int = STEPS,
) -> Fitted:
    """The root's relaxation with its diagonal fitted to (γ, τ)."""
    free, upper = np.zeros(gram.b.size, dtype=np.int8), float(first.trees[0].now["upper"][0])
    here = gram, problem.gamma / 2.0, free, problem.tau, start, upper
    return fit_diagonal(*here, steps, limits)


def _closes(fitted: Fitted, share: float, root: Root, first: Search) -> bool:
    """Whether a fitted diagonal closes so much of the root's gap."""
    upper = float(first.trees[0].now["upper"][0])
    return fitted.bound - root.bound > share * (upper - root.bound)


def _restarted(
    kind: type[Tree], fitted: Fitted, first: Search, gram: GramForm, n_jobs: int | None
) -> Search:
    """A search from the root with a fitted diagonal, and the record so far."""
    old = first.trees[0]
    tree = kind(replace(gram, D=fitted.D), old.problem, old.tol)
    tree.take_incumbent(old)
    if kind is Tree:
        tree.now["quick"] = SETTINGS.rough_nodes
    tree.start(fitted.beta, fitted.root_lam, fitted.bound)
    search = Search(tree, n_jobs)
    search.history = first.history
    return search


def _better_start(
    problem: SparseRidgeProblem,
    first: Search,
    root: Root,
    gram: GramForm,
    fitted: Fitted | None,
    limits: Limits,
    n_jobs: int | None,
) -> Search:
    """A search with a support from local search and, where it helps, a fitted diagonal."""
    ridge, tree = problem.gamma / 2.0, first.trees[0]
    remaining = limits.remaining()
    seconds = SETTINGS.local_search_seconds
    if remaining is not None:
        seconds = min(seconds, SETTINGS.local_search_share * remaining)
    local = LocalSearch(gram.G, gram.b, ridge, problem.tau)
    local.improve([first.support], Limits(seconds))
    tree.enter(local.best)
    gap = float(tree.now["upper"][0]) - root.bound
    if (
        first.bound - root.bound < SETTINGS.max_share_closed * gap
    ):  # anew: what rough nodes taught misleads
        kind, start = Tree, Fitted(gram.D, root.beta, root.root_lam, root.bound)
        if fitted is not None:
            fitted = _fit(gram, problem, first, fitted, limits)
            kind = RefittedTree if _closes(fitted, SETTINGS.refit_share, root, first) else Tree
            start = fitted if _closes(fitted, SETTINGS.min_share_gained, root, first) else start
        return _restarted(kind, start, first, gram, n_jobs)
    search = Search(tree, n_jobs)
    search.history = first.history
    return search


def _transferred(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    certificate: Certificate,
    gram: GramForm,
    tol: float,
    limits: Limits,
) -> Proof:
    """Close the leaves of a neighbour's tree for this problem."""
    if certificate.tau != problem.tau or certificate.leaves.shape[1] != problem.p:
        raise ValueError(
            f"the certificate is of τ = {certificate.tau} and {certificate.leaves.shape[1]} "
            f"columns, the problem of τ = {problem.tau} and {problem.p}"
        )
    if not np.isfinite(incumbent.objective):
        incumbent.select_forward()
    search = start_from(certificate, gram, problem, tol)
    tree = search.trees[0]
    tree.enter(incumbent.support)
    tree.now["upper"] = np.minimum(tree.now["upper"], incumbent.objective)
    status = search.run(limits) or Status.TIME_LIMIT
    incumbent.offer(search.support)
    bound = min(search.bound, _overlooked(problem, gram, [search]))
    work = Work(search.n_nodes, limits.elapsed(), search.n_branched)
    return _proof(problem, incumbent, bound, status, work, tol)


def _overlooked(problem: SparseRidgeProblem, gram: GramForm, searches: list[Search]) -> float:
    """No support that was enumerated has a lesser objective than this."""
    every = [tree.now[0] for search in searches for tree in search.trees]
    upper = min(min(float(now["upper"]), float(now["least"])) for now in every)
    return upper - gram.rounding(problem.gamma / 2.0, problem.tau, upper)


def _proof(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    bound: float,
    status: Status,
    work: Work,
    tol: float,
) -> Proof:
    objective = incumbent.objective
    # dual bounds hold as they are; where all is closed the incumbent's fit counts, and may be off
    fitted = objective - (1e-9 * objective + 1e-12 * problem.yy)
    bound = max(0.0, min(fitted, bound * (1.0 - 1e-9)) - problem.data_loss(objective))
    if status is Status.OPTIMAL and relative_gap(objective, bound) > max(tol, WORST_GAP):
        status = Status.PRECISION
    return Proof(incumbent.support, objective, bound, status, work)
