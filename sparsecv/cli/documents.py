"""What the command line writes as JSON."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import __version__
from ..cv.results import CVResult, GammaResult
from ..design.model import FittedModel
from ..design.prepare import Prepared, versions
from ..selection.choice import Choice
from ..selection.nested import NestedError
from ..selection.projection import Projection
from ..selection.study import Study
from .figures import quality, standardized


def cv_document(
    prepared: Prepared,
    study: Study,
    model: FittedModel,
    choices: dict[str, Choice],
    rule: str,
    expected: NestedError | None,
) -> dict[str, Any]:
    """The document ``sparsecv cv --json`` writes, but for the seconds.

    choices, dict of str to Choice, what each rule chooses.
    rule, str, the one that was asked for.
    expected, NestedError, the error to expect on new data, where it is known.
    """
    choice = choices[rule]
    return _surface_document(prepared, study.surface) | {
        "method": study.settings.method,
        "backend": study.settings.backend,
        "chosen": {
            "rule": rule,
            **_pair(choice),
            **dict(zip(("rmse", "r2"), quality(prepared, choice.cv_error), strict=True)),
            "lower": choice.lower,
            "upper": _finite(choice.upper),
            "certified": choice.certified,
        },
        "rule": rule,
        "rule_status": str(study.status),
        "rules": {
            name: {
                **_pair(c),
                "criterion": c.criterion,
                "certified": c.certified,
                **({} if c.lambda_ is None else {"lambda": c.lambda_}),
            }
            for name, c in choices.items()
        },
        "nested": None if expected is None else expected._asdict(),
        "model": model_document(prepared, model),
        "cpu_count": os.cpu_count(),
        "versions": versions(),
        **({} if choice.projection is None else _sizes(prepared, choice.projection)),
    }


def _pair(choice: Choice) -> dict[str, Any]:
    gamma = choice.gamma if choice.weights is None else None  # an average has no γ
    return {"tau": choice.tau, "gamma": gamma, "cv_error": choice.cv_error}


def _surface_document(prepared: Prepared, result: CVResult) -> dict[str, Any]:
    """The table, its folds and every h(γ, τ)."""
    folds, best = prepared.folds, result.best()
    more: dict[str, Any] = {}
    if result.trace:
        more["trace"] = [vars(step) for step in result.trace]
        more["ended"] = result.ended
    if result.tolerance is not None:
        more["tolerance"] = result.tolerance
    return more | {
        "sparsecv": __version__,
        "dataset": prepared.source.name,
        "n": folds.n,
        "p": prepared.design.p,
        "feature_names": [prepared.names[c] for c in prepared.design.kept],
        "target": prepared.source.target_name,
        "weights": prepared.source.weights_name,
        "groups": prepared.source.groups_name,
        "folds": {"kind": folds.kind, "k": folds.k, "sizes": folds.sizes.tolist()},
        "protocol": prepared.design.protocol.name,
        "scale": prepared.design.protocol.scale,
        "results": [_gamma_document(prepared, r) for r in result.by_gamma],
        "best": {
            "tau": best.tau,
            "gamma": best.gamma,
            "cv_error": best.cv_error,
            "std_error": best.std_error,
            "lower_bound": best.lower_bound,
            "upper_bound": _finite(best.upper),
            "certified": best.certified,
            "tau_1se": best.one_se,
        },
    }


def partial_document(prepared: Prepared, result: CVResult) -> dict[str, Any]:
    """What ``--json`` writes where Ctrl-C came first: the intervals known by then."""
    return _surface_document(prepared, result) | {"interrupted": True, "model": None}


def _finite(value: float) -> float | None:
    """A number as JSON has it: nothing where no bound is known yet."""
    return float(value) if np.isfinite(value) else None


def _gamma_document(prepared: Prepared, result: GammaResult) -> dict[str, Any]:
    kept = prepared.design.kept
    return {
        "gamma": result.gamma,
        "tau": result.taus.tolist(),
        "cv_error": [
            float(h) if proved else None
            for h, proved in zip(result.cv_error, result.exact, strict=True)
        ],
        "incumbent": result.cv_error.tolist(),
        "std_error": result.std_error.tolist(),
        "lower": result.lower.tolist(),
        "upper": [_finite(value) for value in result.upper],
        "support": [[prepared.names[kept[c]] for c in s] for s in result.models],
        "n_mio": result.n_mio,
        "n_nodes": result.n_nodes,
        "seconds": result.seconds,
        "mio_by_tau": result.mio_by_tau.tolist(),
    } | ({"history": result.history} if result.history else {})


def model_document(prepared: Prepared, model: FittedModel) -> dict[str, Any]:
    """The model as it stands in JSON; coefficients have the order of ``support``."""
    return {
        "support": [prepared.names[c] for c in model.support],
        "coef": [float(model.coef[c]) for c in model.support],
        "standardized_coef": standardized(prepared, model).tolist(),
        "intercept": model.intercept,
        # an average of models has no objective
        "objective": None if np.isnan(model.objective) else model.objective,
        "lower_bound": None if np.isnan(model.objective) else model.lower_bound,
        "gap": None if np.isnan(model.objective) else model.gap,
        "proved": model.proved,
    }


def _sizes(prepared: Prepared, found: Projection) -> dict[str, Any]:
    """The projected model of every size."""
    tables = {name: found.of_size(getattr(found, name)) for name in ("distance", "cv_error")}
    tables["std_error"] = found.of_size(found.std_error)
    return {
        "reference_error": found.reference,
        "reference_std_error": found.reference_std,
        "sizes": [
            {
                "tau": int(found.sizes[i]),
                "gamma": float(found.gammas[found.at[i]]),
                **{name: float(values[i]) for name, values in tables.items()},
                "support": [prepared.names[c] for c in model.support],
                "coef": [float(c) for c in np.asarray(model.coef)[model.support]],
                "intercept": model.intercept,
                "proved": model.proved,
            }
            for i, model in enumerate(found.models)
        ],
    }
