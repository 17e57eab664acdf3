"""The n best subsets of every size with their CV errors.

CV errors of alternatives are those of given columns: every fold fits the same columns to its own
training rows. The columns were found with all rows, the held-out ones among them, so that these
errors are mostly smaller than the CV error of a size, whose folds search for their own columns.

The module adds what ``alternatives`` returns. Without it a fit tells the best subset of every size
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cv.executor import Late
from ..cv.results import CVResult, mean_over_folds
from ..design.design import Array, Design
from ..design.fold_data import FoldData
from ..design.model import Model, values_of
from ..schedule import DEFAULT_SECONDS, SHARE_OF_TREES
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer, Status
from ..solvers.kernels.linalg import stacked
from ..solvers.leaps.all_sizes import n_best_subsets
from ..solvers.ridge_fits import SupportPath
from .study import Study

Errors = tuple[Array, Array]


def ranked_by_size(
    problem: SparseRidgeProblem,
    design: Design,
    sizes: Sequence[Model],
    n: int,
    seconds: float | None,
    others: Sequence[NDArray[np.intp]] = (),
) -> list[list[Answer]]:
    """The n best supports of every size at that size's γ, in columns of the problem.

    One tree answers all sizes that share a γ. The trees end after ``seconds``, or after
    DEFAULT_SECONDS where that is None; every answer says whether it is proved. A size has fewer
    than n answers where it has fewer supports, and the size 0 has one.

    sizes: The known best model of every size, each at its γ.
    others: More supports that may be good, in columns of the problem. They are ranked where there
        are too many columns for a tree.
    """
    known = [np.searchsorted(design.kept, model.support) for model in sizes]
    searched = problem.holds_tree()
    known += () if searched else others
    limits = Limits(DEFAULT_SECONDS if seconds is None else seconds)
    found: dict[int, list[Answer]] = {}
    every, taus = values_of(sizes, "gamma"), values_of(sizes, "tau")
    for t in np.flatnonzero(taus == 0).tolist():  # One model has no column.
        found[t] = [nothing_selected(problem)]
    gammas = np.unique(every[taus > 0])
    for left, gamma in zip(range(gammas.size, 0, -1), gammas, strict=True):
        here = np.flatnonzero((every == gamma) & (taus > 0))
        at, share = problem.replace(gamma=float(gamma)), limits.share(float(left))
        ranked = n_best_subsets(at, taus[here], n, known=known, limits=share)
        found.update(zip(here.tolist(), ranked, strict=True))
    return [found[t] for t in range(len(sizes))]


def nothing_selected(problem: SparseRidgeProblem) -> Answer:
    """The answer of the size 0: no column, and the objective yᵀy."""
    return Answer(
        size=0,
        support=np.empty(0, dtype=np.intp),
        objective=problem.yy,
        lower_bound=problem.yy,
        status=Status.OPTIMAL,
    )


def alternatives_table(
    problem: SparseRidgeProblem,
    design: Design,
    sizes: Sequence[Model],
    ranked: Sequence[list[Answer]],
    errors: Errors | None,
) -> dict[str, Any]:
    """What ``alternatives`` of estimators returns: an entry for every subset, by size and rank.

    ranked: The subsets of each of ``sizes``, in columns of the problem, the best first.
    errors: CV errors and their standard errors, an entry for every subset, size by size; NaN is
        shown where they are None.
    """
    counts, every = [len(one) for one in ranked], [one for some in ranked for one in some]
    tau, gamma = (np.repeat(values_of(sizes, name), counts) for name in ("tau", "gamma"))
    columns = [design.kept[one.support] for one in every]
    nothing = np.full(tau.size, np.nan)
    error, spread = (nothing, nothing) if errors is None else errors
    return {
        "tau": tau,
        "rank": np.concatenate([np.arange(1, count + 1) for count in counts]),
        "gamma": gamma,
        "columns": columns,
        "objective": np.array([one.objective for one in every]),
        "cv_error": error,
        "std_error": spread,
        "proved": np.array([one.proved for one in every]),
    }


def alternatives(
    study: Study, surface: CVResult, sizes: Sequence[Model], n: int, seconds: float | None
) -> dict[str, Any]:
    """The n best subsets of every size on all rows, with their CV errors on the study's folds.

    The CV errors are NaN where the time of the study ends before all folds have theirs.

    study: Its time begins with this call.
    surface: h(γ, τ) of the first partition.
    sizes: The known best model of every size, each at its γ.
    seconds: As of :func:`ranked_by_size`.
    """
    full = study.data.full()
    others = surface.by_gamma[0].supports  # All γ share one list, of all folds, γ and sizes.
    study.progress(f"the {n} best subsets of each size", 0, 1)
    if seconds is not None:
        seconds *= SHARE_OF_TREES
    ranked = ranked_by_size(full, study.design, sizes, n, seconds, others)
    rows = [
        (model.gamma, [one.support for one in some])
        for model, some in zip(sizes, ranked, strict=True)
    ]
    tasks = [(j,) for j in range(study.data.folds.k)]
    # Errors are estimates, which take as long as they need where the time limit is 0.
    late = Late.AFTER_GRACE if study.plan.estimates_in_time else Late.DONE
    unit, shared = late.unit(fold_errors), (study.data, rows)
    sums, errors = study.run("errors of other subsets", unit, shared, tasks), None
    if all(one is not None for one in sums):
        errors = mean_over_folds(np.stack(sums, axis=-1), study.data.fold_weight)
    return alternatives_table(full, study.design, sizes, ranked, errors)


def fold_errors(
    shared: tuple[FoldData, list[tuple[float, list[NDArray[np.intp]]]]], j: int, limits: Limits
) -> Array:
    """The unit of one fold: sums of squared held-out errors of given supports, each at its γ.

    shared: The folds; and pairs of a γ and its supports, which are columns of the problem.
    j: The number of the fold, which the supports are fitted without.
    limits: Not used: given supports are only fitted.
    Returns: One sum for every support, shape (supports,), pair by pair.
    """
    data, rows = shared
    problem, held_out, found = data.training(j), data.held_out(j), []
    for gamma, supports in rows:
        most = max(s.size for s in supports)
        sizes = np.array([s.size for s in supports])
        path = SupportPath.of(problem, [gamma], sizes, stacked(supports, most)[None])
        found.append(path.squared_errors(*held_out)[0])
    return np.concatenate(found)
