"""The best subset of given size at a given γ, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

from numpy.typing import ArrayLike

from ..cv.settings import (
    Settings,
    checked_limit,
)
from ..design.saved import SavedModel
from ..errors import InputError, UnprovedWarning, warn_caller
from ..schedule import DEFAULT_SECONDS
from ..selection.criteria import checked_criterion
from ..selection.run import fit_table
from ..solvers.core.column_rules import Constraints
from ..solvers.core.result import Status
from ..wings import WINGS
from .files import ModelFiles
from .validation import checked_tau
from .views import ModelViews


class SparseRidge(ModelViews, ModelFiles):
    """Best-subset ridge regression, proved optimal; gamma = 2 * alpha of scikit-learn's Ridge.

    Minimises ||y − Xβ||² + (γ/2)||β||² over ||β||₀ ≤ τ on centred columns of unit variance.

    Parameters
    ----------
    tau : int, None, "aic", "bic" or "ebic"
        Largest number of coefficients; 0 is the mean alone (nothing without ``fit_intercept``), and
        None means 10, or as many as the columns that vary allow, or the least that ``constraints``
        allow where that is more. A number
        counts as one coefficient and a factor of L levels as L − 1; with
        ``Constraints(count="groups")`` a factor counts once. With the name of a criterion, the size
        of least criterion over all sizes and all subsets, from no feature at all on, by least
        squares and proved; formulas in :func:`sparsecv.selection.criteria.criteria`. In a criterion
        the intercept counts as one, too, which all models have.
    gamma : float or None
        gamma = 2 * alpha of scikit-learn's Ridge, at least 0; 0 is least squares. None is 1 for a
        given size and 0 with a criterion, which compares least-squares fits and takes no other.
    fit_intercept : bool
        Centre X and y first.
    standardize : bool
        Divide every column by its standard deviation (ddof = 0) first. Coefficients are in the
        original units either way.
    backend : str
        "auto" or a name from :func:`sparsecv.solvers.available_backends`.
    time_limit : float or None
        Seconds of the whole call; None is no limit. When it is reached the best model so far is
        kept, ``lower_bound_`` still holds and ``status_`` says so. 0 proves nothing.
    tol : float
        Relative gap (objective − bound) / objective at which the search may stop, in [0, 1).
    n_jobs : int or None
        Threads that search beyond 35 columns, as in joblib; None means one.
    constraints : Constraints or None
        Which columns are in every model or in none, enter together, or have bounds on their
        coefficients; see :class:`sparsecv.Constraints`.
    missing : "mean" or None
        X may hold NaN, which "mean" fills with the mean of the column, in ``predict`` too; a
        missing text is a level of its own. With None NaN is an error.
    unknown : str
        What ``predict`` does with a text that is none of the levels of its column: "error" names
        the column, the text and the rows; "zero" predicts as for a row without a level.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
        Coefficients in original units.
    intercept_ : float
        What is added to ``X @ coef_``; 0 without ``fit_intercept``.
    support_ : ndarray of int
        Positions of the selected columns among those of ``coef_``, from 0, increasing.
    tau_ : int
        The largest number of coefficients, cut to the columns that vary, or the number that the
        criterion chose, in the unit of ``tau``.
    gamma_ : float
        The ridge weight of the fit.
    objective_, lower_bound_, gap_ : float
        Training objective on the scaled columns, its proved lower bound, their relative gap. Where
        a criterion chose τ, the bound is for supports that the criterion penalises no more.
    status_ : str
        "optimal", or why it is not proved: a value of :class:`sparsecv.solvers.Status`.
    n_nodes_ : int
        Branch-and-bound nodes.
    path_ : pandas.DataFrame, a row for each size from 1 to τ; where τ = 0, one for size 0
        A size without a row has the columns of the size before, as where a factor counts more.
        "tau", "gamma", "columns" (positions), "names" (of features, of which a factor is one),
        "coef" (those of "columns", in original units), "intercept", "proved" (the columns are the
        best ones at this γ); "cv_error" and "std_error" are NaN, as nothing is held out. ``path_``
        and ``criteria_`` are computed when first asked for, by the native solver within
        ``time_limit``; :meth:`at_size` gives the models.
    criteria_ : pandas.DataFrame, a row for each size
        "tau", "columns", "names", "cv_error", and "rss", "aic", "bic", "ebic", "cp" of a
        least-squares fit on these columns: R's AIC and BIC of lm, the extended BIC of Chen and Chen
        (2008) and the Cp of leaps; formulas in :func:`sparsecv.selection.criteria.criteria`.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of columns of X, and their names where X had names.
    levels_, coef_names_ : dict, ndarray of str
        The levels of the columns of text, by their names, and the names of the columns that
        ``coef_`` and ``support_`` count: x0, x1, ... where X has no names. A text column becomes a
        0/1 column ``name=level`` for each level, which enter together and count as one feature (of
        two levels, the second has a column alone). The text column's name or position stands for
        all of them in ``constraints``.

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
        tau: int | str | None = None,
        gamma: float | None = None,
        *,
        fit_intercept: bool = True,
        standardize: bool = True,
        backend: str = "auto",
        time_limit: float | None = DEFAULT_SECONDS,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        constraints: Constraints | None = None,
        missing: str | None = None,
        unknown: str = "error",
    ) -> None:
        self.tau = tau
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.backend = backend
        self.time_limit = time_limit
        self.tol = tol
        self.n_jobs = n_jobs
        self.constraints = constraints
        self.missing = missing
        self.unknown = unknown

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> SparseRidge:
        """Fit the model.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Numbers; a pandas or polars frame gives its column names. A sparse matrix or array of
            scipy is made dense, up to 1.5 GB.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Weights >= 0 of the squared errors; a whole number counts as that many copies of a row.
        groups : array-like, shape (n,), optional
            Rows that belong together: :meth:`row_influence` leaves out whole groups. The fit itself
            is the same without them.
        offset : array-like, shape (n,), optional
            Numbers that are taken off y first, so that the model explains what is left; errors, R²
            and coefficients are those of what is left. :meth:`predict` adds the offsets of new
            rows.

        Returns
        -------
        SparseRidge
            The fitted estimator itself.

        Raises
        ------
        InputError
            A ValueError with one line that names the column or parameter at fault.

        Warns
        -----
        UnprovedWarning
            The support is not proved to be the best: a limit was reached, or the table is too large
            for a proof.
        LoweredSizeWarning
            Fewer columns than ``tau`` vary, and their number is taken.
        """
        self._forget()
        if self.tol is None:  # The settings would take None for the default of a cross-validation.
            raise InputError("tol must lie in [0, 1); got None")
        settings = Settings(
            backend=self.backend,
            n_jobs=self.n_jobs,
            tol=self.tol,
            time_limit=checked_limit(self.time_limit),
        )
        deadline = settings.deadline()  # The time limit counts what follows, the checks included.
        counts = settings.counts_coefficients
        ready = self._prepared(X, y, sample_weight, groups, offset=offset, counts=counts)
        if isinstance(self.tau, str):
            asked = replace(settings, criterion=checked_criterion(self.tau, self.gamma))
        else:
            taus = [checked_tau(self.tau, ready.design)]
            asked = replace(settings, gammas=[1.0 if self.gamma is None else self.gamma], taus=taus)
        with self._telling("proving the best columns"):
            found = fit_table(ready, asked, WINGS, deadline=deadline)
        self._keep(found.model)
        self.gamma_ = found.model.gamma
        self.status_, self.n_nodes_ = str(found.status), found.ended.n_nodes
        self._remember(found)
        ready.release()
        if not found.model.proved:
            # Where no limit was reached, there was no room in memory for a search tree.
            too_large = found.status is Status.UNPROVED
            ended = "the table is too large for a proof" if too_large else f"{found.status} reached"
            text = f"{ended}, and the relative gap is {self.gap_:.2g}"
            text += ": the support may not be the best one. For a proof "
            warn_caller(text + found.status.remedy, UnprovedWarning)
        return self


def load(path: str | PathLike[str]) -> SparseRidge:
    """Read a model that ``save`` of an estimator, or ``sparsecv cv --save``, has written.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    SparseRidge
        Fitted: it predicts and selects, and makes prediction intervals where the file keeps what
        they need. How the model was found is not in the file. ``n_features_in_`` and
        ``feature_names_in_`` are of the columns of numbers that text columns became; a frame may
        hold either.

    Raises
    ------
    InputError
        The file cannot be read, is no model, or is damaged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import sparsecv
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> model = sparsecv.SparseRidge(tau=1).fit(X, 2.0 * X[:, 0])
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.json")
    ...     again = sparsecv.load(Path(folder) / "model.json")
    >>> np.array_equal(again.predict(X), model.predict(X))
    True
    """
    return SparseRidge()._take(SavedModel.read(path))
