"""The model of every size that belongs to a choice, with its CV error.

After a cross-validation nothing is searched for here: the supports are those that it has found for
all rows, or the projections of an average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.results import TIE, CVResult, least
from ..design.design import Design
from ..design.model import Model, fitted_model, values_of
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.threads import one_blas_thread
from ..solvers.paths import support_path
from .choice import Choice, least_error, of_pair, of_projection
from .study import Study, check_size


class SizeMarks(NamedTuple):
    """Positions among sizes that tables and pictures mark; None where there is none.

    chosen: The size of the model.
    least: The size of least CV error.
    one_se: The smallest size whose CV error is within one standard error of the least.
    """

    chosen: int | None
    least: int | None = None
    one_se: int | None = None


def size_marks(
    result: CVResult, choice: Choice, sizes: list[Model], chosen: int | None
) -> SizeMarks:
    """What is marked among the sizes of a choice: pairs (γ, τ) of the grid, or projections.

    result: h(γ, τ) of the first partition.
    sizes: The model of every size.
    chosen: The position of the chosen model among them; None where it is none of them.
    """
    if choice.is_pair:
        best = result.best()
        one_se = int(np.flatnonzero(result.taus == best.one_se)[0])
        return SizeMarks(chosen, best.tau_index, one_se)
    errors = values_of(sizes, "cv_error")
    _, t = least(errors[None, :], values_of(sizes, "tau"), np.zeros(1), result.rounding)
    within = errors <= errors[t] + sizes[t].std_error + result.rounding
    return SizeMarks(chosen, t, int(np.flatnonzero(within)[0]))


def changes(before: NDArray[np.intp], now: NDArray[np.intp], names: Sequence[str]) -> list[str]:
    """The names of columns that came in, each after a plus, and that went out, after a minus."""
    came = [f"+{names[c]}" for c in np.setdiff1d(now, before)]
    return came + [f"−{names[c]}" for c in np.setdiff1d(before, now)]


def gamma_positions(result: CVResult, choice: Choice) -> NDArray[np.intp]:
    """Position, among the γ of a surface, of the γ that a rule gives every size, shape (τ,).

    A size takes the γ at which the rule's criterion is least among the pairs of that size, and the
    chosen size takes the chosen γ.
    """
    values = choice.values(result)
    sizes = range(result.taus.size)
    at = [least(values[:, [t]], result.taus[[t]], result.gammas, result.rounding)[0] for t in sizes]
    if choice.is_pair:
        at[choice.position[1]] = choice.position[0]
    return np.array(at, dtype=np.intp)


def models_by_size(study: Study, result: CVResult, choice: Choice) -> list[Model]:
    """The model of every size that belongs to a choice, with what is proved of it.

    result: h(γ, τ) of the first partition.
    """
    if choice.projection is not None:
        return choice.projection.sizes
    at, full = gamma_positions(result, choice), study.data.full()
    with one_blas_thread():
        return [result.by_gamma[g].model(study.design, full, t) for t, g in enumerate(at)]


def models_at_gamma(
    problem: SparseRidgeProblem,
    design: Design,
    own: Model,
    time_limit: float | None,
) -> list[Model]:
    """The best model of every size up to a known one at the γ of a problem; nothing is held out.

    own: The known model, which was fitted at this γ, and is the last one returned.
    time_limit: Seconds of the search of all sizes; None is no limit.
    """
    if own.support.size == 0:  # A criterion may choose no column at all.
        return [own]
    sizes = np.arange(max(problem.constraints.min_size, 1), own.tau + 1)
    gamma, limits = [problem.given_gamma], Limits(time_limit)
    path = support_path(problem, gamma, sizes, solver="exact", limits=limits)
    found = path.at(0), sizes.tolist(), path.lower_bound[0].tolist(), path.proved[0].tolist()
    models = [fitted_model(design, problem, *one) for one in zip(*found, strict=True)]
    return [*models[:-1], own]


def choice_of_size(result: CVResult, choice: Choice, size: int) -> Choice:
    """The choice of a given size by the same rule: the pair or the projection that it gives a size.

    result: h(γ, τ) of the first partition.
    Raises InputError: There is no such size.
    """
    found = choice.projection
    sizes = result.taus if found is None else values_of(found.sizes, "tau")
    check_size(sizes, size)
    t = int(np.flatnonzero(sizes == size)[0])
    if found is not None:
        return replace(of_projection(choice, replace(found, chosen=t)), size_given=True)
    g = int(gamma_positions(result, choice)[t])
    one, values = result.by_gamma[g], choice.values(result)[:, t]
    proved = bool(result.table("exact")[:, t].all())
    if choice.rule in ("minimum", "one-se"):
        least_known = float(result.table("lower")[:, t].min())
        most = float(one.cv_error[t]) * (1.0 - 2.0 * TIE) - result.rounding
        proved = bool(one.exact[t]) and least_known >= most
    own = of_pair(choice.rule, result, g, t, values[g], proved)
    return replace(own, pairs=choice.pairs, size_given=True)


def subsets_by_size(study: Study, result: CVResult, choice: Choice) -> list[Model]:
    """The best known subset of every size for the response itself.

    These are the models of the choice; in place of projections, which are the best subsets for the
    predictions of an average, stand the models of least CV error.

    result: h(γ, τ) of the first partition.
    """
    if choice.projection is None:
        return models_by_size(study, result, choice)
    sizes = {model.tau for model in choice.projection.sizes}
    every = models_by_size(study, result, least_error(result))
    return [model for model in every if model.tau in sizes]
