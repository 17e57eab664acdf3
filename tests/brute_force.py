"""Best-subset ridge by enumeration, in floating point and in exact rational arithmetic.

Shares no code with the package. Also the data sets, plain and ugly, the solvers are tried on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[np.float64]
Support = tuple[int, ...]
EPS = float(np.finfo(np.float64).eps)


class Data(NamedTuple):
    """One training problem."""

    X: Array
    y: Array
    gamma: float


class Size(NamedTuple):
    """Every support of one size, in lexicographic order, with its two values."""

    supports: list[Support]
    objective: Array
    gain: Array

    @property
    def least(self) -> float:
        return float(self.objective.min())

    def of(self, support: Iterable[Any]) -> tuple[float, float]:
        """Objective and gain of one support."""
        place = self.supports.index(tuple(int(j) for j in support))
        return float(self.objective[place]), float(self.gain[place])

    def best(self, relative: float = 0.0) -> list[Support]:
        """Supports within ``relative`` of the least objective."""
        near = self.objective <= self.least * (1.0 + relative)
        return [self.supports[t] for t in np.flatnonzero(near)]


def ridge(X: Array, y: Array, gamma: float) -> Array:
    """Coefficients by least squares on the system with √(γ/2) I appended."""
    p = X.shape[1]
    stacked = np.vstack([X, math.sqrt(gamma / 2.0) * np.eye(p)])
    return np.asarray(np.linalg.lstsq(stacked, np.append(y, np.zeros(p)), rcond=None)[0])


def value(X: Array, y: Array, gamma: float, beta: Array) -> float:
    """||y − Xβ||² + (γ/2)||β||²."""
    residual = y - X @ beta
    return float(residual @ residual + gamma / 2.0 * (beta @ beta))


def enumerate_size(data: Data, s: int) -> Size:
    """All supports of size s, by one QR factorisation each (batched)."""
    X, y, gamma = data
    n, p = X.shape
    supports = list(combinations(range(p), s))
    index = np.array(supports, dtype=np.intp).reshape(len(supports), s)
    stacked = np.zeros((len(supports), n + s, s + 1))
    heavy = gamma / 2.0 > np.square(X).sum(axis=0).max()  # heavy rows first keep light rows' digits
    top, penalty = (s, 0) if heavy else (0, n)
    stacked[:, top : top + n, :s] = X.T[index].transpose(0, 2, 1)
    stacked[:, top : top + n, s] = y
    stacked[:, penalty + np.arange(s), np.arange(s)] = math.sqrt(gamma / 2.0)
    R: Array = np.linalg.qr(stacked, mode="r")
    return Size(supports, R[:, s, s] ** 2, np.square(R[:, :s, s]).sum(axis=1))


def enumerate_all(data: Data) -> dict[int, Size]:
    """Every size 1..p."""
    return {s: enumerate_size(data, s) for s in range(1, data.X.shape[1] + 1)}


def exact_objectives(
    data: Data, deleted: tuple[Array, float] | None = None
) -> dict[Support, Fraction]:
    """Objective of every support, without any rounding; ``deleted`` = (z, t) takes a row out."""
    X, y, gamma = data
    p = X.shape[1]
    joint = [[Fraction(float(v)) for v in row] for row in np.column_stack([X, y])]
    M = [
        [sum((row[a] * row[b] for row in joint), Fraction(0)) for b in range(p + 1)]
        for a in range(p + 1)
    ]
    if deleted is not None:
        z = [Fraction(float(v)) for v in (*deleted[0], deleted[1])]
        M = [[M[a][b] - z[a] * z[b] for b in range(p + 1)] for a in range(p + 1)]
    for j in range(p):
        M[j][j] += Fraction(gamma) / 2
    out: dict[Support, Fraction] = {(): M[p][p]}

    def include(M: list[list[Fraction]], start: int, support: Support) -> None:
        for j in range(start, p):
            left = [*range(j + 1, p), p]
            reduced = [row[:] for row in M]
            for a in left:
                ratio = M[a][j] / M[j][j]
                for b in left:
                    reduced[a][b] = M[a][b] - ratio * M[j][b]
            out[(*support, j)] = reduced[p][p]
            include(reduced, j + 1, (*support, j))

    include(M, 0, ())
    return out


def exact_sizes(objectives: dict[Support, Fraction]) -> dict[int, dict[Support, Fraction]]:
    """The same by size."""
    by_size: dict[int, dict[Support, Fraction]] = {}
    for support, f in objectives.items():
        by_size.setdefault(len(support), {})[support] = f
    return by_size


def rounding(objective: float, yy: float) -> float:
    """What a backward stable fit may lose: the residual's length is known to some ulp of ||y||."""
    return 1e-9 * objective + 1e-13 * math.sqrt(objective * yy) + 1e-26 * yy


def plain(seed: int, n: int, p: int, gamma: float = 1.0, noise: float = 0.5) -> Data:
    """Correlated Gaussian columns, a third of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    signal = np.where(np.arange(p) % 3 == 0, 1.0, 0.0) * rng.standard_normal(p)
    return Data(X, X @ signal + noise * rng.standard_normal(n), gamma)


@st.composite
def ugly(draw: st.DrawFn, max_columns: int = 5, max_rows: int = 7, mild: bool = False) -> Data:
    """Small problems with everything that goes wrong in data; ``mild`` stays well conditioned."""
    p = draw(st.integers(1, max_columns), label="p")
    n = draw(st.integers(1, max_rows), label="n")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    if draw(st.booleans(), label="whole numbers"):
        X = rng.integers(-2, 3, (n, p)).astype(float)
    else:
        X = rng.standard_normal((n, p))
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
    return Data(np.ascontiguousarray(X), y, float(10.0**exponent))
