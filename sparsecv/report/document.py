"""A result as JSON: the numbers that its sections show, and all that they leave out.

Readers of the JSON file use the names of the entries, so none may be renamed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from ..cv.results import GammaResult, GlobalMinimum
from ..design.model import Model
from ..selection.choice import Choice, least_error
from ..selection.claims import Claim, claim_of, range_is_proved, step_is_proved
from ..selection.nested import NestedError
from ..selection.projection import Projection
from ..selection.result import HeldOut, Result
from ..solvers.core.column_rules import ResolvedRules


def document(result: Result) -> dict[str, Any]:
    """The entries of a result, with values as :func:`plain` gives them."""
    model, held_out = result.model, result.held_out
    entries: dict[str, Any] = {
        "constraints": constraints(result.design.asked, result.names),
        "counts": f"{result.design.counts}s",  # What τ counts, here and below.
    }
    if held_out is not None:
        entries |= _chosen(result, held_out)
    bounds = {name: getattr(model, name) for name in ("objective", "lower_bound", "gap")}
    entries["model"] = _coefficients(result, model)
    entries["model"] |= {"standardized_coef": result.effects, **bounds}
    if held_out is not None:
        if held_out.choice.projection is not None:
            entries |= _projections(result, held_out.choice.projection)
        claims = result.claims
        entries["rules"] = {name: _rule(one, claims[name]) for name, one in result.choices.items()}
        entries |= _surface(result, held_out)
    for what, frame in result.answers.items():
        kept = frame if frame.index.name is None else frame.reset_index()
        named = kept.rename(columns={"names": "features"}).to_dict("list")
        if "columns" in named:  # In a file these are names, and not positions.
            own = [result.called(np.array(one, dtype=np.intp)) for one in named["columns"]]
            named["columns"] = own
        entries[what] = frame.attrs | named
    return dict(plain(entries))


def constraints(asked: ResolvedRules | None, names: Sequence[str]) -> dict[str, Any] | None:
    """The constraints on columns as JSON values; None where there are none.

    asked: What the user has asked of the columns, of which ``names`` are the names.

    Groups of one column are left out. The sizes are those that a model may have.
    """
    if asked is None:
        return None
    by_position = asked.by_position()
    return {
        "include": [names[j] for j in by_position.include],
        "exclude": [names[j] for j in by_position.exclude],
        "groups": {name: [names[j] for j in g] for name, g in asked.groups.items() if len(g) > 1},
        "bounds": {
            names[j]: [None if np.isinf(end) else end for end in ends]
            for j, ends in by_position.bounds.items()
        },
        "sizes": list(asked.sizes),
        "count": by_position.count,
    }


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, and null where a number is not finite."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Enum):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _chosen(result: Result, held_out: HeldOut) -> dict[str, Any]:
    """The choice, its rule and its errors.

    "rule" stands in "chosen" and beside it, as readers look in both places. "rule_status" is the
    worst status of the whole run, and "nested" the error to expect on new data, or null.
    """
    study, choice, claim = held_out.study, held_out.choice, result.claim
    return {
        "method": study.settings.method,
        "backend": study.settings.backend,
        "chosen": {
            "rule": study.rule,
            **_pair(choice),
            "rmse": np.sqrt(choice.cv_error),
            "r2": result.r_squared(choice.cv_error),
            "lower": choice.lower,
            "upper": choice.upper,
            "certified": claim.proved,
            "claim": _claim(claim),
        },
        "rule": study.rule,
        "rule_status": result.status,
        "nested": _nested(result.expected),
    }


def _nested(expected: NestedError | None) -> dict[str, Any] | None:
    """The error to expect on new data; None where it was not computed."""
    names = "error", "std_error", "folds"
    return None if expected is None else {name: getattr(expected, name) for name in names}


def _pair(choice: Choice) -> dict[str, Any]:
    """The chosen τ and γ, and their CV error; the size 0 has no γ."""
    return {"tau": choice.tau, "gamma": choice.own_gamma, "cv_error": choice.cv_error}


def _claim(claim: Claim) -> dict[str, Any]:
    """What is claimed of the choice, over which range, and bounds of the least CV error."""
    names = ("proved", "sentence", "rule", "sizes", "gammas", "tolerance")
    span = None if claim.span is None else claim.span._asdict()
    bounds = {"gamma_range": span, "least_cv_error": [claim.lower, claim.upper]}
    return {name: getattr(claim, name) for name in names} | bounds


def _rule(choice: Choice, claim: Claim) -> dict[str, Any]:
    """What one rule chooses, and the value of the criterion that the rule minimises."""
    entries = _pair(choice) | {"criterion": choice.criterion, "certified": claim.proved}
    if choice.lambda_ is not None:
        entries["lambda"] = choice.lambda_
    return entries


def _coefficients(result: Result, model: Model) -> dict[str, Any]:
    """Names and coefficients of a model's columns, in lists of the same order, and its features."""
    return {
        "support": result.called(model.support),
        "features": result.features.called(model.support),
        "coef": model.coef[model.support],
        "intercept": model.intercept,
        "proved": model.proved,
    }


def _projections(result: Result, projection: Projection) -> dict[str, Any]:
    """The CV error of the average of all models, and its projection onto every size."""
    names = ("tau", "distance", "cv_error", "std_error")
    return {
        "reference_error": projection.average.error,
        "reference_std_error": projection.average.std_error,
        "sizes": [
            {name: getattr(model, name) for name in names}
            | {"gamma": model.own_gamma}
            | _coefficients(result, model)
            for model in projection.sizes
        ],
    }


def _surface(result: Result, held_out: HeldOut) -> dict[str, Any]:
    """The folds, and the CV error h(γ, τ) of every pair and of the best."""
    study, surface = held_out.study, held_out.surface
    design, best, folds = result.design, surface.best(), surface.folds
    names: tuple[str, ...] = "tau", "cv_error", "std_error", "lower_bound"
    entries: dict[str, Any] = {
        "feature_names": result.called(design.kept),
        "folds": {"kind": folds.kind, "k": folds.k, "sizes": folds.sizes},
        "protocol": design.protocol.name,
        "scale": design.protocol.scale,
        "results": [_at_gamma(result, one) for one in surface.by_gamma],
        "best": {
            **{name: getattr(best, name) for name in names},
            "gamma": best.gamma if best.tau > 0 else np.nan,
            "certified": claim_of(study, surface, least_error(surface)).proved,
            "upper_bound": best.upper,
            "tau_1se": best.one_se,
        },
    }
    if surface.trace:
        steps = [vars(one) | {"certified": step_is_proved(surface, one)} for one in surface.trace]
        entries |= {"trace": steps, "ended": surface.ended}
    if surface.tolerance is not None:
        entries["tolerance"] = surface.tolerance
    if surface.minimum is not None:
        entries["global"] = _global(surface.minimum)
    return entries


def _global(minimum: GlobalMinimum) -> dict[str, Any]:
    """Bounds of the least CV error over the range of γ from "low" to "high", and the best pair.

    "not_excluded" has, for a τ, the range of γ in which the least error may still lie.
    """
    names = ("tau", "tolerance", "status", "seconds")
    remaining = [{"tau": int(tau), "gamma": [low, high]} for tau, low, high in minimum.left]
    return {
        **{name: getattr(minimum, name) for name in names},
        "gamma": minimum.gamma if minimum.tau > 0 else np.nan,
        "certified": range_is_proved(minimum),
        "low": minimum.span.low,
        "high": minimum.span.high,
        "upper_bound": minimum.upper,
        "lower_bound": minimum.lower,
        "not_excluded": remaining,
    }


def _at_gamma(result: Result, one: GammaResult) -> dict[str, Any]:
    """CV errors, bounds, supports (as names) and work at one γ.

    What a size has is a list over τ; "gamma", "n_mio", "n_nodes" and "seconds" are single numbers.
    "history" is there where τ was searched. "cv_error" is null where it is not proved, and
    "incumbent" has the estimate there.
    """
    names = ("gamma", "std_error", "lower", "upper", "mio_by_tau", "n_mio", "n_nodes", "seconds")
    entries = {name: getattr(one, name) for name in names}
    if one.history:  # A search of τ tells its steps.
        entries["history"] = one.history
    return entries | {
        "tau": one.taus,
        "cv_error": np.where(one.exact, one.cv_error, np.nan),
        "incumbent": one.cv_error,
        "support": [result.called(result.design.kept[columns]) for columns in one.models],
    }
