"""A result as JSON: the numbers that its sections show, and all that they leave out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from ..cv.results import CVResult, GammaResult
from ..design.model import Model
from ..selection.choice import Choice
from ..selection.result import Result
from ..selection.study import Study
from .outcome import constraints


def document(result: Result) -> dict[str, Any]:
    """The entries of a result, with values as :func:`plain` gives them."""
    model = result.model
    found: dict[str, Any] = {"constraints": constraints(result.design.asked, result.names)}
    if result.held_out is not None:
        study, surface, choice = result.held_out
        found |= _chosen(result, study, choice)
    bounds = {name: getattr(model, name) for name in ("objective", "lower_bound", "gap")}
    own = {"standardized_coef": result.effects, **bounds}
    found["model"] = _coefficients(result, model) | own
    if result.held_out is not None:
        found |= _projections(result, choice)
        found["rules"] = {name: _rule(one) for name, one in result.choices.items()}
        found |= _surface(result, surface)
    for what, frame in result.answers.items():
        if what == "inference":
            found[what] = frame.attrs | frame.reset_index().to_dict("list")
            continue
        of_names = frame.drop(columns="columns").rename(columns={"names": "columns"})
        found[what] = of_names.to_dict("list")
    return dict(plain(found))


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


def _chosen(result: Result, study: Study, choice: Choice) -> dict[str, Any]:
    """The choice, its rule and its errors.

    Readers of the JSON file use these names, so none may be renamed. "rule" therefore stands in
    "chosen" and beside it. "rule_status" is the worst status of the whole run, and "nested" the
    error to expect on new data, or null.
    """
    proof = {name: getattr(choice, name) for name in ("lower", "upper", "certified")}
    return {
        "method": study.request.settings.method,
        "backend": study.request.settings.backend,
        "chosen": {
            "rule": study.rule,
            **_pair(choice),
            "rmse": np.sqrt(choice.cv_error),
            "r2": result.r_squared(choice.cv_error),
            **proof,
        },
        "rule": study.rule,
        "rule_status": result.status,
        "nested": None if result.expected is None else result.expected._asdict(),
    }


def _pair(choice: Choice) -> dict[str, Any]:
    """The chosen τ and γ, and their CV error."""
    return {"tau": choice.tau, "gamma": choice.gamma, "cv_error": choice.cv_error}


def _rule(choice: Choice) -> dict[str, Any]:
    """What one rule chooses, and the value of the criterion that the rule minimises."""
    found = _pair(choice) | {"criterion": choice.criterion, "certified": choice.certified}
    return found if choice.lambda_ is None else found | {"lambda": choice.lambda_}


def _coefficients(result: Result, model: Model) -> dict[str, Any]:
    """Names and coefficients of a model's features, in lists of the same order."""
    return {
        "support": result.called(model.support),
        "coef": model.coef[model.support],
        "intercept": model.intercept,
        "proved": model.proved,
    }


def _projections(result: Result, choice: Choice) -> dict[str, Any]:
    """The projected model of every size; nothing where no models were projected."""
    found = choice.projection
    if found is None:
        return {}
    names = ("tau", "gamma", "distance", "cv_error", "std_error")
    return {
        "reference_error": found.average.error,
        "reference_std_error": found.average.std_error,
        "sizes": [
            {name: getattr(model, name) for name in names} | _coefficients(result, model)
            for model in result.sizes
        ],
    }


def _surface(result: Result, surface: CVResult) -> dict[str, Any]:
    """The folds and the CV error h(γ, τ) of every pair."""
    design = result.design
    best, span, folds = surface.best(), surface.minimum, surface.folds
    same: tuple[str, ...] = "tau", "gamma", "cv_error", "std_error", "lower_bound", "certified"
    found: dict[str, Any] = {
        "feature_names": result.called(design.kept),
        "folds": {"kind": folds.kind, "k": folds.k, "sizes": folds.sizes},
        "protocol": design.protocol.name,
        "scale": design.protocol.scale,
        "results": [_at_gamma(result, one) for one in surface.by_gamma],
        "best": {
            **{name: getattr(best, name) for name in same},
            "upper_bound": best.upper,
            "tau_1se": best.one_se,
        },
    }
    if surface.trace:
        found |= {"trace": [vars(step) for step in surface.trace], "ended": surface.ended}
    if surface.tolerance is not None:
        found["tolerance"] = surface.tolerance
    if span is not None:
        same = ("tau", "gamma", "tolerance", "certified", "status", "seconds")
        left = [{"tau": int(tau), "gamma": [low, high]} for tau, low, high in span.left]
        own = {"upper_bound": span.upper, "lower_bound": span.lower, "not_excluded": left}
        known = {name: getattr(span, name) for name in same} | span.span._asdict()
        found["global"] = known | own
    return found


def _at_gamma(result: Result, one: GammaResult) -> dict[str, Any]:
    """CV errors, bounds, supports and work at one γ, in lists over τ; null for unproved errors."""
    names = ("gamma", "std_error", "lower", "upper", "mio_by_tau", "n_mio", "n_nodes", "seconds")
    found = {name: getattr(one, name) for name in names}
    if one.history:
        found["history"] = one.history
    return found | {
        "tau": one.taus,
        "cv_error": np.where(one.exact, one.cv_error, np.nan),
        "incumbent": one.cv_error,
        "support": [result.called(result.design.kept[columns]) for columns in one.models],
    }
