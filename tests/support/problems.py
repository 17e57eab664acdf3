"""Random training problems, plain and ugly: the one place where tests make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from sparsecv.solvers import Answer, SparseRidgeProblem, solve

from .brute_force import Data
from .inside import Limits, SupportGrower

Array = NDArray[np.float64]
Support = NDArray[np.intp]
# Share of the ugly problems that have γ = 0.
ZERO_GAMMA = 0.25


def keeps_digits(data: Data) -> bool:
    """Whether γ is so large that every tree proves what it finds, however dependent columns are."""
    return data.gamma >= 1e-16 * float(np.square(data.X).sum())


def problem_of(data: Data, tau: int | None = None) -> SparseRidgeProblem:
    """The training problem of some data, at τ = p where no size is named."""
    X, y, gamma = data
    return SparseRidgeProblem(X, y, gamma=gamma, tau=X.shape[1] if tau is None else tau)


def grown(
    problem: SparseRidgeProblem, sizes: Iterable[int], starts: Sequence[Support] = ()
) -> dict[int, Support]:
    """Good supports of several sizes at the problem's γ."""
    return SupportGrower(problem, sizes, starts).at(problem.gamma, starts, Limits())


def regression(
    n: int,
    p: int,
    coef: Mapping[int, float] | Sequence[float],
    *,
    seed: int = 0,
    offset: float = 0.0,
    noise: float = 1.0,
    shared: float = 0.0,
) -> tuple[Array, Array]:
    """Normal columns, and y, the sum of weighted columns and noise.

    coef: Weights by column, or those of the first columns.
    offset: What is added to every column.
    shared: How often one normal column is added to every column, which correlates them.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + offset
    if shared:
        X += shared * rng.standard_normal((n, 1))
    weights = coef if isinstance(coef, Mapping) else dict(enumerate(coef))
    y = np.sum([weight * X[:, j] for j, weight in weights.items()], axis=0)
    return X, y + noise * rng.standard_normal(n)


def three_matter(n: int = 40, p: int = 6, seed: int = 0) -> tuple[Array, Array]:
    return regression(n, p, {0: 1.0, 1: -1.0, 2: 0.4}, seed=seed, offset=2.0, noise=1.5)


def scaled(X: Array, y: Array) -> tuple[Array, Array]:
    return (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()


def alike(rng: np.random.Generator, n: int = 120, p: int = 60) -> Array:
    """Columns of which each is like the one before."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.7 * X[:, j - 1] + 0.7 * X[:, j]
    return X


def many_alike(noise: float, p: int = 60) -> tuple[Array, Array]:
    """120 rows, every fourth column in use: with noise 1 proved at once, with 2 or 8 not soon."""
    rng = np.random.default_rng(1)
    X = alike(rng, p=p)
    return X, X[:, ::4].sum(axis=1) + noise * rng.standard_normal(120)


def plain(seed: int, n: int, p: int, gamma: float = 1.0, noise: float = 0.5) -> Data:
    """Correlated Gaussian columns, a third of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    signal = np.where(np.arange(p) % 3 == 0, 1.0, 0.0) * rng.standard_normal(p)
    return Data(X, X @ signal + noise * rng.standard_normal(n), gamma)


def ugly_data(rng: np.random.Generator, most: int = 7) -> Data:
    """A few columns, collinear, duplicated, offset, of any scale; y anything."""
    n, p = int(rng.integers(2, 14)), int(rng.integers(2, most + 1))
    X = rng.normal(size=(n, p))
    flaw, zero = int(rng.integers(7)), bool(rng.random() < ZERO_GAMMA)
    if flaw == 1:
        X[:, 1] = X[:, 0]
    elif flaw == 2:
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-11 if zero else -9, -3) * rng.normal(size=n)
    elif flaw == 3:
        X = X + 10.0 ** rng.uniform(1, 6)
    elif flaw == 4:
        X = X * 10.0 ** rng.uniform(-5, 5, size=p)
    elif flaw == 5:
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
    y = rng.normal(size=n) if rng.random() < 0.5 else X @ rng.normal(size=p)
    if rng.random() < 0.3:
        y = X[:, 0] * rng.normal() + 10.0 ** rng.uniform(-9, -2) * rng.normal(size=n)
    length = float(np.square(X).sum(axis=0).max()) or 1.0
    gamma = length * 10.0 ** rng.uniform(-8, 8 if rng.random() < 0.2 else 1)
    return Data(X, y, 0.0 if zero else gamma)


@st.composite
def ugly(
    draw: st.DrawFn,
    max_columns: int = 5,
    max_rows: int = 7,
    mild: bool = False,
    zero: bool = True,
) -> Data:
    """Small problems with everything that goes wrong in data.

    mild: Whether problems stay well conditioned. zero: Whether some have γ = 0.
    """
    p = draw(st.integers(1, max_columns), label="p")
    n = draw(st.integers(1, max_rows), label="n")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    if draw(st.booleans(), label="whole numbers"):
        X = rng.integers(-2, 3, (n, p)).astype(float)
    else:
        X = rng.standard_normal((n, p))
    no_ridge = bool(zero and rng.random() < ZERO_GAMMA)
    flaws = ["duplicate", "negated", "sum", "zero", "all equal"]
    flaws += [] if mild else ["near 1e-6", "near 1e-10", "scales"]
    chosen = draw(st.lists(st.sampled_from(flaws), max_size=3), label="flaws")
    for flaw in chosen:
        a, b, c = rng.integers(0, p, 3)
        if flaw == "duplicate":
            X[:, a] = X[:, b]
        elif flaw == "negated" and a != b:
            X[:, a] = -X[:, b]
        elif flaw == "sum":
            X[:, a] = X[:, b] + X[:, c]
        elif flaw == "zero":
            X[:, a] = 0.0
        elif flaw == "all equal":
            X[:] = X[:, :1]
        elif flaw.startswith("near"):
            X[:, a] = X[:, b] + float(flaw[5:]) * rng.standard_normal(n)
    kind = draw(st.sampled_from(["noise", "whole", "span", "whole span", "zero"]), label="y")
    if kind == "noise":
        y = X @ rng.standard_normal(p) + rng.standard_normal(n)
    elif kind == "whole":
        y = rng.integers(-2, 3, n).astype(float)
    elif kind == "span":
        y = X @ rng.standard_normal(p)
    elif kind == "whole span":
        y = X @ rng.integers(-2, 3, p).astype(float)
    else:
        y = np.zeros(n)
    if "scales" in chosen:
        X = X * 10.0 ** rng.uniform(-6.0, 6.0, p)
    if draw(st.booleans(), label="centred") and n > 1:
        X, y = X - X.mean(axis=0), y - y.mean()
    low, high = (-3.0, 3.0) if mild else (-8.0, 8.0)
    exponent = draw(st.floats(low, high), label="log10 γ")
    gamma = 0.0 if no_ridge else float(10.0**exponent)
    return Data(np.ascontiguousarray(X), y, gamma)


def ugly_problem(seed: int, most_columns: int = 10, zero: bool = True) -> SparseRidgeProblem:
    """A random problem; ``zero`` says whether some have γ = 0."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 25)), int(rng.integers(2, most_columns + 1))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    kind = int(rng.integers(6))
    if kind == 1:
        X = X @ (np.eye(p) + rng.normal(size=(p, p)))
    elif kind == 2 and p > 2:
        X[:, 1], X[:, 2] = X[:, 0], -X[:, 0]
    elif kind == 3:
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
        y = rng.integers(-3, 4, size=n).astype(float)
    elif kind == 4 and p > 2:
        X[:, 1], X[:, 2] = X[:, 0] + 1e-6 * rng.normal(size=n), 0.0
    elif kind == 5:
        X = X * 10.0 ** rng.uniform(-3, 3, size=p)
    gamma = 10.0 ** rng.uniform(-6, 5)
    gamma = 0.0 if zero and rng.random() < ZERO_GAMMA else gamma
    return SparseRidgeProblem(X, y, gamma=gamma, tau=int(rng.integers(1, p + 1)))


def gram_of(data: Data, tau: int | None = None) -> SparseRidgeProblem:
    """The problem of :func:`problem_of`, of which only the moments are known."""
    X, y, gamma = data
    size = X.shape[1] if tau is None else tau
    return SparseRidgeProblem.from_gram(X.T @ X, X.T @ y, float(y @ y), gamma=gamma, tau=size)


def pure_noise(seed: int, n: int, p: int, gamma: float) -> Data:
    """Columns that say nothing of y: searches have much to do."""
    rng = np.random.default_rng(seed)
    return Data(rng.standard_normal((n, p)), rng.standard_normal(n), gamma)


def hard() -> tuple[SparseRidgeProblem, Answer]:
    """A problem that its relaxation does not solve, and its solution."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 12))
    problem = SparseRidgeProblem(X, rng.standard_normal(40), gamma=0.1, tau=4)
    return problem, solve(problem, tol=0.0)


def few_digits(rng: np.random.Generator, n: int, p: int) -> tuple[Array, Array]:
    """Columns far from 0, constant, equal, sums of others or next to others; equal rows.

    All numbers have few digits, so that sums of columns are exact.
    """
    X, noise = np.round(2.0**10 * rng.standard_normal((2, n, p))) / 2.0**10
    for j in range(1, p):
        kind, a, b = int(rng.integers(12)), *rng.integers(j, size=2).tolist()
        if kind == 0:
            X[:, j] = X[:, a]
        elif kind == 1:
            X[:, j] = X[:, a] + X[:, b]
        elif kind in (2, 3):
            X[:, j] = X[:, a] + 2.0 ** -int(rng.integers(20)) * noise[:, j]
        elif kind == 4:
            X[:, j] = X[0, j]
    if rng.random() < 0.2:
        X[-1] = X[0]
    y = X[:, 0] + np.round(2.0**10 * rng.standard_normal(n)) / 2.0**10
    X += np.round(10.0 ** rng.uniform(0, 5)) * (rng.random(p) < 0.2)
    return X * 2.0 ** (rng.integers(-6, 7, size=p) * (rng.random(p) < 0.3)), y
