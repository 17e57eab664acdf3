"""What a fitted model tells: coefficients, every size, other subsets and rules, as data frames."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..design.model import Model, values_of
from ..errors import InputError
from ..report.frames import coefficients_frame, path_frame
from ..report.outcome import alternatives_of_sizes, comparison, criteria_of_sizes
from ..selection.study import check_size
from .base import SparseLinearModel

if TYPE_CHECKING:
    from pandas import DataFrame


class ModelAnswers(SparseLinearModel):
    """Tells of a fit.

    What is told of other sizes, subsets and rules is computed when first asked for. The fitted
    estimator keeps its rows for that, and a pickle leaves them out.
    """

    # What :meth:`alternatives` was asked for last, and what it has found.
    _ranked_: tuple[int, DataFrame] | None = None

    def coefficients(self) -> DataFrame:
        """Return the coefficients of the model, those of the largest effects first.

        Returns
        -------
        pandas.DataFrame
            A row for each column of the model, under its name. "position" counts the columns of
            ``coef_``, and "coef" is in the units of X and y. "effect" is the coefficient times the
            standard deviation of its column, and "standardised" is the effect divided by the
            standard deviation of y. Both are NaN for a model from a file, which has no standard
            deviations.

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
        return path_frame(self._sizes_, self._labels(self.coef_.size))

    @cached_property
    def criteria_(self) -> DataFrame:
        """AIC, BIC, EBIC and Mallows' Cp of every size; see the class."""
        return criteria_of_sizes(self._fit())

    def alternatives(self, n: int = 5) -> DataFrame:
        """Return the n best subsets of every size, by size and then in order of objective.

        Parameters
        ----------
        n : int
            How many subsets of each size.

        Returns
        -------
        pandas.DataFrame
            A row for every subset: "tau", "rank" (1 is the best), "gamma", "columns" (positions),
            "names", "objective", "cv_error", "std_error" and "proved" (every other subset of this
            size with a smaller objective at this γ is listed before it). Where the search
            has taken ``time_limit`` (60 s where that is None), it ends, and good subsets stand
            there that are not proved, and beyond 168 columns those known besides. The CV errors of
            :class:`SparseRidgeCV` are those of the same columns fitted in every fold. The columns
            were found with all rows, the held-out ones too, so that these errors are mostly below
            those of ``path_``, whose folds search for columns of their own. :class:`SparseRidge`
            holds nothing out, and has NaN.

        Raises
        ------
        InputError
            ``n`` is no whole number >= 1.
        AttributeError
            The model has no rows any more.

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
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise InputError(f"n must be a whole number >= 1; got {n!r}")
        if self._ranked_ is None or self._ranked_[0] != n:
            limit = None if self.time_limit is None else float(self.time_limit)
            self._ranked_ = int(n), alternatives_of_sizes(self._fit(), int(n), limit)
        return self._ranked_[1].copy()

    def compare(self) -> DataFrame:
        """Return what every rule chooses, from the same folds and the same grid.

        Returns
        -------
        pandas.DataFrame
            A row for each rule, under its name; rules that these folds or this method do not allow
            are left out. "tau", "gamma", "columns" (positions) and "names" say what a rule chooses,
            "cv_error" its CV error and "lower" and "upper" the bounds of it. "criterion" is the
            number that the rule minimises, "certified" says whether no pair that was evaluated is
            better by the rule, and ``lambda_`` is the weight of the rule stability. What other
            rules need besides is computed now. :class:`SparseRidge` holds nothing out, and has the
            size at which each criterion of ``criteria_`` is least; CV errors and their bounds are
            NaN.

        Raises
        ------
        AttributeError
            The model has no rows any more.

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
        return comparison(self._fit())

    def at_size(self, size: int) -> Any:
        """Return the model of another size; nothing is fitted again.

        Parameters
        ----------
        size : int
            One of ``path_["tau"]``.

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
            The model was read from a file, or from a pickle made before ``path_`` was asked for.

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
        same = "n_nodes_", "n_features_in_", "feature_names_in_"
        for name in (*same, "_coding_", "coef_names_", "levels_", "_fills_", "_spreads_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    @cached_property
    def _sizes_(self) -> list[Model]:
        return self._fit().sizes

    @abstractmethod
    def _of_size(self, tau: int, gamma: float) -> SparseLinearModel:
        """An estimator for a model of another size, not yet fitted."""
