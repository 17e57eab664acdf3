"""What the columns of a fitted model hang on: single rows, several rows, the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..report.questions import influence_of_rows, partitions_of_rows, removals_of_rows
from ..solvers.core.limits import Limits
from .answers import ModelAnswers
from .validation import checked_count

if TYPE_CHECKING:
    from pandas import DataFrame


class ModelRobustness(ModelAnswers):
    """Tells what the columns of a fit hang on; summaries and reports have what was asked for.

    :meth:`near_best` says whether other columns do as well on the same rows.
    """

    def row_influence(self) -> DataFrame:
        """Return, for every row, which columns are the best without the row.

        Without a row means what a fit to the other rows finds, of the same number of columns at the
        same γ, with its own intercept and scale; by a criterion, of the size that is best without
        the row. Where rows were fitted in groups
        (``SparseRidgeCV.fit(..., groups=...)``), groups take the place of rows.

        Returns
        -------
        pandas.DataFrame
            A line for each row, under its position, or for each group, under its label. "stays"
            is False where other columns are known to be better, or exactly as good and those that a
            fit to the other rows has; "columns" (positions) and "names" are the best that are
            known. "lead" is the share of its own objective by which
            the model's columns are ahead of the best other columns, at least; below 0 the others
            are better by that share. It is NaN where the second best was not searched for. "proved"
            says whether a search has ruled out every better set of columns; it has not where
            ``time_limit`` was reached.

        Raises
        ------
        InputError
            The columns are a projection of an average, as the default rule of
            :class:`SparseRidgeCV` chooses them, so that no row decides which are best for y; or the
            rows are not in memory; or one group has all of them.
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.random.default_rng(0).standard_normal((40, 4))
        >>> y = X[:, 0] + 0.1 * X[:, 1]
        >>> y[7] += 5.0 * X[7, 2]
        >>> found = SparseRidge(tau=2).fit(X, y).row_influence()
        >>> found.loc[~found["stays"], "columns"].to_dict()
        {7: [0, 1]}
        """
        with self._telling("the best columns without each row"):
            found = influence_of_rows(self._kept_fit(), Limits(self._seconds()))
        return self._answered("row_influence", found)

    def row_removals(self, most: int = 10) -> DataFrame:
        """Return how many rows may be removed before other columns are the best.

        A bound, and a tree over the rows where the bound does not suffice, prove that the columns
        stay, as far as they reach. Rows that change the columns are looked for one after the other.
        Rows are removed one by one also where they were fitted in groups.

        Parameters
        ----------
        most : int
            The largest number of rows that are removed.

        Returns
        -------
        pandas.DataFrame
            A line for each number of rows. "stays" is True where it is proved that the columns are
            the best whichever rows are removed, up to so many; False where an example of as many
            rows, or fewer, changes the columns; and None where neither is known. ``attrs`` has the
            "rows" of the example, and the "columns" (positions) and "names" of the best columns
            known without them. Of a size that a criterion has chosen, this is about the best
            columns of that size.

        Raises
        ------
        InputError
            ``most`` is no whole number >= 1; the model has no columns; the columns are a projection
            of an average; or the rows are not in memory.
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidge
        >>> X = np.random.default_rng(0).standard_normal((60, 4))
        >>> y = X[:, 0] + X[:, 1] + np.random.default_rng(1).standard_normal(60)
        >>> SparseRidge(tau=2).fit(X, y).row_removals(2)["stays"].tolist()
        [True, True]
        """
        most = checked_count(most, "most")
        with self._telling("the best columns without several rows"):
            found = removals_of_rows(self._kept_fit(), most, Limits(self._seconds()))
        return self._answered("row_removals", found)

    def partitions(self, n: int = 20) -> DataFrame:
        """Return how often each feature is chosen when the rows are divided into other folds.

        Parameters
        ----------
        n : int
            How many other partitions of the rows are drawn. The choice on each is an estimate:
            nothing is proved, which takes a small part of the time of the fit.

        Returns
        -------
        pandas.DataFrame
            A line for each feature, under its name: "selected" says whether the model has it, and a
            column for each rule, first that of the fit, has the share of partitions on which the
            rule chooses it. The rule "stability" minimises the CV error plus λ times the
            instability of the models. ``attrs["same"]`` is the share of partitions on which the
            rule of the fit chooses exactly the columns of the model, and ``attrs["sizes"]`` has how
            many features it chooses on each.

        Raises
        ------
        InputError
            ``n`` is no whole number >= 1, or the fit has no folds that can be drawn again.
        AttributeError
            The model has no rows: it comes from a file, a pickle or :meth:`at_size`.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsecv import SparseRidgeCV
        >>> X = np.random.default_rng(0).standard_normal((40, 3))
        >>> y = X[:, 0] + 0.1 * X[:, 1] ** 2
        >>> SparseRidgeCV().fit(X, y).partitions(3)["projected"].tolist()
        [1.0, 1.0, 0.0]
        """
        n = checked_count(n, "n")
        with self._telling(f"the choices on {n} other partitions into folds"):
            found = partitions_of_rows(self._kept_fit(), n)
        return self._answered("partitions", found)
