"""What a fit tells where it is asked: other subsets, tests, near-best supports, single rows.

Estimators and the command ask these questions, and a fit asks none of them by itself. The frames
are those of :mod:`sparsecv.report.frames`. Where a function takes ``seconds``, its searches end
after so many. None is no limit but for ``alternatives_of_sizes``, which says its own.

Without it a fit has a model, and tells nothing of its rivals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..design.folds import Index
from ..errors import InputError
from ..schedule import HALVES
from ..selection.alternatives import alternatives, alternatives_table, ranked_by_size
from ..selection.near_best import importance, near_best
from ..selection.partitions import choices_by_partition
from ..selection.result import Result
from ..selection.row_influence import (
    Influence,
    chosen_support,
    comparison_on_rows,
    parts_of,
    row_influence,
)
from ..selection.row_removals import row_removals
from ..selection.sizes import subsets_by_size
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status
from ..solvers.core.ties import ties_in_order
from ..solvers.kernels.linalg import stacked
from ..solvers.ridge_fits import SupportPath
from .frames import columns_and_names, frame_of
from .sections import counted

if TYPE_CHECKING:
    from pandas import DataFrame


def alternatives_of_sizes(result: Result, n: int, seconds: float | None) -> DataFrame:
    """The n best subsets of every size, n ≥ 1: the frame of the estimators' ``alternatives``.

    They are ranked by the objective on all rows at the γ of their size. CV errors are NaN where no
    rows were held out, or where the time ends before every fold has its errors.

    seconds: None lets the searches take ``schedule.DEFAULT_SECONDS``.
    """
    if (held_out := result.held_out) is not None:
        subsets = subsets_by_size(*held_out)
        entries = alternatives(held_out.study.again(), held_out.surface, subsets, n, seconds)
    else:
        fit = result.problem, result.design, result.sizes
        entries = alternatives_table(*fit, ranked_by_size(*fit, n, seconds), errors=None)
    values: dict[str, Any] = {}
    for name, entry in entries.items():
        own = columns_and_names(entry, result.features) if name == "columns" else {name: entry}
        values |= own  # The frame keeps the order of the entries.
    return frame_of(values)


def inference_of(
    result: Result, level: float, sigma: float | None, seconds: float | None
) -> DataFrame:
    """p-values and intervals of the tested columns of a model, in the order of the columns.

    They know of the search that has selected the columns; "conditional_on" of the attributes says
    what they condition on, and "complete" whether all searches have ended.

    level: The coverage of the confidence intervals, between 0 and 1, both excluded.
    sigma: Standard deviation of the errors, in the units of the response; None where it is
        estimated.
    Raises InputError: ``level`` or ``sigma`` is out of range, or the theory does not cover the fit.
    """
    from ..selection.inference import infer  # Few calls need what this imports of SciPy.

    if not (isinstance(level, Real) and 0.0 < level < 1.0):
        raise InputError(f"level must lie between 0 and 1; got {level!r}")
    limits = Limits(seconds)
    found = infer(result, sigma, limits)
    ends, ended = found.intervals(level, limits)
    columns, event, spread = found.tests.columns, found.tests.event, found.tests.spread
    labels = result.called(columns)
    status = Status.worst([found.status, ended])
    (p_low, p_high), (low, high) = found.p_values().T, ends.T
    values = {
        "position": columns,
        "coef": found.coef,
        "std_error": found.tests.std_errors,
        "p_low": p_low,
        "p_high": p_high,
        "low": low,
        "high": high,
    }
    frame = frame_of(values, labels).rename_axis("column")
    kept = "what the response has across the tested coefficient"
    # A standard deviation that was given has infinitely many degrees of freedom.
    known = spread.degrees == math.inf
    kept = f"and {kept}" if known else f"{kept}, and the response's sum of squares"
    frame.attrs = {
        "level": float(level),
        "sigma": spread.value,
        "sigma_source": spread.source,
        "event": event,
        "conditional_on": (
            f"these columns are selected ({event}), {kept}; "
            "errors are independent and normal with one variance"
        ),
        "left_out": result.features.called(np.setdiff1d(result.model.support, columns)),
        "hidden": [label for label, one in zip(labels, found.hidden(level), strict=True) if one],
        "complete": status is Status.OPTIMAL,
        "status": str(status),
        "n_nodes": found.work.n_nodes,
        "regions": dict(zip(labels, [one.tolist() for one in found.regions()], strict=True)),
    }
    return frame


def near_best_of(result: Result, within: float, seconds: float | None) -> DataFrame:
    """Every support that fits nearly as well as the best, the best first.

    within: The largest share by which the objective may exceed the least, finite and >= 0. With a
        criterion the objective counts times the weight of its size.
    Raises InputError: ``within`` is out of range, the columns are a projection, coefficients have
        bounds, or there are too many columns for one tree.
    """
    found = near_best(result, within, seconds)
    answers, least = found.answers, float(found.value[0])
    supports = [result.design.kept[one.support] for one in answers]
    made = frame_of(
        {
            "tau": [one.size for one in answers],
            **columns_and_names(supports, result.features),
            "objective": [one.objective for one in answers],
            "coef": _coefficients(result, [one.support for one in answers]),
            "excess": found.value / least - 1.0 if least > 0.0 else np.zeros(len(answers)),
        }
    )
    made.attrs.update(_about(result), within=float(within), complete=found.complete)
    made.attrs["status"] = str(answers[0].status)
    return made


def _coefficients(result: Result, supports: Sequence[Index]) -> list[list[float]]:
    """The coefficients of fits on supports, at the model's γ, in the units of the table.

    supports: Columns of the problem, each in increasing order.
    """
    design, sizes = result.design, np.array([one.size for one in supports])
    table = stacked(supports, max(int(sizes.max()), 1))[None]
    coef = SupportPath.of(result.problem, [result.model.gamma], sizes, table).coef
    units = design.y_scale / design.scale[: design.p]
    rows = zip(supports, coef[0], strict=True)
    return [(own[: one.size] * units[one]).tolist() for one, own in rows]


def importance_of(result: Result, seconds: float | None) -> DataFrame:
    """What each feature is worth to the best fit, those first without which it loses most.

    Raises InputError: The columns are a projection, coefficients have bounds, or there are too many
        columns for one tree.
    """
    found = importance(result, seconds)
    first = result.design.kept[[unit[0] for unit in found.units]]
    proved = np.array([status is Status.OPTIMAL for status in found.status])
    values = {
        "position": first,
        "without": found.without,
        "with_": found.having,
        "proved": proved,
    }
    # Where no fit may lack a feature, its number is NaN, and it stands first; a feature that no
    # search has reached stands last. Features whose numbers tie, such as two that the same best fit
    # lacks, are in the order of their columns.
    large = np.finfo(np.float64).max
    none = np.where(proved, large, -large)
    having, without = (
        np.where(np.isnan(one), none, np.minimum(one, large))
        for one in (found.having, found.without)
    )
    rank = np.empty(first.size, dtype=np.intp)
    rank[ties_in_order(having, first.tolist())] = np.arange(first.size)
    order = ties_in_order(-without, rank.tolist())
    labels = [result.features.called(first[[u]])[0] for u in range(first.size)]
    made = frame_of(values, labels).rename_axis("column").iloc[order]
    made.attrs.update(_about(result), status=str(Status.worst(found.status)))
    return made


def _about(result: Result) -> dict[str, Any]:
    """What frames of other supports compare, as the attributes of a frame."""
    model, criterion = result.model, result.criterion
    which = f"of up to {counted(model.tau, result.design.counts)}"
    if criterion is not None:
        which = f"of all sizes by {criterion.upper()}"
    words = f"least training objective {which} at gamma = {model.gamma:g}; nothing is held out"
    return {"tau": model.tau, "gamma": model.gamma, "criterion": criterion, "about": words}


def influence_of_rows(result: Result, limits: Limits) -> DataFrame:
    """Which columns are the best without each row, or each group of rows.

    A row of the frame says whether the model's columns stay the best ("stays"), which are the best
    then, by what share of the objective the model's columns lead, and whether that is proved.

    limits: Where they are reached, what is not proved is open.
    """
    parts, influence = parts_of(result), _influence_of_parts(result, limits)
    supports = (result.design.kept[one] for one in influence.supports)
    values = {"stays": ~influence.changed, **columns_and_names(supports, result.features)}
    values |= {"lead": influence.lead, "proved": influence.proved}
    what = "row" if result.table.source.groups is None else "group"
    return frame_of(values, list(parts)).rename_axis(what)


def _influence_of_parts(result: Result, limits: Limits) -> Influence:
    """What is best without each row, or each group of rows, of a fit."""
    parts, weights = list(parts_of(result).values()), comparison_on_rows(result)
    return row_influence(*chosen_support(result), parts, limits, weights)


def _influence_at_size(result: Result, limits: Limits) -> Influence:
    """What is best of the model's size without each row."""
    problem, data, support = chosen_support(result)
    single = list(np.arange(len(data.rows.given))[:, None])
    return row_influence(problem, data, support, single, limits)


def removals_of_rows(result: Result, most: int, limits: Limits) -> DataFrame:
    """Whether the model's columns stay the best without up to 1, 2, …, ``most`` rows.

    True: they do, whichever rows are left out. False: without the rows of an example, at most so
    many, other columns are better. None: neither is known. Where an example is known, the attribute
    "rows" has its rows, by their positions in the table that was fitted, and "columns" and "names"
    are the positions and names of the best columns known without them.

    limits: Where they are reached, what is not proved is open.
    """
    problem, data, support = chosen_support(result)
    if support.size == 0:
        raise InputError(
            "the model has no columns, and removals of several rows are about its columns: "
            "row_influence serves such a model"
        )
    influence = _influence_at_size(result, limits)
    safe, rows, best = row_removals(problem, data, support, influence, most, limits)
    safe = min(safe, most)
    changes_from = min(rows.size, most + 1) if rows.size else most + 1
    stays = [True] * safe + [None] * (changes_from - 1 - safe) + [False] * (most + 1 - changes_from)
    values = {"stays": np.array(stays, dtype=object)}
    frame = frame_of(values, range(1, most + 1)).rename_axis("rows removed")
    if rows.size:
        example = columns_and_names([result.design.kept[best]], result.features)
        frame.attrs = {"rows": rows.tolist()} | {name: one[0] for name, one in example.items()}
    return frame


def removals_of_features(result: Result, most: int, limits: Limits) -> DataFrame:
    """How many rows may be removed before the best subset of the model's size lacks a feature.

    A line for each feature of the model: "safe", the number of rows, at most ``most``, of which it
    is proved that the best subset has the feature whichever of them are removed; and "rows", as few
    as were found without which the best subset is proved to lack it, an empty list where none were.

    limits: Where they are reached, what is not proved is open. Features share the time.
    """
    problem, data, support = chosen_support(result)
    if support.size == 0:
        return frame_of({"safe": [], "rows": []}, []).rename_axis("feature")
    influence = _influence_at_size(result, limits.share(HALVES))
    units = problem.constraints.units(support).tolist()
    found = [
        row_removals(problem, data, support, influence, most, limits.share(len(units) - i), unit)
        for i, unit in enumerate(units)
    ]
    kept = [result.design.kept[problem.constraints.columns[unit][:1]] for unit in units]
    values = {
        "safe": [min(one.safe, most) for one in found],
        "rows": [one.rows.tolist() for one in found],
    }
    labels = [result.features.called(one)[0] for one in kept]
    return frame_of(values, labels).rename_axis("feature")


def partitions_of_rows(
    result: Result, n: int, every: bool = True, limits: Limits | None = None
) -> DataFrame:
    """How often every rule chooses each feature on n other partitions of the rows into folds.

    A column of the frame is the share of partitions of one rule, that of the fit first. "selected"
    says which features the model has, and the attribute "same" on what share of the partitions the
    fit's rule chooses exactly these. "sizes" has the number of features on every partition.

    every: Whether there is a column for every rule, or for that of the fit alone.
    limits: Where they are reached no further partition is drawn.
    """
    supports = list(choices_by_partition(result, n, every, limits))
    assert result.study is not None  # Else the line above has refused the fit.
    own, features = result.study.rule, result.features
    positions = np.arange(len(features.names))
    selected = np.isin(positions, features.among(result.model.support))
    by_rule = {
        rule: np.array([np.isin(positions, features.among(choices[rule])) for choices in supports])
        for rule in (own, *(rule for rule in supports[0] if rule != own))
    }
    values: dict[str, NDArray[Any]] = {"selected": selected}
    values |= {rule: chosen.mean(axis=0) for rule, chosen in by_rule.items()}
    frame = frame_of(values, [*features.names]).rename_axis("column")
    frame.attrs["same"] = float((by_rule[own] == selected).all(axis=1).mean())
    frame.attrs["sizes"] = by_rule[own].sum(axis=1).tolist()
    return frame
