"""The best subset of given size at a given γ, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ..cv.settings import Settings, checked_gammas
from ..design.model import fitted_model
from ..errors import InputError, UnprovedWarning, warn_caller
from ..solvers.api import solve
from ..solvers.backends.optional_dependencies import SolverUnavailable
from ..solvers.core.result import Status
from .base import SparseLinearModel
from .validation import cut_tau


class SparseRidge(SparseLinearModel):
    """Best-subset ridge regression, solved to proven optimality.

    Minimises ||y − Xβ||² + (γ/2)||β||² over ||β||₀ ≤ τ (eq. 1, main paper) on centred columns of
    unit variance.

    Parameters
    ----------
    tau : int or None
        Largest number of features; None means min(p, 10).
    gamma : float
        Ridge weight γ ≥ 0; scikit-learn's Ridge ``alpha`` is γ/2. 0 is least squares.
    fit_intercept : bool
        Centre X and y first.
    standardize : bool
        Divide every column by its standard deviation (ddof = 0) first. Coefficients are in the
        original units either way.
    backend : str
        "auto" or a name from :func:`sparsecv.solvers.available_backends`.
    time_limit : float or None
        Seconds. When it is reached the best model so far is kept, ``lower_bound_`` still holds
        and ``status_`` says so.
    tol : float
        Relative gap at which the search may stop.
    n_jobs : int or None
        Threads that search beyond 35 columns, as in joblib; None means one.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
        Coefficients in original units.
    intercept_ : float
    support_ : ndarray of int
        Selected columns, increasing.
    tau_ : int
        The largest number of features, cut to the columns that vary.
    objective_, lower_bound_, gap_ : float
        Training objective on the scaled columns, its proved lower bound, their relative gap.
    status_ : str
        "optimal" or the limit that was reached.
    n_nodes_ : int
        Branch-and-bound nodes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import SparseRidge
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> model = SparseRidge(tau=1, gamma=0.1).fit(X, 2.0 * X[:, 0] + 1.0)
    >>> model.support_
    array([0])
    """

    def __init__(
        self,
        tau: int | None = None,
        gamma: float = 1.0,
        *,
        fit_intercept: bool = True,
        standardize: bool = True,
        backend: str = "auto",
        time_limit: float | None = None,
        tol: float = 1e-6,
        n_jobs: int | None = None,
    ) -> None:
        self.tau = tau
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.backend = backend
        self.time_limit = time_limit
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SparseRidge:
        """Fit the model.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Numbers; a pandas or polars frame gives its column names.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Weights >= 0 of the squared errors; a whole number counts as that many copies of a row.

        Returns
        -------
        SparseRidge
            The fitted estimator itself.

        Raises
        ------
        InputError
            A ValueError with one line that names the column or parameter at fault.
        """
        table = self._checked_rows(X, y, sample_weight)
        gamma, limit = float(checked_gammas([self.gamma])[0]), self.time_limit
        checked: dict[str, Any] = {"time_limit": limit, "n_jobs": self.n_jobs, "tol": self.tol}
        Settings(backend=self.backend, **checked)
        if limit in (0, "auto"):
            raise InputError(f"time_limit must be None or seconds > 0; got {limit!r}")
        design, p = table.design, table.X.shape[1]
        tau = min(design.p, 10) if self.tau is None else cut_tau(self.tau, p, design.p)
        problem = design.problem(table.X, table.y, table.weights).replace(gamma=gamma, tau=tau)
        try:
            solution = solve(problem, backend=self.backend, **checked)
        except SolverUnavailable as error:
            raise InputError(str(error)) from error
        proved = solution.status is Status.OPTIMAL
        self._keep(fitted_model(design, problem, solution.support, solution.lower_bound, proved))
        self.tau_, self.status_ = tau, str(solution.status)
        self.n_nodes_ = solution.n_nodes
        if solution.status is not Status.OPTIMAL:
            gap = f"{solution.status} reached with a relative gap of {self.gap_:.2g}"
            warn_caller(f"{gap}: the support may not be the best one", UnprovedWarning)
        return self
