"""Bounds of the papers on the risk, each a function of the constants that its theorem assumes.

[S] denotes "Stability Regularized Cross-Validation", [C] "Consistent Cross-Validation with Stable
Learners" and [N] the lecture notes "Hyperparameter tuning and risk estimates". R is the risk of the
learner, R_CV, R_lpo, R_Kfold and R_corr are estimates of R, and a bound holds with the probability
that its function names.

Data alone cannot show that a theorem applies: losses must be bounded for EVERY data set that the
distribution may give, and stability must hold uniformly. Every function raises an InputError for
numbers that its theorem does not allow, such as folds of unequal size.
"""

from __future__ import annotations

from math import isfinite, log, sqrt
from numbers import Integral, Real
from typing import Any

from ..errors import InputError

# The least allowed value of every argument of this module that counts something: rows, folds,
# columns or models. ``n_dev`` counts the rows of a development set.
LEAST_COUNTS = {"n": 1, "k": 2, "p": 1, "n_train": 1, "n_validation": 1, "models": 1, "n_dev": 1}
# Arguments that must be above 0; every other number may be 0.
POSITIVE = ("gamma", "delta")


def _check(times: int = 1, **numbers: Any) -> None:
    """Raise an InputError unless a theorem allows the numbers, which are given by their names.

    Numbers are finite and at least 0, counts are whole; where ``k`` is given, so is ``n``.

    times: The bound holds with probability 1 − ``times``·δ, which must be above 0.
    """
    for name, value in numbers.items():
        kind, least, what = Real, 0, "number"
        if name in LEAST_COUNTS:
            kind, least, what = Integral, LEAST_COUNTS[name], "whole number"
        if isinstance(value, bool) or not isinstance(value, kind) or not isfinite(value):
            raise InputError(f"{name} must be a {what}; got {value!r}")
        if value < least or (value == 0 and name in POSITIVE):
            more = "> 0" if name in POSITIVE else f">= {least}"
            raise InputError(f"{name} must be {more}; got {value!r}")
    if times * numbers.get("delta", 0.0) >= 1.0:
        raise InputError(f"delta must lie in (0, {1.0 / times:g}); got {numbers['delta']!r}")
    if "k" in numbers and numbers["n"] % numbers["k"]:
        folds = f"{numbers['k']} folds cannot share {numbers['n']} rows"
        raise InputError(f"the theorem needs folds of equal size: {folds}")


def _check_loss(name: str, error: float, loss_bound: float) -> None:
    """Raise an InputError where a mean loss exceeds the bound on every loss.

    name: The name of the argument that is the mean loss, for the message.
    """
    if error > loss_bound:
        raise InputError(f"{name} {error:g} exceeds loss_bound {loss_bound:g}")


def stability_bound(
    cv_error: float, stability: float, *, n: int, k: int, loss_bound: float, delta: float
) -> float:
    """Theorem 2.2 of [S]: with probability 1 − δ, risk ≤ cv_error + √((M² + 6Mkμ)/(2kδ)).

    The bound follows from E[(R − R_CV)²] ≤ M²/(2k) + 3Mμ and Markov's inequality. The constant is
    the theorem's; the last formula of the printed proof has another constant.

    Parameters
    ----------
    cv_error : float
        K-fold error of the learner at hyperparameters fixed beforehand.
    stability : float
        Hypothesis stability μ_h (eq. 4), not its empirical version (eq. 5).
    n, k : int
        Rows and folds; k divides n.
    loss_bound, delta : float
        M, with 0 ≤ loss ≤ M always; and δ.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import stability_bound
    >>> bound = stability_bound(0.1, 0.001, n=100, k=5, loss_bound=1.0, delta=0.1)
    >>> round(bound, 4)
    1.1149
    """
    M, mu = loss_bound, stability
    _check(n=n, k=k, cv_error=cv_error, stability=mu, loss_bound=M, delta=delta)
    _check_loss("cv_error", cv_error, M)
    return cv_error + sqrt((M * M + 6.0 * M * k * mu) / (2.0 * k * delta))


def training_error_bound(
    empirical_risk: float, pointwise_stability: float, *, n: int, loss_bound: float, delta: float
) -> float:
    """Theorem 11 of Bousquet & Elisseeff (2002): risk ≤ empirical risk + √((M² + 12Mnμ_p)/(2nδ)).

    The bound holds with probability 1 − δ, where μ_p is the pointwise hypothesis stability. Remark
    2.3 of [S] compares its own Theorem 2.2 with this bound.

    Parameters
    ----------
    empirical_risk : float
        Mean loss on the training rows.
    pointwise_stability : float
        The stability μ_p.
    n : int
        Rows.
    loss_bound, delta : float
        M, with 0 ≤ loss ≤ M always; and δ.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import training_error_bound
    >>> round(training_error_bound(0.1, 1e-4, n=100, loss_bound=1.0, delta=0.1), 4)
    0.3366
    """
    M, mu = loss_bound, pointwise_stability
    _check(n=n, empirical_risk=empirical_risk, pointwise_stability=mu, loss_bound=M, delta=delta)
    _check_loss("empirical_risk", empirical_risk, M)
    return empirical_risk + sqrt((M * M + 12.0 * M * n * mu) / (2.0 * n * delta))


def _deviation(stability: float, loss_bound: float, n: int, delta: float) -> float:
    """The term (4λ + L)√(ln(1/δ)/(2n)) of the bounds of [C], λ the stability and L the loss bound.

    Theorem 6.1 has a term of its own, with ln(models/δ)/n under the root.
    """
    return (4.0 * stability + loss_bound) * sqrt(-log(delta) / (2.0 * n))


def cv_deviation(
    *, n: int, n_train: int, n_validation: int, stability: float, loss_bound: float, delta: float
) -> float:
    """Theorem 3.1 of [C]: with probability 1 − 2δ, |R_CV − R| ≤ λ n_V/n_T + (4λ+L)√(ln(1/δ)/2n).

    Parameters
    ----------
    n, n_train, n_validation : int
        Rows; n_T + n_V = n, and every row is held out equally often (Assumption 2).
    stability : float
        The number λ, where the uniform stability on t rows is β_t ≤ λ/t (Assumption 1).
    loss_bound : float
        The number L, where always 0 ≤ loss ≤ L.
    delta : float
        The number δ, below 1/2.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import cv_deviation
    >>> rows = {"n": 1000, "n_train": 900, "n_validation": 100}
    >>> round(cv_deviation(**rows, stability=1.0, loss_bound=1.0, delta=0.05), 4)
    0.3046
    """
    known = {"stability": stability, "loss_bound": loss_bound, "delta": delta}
    _check(2, n=n, n_train=n_train, n_validation=n_validation, **known)
    if n_train + n_validation != n:
        text = f"n_train + n_validation must be n = {n}; got {n_train} + {n_validation}"
        raise InputError(text)
    return stability * n_validation / n_train + _deviation(stability, loss_bound, n, delta)


def leave_p_out_deviation(
    *, n: int, p: int, stability: float, loss_bound: float, delta: float
) -> float:
    """Corollary 3.1 of [C]: |R_lpo − R| ≤ λp/(n−p) + (4λ+L)√(ln(1/δ)/2n), probability 1 − 2δ.

    Parameters
    ----------
    n, p : int
        Rows, and rows held out together.
    stability, loss_bound, delta : float
        As for :func:`cv_deviation`.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import leave_p_out_deviation
    >>> round(leave_p_out_deviation(n=1000, p=1, stability=1.0, loss_bound=1.0, delta=0.05), 4)
    0.1945
    """
    _check(n=n, p=p)
    if p >= n:
        raise InputError(f"leave-p-out needs p < n; got p = {p}, n = {n}")
    known: dict[str, Any] = {"stability": stability, "loss_bound": loss_bound, "delta": delta}
    return cv_deviation(n=n, n_train=n - p, n_validation=p, **known)


def k_fold_deviation(*, n: int, k: int, stability: float, loss_bound: float, delta: float) -> float:
    """Corollary 3.2 of [C]: |R_Kfold − R| ≤ λ/(K−1) + (4λ+L)√(ln(1/δ)/2n), probability 1 − 2δ.

    The bound does not vanish as n grows, nor does |R_Kfold − R| for some learners (Theorem 4.1).

    Parameters
    ----------
    n, k, stability, loss_bound, delta
        As for :func:`cv_deviation`; k folds, where k divides n.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import k_fold_deviation
    >>> round(k_fold_deviation(n=1000, k=10, stability=1.0, loss_bound=1.0, delta=0.05), 4)
    0.3046
    """
    _check(n=n, k=k)
    known: dict[str, Any] = {"stability": stability, "loss_bound": loss_bound, "delta": delta}
    return cv_deviation(n=n, n_train=n - n // k, n_validation=n // k, **known)


def k_fold_lower_bound(*, n: int, k: int, stability: float) -> float:
    """Theorem 4.1 of [C]: some learner with β_t = 3λ/t has E|R_Kfold − R| ≥ λ/(2K²) − 2λ/n.

    The proof constructs the learner; ``tests/risk/test_risk.py`` has it.

    Parameters
    ----------
    n, k : int
        Rows and folds; k divides n.
    stability : float
        The number λ.

    Returns
    -------
    float
        The lower bound, which is negative where n < 4K².

    Examples
    --------
    >>> from sparsecv.risk import k_fold_lower_bound
    >>> round(k_fold_lower_bound(n=1000, k=2, stability=1.0), 4)
    0.123
    """
    _check(n=n, k=k, stability=stability)
    return stability / (2.0 * k * k) - 2.0 * stability / n


def corrected_deviation(
    *, n: int, n_train: int, stability: float, loss_bound: float, delta: float
) -> float:
    """Theorem 5.1 of [C]: |R_corr − R| ≤ 2λ(1/n + 1/n_T) + 3(4λ+L)√(ln(1/δ)/2n).

    R_corr is the bias-corrected CV error, R is the risk, n_T is the number of training rows of a
    fold, and the bound holds with probability 1 − 6δ.

    Parameters
    ----------
    n, n_train : int
        Rows, and training rows of a fold.
    stability, loss_bound, delta : float
        As for :func:`cv_deviation`; δ below 1/6.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import corrected_deviation
    >>> rows = {"n": 1000, "n_train": 900}
    >>> round(corrected_deviation(**rows, stability=1.0, loss_bound=1.0, delta=0.05), 4)
    0.5848
    """
    _check(6, n=n, n_train=n_train, stability=stability, loss_bound=loss_bound, delta=delta)
    if n_train >= n:
        raise InputError(f"n_train must be below n = {n}; got {n_train}")
    spread = 3.0 * _deviation(stability, loss_bound, n, delta)
    return 2.0 * stability * (1.0 / n + 1.0 / n_train) + spread


def corrected_k_fold_deviation(
    *, n: int, k: int, stability: float, loss_bound: float, delta: float
) -> float:
    """Corollary 5.1 of [C]: |R_corr − R| ≤ 6λ/n + 3(4λ+L)√(ln(1/δ)/2n), probability 1 − 6δ.

    R_corr is the bias-corrected CV error of k folds, and R is the risk.

    Parameters
    ----------
    n, k, stability, loss_bound, delta
        As for :func:`cv_deviation`; k folds, where k divides n, and δ below 1/6.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import corrected_k_fold_deviation
    >>> learner = {"stability": 1.0, "loss_bound": 1.0}
    >>> round(corrected_k_fold_deviation(n=1000, k=10, **learner, delta=0.05), 4)
    0.5865
    """
    _check(6, n=n, k=k, stability=stability, loss_bound=loss_bound, delta=delta)
    return 6.0 * stability / n + 3.0 * _deviation(stability, loss_bound, n, delta)


def selection_excess(
    *, n: int, models: int, stability: float, loss_bound: float, delta: float
) -> float:
    """Theorem 6.1 of [C]: excess risk of the model that the corrected K-fold error selects.

    With probability 1 − 6δ, the risk of the selected model exceeds the least risk of all models by
    at most 12M/n + 6(4M+L)√(ln(models/δ)/n), where every model has uniform stability β_t ≤ M/t.

    Parameters
    ----------
    n, models : int
        Rows, and the number of models.
    stability, loss_bound, delta : float
        As for :func:`cv_deviation`, the stability M; δ below 1/6.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import selection_excess
    >>> round(selection_excess(n=1000, models=20, stability=1.0, loss_bound=1.0, delta=0.05), 4)
    2.3341
    """
    M, L = stability, loss_bound
    _check(6, n=n, models=models, stability=M, loss_bound=L, delta=delta)
    return 12.0 * M / n + 6.0 * (4.0 * M + L) * sqrt((log(models) - log(delta)) / n)


def development_set_bound(
    *, n_dev: int, models: int, delta: float, loss_bound: float = 1.0
) -> float:
    """A bound of [N] on the excess risk of the model that a development set selects.

    With probability 1 − δ, the risk of the selected model exceeds the least risk of all models by
    at most L √((2/n_dev) ln(2|Θ₀|/δ)), for losses in [0, L].

    Parameters
    ----------
    n_dev : int
        Rows of the development set, drawn independently of the training rows.
    models : int
        The number of models |Θ₀|.
    delta, loss_bound : float
        The numbers δ and L.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsecv.risk import development_set_bound
    >>> round(development_set_bound(n_dev=1000, models=20, delta=0.05), 4)
    0.1156
    """
    _check(n_dev=n_dev, models=models, loss_bound=loss_bound, delta=delta)
    return loss_bound * sqrt((2.0 / n_dev) * (log(2.0 * models) - log(delta)))


def ridge_stability(
    *, gamma: float, n: int, row_bound: float, target_bound: float
) -> tuple[float, float]:
    """Uniform stability and loss bound (λ, L) of ridge regression with the squared loss.

    The fit of t rows minimises (1/t) Σ (y − xᵀβ)² + ρ||β||², ρ = γ/(2n): ridge regression without
    intercept, whose γ is proportional to the number of rows. With ||x|| ≤ κ and |y| ≤ B,
    ρ||β||² ≤ B², so |y − xᵀβ| ≤ r = B + κB/√ρ. Hence L = r², and the loss is 2r-Lipschitz in the
    prediction. Leaving out a row changes the objective by a function that is 4rκ/t-Lipschitz in β,
    and the objective is 2ρ-strongly convex. By the argument of Bousquet & Elisseeff (2002), Theorem
    22, with the factor 1/t kept,
    |loss − loss without the row| ≤ 4r²κ²/(ρt).

    Parameters
    ----------
    gamma : float
        Weight for ``n`` rows; for t rows it is γ·t/n.
    n : int
    row_bound, target_bound : float
        κ ≥ ||x|| and B ≥ |y| for every row the distribution may give.

    Returns
    -------
    stability : float
        λ with β_t ≤ λ/t.
    loss_bound : float
        L: the squared loss never exceeds it.

    Examples
    --------
    >>> from sparsecv.risk import ridge_stability
    >>> ridge_stability(gamma=2.0, n=1, row_bound=1.0, target_bound=1.0)
    (16.0, 4.0)
    """
    _check(gamma=gamma, n=n, row_bound=row_bound, target_bound=target_bound)
    kappa, B, root = row_bound, target_bound, sqrt(gamma) / sqrt(2.0 * n)  # The root of ρ.
    largest = B + kappa * B / root
    change = 2.0 * largest * kappa / root
    return change * change, largest * largest  # Where a float overflows the product is ∞.
