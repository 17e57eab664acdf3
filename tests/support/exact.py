"""Ridge regression in fractions."""

from __future__ import annotations

from fractions import Fraction

Rows = list[list[Fraction]]


def solved(A: Rows, b: list[Fraction]) -> list[Fraction]:
    """The solution of a positive definite system, by elimination in fractions."""
    rows = [[*row, value] for row, value in zip(A, b, strict=True)]
    for i, row in enumerate(rows):
        rows[i] = [x / row[i] for x in row]
        for j in range(len(rows)):
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


def best_fit(
    X: Rows, y: list[Fraction], u: list[Fraction], support: tuple[int, ...]
) -> tuple[Fraction, list[Fraction]]:
    """The least objective on a support and its coefficients, in fractions."""
    columns = [[row[j] for row in X] for j in support]
    G = [[sum(a * b for a, b in zip(s, t, strict=True)) for t in columns] for s in columns]
    G = [[x + u[j] * (i == e) for i, x in enumerate(G[e])] for e, j in enumerate(support)]
    b = [sum((a * v for a, v in zip(s, y, strict=True)), Fraction(0)) for s in columns]
    coef = solved(G, b)
    return sum(v * v for v in y) - sum(a * c for a, c in zip(b, coef, strict=True)), coef
