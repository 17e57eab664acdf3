"""The model of every size that belongs to a choice, with its CV error.

A choice is what a rule has chosen: a pair of a size τ and a ridge weight γ, by its CV error h(γ, τ)
or a criterion of the rule; or the projection of an average of many models onto a size. After a
cross-validation nothing is searched for here: the supports are those that it has found for all
rows, or the projections.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..cv.results import CVResult, least
from ..design.design import Design
from ..design.folds import Index
from ..design.model import Model, fitted_model, values_of
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.threads import one_blas_thread
from ..solvers.paths import support_path
from .choice import Choice, least_error, of_pair, of_projection
from .study import Study, check_size


class SizeMarks(NamedTuple):
    """Which sizes tables and pictures mark, as positions in a list of sizes; None where none is.

    chosen: The size of the model.
    least: The size of least CV error.
    one_se: The smallest size whose CV error is within one standard error of the least.
    """

    chosen: int | None
    least: int | None = None
    one_se: int | None = None


def told_sizes(sizes: list[Model], marked: Iterable[int | None] = ()) -> list[int]:
    """The positions of sizes that tables tell: the first, and those of other columns than before.

    Where a group counts its coefficients, a size that no further group fits into has the columns of
    the size before.

    marked: Positions that are told in any case.
    """
    every, supports = set(marked), [np.empty(0, dtype=np.intp), *(one.support for one in sizes)]
    new = [not np.array_equal(now, before) for before, now in pairwise(supports)]
    return [t for t, differs in enumerate(new) if differs or t == 0 or t in every]


def size_marks(
    result: CVResult, choice: Choice, sizes: list[Model], chosen: int | None
) -> SizeMarks:
    """What is marked among the models of a choice.

    result: h(γ, τ) of the first partition.
    sizes: The model of every size, as :func:`models_by_size` returns them.
    chosen: The position of the chosen model among them; None where it is none of them.
    """
    if choice.is_pair:
        best = result.best()
        one_se = int(np.flatnonzero(result.taus == best.one_se)[0])
        return SizeMarks(chosen, least=best.tau_index, one_se=one_se)
    # Projections have one CV error for every size, as a surface of a single γ would have.
    errors, taus = values_of(sizes, "cv_error"), values_of(sizes, "tau")
    _, t = least(errors[None, :], taus, gammas=np.zeros(1), rounding=result.rounding)
    within = errors <= errors[t] + sizes[t].std_error + result.rounding
    return SizeMarks(chosen, least=t, one_se=int(np.flatnonzero(within)[0]))


def gamma_positions(result: CVResult, choice: Choice) -> Index:
    """Position, among the γ of a surface, of the γ that a rule gives every size, shape (τ,).

    A size takes the γ at which the rule's criterion is least among the pairs of that size, and the
    chosen size takes the chosen γ.

    result: h(γ, τ) of the first partition.
    choice: A pair of the grid, or another choice, whose criterion then is the CV error.
    """
    values = choice.values(result)
    positions = [
        least(values[:, [t]], result.taus[[t]], result.gammas, result.rounding)[0]
        for t in range(result.taus.size)
    ]
    if choice.is_pair:
        g, t = choice.position
        positions[t] = g
    return np.array(positions, dtype=np.intp)


def models_by_size(study: Study, result: CVResult, choice: Choice) -> list[Model]:
    """The model of every size that belongs to a choice, with what is proved of it.

    result: h(γ, τ) of the first partition.
    """
    if choice.projection is not None:
        return choice.projection.sizes
    full = study.data.full()
    with one_blas_thread():  # The matrices are small.
        positions = enumerate(gamma_positions(result, choice))
        return [result.by_gamma[g].model(study.design, full, t) for t, g in positions]


def models_at_gamma(
    problem: SparseRidgeProblem, design: Design, own: Model, time_limit: float | None
) -> list[Model]:
    """The best model of every size up to that of a known model, where nothing is held out.

    A known model without columns is returned by itself.

    problem: All rows, at the γ of all these models.
    own: The known model, which was fitted at this γ, and is the last one returned.
    time_limit: Seconds of the search of all sizes; None is no limit. Every model says whether it
        is proved.
    """
    if own.support.size == 0:  # A criterion may choose no column at all.
        return [own]
    sizes = problem.constraints.sizes
    sizes = np.append(sizes[sizes < own.tau], own.tau)
    gamma, limits = [problem.given_gamma], Limits(time_limit)
    path = support_path(problem, gamma, sizes, solver="exact", limits=limits)
    smaller = list[Model]()
    for t, size in enumerate(sizes[:-1].tolist()):
        bound, proved = float(path.lower_bound[0, t]), bool(path.proved[0, t])
        smaller.append(fitted_model(design, problem, path.support(0, t), size, bound, proved))
    return [*smaller, own]


def choice_of_size(result: CVResult, choice: Choice, size: int) -> Choice:
    """What the same rule gives a size that the user names: a pair, or a projection.

    A pair has the γ at which the rule's criterion is least among the pairs of that size.

    result: h(γ, τ) of the first partition.
    choice: What the rule chooses among all sizes.
    Raises InputError: There is no such size.
    """
    projection = choice.projection
    sizes = result.taus if projection is None else values_of(projection.sizes, "tau")
    check_size(sizes, size)
    t = int(np.flatnonzero(sizes == size)[0])
    if projection is not None:
        return replace(of_projection(choice, replace(projection, chosen=t)), size_given=True)
    g = int(gamma_positions(result, choice)[t])
    criterion = choice.values(result)[g, t]
    own = of_pair(choice.rule, result, g, t, criterion, choice.pairs)
    return replace(own, size_given=True, cut_short=choice.cut_short)


def subsets_by_size(study: Study, result: CVResult, choice: Choice) -> list[Model]:
    """Models of every size of a choice, each of the best subset known for the response itself.

    They are those of :func:`models_by_size`. Where the choice is a projection, these are the best
    subsets for the predictions of an average; in their place stand the models of least CV error of
    the same sizes.

    result: h(γ, τ) of the first partition.
    """
    models = models_by_size(study, result, choice)
    if choice.projection is None:
        return models
    sizes = values_of(models, "tau")
    every = models_by_size(study, result, least_error(result))
    return [model for model in every if model.tau in sizes]
