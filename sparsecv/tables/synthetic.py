"""The synthetic data of the papers."""

from math import isfinite, sqrt
from numbers import Real

import numpy as np

from ..errors import InputError
from .columns import FloatArray, is_integer


def _rows(rng: np.random.Generator, n: int, p: int, rho: float) -> FloatArray:
    """Draw n rows of N(0, Sigma), Sigma_ij = rho^|i-j|, by x_j = rho x_(j-1) + sqrt(1-rho²) z_j."""
    X = rng.standard_normal((n, p))
    fresh = sqrt(1.0 - rho**2)
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + fresh * X[:, j]
    return X


def _draw(
    rng: np.random.Generator, n: int, p: int, tau_true: int, rho: float, nu: float
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Draw X (n, p), β (p,) and noise (n,), and the factor that scales the standard noise.

    rng: Moves on. The other arguments are those of :func:`make_synthetic`.
    """
    X = _rows(rng, n, p, rho)
    beta = np.zeros(p)
    beta[rng.choice(p, size=tau_true, replace=False)] = rng.choice([-1.0, 1.0], size=tau_true)
    noise = rng.standard_normal(n)
    scale = float(np.linalg.norm(X @ beta) / (sqrt(nu) * np.linalg.norm(noise)))
    return X, beta, scale * noise, scale


def make_synthetic(
    n: int = 200,
    p: int = 20,
    tau_true: int = 10,
    rho: float = 0.7,
    nu: float = 1.0,
    seed: int = 0,
    n_test: int = 0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw the synthetic data of the papers.

    Rows of X are independent draws of N(0, Sigma) with Sigma_ij = rho^|i-j|. Of the coefficients,
    ``tau_true`` at random positions are +1 or -1 with equal probability, and the others are 0. The
    response is y = X beta + noise, where the normal noise is scaled so that sqrt(nu) is exactly
    ||X beta|| / ||noise||. Then X and y are standardised.

    Parameters
    ----------
    n, p : int
        Training rows (at least 2) and features.
    tau_true : int
        Number of nonzero coefficients, from 1 to p.
    rho : float
        Autocorrelation, 0 <= rho < 1.
    nu : float
        Signal-to-noise ratio, positive.
    seed : int
        Seed of ``numpy.random.default_rng``. The training rows do not depend on ``n_test``.
    n_test : int
        Number of test rows, 0 by default, which follow the training rows. Test rows have the
        coefficients and the noise level of the training rows, and are standardised by the training
        rows' means and scales.

    Returns
    -------
    X, y : ndarray, shape (n + n_test, p) and (n + n_test,)
        The rows. In the n training rows y and the columns of X have mean 0 and variance 1
        (ddof = 0).
    beta_true : ndarray, shape (p,)
        The coefficients before standardisation: 0, 1 and -1.

    Raises
    ------
    InputError
        An argument is out of range.

    References
    ----------
    Cory-Wright and Gómez, "Optimal Cross-Validation for Sparse Linear Regression", EC.1.2;
    Cory-Wright and Gómez, "Stability Regularized Cross-Validation", Appendix A.

    Examples
    --------
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> X, y, beta_true = make_synthetic(n=30, p=5, tau_true=2)
    >>> X.shape, int((beta_true != 0.0).sum())
    ((30, 5), 2)
    """
    least = {"n": 2, "p": 1, "tau_true": 1, "seed": 0, "n_test": 0}
    given = {"n": n, "p": p, "tau_true": tau_true, "seed": seed, "n_test": n_test}
    for name, value in given.items():
        if not is_integer(value) or value < least[name]:
            raise InputError(f"{name} must be an integer of at least {least[name]}, not {value!r}")
    if tau_true > p:
        raise InputError(f"tau_true must be an integer between 1 and {p}, not {tau_true}")
    if not (isinstance(rho, Real) and 0 <= rho < 1):
        raise InputError(f"rho must be at least 0 and below 1, not {rho!r}")
    if not (isinstance(nu, Real) and nu > 0 and isfinite(nu)):
        raise InputError(f"nu must be a positive number, not {nu!r}")

    rng = np.random.default_rng(seed)
    X, beta, noise, scale = _draw(rng, n, p, tau_true, rho, nu)
    y = X @ beta + noise
    X_mean, X_scale, y_mean, y_scale = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()
    if n_test:
        X_test = _rows(rng, n_test, p, rho)
        y = np.append(y, X_test @ beta + scale * rng.standard_normal(n_test))
        X = np.vstack([X, X_test])
    return (X - X_mean) / X_scale, (y - y_mean) / y_scale, beta
