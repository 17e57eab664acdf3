"""The documents that the command line writes as JSON."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import __version__
from ..cv.results import CVResult, GammaResult
from ..design.model import FittedModel
from ..design.prepare import Prepared, versions
from ..plots import conditions
from ..plots.sections import Result
from ..selection.choice import Choice
from ..selection.projection import Projection
from ..solvers.core.result import Proof
from ..tables.row_source import RowSource


def table_head(ready: Prepared) -> dict[str, Any]:
    """The first entries of a document on a standardised table, with what its columns must obey."""
    asked = conditions.values(ready.design.asked, ready.names)
    return head(ready.source, ready.design.p) | {"constraints": asked}


def head(source: RowSource, p: int) -> dict[str, Any]:
    """The first entries of every document: versions of the program and its libraries, the table.

    p: Number of columns that are not constant.
    """
    return {
        "sparsecv": __version__,
        "dataset": source.name,
        "n": source.n,
        "p": p,
        "target": source.target_name,
        "weights": source.weights_name,
        "groups": source.groups_name,
        "order": source.order_name,
        "missing": source.missing,
        "cpu_count": os.cpu_count(),
        "versions": versions(),
    }


def cv_document(prepared: Prepared, found: Result, interrupted: bool) -> dict[str, Any]:
    """The document that ``sparsecv cv --json`` writes, without the seconds."""
    study, choice = found.study, found.choice
    assert study is not None
    assert choice is not None
    rules = {
        name: _pair(one)
        | {"criterion": _finite(one.criterion), "certified": one.certified}
        | ({} if one.lambda_ is None else {"lambda": one.lambda_})
        for name, one in found.choices.items()
    }
    return _surface_document(prepared, study.surface) | {
        "method": study.settings.method,
        "backend": study.settings.backend,
        "chosen": {
            "rule": study.rule,
            **_pair(choice),
            "rmse": float(np.sqrt(choice.cv_error)),
            "r2": found.r_squared(choice.cv_error),
            "lower": choice.lower,
            "upper": _finite(choice.upper),
            "certified": choice.certified,
        },
        "rule": study.rule,
        "rule_status": str(study.status),
        "rules": rules,
        "nested": None if found.expected is None else found.expected._asdict(),
        "interrupted": interrupted,
        "model": _model_document(found),
        **answers_document(found),
        **({} if choice.projection is None else _sizes(prepared, choice.projection)),
    }


def fit_document(ready: Prepared, found: Result, solution: Proof) -> dict[str, Any]:
    """The document that ``sparsecv fit --json`` writes."""
    return table_head(ready) | {
        "tau": found.tau,
        "gamma": found.gamma,
        "model": _model_document(found),
        "status": str(solution.status),
        "n_nodes": solution.n_nodes,
        "seconds": solution.seconds,
        **answers_document(found),
    }


def answers_document(found: Result) -> dict[str, Any]:
    """What was asked for besides, with names of columns, and null where a number is not finite."""

    def plain(value: Any, named: bool) -> Any:
        if isinstance(value, np.ndarray | list):
            return [plain(one, named) for one in value]
        if named:
            return found.names[int(value)]
        if isinstance(value, np.generic):
            value = value.item()
        return _finite(value) if isinstance(value, float) else value

    named = ("columns", "column", "missed")
    return {
        what.rstrip("_"): {name: plain(value, name in named) for name, value in table.items()}
        for what, table in found.answers.items()
    }


def _pair(choice: Choice) -> dict[str, Any]:
    """The chosen τ and γ, and their CV error."""
    gamma = choice.gamma if choice.weights is None else None  # An average has no γ.
    return {"tau": choice.tau, "gamma": gamma, "cv_error": choice.cv_error}


def _surface_document(prepared: Prepared, result: CVResult) -> dict[str, Any]:
    """The entries about the table, its folds, and the CV error h(γ, τ) of every pair."""
    folds, best, protocol = prepared.folds, result.best(), prepared.design.protocol
    same = ("tau", "gamma", "cv_error", "std_error", "lower_bound", "certified")
    more: dict[str, Any] = {}
    if result.trace:
        more = {"trace": [vars(step) for step in result.trace], "ended": result.ended}
    if result.tolerance is not None:
        more["tolerance"] = result.tolerance
    if (span := result.minimum) is not None:
        more["global"] = {
            **{name: getattr(span, name) for name in ("tau", "gamma", "low", "high", "tolerance")},
            "upper_bound": _finite(span.upper),
            "lower_bound": span.lower,
            "certified": span.certified,
            "status": str(span.status),
            "not_excluded": [
                {"tau": int(tau), "gamma": [low, high]} for tau, low, high in span.left.tolist()
            ],
            "seconds": span.seconds,
        }
    return {
        **table_head(prepared),
        **more,
        "feature_names": [prepared.names[c] for c in prepared.design.kept],
        "folds": {"kind": folds.kind, "k": folds.k, "sizes": folds.sizes.tolist()},
        "protocol": protocol.name,
        "scale": protocol.scale,
        "results": [_gamma_document(prepared, one) for one in result.by_gamma],
        "best": {
            **{name: getattr(best, name) for name in same},
            "upper_bound": _finite(best.upper),
            "tau_1se": best.one_se,
        },
    }


def _finite(value: float) -> float | None:
    """A number, or None for a bound or criterion that is infinite: JSON has no infinity."""
    return float(value) if np.isfinite(value) else None


def _gamma_document(prepared: Prepared, result: GammaResult) -> dict[str, Any]:
    """CV errors, bounds, supports and work at one γ, in lists over τ; null for unproved errors."""
    names = [prepared.names[c] for c in prepared.design.counted]
    lists = ("std_error", "lower", "mio_by_tau")
    errors = zip(result.cv_error.tolist(), result.exact, strict=True)
    return {
        "gamma": result.gamma,
        "tau": result.taus.tolist(),
        "cv_error": [h if exact else None for h, exact in errors],
        "incumbent": result.cv_error.tolist(),
        **{name: getattr(result, name).tolist() for name in lists},
        "upper": [_finite(value) for value in result.upper],
        "support": [[names[c] for c in support] for support in result.models],
        "n_mio": result.n_mio,
        "n_nodes": result.n_nodes,
        "seconds": result.seconds,
    } | ({"history": result.history} if result.history else {})


def _coefficients(names: list[str], model: FittedModel) -> dict[str, Any]:
    """Names and coefficients of a model's features, in lists of the same order."""
    return {
        "support": [names[c] for c in model.support],
        "coef": model.coef[model.support].tolist(),
        "intercept": model.intercept,
        "proved": model.proved,
    }


def _model_document(found: Result) -> dict[str, Any]:
    """A model's coefficients, effects and objective; an average of models has no objective."""
    model = found.model
    known = not np.isnan(model.objective)
    bounds = {name: getattr(model, name) for name in ("objective", "lower_bound", "gap")}
    return _coefficients(found.names, model) | {
        "standardized_coef": found.effects().tolist(),
        **{name: value if known else None for name, value in bounds.items()},
    }


def _sizes(prepared: Prepared, found: Projection) -> dict[str, Any]:
    """The projected models of every size, with their CV errors and distances from the average."""
    tables = {
        "tau": found.sizes,
        "gamma": np.asarray(found.gammas)[found.at],
        **{n: found.of_size(getattr(found, n)) for n in ("distance", "cv_error", "std_error")},
    }
    return {
        "reference_error": found.reference,
        "reference_std_error": found.reference_std,
        "sizes": [
            {name: values[i].item() for name, values in tables.items()}
            | _coefficients(prepared.names, model)
            for i, model in enumerate(found.models)
        ],
    }
