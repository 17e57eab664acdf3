"""A fit from top to bottom: one function for estimators and commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..cv.checkpoint import CheckpointFolder
from ..cv.executor import Report, silent
from ..cv.results import CVResult
from ..cv.settings import Settings, checked_gammas, checked_taus
from ..design.model import fitted_model
from ..design.prepare import Prepared
from ..errors import InputError, SolverUnavailable
from ..solvers.api import best_support
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status
from .choice import (
    chosen_again,
    chosen_from,
    known_model,
    least_asked,
    other_choices,
    with_model_of,
)
from .criteria import check_one_tree, criterion_weights
from .result import Ended, Result
from .sizes import choice_of_size
from .study import Study, Wings
from .surfaces import evaluate_partition, first_partition, with_rest


def fit_table(
    table: Prepared,
    settings: Settings,
    wings: Wings,
    *,
    deadline: Limits | None = None,
    progress: Report = silent,
    checkpoint: CheckpointFolder | None = None,
) -> Result:
    """Fit a model to a table: choose it by cross-validation, or find the best one of a given size.

    The rule of settings that name none is projected, or minimum where the least CV error alone is
    looked for (:func:`~sparsecv.selection.rules.resolved_rule`).

    table: The table with its design and its folds. Where nothing is held out, the model has the one
        size and the one γ that are asked for, or the size of least criterion.
    wings: What the run calls where it is asked for; :data:`sparsecv.wings.WINGS`.
    deadline: The limits of the whole call, which has begun already; by default the time limit of
        the settings begins now.
    progress: Takes what is being done, the number of units done and the number of all units.
    checkpoint: The folder of the files that keep proofs.
    Raises InputError: The table does not allow what is asked for, or a back end has no licence.
    Raises KeyboardInterrupt: Ctrl-C was pressed. The attribute ``result`` of the exception is the
        Result of what is known by then, or None.
    """
    if not table.holds_out:
        return _of_given_size(table, settings, deadline or settings.deadline())
    # The plan: which sizes and partitions are evaluated, what is proved, and until when.
    kept: dict[str, Any] = {"progress": progress, "checkpoint": checkpoint}
    study = Study.of(table.data, table.design, settings, wings, deadline=deadline, **kept)
    first = None
    try:
        # h(γ, τ) of every fold: estimates of all pairs, then proofs of those that the rule needs.
        # Beyond 45 columns the rule projected needs none.
        first = evaluate_partition(study, first_partition(study))
        # The choice. The rule projected evaluates other partitions, finds weights for every fold by
        # inner folds, averages, projects the averages, and proves projections. If another rule has
        # chosen a pair (γ, τ), its model of all rows is proved next.
        first, choice = chosen_from(study, first)
        in_time = choice.rule == study.rule
        study = study if in_time else study.in_short_time()
        seconds = study.plan.limits.elapsed()
        # Up to 45 columns the pairs that the choice did not need are proved for a while. Such
        # proofs may change CV errors that a time limit had left open.
        first = with_rest(study, first)
        first, choice = chosen_again(study, first, choice)
        choices = other_choices(study, first, choice, every=settings.compare)
        if settings.size is not None:
            choices[study.rule] = choice_of_size(first.result, choice, settings.size)
            first = with_model_of(study, first, choices[study.rule])
    except KeyboardInterrupt as interrupt:
        # The surface that was interrupted has attached what it knows of h; see Surface.__exit__.
        known = getattr(interrupt, "partial", None)
        # Once the first partition was evaluated, another one may have been interrupted.
        known = known if first is None else first.refreshed().result
        partial = None if known is None else _interrupted(table, study, known)
        interrupt.result = partial  # type: ignore[attr-defined]
        raise
    choice, spent = choices[study.rule], first.spent
    if choice.projection is not None:
        spent = spent.joined(choice.projection.average.partitions.spent)
    late = Status.OPTIMAL if in_time else Status.TIME_LIMIT
    limit = Status.worst([first.result.status, choice.status, spent.status, late])
    nests = study.data.raw is not None
    ended = Ended(limit, spent.n_nodes, reused=spent.reused, seconds=seconds, nests=nests)
    return Result(
        table,
        study.data.full(),
        known_model(study, first.result, choice),
        ended,
        study=study,
        surface=first.result,
        first=first,
        choices=choices,
    )


def _of_given_size(table: Prepared, settings: Settings, deadline: Limits) -> Result:
    """The best subset of the one size at the one γ that are asked for, fitted to all rows.

    With a criterion in the settings the size is that of least criterion.

    deadline: The limits of the whole call. A model whose search they end is the best known one.
    Raises InputError: The size or γ is not possible, or a back end has no licence.
    """
    design = table.design
    settings.check_constraints(design.constraints)
    if settings.criterion is not None:
        return _of_least_criterion(table, settings, deadline)
    gamma = float(checked_gammas(settings.gammas)[0])
    tau = int(checked_taus(settings.taus, design.p, design.constraints, least=0)[0])
    if tau == 0:  # The mean alone is the one model without a column.
        problem = table.problem().replace(gamma=gamma)
        none = np.empty(0, dtype=np.intp)
        model = fitted_model(design, problem, none, tau, problem.yy, proved=True)
        ended = Ended(Status.OPTIMAL, 0, remaining=settings.time_limit)
        return Result(table, problem, model, ended)
    problem = table.problem().replace(gamma=gamma, tau=tau)
    tol: dict[str, Any] = {} if settings.tol is None else {"tol": float(settings.tol)}
    try:
        proof = best_support(
            problem,
            backend=settings.backend,
            n_jobs=settings.n_jobs,
            time_limit=deadline.remaining(),
            stop=deadline.stop,
            **tol,
        )
    except SolverUnavailable as error:
        raise InputError(str(error)) from error
    proved = proof.status is Status.OPTIMAL
    model = fitted_model(design, problem, proof.support, tau, proof.lower_bound, proved)
    ended = Ended(proof.status, proof.n_nodes, seconds=proof.seconds, remaining=settings.time_limit)
    return Result(table, problem, model, ended)


def _of_least_criterion(table: Prepared, settings: Settings, deadline: Limits) -> Result:
    """The model of least criterion over all sizes and supports, by least squares on all rows.

    settings: They have a criterion.
    Raises InputError: Another back end is asked for, coefficients have bounds, or there are too
        many columns for one tree.
    """
    design, name = table.design, settings.criterion
    assert name is not None
    if settings.backend not in ("auto", "native"):
        raise InputError(f"tau={name!r} is searched by the native backend alone")
    problem = table.problem().replace(gamma=0.0)
    check_one_tree(problem, f"tau={name!r}", instead="give a size")
    weights = criterion_weights(name, design.total, design.p, int(design.protocol.intercept))
    limits = Limits(deadline.remaining(), stop=deadline.stop)
    found = weights.best(problem, limits)
    if found is None:
        raise InputError(
            f"tau={name!r} needs more rows, or a larger sum of weights, than a model has "
            f"coefficients: {design.total:g} is too few for the intercept and the columns that "
            "must stay"
        )
    best, _ = found
    model = fitted_model(design, problem, best.support, best.size, best.lower_bound, best.proved)
    ended = Ended(best.status, best.n_nodes, seconds=best.seconds, remaining=settings.time_limit)
    return Result(table, problem, model, ended, criterion=name)


def _interrupted(table: Prepared, study: Study, surface: CVResult) -> Result:
    """What is known when Ctrl-C comes: CV errors, bounds, and the best model, whatever the rule.

    The choice is the pair of least CV error among the sizes that were asked for.

    surface: What is known of the first partition.
    """
    choice = least_asked(study, surface)
    nodes, nests = int(surface.table("n_nodes").sum()), study.data.raw is not None
    return Result(
        table,
        study.data.full(),
        replace(known_model(study, surface, choice), proved=False),
        Ended(surface.status, nodes, nests=nests),
        study=study,
        surface=surface,
        choices={study.rule: choice},
    )
