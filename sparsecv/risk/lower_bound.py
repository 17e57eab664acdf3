"""A learner whose K-fold error does not converge to the risk: Theorem 4.1 of [C].

[C] denotes "Consistent Cross-Validation with Stable Learners". With t training rows the learner
predicts λ·S_min(m, t) at the grid point with index m, where S_m = 1 + 1/2 + … + 1/m. The
predictions change with t at every t, by at most 3λ/t, and a K-fold estimate evaluates only models
of (K−1)n/K training rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..selection.partial_errors import Array, Index


@dataclass(frozen=True)
class LowerBoundExample:
    """X uniform on n points x_m = M·S_m, S_m = 1 + 1/2 + … + 1/m, and y = x ± ε.

    Attributes
    ----------
    n : int
        Number of grid points, and of rows in a sample.
    M, stability : float
        The theorem's numbers M ≥ log n and λ, 0 ≤ λ ≤ M/2.
    noise : float
        The theorem's number ε < λ/n.
    """

    n: int
    M: float
    stability: float
    noise: float

    @property
    def sums(self) -> Array:
        """S_1, …, S_n, with S_m = 1 + 1/2 + … + 1/m."""
        return np.cumsum(1.0 / np.arange(1, self.n + 1))

    @property
    def targets(self) -> Array:
        """The response y at every grid point, shape (n,)."""
        sign = np.where(np.arange(1, self.n + 1) <= self.n // 2, 1.0, -1.0)
        return np.asarray(self.M * self.sums + self.noise * sign)

    def draw(self, rng: np.random.Generator) -> Index:
        """Draw n rows; a row is the index of its grid point, from 0 to n − 1."""
        return rng.integers(0, self.n, size=self.n)

    def predictions(self, training: Index) -> Array:
        """The predictions λ·S_min(m, t) + ε·sign(median(T) − x_m) at every grid point m.

        training: Indices of the grid points of the t training rows T.
        """
        t = training.size
        first = np.minimum(np.arange(1, self.n + 1), t)
        x = self.M * self.sums
        median = np.median(x[training])
        return np.asarray(self.stability * self.sums[first - 1] + self.noise * np.sign(median - x))

    def losses(self, training: Index) -> Array:
        """|prediction − y| at every grid point, after training on rows with these grid points."""
        return np.abs(self.predictions(training) - self.targets)

    def risk(self, training: Index) -> float:
        """The mean loss over all grid points, which are equally likely: the true risk."""
        return float(self.losses(training).mean())

    def k_fold_error(self, rows: Index, k: int) -> float:
        """The K-fold estimate, with folds of consecutive rows, as rows are drawn independently.

        Raises InputError: k does not divide the number of rows.
        """
        if rows.size % k:
            raise InputError(f"{k} does not divide {rows.size} rows")
        held = np.array_split(np.arange(rows.size), k)
        errors = [self.losses(np.delete(rows, fold))[rows[fold]].mean() for fold in held]
        return float(np.mean(errors))


def lower_bound_example(n: int, stability: float, M: float | None = None) -> LowerBoundExample:
    """Build the example of Theorem 4.1.

    Parameters
    ----------
    n : int
        Number of rows and of grid points.
    stability : float
        The number λ, 0 ≤ λ ≤ M/2.
    M : float, optional
        A number of at least log n; the larger of log n and 2λ by default.

    Returns
    -------
    LowerBoundExample

    Raises
    ------
    InputError
        The theorem does not allow the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.risk import lower_bound_example
    >>> example = lower_bound_example(100, 1.0)
    >>> example.draw(np.random.default_rng(0)).shape
    (100,)
    """
    if n < 2:
        raise InputError(f"n must be at least 2; got {n}")
    least = float(np.log(n))
    M = max(least, 2.0 * stability) if M is None else float(M)
    if least > M or not 0.0 <= stability <= M / 2.0:
        raise InputError(f"the theorem needs M >= log n = {least:.4g} and 0 <= lambda <= M/2")
    return LowerBoundExample(n, M, float(stability), 0.5 * stability / n)
