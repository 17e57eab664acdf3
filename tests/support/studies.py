"""Tables and studies that tests of selection share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv import SparseRidgeCV
from sparsecv.selection.choice import other_choices
from sparsecv.selection.surfaces import evaluate_partition, first_partition, with_rest

from .inside import (
    WINGS,
    Choice,
    CVResult,
    Folds,
    Protocol,
    RowFolds,
    RowTable,
    Settings,
    Study,
    Summary,
    averaged_coefficients,
    chosen_from,
    claim_of,
    make_design,
    make_folds,
)
from .problems import regression

Array = NDArray[np.float64]


def made(n: int = 30, p: int = 5, seed: int = 0) -> tuple[Array, Array]:
    return regression(n, p, {0: 1.0, 1: -1.0}, seed=seed, offset=2.0, noise=1.5)


def study_of(
    X: Array, y: Array, cv: Any = 5, gammas: Any = (1.0, 30.0), taus: Any = None, **options: Any
) -> Study:
    """A study as the estimator makes one; ``options`` are those of Settings."""
    asked = Settings(**{"rule": "minimum", "gammas": gammas, "taus": taus} | options)
    design = make_design(Summary.of(X, y), Protocol(), [f"x{j}" for j in range(X.shape[1])])
    folds = make_folds(cv, y.size, seed=asked.seed)
    data = RowFolds(RowTable.of(design, X, y), folds)
    return Study.of(data, design, asked, WINGS)


def first_of(study: Study) -> Any:
    """The evaluated first partition of a study."""
    return evaluate_partition(study, first_partition(study))


def choices_of(study: Study, first: Any = None, every: bool = False) -> dict[str, Choice]:
    """What a fit chooses: by the rule of the study, and by the rules that cost nothing more."""
    first, choice = chosen_from(study, first or first_of(study))
    return other_choices(study, with_rest(study, first), choice, every=every)


def is_proved(study: Study, result: CVResult, choice: Choice) -> bool:
    """Whether the claim of a choice is proved; ``result`` is the surface it was made from."""
    return claim_of(study, result, choice).proved


def averaged_model(study: Study, average: Any) -> tuple[Array, float]:
    """Coefficients of the raw columns and the intercept of the average of all rows' models."""
    own = averaged_coefficients(study.data.full(), average.result, average.weights)
    return study.design.coefficients(own)


def surfaces_of(X: Array, y: Array, partitions: Iterable[Folds], gammas: Any) -> list[Array]:
    """The CV errors of every γ and τ on each partition."""
    found = []
    for folds in partitions:
        pairs = [folds.split(j) for j in range(folds.k)]
        plain = SparseRidgeCV(cv=pairs, gammas=gammas, rule="minimum").fit(X, y)
        found.append(plain.surface_["cv_error"])
    return found
