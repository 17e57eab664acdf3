"""One training problem: min ||y − Xβ||² + (γ/2)||β||² s.t. ||β||₀ ≤ τ (eq. 1, first paper)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InputError
from ..kernels.fits import LEAST_SINGULAR_VALUE_OF_QUICK_FITS
from .column_rules import Constraints
from .constraints import UnitConstraints
from .rows import MAX_COLUMNS, NOTHING_LEFT_OF_YY, Rows, gram_root
from .subset_fit import (
    SubsetFit,
    augmented_triangle,
    independent_columns,
    inflation_factors,
    ridge_fit,
)

Array = NDArray[np.float64]
# The largest absolute value of a column and of y is 0, or lies between 1 over this number and this
# number. Sums of squares of up to a million rows then neither overflow nor lose digits.
SQUARABLE = 1e150


class Given(NamedTuple):
    """A copy of X and y as they were given, and the names of the columns of X or None."""

    X: Array
    y: Array
    names: list[str] | None


class SparseRidgeProblem:
    """Best-subset regression at one τ and gamma = 2 * alpha of scikit-learn's Ridge, no intercept.

    Parameters
    ----------
    X : array, shape (n, p)
        Design. Centre it beforehand if an intercept is wanted.
    y : array, shape (n,)
        Response.
    gamma : float
        gamma = 2 * alpha of scikit-learn's Ridge: the weight γ ≥ 0 of (γ/2)||β||². At γ = 0, or
        where γ is lost beside the columns, dependent columns have the coefficients of least norm.
    tau : int
        Largest support size, 1 ≤ τ ≤ p. With groups a support of size τ has τ groups.
    constraints : sparsecv.Constraints, optional
        Which columns are in every support or in none, enter together, or have bounds on their
        coefficients; by position, or by name where X is a data frame.

    Attributes
    ----------
    n, p : int
        Number of rows (None where matrices were given), and of columns.
    gamma, given_gamma : float
        The ridge weight that searches work with, and the one that was given; they differ where a γ
        of 0, or one that is lost beside the columns, is replaced by a tiny one.
    tau : int
        Largest support size: what the units of a support may count together, a column by default.
    constraints : UnitConstraints
        What is asked of the columns.
    data : Rows
        The rows of [X y], or a factor of them, which problems at another γ or τ share.
    given : Given or None
        What the problem was made from, for certificates; None where it was made in
        another way than from X and y.

    Raises
    ------
    ValueError
        Shapes that do not match, values that are not finite or cannot be squared, γ < 0 or τ out of
        range.
    InputError
        Columns that are unknown, constraints of another type or that no support of τ columns obeys,
        or X and y whose product is too small or too large; also a ValueError.

    Notes
    -----
    The data are held as [X y] or as a triangular factor of it, formed when first needed, so that
    the digits lost in forming XᵀX are kept where X itself is given.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=2.0, tau=2)
    >>> round(problem.objective([1, 2]), 6)
    7.5
    """

    given: Given | None

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        gamma: float,
        tau: int,
        constraints: Constraints | None = None,
    ) -> None:
        names = getattr(X, "columns", None)
        X = np.ascontiguousarray(X, dtype=np.float64)
        y = np.ascontiguousarray(y, dtype=np.float64)
        if X.ndim != 2 or y.shape != (X.shape[0],):
            raise ValueError(f"X must be (n, p) and y (n,); got {X.shape} and {y.shape}")
        if X.shape[0] < 1 or X.shape[1] < 1:
            raise ValueError(f"X needs at least one row and one column; got {X.shape}")
        rows = np.column_stack([X, y])
        largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
        if not np.isfinite(largest).all():
            raise ValueError("X and y must be finite: remove or impute NaN and infinite values")
        if not (constraints is None or isinstance(constraints, Constraints)):
            what = "constraints must be None or sparsecv.Constraints(include=..., ...)"
            raise InputError(f"{what}; got {constraints!r}")
        labels = None if names is None else [str(name) for name in names]
        for j in np.flatnonzero(
            (largest > SQUARABLE) | (largest > 0.0) & (largest < 1.0 / SQUARABLE)
        ):
            what = "y" if j == X.shape[1] else f"column {j if labels is None else labels[j]}"
            raise ValueError(f"{what} holds values too small or too large to square: rescale it")
        asked = (constraints or Constraints()).resolve(X.shape[1], labels)
        self._hold(Rows(rows), gamma, tau, asked.constraints)
        self.given = Given(rows[:, :-1], rows[:, -1], labels)

    def _hold(
        self, data: Rows, gamma: float, tau: int, constraints: UnitConstraints | None
    ) -> None:
        """Take data, and γ, τ and constraints once they are checked."""
        self.data, self.n, self.given = data, data.n, None
        self.p: int = data.X.shape[1]
        self.constraints = UnitConstraints.none(self.p) if constraints is None else constraints
        self.given_gamma = float(gamma)
        if not (self.given_gamma >= 0.0 and math.isfinite(self.given_gamma)):
            raise ValueError(f"gamma must be a finite number >= 0; got {gamma}")
        if data.out_of_range:
            raise InputError(
                "the columns or the response, times the roots of the weights, are too small or too "
                "large to be multiplied: rescale them"
            )
        self.gamma = max(self.given_gamma, 2.0 * (data.zero_share * data.longest) ** 2)
        whole = isinstance(tau, (int, np.integer)) and not isinstance(tau, bool)
        # In a fold that lacks a level the columns may be fewer than the coefficients that count.
        most = max(self.p, self.constraints.max_size)
        if not whole or not 1 <= tau <= most:
            raise ValueError(f"tau must be a whole number between 1 and p = {most}; got {tau!r}")
        self.tau = int(tau)
        self.constraints.checked_size(self.tau)
        self._last_fit: tuple[bytes, SubsetFit, Array] | None = None

    @classmethod
    def from_rows(
        cls,
        data: Rows,
        *,
        gamma: float = 1.0,
        tau: int | None = None,
        constraints: UnitConstraints | None = None,
    ) -> SparseRidgeProblem:
        """The problem of rows of [X y], which are not copied; ``given`` is None.

        Parameters
        ----------
        data : Rows
            Finite, which is not checked; nobody may change them.
        gamma : float
        tau : int, optional
            By default the least size that the constraints allow, which is 1 without constraints.
        constraints : UnitConstraints, optional

        Returns
        -------
        SparseRidgeProblem

        Raises
        ------
        ValueError
            γ, τ or the constraints as for the class, or products that are out of range.
        """
        if tau is None:
            tau = 1 if constraints is None else max(1, constraints.min_size)
        self = cls.__new__(cls)
        self._hold(data, gamma, tau, constraints)
        return self

    @classmethod
    def from_gram(
        cls,
        G: ArrayLike,
        b: ArrayLike,
        yy: float,
        *,
        gamma: float,
        tau: int,
        constraints: UnitConstraints | None = None,
    ) -> SparseRidgeProblem:
        """Build the problem from G = XᵀX (p, p), b = Xᵀy (p,) and yy = yᵀy.

        Parameters
        ----------
        G, b : arrays, shape (p, p) and (p,)
        yy, gamma : float
        tau : int
        constraints : UnitConstraints, optional

        Returns
        -------
        SparseRidgeProblem

        Raises
        ------
        ValueError
            Shapes, values, γ or τ as for the class, or a matrix [[G, b], [bᵀ, yy]] that is clearly
            not positive semidefinite, which no data have.
        """
        G = np.asarray(G, dtype=np.float64)
        b = np.asarray(b, dtype=np.float64)
        p = b.shape[0] if b.ndim == 1 else -1
        if G.shape != (p, p) or p < 1:
            raise ValueError(f"G must be (p, p) and b (p,); got {G.shape} and {b.shape}")
        joint = np.empty((p + 1, p + 1))
        joint[:p, :p] = 0.5 * (G + G.T)
        joint[:p, p] = joint[p, :p] = b
        joint[p, p] = yy
        if not np.isfinite(joint).all():
            raise ValueError("G, b and yy must be finite")
        self = cls.__new__(cls)
        root, error = gram_root(joint)
        data = Rows(root)
        data.n, data.gram = None, error
        self._hold(data, gamma, tau, constraints)
        return self

    def replace(self, *, gamma: float | None = None, tau: int | None = None) -> SparseRidgeProblem:
        """The problem at another γ or τ; both problems share the data and the constraints.

        Parameters
        ----------
        gamma : float, optional
            By default the γ that was given for this problem.
        tau : int, optional
            By default that of this problem.

        Returns
        -------
        SparseRidgeProblem
            The problem itself where neither number changes.

        Raises
        ------
        ValueError
            γ or τ as for the class.
        """
        made = self.from_rows(
            self.data,
            gamma=self.given_gamma if gamma is None else gamma,
            tau=self.tau if tau is None else tau,
            constraints=self.constraints,
        )
        made.given = self.given
        same = made.given_gamma == self.given_gamma and made.tau == self.tau
        return self if same else made  # The problem itself knows the fit that was asked for last.

    def unconstrained(self) -> SparseRidgeProblem:
        """A relaxation: the same data without constraints, with τ the most columns of a model.

        Returns
        -------
        SparseRidgeProblem
            The problem itself where it has no constraints.
        """
        if self.constraints.plain:
            return self
        most = self.constraints.most_columns(self.tau)
        return self.from_rows(self.data, gamma=self.given_gamma, tau=most)

    def at_unit_length(self) -> SparseRidgeProblem:
        """At γ = 0 the problem with columns of about length 1, of the same optima; else itself.

        Coefficients there are those here times the lengths that columns are divided by, and bounds
        on coefficients are multiplied likewise. Where columns of about one length are dependent and
        γ is tiny, the problem that is returned has the working γ that leaves bounds the most
        digits.

        Returns
        -------
        SparseRidgeProblem
        """
        if self.gamma >= 2.0 * (self.data.zero_share_of_dependent * self.data.longest) ** 2:
            return self
        lengths = np.sqrt(self.squared_lengths)
        lengths[lengths == 0.0] = lengths.max() or 1.0
        if lengths.max() <= 2.0 * lengths.min():
            lengths[:] = 1.0
        elif self.given_gamma > 0.0:
            return self
        lengths = np.exp2(np.round(np.log2(lengths)))  # Powers of 2 round no number of a column.
        scaled = self.data.scaled(lengths, self.constraints.atoms)
        if scaled is self.data:
            return self
        asked = self.constraints.scaled(lengths)
        return self.from_rows(scaled, gamma=self.given_gamma, tau=self.tau, constraints=asked)

    def predicting(self, coef: ArrayLike) -> SparseRidgeProblem:
        """The same columns, with the predictions Xβ of a model in place of y.

        Parameters
        ----------
        coef : array, shape (p,)
            β, in the units of this problem's columns.

        Returns
        -------
        SparseRidgeProblem
            Of the same τ and constraints; the γ that searches work with counts as its given γ.
        """
        data = self.data.predicting(np.asarray(coef))
        asked: dict[str, Any] = {"tau": self.tau, "constraints": self.constraints}
        return self.from_rows(data, gamma=self.gamma, **asked)

    def refuse_constraints(self, what: str) -> None:
        """Refuse a problem with constraints for a function that serves none.

        Parameters
        ----------
        what : str
            Words that name the function.

        Raises
        ------
        InputError
            The problem has constraints.
        """
        if not self.constraints.plain:
            asked = ", ".join(self.constraints.kinds)
            alone = ", and without text columns" * self.constraints.grouped
            raise InputError(
                f"{what} serves no constraints on columns ({asked}): go without{alone}"
            )

    @property
    def rows(self) -> Array:
        """The rows of [X y], or of a long table a triangular factor; shape (m, p + 1)."""
        return self.data.rows

    @property
    def triangle(self) -> Array:
        """A factor of [X y] with at most p + 1 rows: [X y] itself where it has no more.

        The factor is upper triangular only where [X y] had more rows, or is triangular itself.
        """
        return self.data.triangle

    def data_loss(self, upper: float, size: int | None = None, given_gamma: bool = False) -> float:
        """By how much the optimum of the given problem may lie below the optimum that is searched.

        A search that works with a larger γ than the given γ adds what :meth:`zero_loss` says.

        For a problem made by :meth:`from_gram` from a matrix J, the matrix root has
        rootᵀroot = J + E with |E_ij| ≤ η ℓ_iℓ_j, so that the objective of β is wrong by at most
        η·reach², reach = ℓ_y + Σ ℓ_i|β_i|. With ``data.gram`` come η, the least eigenvalue of J
        once its diagonal is scaled to 1, or less, and the ℓ². At the optimum neither (γ/2)|β|² nor
        that eigenvalue times ℓ_y² + Σ ℓ_i²β_i² exceeds the objective, which is at most ``upper``.
        Twice ``upper`` is taken, which covers the error of ``upper`` itself.

        Parameters
        ----------
        upper : float
            The objective of a support of this size; ∞ where none is known, and the matrix then adds
            nothing.
        size : int, optional
            What the support counts; by default τ. Without groups it has no more columns.
        given_gamma : bool
            Whether the search worked with the γ that was given.

        Returns
        -------
        float
            In units of the objective; ∞ where nothing bounds β.
        """
        added = 0.0 if given_gamma else self.zero_loss(upper)
        if self.data.gram is None or not upper < math.inf:
            return added
        off, least, squares = self.data.gram
        k = min(self.tau if size is None else size, self.p)
        if self.constraints.grouped:  # A size counts groups, of any number of columns.
            k = self.p
        longest = math.sqrt(float(np.sort(squares[: self.p])[self.p - k :].sum()))
        square = (math.sqrt(squares[self.p]) + self._summed(longest, upper)) ** 2
        if least > 0.0:
            square = min(square, (k + 1) * 2.0 * upper / least)
        # One per cent is more than rounding takes off these formulas.
        return added + float(1.01 * off * square)

    def data_losses(self, uppers: Array, sizes: Iterable[int], given_gamma: bool = False) -> Array:
        """:meth:`data_loss` for several objectives, each with the size of its support.

        Parameters
        ----------
        uppers : array, shape (m,)
        sizes : iterable of int
            m numbers.
        given_gamma : bool

        Returns
        -------
        ndarray, shape (m,)
        """
        if self.data.gram is None and self.gamma == self.given_gamma:
            return np.zeros(len(uppers))
        pairs = zip(uppers.tolist(), sizes, strict=True)
        return np.array([self.data_loss(upper, int(size), given_gamma) for upper, size in pairs])

    def _summed(self, length: float, upper: float) -> float:
        """A bound on Σ ℓ_i|β_i| where (γ/2)|β|² ≤ 2 upper and ``length`` is √(Σ ℓ_i²)."""
        if self.given_gamma == 0.0:
            return math.inf if length > 0.0 else 0.0
        return length * math.sqrt(4.0 * upper) / math.sqrt(self.given_gamma)

    def _reach(self) -> float:
        """A bound on the length of coefficients of optimal fits, at γ = 0 and columns of length 1.

        The bound is ∞ where nothing is known of dependent columns.
        Fits with bounds on their coefficients explain at most ‖Xβ‖ ≤ 2|y|, others at most |y|. A
        dependence between columns that have no bounds leaves the shortest fit no part along it.
        Along any other dependence β moves until a further coefficient is at a bound, so that the
        coefficients that are not are those of a set of atoms without such a dependence.
        """
        asked, length = self.constraints, math.sqrt(self.yy)
        least, _, full = self.data.unit.independence(asked.atoms)
        if least <= 0.0:
            return math.inf
        if not asked.bounded:
            return length / least
        at_bounds = 0.0
        if not full:
            ends = np.array([asked.lower, asked.upper])
            most = np.abs(np.where(np.isfinite(ends), ends, 0.0)).max(axis=0)
            at_bounds = float(most @ np.sqrt(self.squared_lengths))
        return (2.0 * length + at_bounds) / least + at_bounds

    def given_length(self, upper: float) -> float:
        """A bound on |β| of optimal fits at the given γ, whose objective is at most ``upper``.

        γ/2 |β|² is a part of the objective. Where searches work at a larger γ, and no columns are
        dependent up to rounding, ``_reach`` bounds β as well. At γ = 0 it alone does, as fits then
        leave out what depends on other columns. The bound is at most ``SQUARABLE``, which no data
        allow to be reached, so that products with it stay finite.
        """
        ridge = SQUARABLE
        if self.given_gamma > 0.0:
            ridge = min(ridge, math.sqrt(2.0 * max(upper, 0.0) / self.given_gamma))
        if self.gamma == self.given_gamma:
            return ridge
        lengths = self.squared_lengths
        shortest = float(lengths[lengths > 0.0].min(initial=self.data.longest**2))
        reach = min(self._reach() / math.sqrt(shortest), SQUARABLE)
        if self.given_gamma == 0.0:
            return reach
        return ridge if self.moved > 0.0 else min(ridge, reach)

    def added_at_given(self, upper: float) -> float:
        """What the working γ adds at most to the objective of an optimal fit at the given γ.

        upper: At least the objective of this fit at the given γ.
        """
        return 0.5 * (self.gamma - self.given_gamma) * self.given_length(upper) ** 2

    @property
    def moved(self) -> float:
        """By what columns of length 1 move until those that nearly depend on others do depend.

        That is a bound on the spectral norm of the change of all columns together.
        """
        return self.data.unit.independence(self.constraints.atoms).moved

    def longest_coefficients(self, stretch: float = 1.0) -> float:
        """A bound on |β| of optimal fits at the working γ, whatever rounding makes of the columns.

        Let E be all that rounding moves the columns by, η = |E|, t = γ/2, and β the best fit on
        the columns that are moved. Other coefficients within the bounds have the same predictions
        without E and the length q that :meth:`_reach` says. They are no better than β, so that
        t|β|² ≤ tq² + 2|y|η(q + |β|) + η²(q + |β|)². With 8η² ≤ t that gives
        |β| ≤ 2.2q + 3.5|y|η/t. That E lengthens predictions makes q at most 1.4 times as long, so
        that |β| ≤ 4(q + |y|η/t), with some to spare.

        stretch: What lengths of columns are multiplied by for what rounding moves them by.
        Returns: The bound; ∞ where nothing is known, or where no working γ replaces the given one.
        """
        data, reach = self.data, math.inf
        if self.gamma > self.given_gamma:
            reach = self._reach()
        if not math.isfinite(reach):
            return math.inf
        lengths, t = self.squared_lengths, self.gamma / 2.0
        shortest = float(lengths[lengths > 0.0].min(initial=data.longest**2))
        moved = self.moved * data.longest
        off = data.off * stretch * math.sqrt(data.sum_of_squares) + moved
        if 8.0 * off * off > t:
            return math.inf
        return 4.0 * (reach / math.sqrt(shortest) + math.sqrt(self.yy) * off / t)

    def zero_loss(self, upper: Any) -> Any:
        """How much lower the least objective on any columns may be at the given γ than at ours.

        Searches work at a γ of at least the given one. Coefficients β add at most
        (γ − given γ)/2 |β|², and ``_reach`` bounds β with the columns at length 1. Columns that
        are dependent up to rounding are moved by a matrix E until they are dependent; the norm of E
        is ``moved``. With β after that move, and w the part of y along E, the objective before the
        move is lower by at most 2|w||E||β| + |E|²|w|²/(γ/2), where |w|² is at most ``upper`` and γ
        is the given one. Fits take a tiny given γ for 0; there ``_reach`` bounds the coefficients
        before the move as well, which adds (|E||β|)² at most. The sum is raised by 1 %, more than
        rounding of these formulas takes.

        Parameters
        ----------
        upper : float or ndarray
            At least the least objective at the γ that searches work with.

        Returns
        -------
        float or ndarray
            In units of the objective: 0 where both γ are the same, ∞ where nothing bounds β.
        """
        if self.gamma == self.given_gamma:
            return 0.0
        lengths, reach = self.squared_lengths, self._reach()
        if reach == math.inf:
            return math.inf
        shortest = float(lengths[lengths > 0.0].min(initial=self.data.longest**2))
        added = 0.5 * (self.gamma - self.given_gamma) * reach * reach / shortest
        moved = self.moved
        off = moved * reach
        if off == 0.0:
            return 1.01 * added
        if self.given_gamma > 0.0:
            moved *= self.data.longest
            added += upper * moved * moved / (self.given_gamma / 2.0)
        return 1.01 * (added + 2.0 * off * np.sqrt(upper) + off * off)

    @property
    def G(self) -> Array:
        """XᵀX, shape (p, p)."""
        head = self.rows[:, : self.p]
        return np.asarray(head.T @ head)

    @property
    def b(self) -> Array:
        """Xᵀy, shape (p,)."""
        return np.asarray(self.data.y @ self.data.X)

    @property
    def squared_lengths(self) -> Array:
        """Squared lengths of the columns of X, shape (p,)."""
        return self.data.squares

    @property
    def yy(self) -> float:
        """Squared length of y."""
        return self.data.yy

    @property
    def nothing_left(self) -> float:
        """An objective up to which nothing is left to prove: rounding alone keeps it from 0."""
        return NOTHING_LEFT_OF_YY * self.yy

    @property
    def rank_bound(self) -> int:
        """An upper bound on the rank of X: the number of rows, where it is known, and at most p."""
        return int(min(self.rows.shape[0] if self.n is None else self.n, self.p))

    def factor(self, columns: ArrayLike | None = None, gamma: float | None = None) -> Array:
        """Upper triangular R with RᵀR = [[XᵀX + γ/2 I, Xᵀy], [yᵀX, yᵀy]] on some columns of X.

        Parameters
        ----------
        columns : array of int, shape (s,), optional
            Different columns, in any order; by default all p columns, in their order.
        gamma : float, optional
            By default the γ that searches work with.

        Returns
        -------
        ndarray, shape (s + 1, s + 1)

        Raises
        ------
        InputError
            ``columns`` are not different whole numbers in 0..p−1.
        """
        chosen = np.arange(self.p) if columns is None else different_columns(self.p, columns)
        return augmented_triangle(self.data, chosen, (self.gamma if gamma is None else gamma) / 2.0)

    def holds_tree(self) -> bool:
        """Whether the matrices of a tree of all sizes have room."""
        if self.constraints.plain:
            return self.data.active.size <= MAX_COLUMNS
        # One matrix of p × p numbers for each unit: 500 MB at most.
        return 8.0 * (self.constraints.n_units + 1.0) * self.p**2 <= 5e8

    def sure_factor(self, columns: NDArray[np.intp]) -> tuple[Array, Array, bool]:
        """The :meth:`factor` at the given γ, and whether its columns are surely independent.

        Returns: The factor, the variance inflation factors of its columns, and the answer.
        """
        R = self.factor(columns, self.given_gamma)
        inflation = inflation_factors(R[:-1, :-1])
        return R, inflation, independent_columns(inflation, LEAST_SINGULAR_VALUE_OF_QUICK_FITS)

    def fit(self, support: ArrayLike) -> SubsetFit:
        """Ridge fit at the given γ on ``support``; ``coef`` has the order of ``support``.

        The fit is computed by QR of [X_S; √(γ/2) I] and not from the Gram matrix. All objectives
        and coefficients that are reported come from this function. Coefficients are within their
        bounds; τ and the other constraints are not looked at.

        Parameters
        ----------
        support : array of int
            Different columns in 0..p−1, in any order; none is a support, too.

        Returns
        -------
        SubsetFit

        Raises
        ------
        InputError
            ``support`` lists something else, or a column twice.
        """
        return self.fit_and_factor(support)[0]

    def fit_and_factor(self, support: ArrayLike) -> tuple[SubsetFit, Array]:
        """What :meth:`fit` gives, and the :meth:`factor` at the given γ that it comes from."""
        columns = different_columns(self.p, support)
        if columns.size == 0:
            return SubsetFit(np.empty(0), self.yy, 0.0), np.full((1, 1), math.sqrt(self.yy))
        key = columns.tobytes()
        known = self._last_fit  # Callers often ask for the objective and then the coefficients.
        if known is not None and known[0] == key:
            return known[1:]
        ridge, asked = self.given_gamma / 2.0, self.constraints
        bounds = (asked.lower[columns], asked.upper[columns]) if asked.bounded else None
        R = augmented_triangle(self.data, columns, ridge)
        fit = ridge_fit(self.data, columns, ridge, R, bounds)
        self._last_fit = (key, fit, R)
        return fit, R

    def objective(self, support: ArrayLike) -> float:
        """f_S(γ): the least objective at the given γ over coefficients that are 0 off ``support``.

        Parameters
        ----------
        support : array of int
            Different columns in 0..p−1, as :meth:`fit` takes them.

        Returns
        -------
        float

        Raises
        ------
        InputError
            ``support`` lists something else, or a column twice.
        """
        return self.fit(support).objective

    def by_units(self) -> SparseRidgeProblem:
        """The problem with sizes that count units, its τ the least; itself where they do already.

        Returns
        -------
        SparseRidgeProblem
        """
        rules = self.constraints
        if not rules.weighted:
            return self
        return self.from_rows(self.data, gamma=self.given_gamma, constraints=rules.by_units)

    def __repr__(self) -> str:
        return f"SparseRidgeProblem(p={self.p}, gamma={self.gamma:g}, tau={self.tau})"


def checked_sizes(problem: SparseRidgeProblem, sizes: ArrayLike | None) -> NDArray[np.intp]:
    """The wanted support sizes, increasing and distinct.

    sizes: By default all from 1, or from what the included columns count, to τ.
    Raises ValueError: No sizes, sizes that are not whole numbers, a size outside 1..p, or a size
        that the constraints do not allow.
    """
    least = max(1, problem.constraints.min_size)
    given = np.arange(least, problem.tau + 1) if sizes is None else np.asarray(sizes)
    most = max(problem.p, problem.constraints.max_size)
    if given.size == 0 or not _whole_numbers(given, 1, most):
        raise ValueError(
            f"sizes must be whole numbers between 1 and p = {most}; got {given.tolist()}"
        )
    for size in (given.min(), given.max()):
        problem.constraints.checked_size(int(size))
    return np.unique(given).astype(np.intp)


def checked_support(p: int, support: ArrayLike) -> NDArray[np.intp]:
    """The columns of a warm start, increasing and distinct; a column may be named twice.

    Raises ValueError: Columns that are not whole numbers, or a column outside 0..p−1.
    """
    given = np.asarray(support).ravel()
    if given.size and not _whole_numbers(given, 0, p - 1):
        raise ValueError(f"a warm start must list columns in 0..{p - 1}; got {given.tolist()}")
    return np.unique(given).astype(np.intp)


def different_columns(p: int, support: ArrayLike) -> NDArray[np.intp]:
    """The columns of a support in the order given, which may be none.

    Raises InputError: They are not different whole numbers in 0..p−1.
    """
    given = np.asarray(support).ravel()
    if not (listed := given.tolist()):
        return np.empty(0, dtype=np.intp)
    whole = given.dtype.kind in "iu" and min(listed) >= 0 and max(listed) < p
    if not whole or len(set(listed)) < len(listed):
        raise InputError(f"a support must list different columns in 0..{p - 1}; got {listed}")
    return given.astype(np.intp)


def _whole_numbers(given: NDArray[Any], low: int, high: int) -> bool:
    """Whether all of at least one number are whole and between two others."""
    whole = np.issubdtype(given.dtype, np.integer)
    return bool(whole and low <= given.min() and given.max() <= high)
