"""Random small tables that attack what a cross-validation claims of its choice.

Attacks are as in ``attacks``: an attack draws one table, rule, γ, sizes and time limit, and yields
a line for every claim that does not hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsecv import SparseRidgeCV
from sparsecv.errors import ConstantColumnWarning, InputError, UnprovedWarning

from .attacks import Attack
from .claims import wrong_claims
from .inside import RULES


def claims(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Rule × method × γ × width × time limit, on 8 to 24 rows and up to 5, or 46 to 48, columns."""
    wide, n = number % 10 == 0, int(rng.integers(8, 25))
    p = int(rng.integers(46, 49) if wide else rng.integers(1, 6))
    X = rng.standard_normal((n, p)) + rng.uniform(0.0, 1.5) * rng.standard_normal((n, 1))
    kind = int(rng.integers(8))
    if kind == 0:
        X = rng.integers(-2, 3, (n, p)).astype(float)
    elif kind == 1 and p > 1:
        X[:, 1] = X[:, 0]
    X[0], X[1] = -1.0, 1.0 + rng.random(p)  # No column is constant.
    noise = 10.0 ** rng.uniform(-1.0, 0.7) * rng.standard_normal(n)
    y = X[:, : min(1 + p // 2, 4)].sum(axis=1) + noise
    options = drawn_options(rng, n, p)
    about = ", ".join(f"{name}={value!r}" for name, value in options.items())
    with warnings.catch_warnings():
        for one in (UnprovedWarning, ConstantColumnWarning):
            warnings.simplefilter("ignore", one)
        try:
            model = SparseRidgeCV(**options).fit(X, y)
        except InputError as refused:
            # Whole numbers may all be equal on the rows that are left without two folds.
            if kind != 0 or "every feature column is constant" not in str(refused):
                raise
            return
    fit: Any = model._run_
    if wide and options["rule"] == "projected":
        if model.certified_:  # The average has every size, which are too many to enumerate.
            yield f"{n} × {p}, {about}: it is said without a recomputation: {model.claim_}"
        return
    for line in wrong_claims(fit, X, y, seed=int(rng.integers(2**31))):
        yield f"{n} × {p}, {about}: {line}"
    claim = fit.claim
    said = model.claim_, model.certified_, model.cv_error_bounds_
    if said != (claim.sentence, claim.proved, (claim.lower, claim.upper)):
        yield f"{n} × {p}, {about}: the attributes {said} are not those of the claim"
    if options["time_limit"] is None and not wide and kind > 1 and not claim.proved:
        yield f"{n} × {p}, {about}: without a limit it is said: {model.claim_}"


def drawn_options(rng: np.random.Generator, n: int, p: int) -> dict[str, Any]:
    """A rule with a method, folds, γ, sizes and a time limit that it allows."""
    rule = str(rng.choice(list(RULES)))
    wide = p > 45
    gammas: Any = [None, 10.0 ** rng.uniform(-3.0, 3.0), 10.0 ** rng.uniform(-3.0, 3.0, 3)]
    if not (wide or rule == "projected"):
        low = 10.0 ** rng.uniform(-3.0, 2.0)
        gammas += [f"global:{low:g}:{low * 10.0 ** rng.uniform(0.2, 2.0):g}"]
    gammas = gammas[int(rng.integers(1 if wide else 0, len(gammas)))]
    if isinstance(gammas, np.ndarray):
        gammas = gammas.tolist()
    method = "exact"
    if rule == "minimum" and not isinstance(gammas, str):
        method = str(rng.choice(["exact", "grid", "search"]))
    elif rng.random() < 0.1 and not isinstance(gammas, str) and rule != "projected":
        method = "grid"
    return {
        "cv": [3, 4, 5, "loo"][int(rng.integers(3 if wide or rule == "stability" else 4))],
        "taus": [1, 2] if wide else None,
        "gammas": gammas,
        "rule": rule,
        "method": method,
        "time_limit": [0, 1e-3, 0.01, None, None, None][int(rng.integers(6))],
        "prove": str(rng.choice(["choice", "all"])) if rule != "projected" else "choice",
        "random_state": int(rng.integers(1000)),
    }


CLAIMS: dict[str, Attack] = {"claims": claims}
