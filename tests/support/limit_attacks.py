"""Random small tables and time limits that attack what a fit does, and says, once its time is up.

Attacks are as in ``attacks``: an attack draws a table, rule, folds, γ and limit, and yields a line
for every unit of work that begins too late and every claim that does not hold. Every look at the
clock moves it on, so that a limit may end any loop, and always ends the same one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsecv import SparseRidgeCV
from sparsecv.errors import ConstantColumnWarning, UnprovedWarning

from .attacks import Attack
from .claims import wrong_claims
from .clocks import WorkClock


def limits(rng: np.random.Generator, number: int) -> Iterator[str]:
    """Rule × folds × γ × width × limit, on 8 to 24 rows and up to 6, or 46 to 50, columns."""
    wide, n = number % 3 == 0, int(rng.integers(8, 25))
    p = int(rng.integers(46, 51) if wide else rng.integers(1, 7))
    X = rng.standard_normal((n, p)) + rng.uniform(0.0, 1.5) * rng.standard_normal((n, 1))
    noise = 10.0 ** rng.uniform(-1.0, 0.7) * rng.standard_normal(n)
    y = X[:, : min(1 + p // 2, 4)].sum(axis=1) + noise
    rules = ["minimum", "one-se", "projected", "corrected", "stability"]
    rule = rules[int(rng.integers(3 if wide else 5))]
    options: dict[str, Any] = {
        "rule": rule,
        "cv": [3, 4, 5, "loo"][int(rng.integers(3 if rule == "stability" else 4))],
        "gammas": [None, [1.0], [0.1, 10.0]][int(rng.integers(3))],
        "taus": [1, 2] if wide else None,
        "random_state": int(rng.integers(1000)),
        "n_jobs": 1,
    }
    with warnings.catch_warnings():
        for one in (UnprovedWarning, ConstantColumnWarning):
            warnings.simplefilter("ignore", one)
        # The limit is a share of the time of all units, so that it mostly ends the fit.
        with WorkClock.of_a_fit(1.0, by_look=0.0) as clock:
            whole = SparseRidgeCV(time_limit=None, **options).fit(X, y)
        limit = clock.now * float(10.0 ** rng.uniform(-1.5, 0.3))
        by_look = float(10.0 ** rng.uniform(-4.0, -2.0))
        with WorkClock.of_a_fit(1.0, by_look) as clock:
            found = SparseRidgeCV(time_limit=limit, **options).fit(X, y)
    about = f"{n} × {p}, limit {limit:.3g}, {options}"
    # The limit counts from the first look at the clock.
    latest = by_look + limit + max(0.5, 0.05 * limit)
    k = n if options["cv"] == "loo" else options["cv"]
    # Without the first answer of every fold there is no result.
    # A limit of 0 asks for estimates alone, however long they take.
    late = [one for one in clock.begun[k:] if limit > 0.0 and one[1] > latest]
    if late:
        yield f"{about}: {len(late)} units begin after {latest:.3g} s, first {late[0]}"
    if found.rule_ != rule and (found.status_, found.certified_) != ("time limit", False):
        yield f"{about}: rule {found.rule_}, {found.status_}, certified {found.certified_}"
    yield from (f"{about}: {line}" for line in _wrong_errors(found, whole))
    if not wide:
        fit: Any = found._run_
        for line in wrong_claims(fit, X, y, seed=int(rng.integers(2**31))):
            yield f"{about}: {line}"


def _wrong_errors(found: SparseRidgeCV, whole: SparseRidgeCV) -> Iterator[str]:
    """Yield a line for every pair whose error or interval contradicts a fit without a limit."""
    for g, gamma in enumerate(found.surface_["gamma"]):
        same = np.flatnonzero(whole.surface_["gamma"] == gamma)
        for t, tau in enumerate(found.surface_["tau"]):
            at = same, np.flatnonzero(whole.surface_["tau"] == tau)
            if not (at[0].size and at[1].size and whole.surface_["exact"][at[0][0], at[1][0]]):
                continue
            h = float(whole.surface_["cv_error"][at[0][0], at[1][0]])
            names = ("cv_error", "lower", "upper", "exact")
            error, low, high, exact = (found.surface_[name][g, t] for name in names)
            slack = 1e-7 * abs(h) + 1e-12
            if not low - slack <= h <= high + slack:
                yield f"γ = {gamma}, τ = {tau}: {h} lies outside [{low}, {high}]"
            if exact and abs(error - h) > slack:
                yield f"γ = {gamma}, τ = {tau}: {error} is called exact, and is {h}"


LIMITS: dict[str, Attack] = {"limits": limits}
