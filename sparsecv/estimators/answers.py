"""What a fitted model tells: coefficients, every size, other subsets and rules, as data frames."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..design.model import Model, values_of
from ..report.frames import coefficients_frame, comparison, criteria_of_sizes, path_frame
from ..report.questions import (
    alternatives_of_sizes,
    importance_of,
    inference_of,
    near_best_of,
)
from ..selection.study import check_size
from .base import SparseLinearModel
from .validation import checked_count

if TYPE_CHECKING:
    from pandas import DataFrame


class ModelAnswers(SparseLinearModel):
    """Tells of a fit.

    What is told of other sizes, subsets and rules is computed when first asked for. The fitted
    estimator keeps its rows for that, and a pickle leaves them out.
    """

    # The argument and the result of the last call of :meth:`alternatives`, so that the same call
    # searches only once.
    _ranked_: tuple[int, DataFrame] | None = None
    # The last results of other methods that reports show, under the names of the methods.
    _answers_: dict[str, DataFrame] | None = None

    def coefficients(self) -> DataFrame:
        """Return the coefficients of the model, those of the largest effects first.

        Returns
        -------
        pandas.DataFrame
            A row for each column of the model, under its name. "position" counts the columns of
            ``coef_`` from 0, and "coef" is in the units of X and y. "effect" is the coefficient
            times the standard deviation of its column (in the units of y), and "standardised" is
            the effect divided by the standard deviation of y, NaN where that is 0. Both are NaN for
            a model from a file, which has no standard deviations.

        Raises
        ------
        NotFittedError
            There is no model yet.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
        >>> found = SparseRidge(tau=1, gamma=0.0).fit(X, 2.0 * X[:, 0]).coefficients()
        >>> print(found.reset_index().round(3))
          column  position  coef  effect  standardised
        0     x0         0   2.0   2.236           1.0
        """
        check_is_fitted(self)
        p = self.coef_.size
        spreads = self._spreads_ or (np.full(p, np.nan), np.nan)
        return coefficients_frame(self.coef_, self.support_, self._labels(p), *spreads)

    @cached_property
    def path_(self) -> DataFrame:
        """The model of every size with its CV error; see the class."""
        with self._telling("the best of every size"):
            average = float(getattr(self, "reference_error_", np.nan))
            return path_frame(self._sizes_, self._kept_fit().features, average)

    @cached_property
    def criteria_(self) -> DataFrame:
        """AIC, BIC, EBIC and Mallows' Cp of every size; see the class."""
        with self._telling("the best of every size"):
            return criteria_of_sizes(self._kept_fit())

    def alternatives(self, n: int = 5) -> DataFrame:
        """Return the n best subsets of every size, by size and then in order of objective.

        Parameters
        ----------
        n : int
            How many subsets of each size.

        Returns
        -------
        pandas.DataFrame
            A row for every subset: "tau" (the size, as ``tau_`` counts it), "rank" (1 is the best),
            "gamma" (the ridge weight at which subsets of this size are ranked), "columns"
            (positions from 0),
            "names", "objective", "cv_error", "std_error" and "proved" (every other subset of this
            size with a smaller objective at this γ is listed before it). Where the search
            has taken ``time_limit`` (20 s where that is None), it ends, and good subsets are listed
            that are not proved. Beyond 168 columns nothing is proved, and good subsets that the fit
            knows are ranked, too. The CV errors of
            :class:`SparseRidgeCV` are those of the same columns fitted in every fold. They take the
            last tenth of ``time_limit``, and are NaN where it does not suffice. The columns
            were found with all rows, the held-out ones too, so that these errors are mostly below
            those of ``path_``, whose folds search for columns of their own. :class:`SparseRidge`
            holds nothing out, and has NaN.

        Raises
        ------
        InputError
            ``n`` is no whole number >= 1.
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> y = X @ [3.0, 2.0, 1.0, 0.0]
        >>> found = SparseRidge(tau=2).fit(X, y).alternatives(2)
        >>> print(found[["tau", "rank", "columns", "proved"]])
           tau  rank columns  proved
        0    1     1     [0]    True
        1    1     2     [1]    True
        2    2     1  [0, 1]    True
        3    2     2  [0, 2]    True
        """
        n = checked_count(n, "n")
        if self._ranked_ is None or self._ranked_[0] != n:
            with self._telling(f"the {n} best of every size"):
                found = alternatives_of_sizes(self._kept_fit(), n, self._seconds())
            self._ranked_ = n, found
        return self._ranked_[1].copy()

    def near_best(self, within: float = 0.05) -> DataFrame:
        """Return every subset that fits nearly as well as the best, the best first.

        This is about the fit to the response of all rows: the training objective of up to ``tau_``
        columns at the model's gamma, or the criterion that has chosen the size. Nothing is held
        out.

        Parameters
        ----------
        within : float
            A subset is listed if its objective exceeds the least by at most this share, a finite
            number >= 0. With a criterion the objective counts times exp(penalty/n), as in
            ``exp(criterion/n)``.

        Returns
        -------
        pandas.DataFrame
            A row for every subset: "tau" (features, a group counts once), "columns" (positions),
            "names" (of features, of which a factor is one), "objective" (on the scaled columns, as
            ``objective_``), "coef" (those of "columns", in original units) and "excess" (the share
            above the least). ``attrs["complete"]`` says
            whether the list is proved to lack none; it is not where the search has taken
            ``time_limit``, or would list more than 100,000 subsets. ``attrs["about"]`` says what
            was compared.

        Raises
        ------
        InputError
            ``within`` is negative or not finite, coefficients have bounds, there are more than 168
            columns, or the columns are a projection of an average, as the default rule of
            :class:`SparseRidgeCV` chooses them, which is not meant to be the best for y.
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> y = X @ [3.0, 2.0, 0.1, 0.1] + X[:, 3] ** 2
        >>> found = SparseRidge(tau=3).fit(X, y).near_best(0.1)
        >>> print(found[["tau", "columns"]])
           tau    columns
        0    3  [0, 1, 2]
        1    3  [0, 1, 3]
        2    2     [0, 1]
        >>> found.attrs["complete"]
        True
        """
        with self._telling("subsets that fit nearly as well"):
            return near_best_of(self._kept_fit(), within, self._seconds())

    def importance(self) -> DataFrame:
        """Return what the best fit loses without each feature, and what it loses by having each.

        This is about the fit to the response of all rows, as :meth:`near_best` is. Every feature is
        left out, or put in, by a search of its own; a factor or a group is one feature.

        Returns
        -------
        pandas.DataFrame
            A row for each feature, under its name, those first without which the fit loses most:
            "position" (of its first column), "without" (the least objective of subsets that lack
            the feature, divided by the least of all), ``with_`` (the same of subsets that have it;
            1 for features of the best subset) and "proved" (whether both numbers are). A factor is
            a feature such as "state (51 levels)". A number is NaN where neither ``constraints`` nor
            the size, such as 0, allow such a subset, and where ``time_limit`` was over before its
            search began. ``attrs["about"]`` says what was compared.

        Raises
        ------
        InputError
            As :meth:`near_best`, apart from ``within``.
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.random.default_rng(0).standard_normal((40, 3))
        >>> y = X @ [3.0, 2.0, 0.0] + X[:, 2] ** 2
        >>> found = SparseRidge(tau=2).fit(X, y).importance()
        >>> found.index.tolist()
        ['x0', 'x1', 'x2']
        >>> float(found.loc["x2", "without"])
        1.0
        """
        with self._telling("the best fit without each column"):
            return importance_of(self._kept_fit(), self._seconds())

    def inference(self, level: float = 0.95, sigma: float | None = None) -> DataFrame:
        """Return p-values and confidence intervals that know that the columns were searched for.

        This serves a :class:`SparseRidge` of a given size or of least criterion. An ordinary t-test
        of columns that a search has selected rejects far too often. These p-values are exact in
        finite samples where the errors are independent and normal with one variance: given that the
        search selects these columns, and given what the response has across the tested coefficient,
        the coefficient's p-value is uniform where it is 0. Tested are the least-squares
        coefficients within the model, not those that ``gamma`` has shrunk. The set of responses
        that lead to the same columns comes from one search tree (mathematics in the page on
        inference).

        Parameters
        ----------
        level : float
            The coverage of the confidence intervals, between 0 and 1, both excluded.
        sigma : float, optional
            Standard deviation of the errors, above 0, in the units of y. By default it is estimated
            by the residuals of the fit on all columns, which needs 30 degrees of freedom. p-values
            stay exact if the expected response is linear in the columns. Intervals by a criterion
            then take some ten searches more.

        Returns
        -------
        pandas.DataFrame
            A row for each selected column that enters alone, under its name; groups are searched
            but not tested. "position"; "coef", the least-squares coefficient; "std_error", what its
            standard error would be without a search; "p_low" and "p_high": the p-value lies
            between them, and they are equal up to rounding unless ``time_limit`` has stopped the
            search; "low" and "high", the ends of the interval, which may be infinite. All are NaN
            for a column that the others of the model determine. ``attrs`` has "sigma" and
            "sigma_source", "event" (how the columns were selected), "conditional_on", "complete",
            "left_out" (the features of the model that are not tested), "hidden", and "regions", by
            column the values of the coefficient at which the same columns are selected. "hidden"
            names columns whose p-value is not below 1 − ``level`` though their coefficient is
            larger than any search finds by chance (Scheffé's bound for all subsets): the p-value is
            large because of what it conditions on. That happens mostly where a criterion has
            chosen, ``sigma`` is estimated and R² is high: a given ``sigma``, or a given size, tells
            more.

        Raises
        ------
        InputError
            The model was chosen by cross-validation, which the theory does not cover: fit
            ``SparseRidge(tau="bic")``, or choose columns on one half of the rows and test them on
            the other. Or rows have weights, coefficients have bounds, missing values were filled
            in, ``sigma`` cannot be estimated, the columns are not proved to be the best, or
            ``level`` or ``sigma`` is out of range.
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> random = np.random.default_rng(0)
        >>> X = random.standard_normal((60, 6))
        >>> y = X[:, 0] + random.standard_normal(60)
        >>> found = SparseRidge(tau="bic").fit(X, y).inference()
        >>> print(found.reset_index()[["column", "coef", "p_high", "low", "high"]].round(3))
          column   coef  p_high   low   high
        0     x0  1.021     0.0  0.78  1.263
        """
        with self._telling("the responses that select the same columns"):
            found = inference_of(self._kept_fit(), level, sigma, self._seconds())
        return self._answered("inference", found)

    def _answered(self, name: str, found: DataFrame) -> DataFrame:
        """Keep a frame that was asked for, which reports then show, and return a copy of it.

        name: The name of the method that was asked.
        """
        self._answers_ = (self._answers_ or {}) | {name: found}
        return found.copy()

    def compare(self) -> DataFrame:
        """Return what every rule chooses, from the same folds and the same grid.

        Returns
        -------
        pandas.DataFrame
            A row for each rule, under its name; rules that these folds or this method do not allow
            are left out. "tau", "gamma", "columns" (positions) and "names" say what a rule chooses,
            "cv_error" its CV error and "lower" and "upper" the bounds of it. "criterion" is the
            number that the rule minimises, "certified" says whether what ``claim_`` states of a fit
            by this rule is proved, and ``lambda_`` is the weight of the rule stability, NaN for the
            others. What other rules need besides is computed now. :class:`SparseRidge` holds
            nothing out, and has the size at which each criterion of ``criteria_`` is least among
            the models of ``path_``; "certified" then says whether each of these models is proved to
            be the best of its size at its γ, and CV errors and their bounds are NaN.

        Raises
        ------
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> found = SparseRidgeCV().fit(X, X[:, 0] + X[:, 1] ** 2).compare()
        >>> found.index.tolist()
        ['minimum', 'one-se', 'stability', 'corrected', 'projected']
        >>> found.loc["one-se", "columns"]
        [0]
        """
        with self._telling("what every rule chooses"):
            return comparison(self._kept_fit())

    def at_size(self, size: int) -> Any:
        """Return the model of another size; nothing is fitted again.

        Parameters
        ----------
        size : int
            One of ``path_["tau"]``, in the unit of ``tau_``.

        Returns
        -------
        SparseRidge
            Fitted: it has this size's coefficients, ``tau_``, ``gamma_`` and ``cv_error_``. With
            the rule projected, it is the projection of that size, and its objective is that of the
            projection.

        Raises
        ------
        InputError
            There is no such size.
        AttributeError
            The model was read from a file, or is itself the model of another size; or, of a
            :class:`SparseRidge`, the pickle was made before ``path_`` was asked for.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> y = X @ [3.0, 2.0, 1.0, 0.0]
        >>> SparseRidgeCV().fit(X, y).at_size(2).support_
        array([0, 1])
        """
        check_is_fitted(self)
        sizes = self._sizes_
        check_size(values_of(sizes, "tau"), size)
        (model,) = (one for one in sizes if one.tau == size)
        other: Any = self._of_size(model.tau, model.gamma)
        other._keep(model)
        other.gamma_, other.cv_error_ = model.gamma, model.cv_error
        other.status_ = "optimal" if model.proved else "not proved"
        # What describes the columns and the search is the same for all sizes.
        same = "n_nodes_", "n_features_in_", "feature_names_in_", "coef_names_", "levels_"
        for name in (*same, "_coding_", "_fills_", "_spreads_", "_offset_", "_counts_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    @cached_property
    def _sizes_(self) -> list[Model]:
        """The model of every size, by increasing size; a pickle keeps them once asked for.

        Raises AttributeError: They are not known yet, and the rows of the fit are not there.
        """
        return self._kept_fit().sizes

    def _of_size(self, tau: int, gamma: float) -> Any:
        """An estimator for the model of a size at a γ, with this one's other parameters."""
        return clone(self).set_params(tau=tau, gamma=gamma)
