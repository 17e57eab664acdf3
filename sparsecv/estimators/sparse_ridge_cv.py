"""Sparse ridge with (τ, γ) chosen by exact cross-validation, as a scikit-learn estimator."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..cv.results import CVResult, bounds_text
from ..cv.settings import Settings
from ..design.fold_models import FoldModels
from ..design.folds import Folds
from ..design.model import Model
from ..errors import InputError, UnprovedWarning, warn_caller
from ..report.progress import tell
from ..schedule import DEFAULT_SECONDS
from ..selection.certified_choice import proved_choice_certificate
from ..selection.choice import Choice
from ..selection.claims import Claim, beyond_certificate
from ..selection.intervals import fold_models
from ..selection.nested import nested_error, refuse_nested
from ..selection.result import Result
from ..selection.run import fit_table
from ..selection.study import partitions_of
from ..solvers.core.certificate_file import Certificate
from ..solvers.core.column_rules import Constraints
from ..solvers.core.result import Status
from ..tables.dask_table import DaskTable
from ..tables.frames import is_lazy
from ..tables.table import Table
from ..wings import WINGS
from .files import ModelFiles
from .sparse_ridge import SparseRidge
from .views import ModelViews


class SparseRidgeCV(ModelViews, ModelFiles):
    """Best-subset ridge, τ and γ chosen by exact CV; gamma = 2 * alpha of scikit-learn's Ridge.

    h(γ, τ) is the CV error of best-subset ridge regression of at most τ columns at the ridge weight
    γ. Every fold's best subset is proved, or its objective is bounded: h is exact wherever
    ``cv_results_["exact"]`` says so, and lies in [lower, upper] always.

    Parameters
    ----------
    cv : int, "loo", "size:M", "time:K", splitter or iterable
        Folds; K folds are shuffled with ``random_state``, once for the whole grid. Folds "time:K"
        are those of scikit-learn's TimeSeriesSplit(K): each trains on the rows before its own.
    taus : array of int or None
        Sparsities; None means 0..p, where 0 is the mean alone (beyond 168 columns, each level of a
        factor counted: up to the largest τ with τ log τ ≤ min(n, p)). Where models are averaged
        beyond 45 columns, sizes are tried as far as they carry weight in the average; ``taus_``
        says which were tried.
    gammas : float, array of float, str or None
        Ridge weights; gamma = 2 * alpha of scikit-learn's Ridge. None visits ten values from 1e-4
        to 1e4 and more past an end that is best (a fold's own average goes past an end where its
        training rows say so); for rules that take a pair it then alternates between τ and γ
        (:func:`sparsecv.cv.alternating.alternate`). "global" finds the least CV error over every
        τ and all γ from 1e-4 to 1e4, with a proof (docs/methods.md); "global:LO:HI" names the
        range. If supports of a fold tie at every γ, the lexicographically first is meant; breaking
        such ties in another way can give an error outside the proved interval.
    method : str
        "exact" (trees that serve all τ at once), "search" (only the best τ, by Algorithm 1 of
        "Optimal Cross-Validation for Sparse Linear Regression"), "grid" (one problem per fold and
        τ) or "auto".
    backend : str
        Solver of single problems, for ``method="grid"`` and "search"; an outside one makes
        "auto" a grid.
    fit_intercept : bool
        Refit the intercept inside every fold.
    standardize : bool
        Divide columns by their standard deviations. All rows decide the unit in which the penalty
        is measured, the standard deviation of every column (missing values filled by all rows), and
        never anything of y; where folds leave rows aside, as in order of time, the training rows of
        every fold decide it.
    time_limit : float or None
        Seconds for the whole call of fit, compiling not counted. Estimates come first, and proofs
        take what is left; what is not proved by then is estimated and bracketed
        (``certified_``, ``cv_results_["exact"]``). 0 proves nothing; None: no limit. What is
        computed after the fit, such as :meth:`compare`, has as much time again.
    prove : str
        "choice" proves what the choice needs, and up to 45 columns then the rest, for as long again
        and at most a second; "all" proves every CV error and every model.
    n_jobs : int or None
        Threads over folds, as in joblib; processes or a cluster inside ``joblib.parallel_config``.
    random_state : int, RandomState or None
        For the shuffle of K folds; a fixed seed by default, so that a fit can be repeated.
    verbose : int or None
        None shows what is being done in one line, on a terminal or in a notebook alone, once a call
        has taken two seconds; 0 shows nothing; 1 prints it everywhere, and about how long it takes.
    tol : float or None
        Relative tolerance of the least CV error, for ``method="search"`` (by default 0.01) and
        ``gammas="global"`` (by default 1e-4).
    rule : str or None
        How the final model is chosen: "minimum" (least CV error), "one-se" (least τ within one
        standard error of it), "stability" (least CV error + λ·stability, λ by nested folds),
        "corrected" (least bias-corrected error) or "projected" (the best subset of the least size
        that predicts nearly like the average of the grid's models, which are weighted by their CV
        errors; :mod:`sparsecv.selection.projection`). With "projected", ``taus`` are the sizes to
        choose from; the average is over all sizes. None means "projected"; it means "minimum" with
        ``method="search"`` and ``gammas="global"``, which look for the least CV error alone.
    nested : bool or int
        Also cross-validate the whole fit, its rule included, by outer folds, which gives the error
        to expect on new data: True for ten outer folds (five beyond 200 rows or groups, one for
        each up to 30; where ``cv`` is a splitter, the folds it draws), or their number. Each outer
        fold costs a fit; these fits share what the fit leaves of ``time_limit``. Pairs of row
        indices and PredefinedSplit cannot split fewer rows, and are refused.
    missing : "mean" or None
        X may hold NaN. Each fold fills the NaN of a column with the mean of its training
        rows; what all rows decide, ``standardize`` says. ``predict`` fills with the values of all
        rows. A missing text is a level of its own. With None NaN is an error.
    constraints : Constraints or None
        Which columns are in every model or in none, enter together, or have bounds on their
        coefficients; see :class:`sparsecv.Constraints`.
    unknown : str
        What ``predict`` does with a text that is none of the levels of its column: "error" names
        the column, the text and the rows; "zero" predicts as for a row without a level.

    Attributes
    ----------
    tau_, gamma_ : the chosen pair
        With the rule projected, γ is the ridge weight of the projection.
    rule_ : str
        The rule that has chosen, also where ``rule`` is None; :meth:`compare` tells what all rules
        choose.
    cv_error_ : float
        Its h(γ, τ), in the units of y²; of a projection the CV error of averaging and projecting
        every fold's own models, with weights from inner folds of its training rows.
    nested_error_, nested_std_error_ : float
        Only with ``nested``: the error to expect on new data, which is the figure to quote, and its
        standard error, NaN where the time sufficed for one outer fold alone; ``cv_error_`` serves
        to choose and is mostly lower, as the choice was made on the same folds.
    tau_1se_ : int
        Smallest τ of the whole surface whose CV error is within one standard error of the least.
    claim_ : str
        One sentence that says what is proved of the choice, or would have to be, over which sizes
        and which γ, and by which rule.
    certified_ : bool
        Whether what ``claim_`` states is proved. With "minimum" no pair (τ, γ) that was compared
        has a smaller CV error, by more than a relative 2e-9, or than ``tol`` where that counts;
        with ``gammas="global"`` no γ of the range has one. With "one-se" no fewer columns have a CV
        error within one standard error of the least, and no γ has a smaller one with as many; some
        other errors may be open. With "stability" and "corrected" no pair that was compared is
        better, for which every model is proved. With "projected" every support that carries weight
        in the average (of all rows, of a fold, and of the inner folds behind its weights), and
        every projection of the chosen size (of all rows and of every fold), is the best one.
    cv_results_ : dict of arrays, one entry per (γ, τ)
        "gamma", "tau"; "cv_error" (h(γ, τ), an estimate where it is not proved) and its
        "std_error" over folds; "lower", "upper" (the exact h lies between); "exact" (h is
        proved); "mio_by_tau" (of the mixed-integer problems at this γ and τ, one for each fold, how
        many took part in a tree search; bounds alone proved the others, and a tree that serves
        all folds counts once).
    surface_ : dict of arrays
        The same with shape (γ, τ), "gamma" (γ,) and "tau" (τ,); besides, with shape (γ,), "n_mio"
        (trees that were searched, each for one τ or for all), "n_nodes" (their nodes) and
        "seconds".
    cv_error_bounds_ : tuple of float
        Lower and upper bound of the least CV error over everything searched: every pair (τ, γ),
        every γ of a range, and with the rule projected the projections onto all sizes, whose errors
        are those of the models that were found. The rule may choose a model of larger CV error.
    folds_ : sparsecv.design.folds.Folds
        Which rows were held out together.
    taus_ : ndarray of int
        The sizes that were tried.
    path_ : pandas.DataFrame, a row for each size
        "tau", "gamma", "columns" (positions), "names" (of features, of which a factor is one),
        "coef" (those of "columns", in original units), "intercept", "cv_error", "std_error",
        "proved" (the columns are the best ones). A size has the γ at which the rule's criterion is
        least among the pairs of that size: the CV error (minimum, one-se), CV error + λ·stability,
        or the corrected error; the chosen size has the chosen γ. With projected, the models are the
        projections, and γ is that of least distance; a column "distance" has the mean squared
        distance to the average on held-out rows, as a share of ``reference_error_``. This attribute
        and the one below are computed when first asked for; :meth:`at_size` gives the models.
    criteria_ : pandas.DataFrame, a row for each size
        AIC, BIC, EBIC and Cp of ``path_["columns"]``, as in :class:`SparseRidge`.
    reference_error_ : float
        Only with the rule projected: the average's own CV error on the same folds.
    trace_ : list of sparsecv.cv.results.Step
        Iterations of the alternation, where ``gammas`` is None.
    gamma_edge_ : str
        Where ``gammas`` is None: why the grid of γ could go no further although its best value is
        at an end; empty otherwise.
    minimum_ : sparsecv.cv.results.GlobalMinimum
        Only with ``gammas="global"``: bounds of the least CV error over the range, the certified
        pair, the pairs that cannot be excluded, and the time.
    coef_, intercept_, support_, objective_, lower_bound_, gap_ : ndarray, float
        Of the final model, as in :class:`SparseRidge`. The objective of a projection measures the
        distance to the average's predictions instead of y.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of columns of X, and their names where X had names.
    levels_, coef_names_ : dict, ndarray of str
        The levels of the columns of text, by their names, and the names of the columns that
        ``coef_`` and ``support_`` count: x0, x1, ... where X has no names. A text column becomes a
        0/1 column ``name=level`` for each level, which enter together and count once (of two
        levels, the second alone). Its name or position stands for all of them in ``constraints``.
    status_ : str
        "optimal" where the choice is certified and its model proved, else the worst of the other
        values of :class:`sparsecv.solvers.Status`.
    n_nodes_ : int
        Nodes of all searches the rule asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import SparseRidgeCV
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0], [5.0, 0.0], [6.0, 1.0]])
    >>> model = SparseRidgeCV(cv="loo").fit(X, 2.0 * X[:, 0])
    >>> model.certified_, model.support_
    (True, array([0]))
    """

    rule_: str
    folds_: Folds

    def __init__(
        self,
        *,
        cv: Any = 5,
        taus: ArrayLike | None = None,
        gammas: ArrayLike | str | None = None,
        rule: str | None = None,
        constraints: Constraints | None = None,
        missing: str | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        method: str = "auto",
        backend: str = "auto",
        prove: str = "choice",
        tol: float | None = None,
        time_limit: float | None = DEFAULT_SECONDS,
        nested: bool | int = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int | None = None,
        unknown: str = "error",
    ) -> None:
        self.cv = cv
        self.taus = taus
        self.gammas = gammas
        self.rule = rule
        self.constraints = constraints
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.method = method
        self.backend = backend
        self.prove = prove
        self.tol = tol
        self.time_limit = time_limit
        self.nested = nested
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.unknown = unknown

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> SparseRidgeCV:
        """Cross-validate, choose (τ, γ) and fit the model on all rows.

        Parameters
        ----------
        X : array-like, shape (n, p)
            A dask.array or dask.dataframe is reduced by Dask, in one compute, to the moments of K
            folds: rows fall into folds by a seed of every chunk. A sparse matrix or array of scipy
            is made dense, up to 1.5 GB.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Weights >= 0 of the squared errors, in training and held out. A whole number counts as
            that many copies of a row that stay in one fold, and their sum counts as the number of
            rows: weights that are no counts should be divided by their mean.
        groups : array-like, shape (n,), optional
            Rows of one group are held out together.
        offset : array-like, shape (n,), optional
            Numbers that are taken off y first, so that the model explains what is left; errors, R²
            and coefficients are those of what is left. :meth:`predict` adds the offsets of new
            rows.

        Returns
        -------
        SparseRidgeCV
            The fitted estimator itself.

        Raises
        ------
        InputError
            A ValueError with one line that names the column or parameter at fault.

        Warns
        -----
        UnprovedWarning
            The choice, or the support of the model, is not proved, although proofs were asked for.
        """
        self._forget()
        named = (
            "method",
            "backend",
            "time_limit",
            "n_jobs",
            "tol",
            "prove",
            "gammas",
            "taus",
            "rule",
        )
        settings = Settings(**{name: getattr(self, name) for name in named}, seed=self.random_state)
        deadline = settings.deadline()  # The time limit counts the checks that follow, too.
        partitions = partitions_of(settings, self._protocol().name)
        ready = self._prepared(
            X,
            y,
            sample_weight,
            groups,
            cv=self.cv,
            partitions=partitions,
            offset=offset,
            counts=settings.counts_coefficients,
        )
        if self.nested is not False:
            refuse_nested(ready.data, self.cv, self.nested, groups)
        with self._telling("fitting the folds"):
            found = fit_table(ready, settings, WINGS, deadline=deadline, progress=tell)
            if self.nested:
                assert found.study is not None
                found.expected = nested_error(found.study, self.cv, self.nested, groups)
        assert found.held_out is not None
        study, surface, choice = found.held_out
        self._remember(found)
        self._set_choice(found, surface, choice)
        # Where estimates suffice for the rule nothing was to be proved; only the time can have been
        # too short.
        if not study.plan.needs_no_proof or found.status is Status.TIME_LIMIT:
            self._warn_of_what_is_open(found.claim, found.model)
        if found.expected is not None:
            self.nested_error_ = found.expected.error
            self.nested_std_error_ = found.expected.std_error
        # What is asked later computes what it needs again, from the rows that the fit has kept.
        ready.release()
        return self

    def __getattr__(self, name: str) -> Any:
        """Say what a nested error needs, where there is none.

        Python calls this method where an attribute is missing, and also where a property has raised
        an AttributeError, such as that of :meth:`_kept_fit`, which then is raised again here.
        """
        if isinstance(getattr(type(self), name, None), cached_property):
            self._kept_fit()
        what = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in ("nested_error_", "nested_std_error_"):
            what = f"{name} needs a fit with nested=True"
        raise AttributeError(what)

    def _source(self, X: Any, y: Any, weights: Any, groups: Any, offset: Any) -> Table:
        """Check what was passed to ``fit``, and set the attributes that describe the columns.

        Of a table of Dask only the shape is known here: its rows are read once, by the preparation
        that follows.
        """
        if not is_lazy(X):
            return super()._source(X, y, weights, groups, offset)
        if self.missing is not None:
            raise InputError("missing needs rows in memory: pass X.compute()")
        if weights is not None or groups is not None:
            raise InputError("sample_weight and groups need rows in memory: pass X.compute()")
        if offset is not None:
            raise InputError("offset needs rows in memory: pass y - offset")
        source = DaskTable(X, y)
        # An array of Dask has no ``columns``, for which [0], which is no name, stands here.
        if all(isinstance(name, str) for name in getattr(X, "columns", [0])):
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        self.n_features_in_ = source.p
        self._name_columns(self._labels(source.p), {})
        return source

    @cached_property
    def _fold_models_(self) -> FoldModels:
        """The models of the folds with their residuals; a pickle keeps them once they are made."""
        held_out = self._kept_fit().held_out
        assert held_out is not None
        with self._telling("the models of the folds"):
            return fold_models(held_out.study.again(), held_out.surface, held_out.choice)

    def _intervals(self) -> FoldModels:
        return self._fold_models_

    def _certified(self, fit: Result) -> Certificate:
        """The certificate of the least CV error; a UserWarning where the rule chose another pair.

        fit: The kept fit; the proofs of CV errors that it still lacks are made, and kept in it.
        """
        made = proved_choice_certificate(fit)
        assert fit.held_out is not None
        if text := beyond_certificate(fit.held_out.surface, fit.held_out.choice, fit.claim):
            warn_caller(text, UserWarning)
        return made

    def _of_size(self, tau: int, gamma: float) -> SparseRidge:
        other = SparseRidge(tau, gamma)
        # A time limit and a tolerance mean something else in a cross-validation.
        same = other.get_params().keys() & self.get_params(deep=False).keys()
        shared = {name: getattr(self, name) for name in same - {"time_limit", "tol"}}
        return other.set_params(**shared)  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_run_"):
            _ = self.path_, self.criteria_  # Both cost little; a pickle has no rows for them.
        return super().__getstate__()

    def _set_choice(self, found: Result, surface: CVResult, choice: Choice) -> None:
        """Set the attributes of what was chosen, and those of the model fitted to all rows.

        found: The fit, which has folds.
        surface, choice: Its :class:`~sparsecv.selection.result.HeldOut`.
        """
        # The next four attributes are those that only some fits have, as the class says.
        if self.gammas is None:
            self.trace_, self.gamma_edge_ = surface.trace, surface.edge
        if surface.minimum is not None:
            self.minimum_ = surface.minimum
        if choice.projection is not None:
            self.reference_error_ = choice.projection.average.error
        claim = found.claim
        self.rule_, self.claim_, self.certified_ = claim.rule, claim.sentence, claim.proved
        self.gamma_, self.cv_error_ = choice.gamma, choice.cv_error
        self.tau_1se_ = surface.best().one_se
        self.cv_error_bounds_ = claim.lower, claim.upper
        self._set_tables(surface)
        self._keep(found.model)
        self.status_, self.n_nodes_ = str(found.status), found.ended.n_nodes

    def _set_tables(self, result: CVResult) -> None:
        """Set the attributes that show all pairs (γ, τ): as arrays over both, and as rows."""
        self.folds_, self.taus_ = result.folds, result.taus
        gammas, taus = result.gammas, result.taus
        flat = ("cv_error", "std_error", "lower", "upper", "exact", "mio_by_tau")
        tables = {key: result.table(key) for key in (*flat, "n_mio", "n_nodes", "seconds")}
        self.surface_: dict[str, Any] = {"gamma": gammas, "tau": taus, **tables}
        pairs = {"gamma": np.repeat(gammas, taus.size), "tau": np.tile(taus, gammas.size)}
        self.cv_results_: dict[str, Any] = pairs | {key: tables[key].ravel() for key in flat}

    def _warn_of_what_is_open(self, claim: Claim, model: Model) -> None:
        """Warn where the choice, or the support of the final model, is not proved.

        claim: What is claimed of the choice.
        """
        if not claim.proved:
            # The text is empty where the bounds say nothing.
            text = f"not every fold and model was proved. {claim.sentence}"
            if known := bounds_text(claim.lower, self.cv_error_, claim.upper):
                text += f" The least CV error of all that was searched lies in {known}."
            warn_caller(text, UnprovedWarning)
        elif not model.proved:
            warn_caller(
                f"the final model has a relative gap of {self.gap_:.2g} ({self.status_}): "
                "its support may not be the best one",
                UnprovedWarning,
            )
