"""Where on a line of responses the same support is selected: by one tree, and by enumeration."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from support.fresh import draws
from support.inside import Comparison, Limits, new_gathering, selection_events

from sparsecv import Constraints
from sparsecv.solvers import SparseRidgeProblem, Status
from sparsecv.solvers.leaps.selection_event import _Search


def residual(table, columns, vector):
    """What the columns leave of a vector, where dependent columns count once."""
    if columns.shape[1] == 0:
        return vector
    U, values, _ = np.linalg.svd(columns, full_matrices=False)
    U = U[:, values > 1e-9 * values[0]]
    for _ in range(2):
        vector = vector - U @ (U.T @ vector)
    return vector


def polynomial(table, c, d, support):
    left, moved = (residual(table, table[:, support], v) for v in (c, d))
    return np.array([moved @ moved, 2.0 * (left @ moved), left @ left])


def negative(polynomial):
    """The intervals where a polynomial of degree 2 is below 0."""
    a, b, c = polynomial
    size = max(abs(a), abs(b), abs(c), 1e-300)
    if abs(a) < 1e-13 * size:
        if abs(b) < 1e-13 * size:
            return [(-np.inf, np.inf)] if c < 0.0 else []
        return [(-np.inf, -c / b)] if b > 0.0 else [(-c / b, np.inf)]
    square = b * b - 4.0 * a * c
    if square <= 0.0:
        return [(-np.inf, np.inf)] if a < 0.0 else []
    half = -0.5 * (b + np.copysign(np.sqrt(square), b))
    low, high = sorted((half / a, c / half if half else 0.0))
    return [(low, high)] if a > 0.0 else [(-np.inf, low), (high, np.inf)]


def without(pieces, taken):
    for low, high in taken:
        pieces = [
            piece
            for a, b in pieces
            for piece in ((a, min(b, low)), (max(a, high), b))
            if piece[0] < piece[1]
        ]
    return pieces


def rank(table, columns):
    return np.linalg.matrix_rank(table[:, sorted(columns)], tol=1e-9) if columns else 0


def same_model(table, one, other, gamma):
    """Whether two supports fit every response alike."""
    if gamma == 0.0:
        return rank(table, one) == rank(table, other) == rank(table, {*one, *other})
    alike = [
        min(i for i in range(j + 1) if np.allclose(table[:, i], table[:, j], atol=1e-12))
        for j in range(table.shape[1])
    ]
    return sorted(alike[j] for j in one) == sorted(alike[j] for j in other)


def left_by_all(problem, direction):
    """What all columns leave of the squared response, where its length within a test is given."""
    table, y = problem.triangle[:, : problem.p], problem.triangle[:, problem.p]
    left = residual(table, table, y)
    return np.array([-1.0, -2.0 * (direction @ y), left @ left])


def enumerated(problem, direction, support, supports, weights, curved=None):
    """The pieces of the line, or of a curve, on which no other support has a smaller value."""
    p, gamma = problem.p, problem.given_gamma
    table, y = problem.triangle[:, :p], problem.triangle[:, p]
    pad = np.zeros(p if gamma > 0.0 else 0)
    c, d = np.append(y, pad), np.append(direction, pad)
    long = np.vstack([table, np.sqrt(gamma / 2.0) * np.eye(p)[: pad.size]])
    common = np.zeros(3) if curved is None else curved * [1.0, 1.0, 0.0]
    own = weights[tuple(support)] * (polynomial(long, c, d, support) + common)
    pieces = without([(-np.inf, np.inf)], [] if curved is None else negative(curved))
    for other in supports:
        if not same_model(table, support.tolist(), list(other), gamma):
            value = weights[other] * (polynomial(long, c, d, list(other)) + common)
            pieces = without(pieces, negative(value - own))
    return np.array(pieces)


def drawn_table(random, kind):
    n, p = int(random.integers(6, 40)), int(random.integers(2, 10))
    X = random.standard_normal((n, p))
    if kind == "0/1":
        X = (random.random((n, p)) < 0.5).astype(float)
        X[0], X[1] = 1.0, 0.0
    elif kind == "duplicate":
        X[:, -1] = X[:, 0]
    elif kind == "dependent" and p > 2:
        X = np.round(8.0 * X) / 8.0
        X[:, -1] = X[:, 0] + X[:, 1]
    y = X[:, :2].sum(axis=1) * random.integers(0, 2) + 2.0 * random.standard_normal(n)
    return X, y


def left_of(problem, support, j):
    """What the other columns of a support leave of column j, at length 1; None for nothing."""
    table, others = problem.triangle[:, : problem.p], [i for i in support.tolist() if i != j]
    left = residual(table, table[:, others], table[:, j])
    length = np.linalg.norm(left)
    return None if length < 1e-8 * np.linalg.norm(table[:, j]) else left / length


def criterion(n, p, each):
    weight = np.exp(each * np.arange(p + 1) / n)
    weight[n - 1 :] = np.inf
    return weight


def compare(event, exact, reach):
    """Whether the known pieces agree with exact ones, or hold them between them, up to a reach."""

    def near(pieces):
        inside = np.clip(np.reshape(pieces, (-1, 2)), -reach, reach)
        return inside[inside[:, 1] - inside[:, 0] > 1e-7 * reach]

    inner, outer, exact = near(event.inner), near(event.outer), near(exact)
    if inner.shape == exact.shape == outer.shape:
        allowed = 1e-8 * (1.0 + np.abs(exact))
        if (abs(inner - exact) <= allowed).all() and (abs(outer - exact) <= allowed).all():
            return "equal"

    def holds(outside, inside):
        slack = 1e-8 * (1.0 + np.abs(inside))
        return all(
            ((outside[:, 0] <= a + s) & (b - t <= outside[:, 1])).any()
            for (a, b), (s, t) in zip(inside, slack, strict=True)
        )

    return "between" if holds(outer, exact) and holds(exact, inner) else "wrong"


KINDS = ["drawn", "0/1", "duplicate", "dependent"]


@pytest.mark.parametrize("kind", KINDS)
def test_events_are_those_of_enumeration(kind: str) -> None:
    found, notes = [], []
    for note, random in draws(600, 610 + KINDS.index(kind)):
        X, y = drawn_table(random, kind)
        n, p = X.shape
        how, gamma = random.choice(["bic", "aic", "size"]), 0.0
        if how == "size":
            gamma, k = float(random.choice([0.0, 1e-3, 1.0, 10.0])), int(random.integers(1, p))
            weight = np.full(min(k, 4) + 1, np.inf)
            weight[-1] = 1.0
        else:
            weight = criterion(n, p, np.log(n) if how == "bic" else 2.0)
        problem, compared = SparseRidgeProblem(X, y, gamma=gamma, tau=1), Comparison(weight)
        support = compared.near_best(problem).answers[0].support
        if support.size == 0:
            continue
        direction = left_of(problem, support, int(random.choice(support)))
        if direction is None:
            continue
        curved = left_by_all(problem, direction) if random.random() < 0.5 and gamma == 0.0 else None
        if curved is not None and curved[2] < 1e-9 * problem.yy:
            continue
        events, status, _ = selection_events(
            problem,
            support,
            compared,
            direction[None],
            None,
            None if curved is None else curved[None],
        )
        sizes = np.flatnonzero(np.isfinite(weight)).tolist()
        every = [T for k in sizes for T in itertools.combinations(range(p), k)]
        weights = {T: weight[len(T)] for T in every}
        exact = enumerated(problem, direction, support, every, weights, curved)
        assert status in (Status.OPTIMAL, Status.PRECISION)
        found.append(compare(events[0], exact, 10.0 * np.linalg.norm(y)))
        notes += [note] if found[-1] == "wrong" else []
    assert not notes
    assert found.count("equal") > 0.8 * len(found) > 20


def test_groups_and_included_columns_are_units_of_the_search() -> None:
    random, found = np.random.default_rng(5), []
    for trial in range(40):
        n, labels = 30, ["a", "a", None, "b", "b", "b", None, None]
        X = random.standard_normal((n, 8))
        X[:, 3:6] = np.eye(3)[random.integers(0, 3, n)]
        X -= X.mean(axis=0)  # The three indicators are of rank 2 then.
        y = X[:, [0, 2, 6]].sum(axis=1) * random.integers(0, 2) + random.standard_normal(n)
        y -= y.mean()
        asked = Constraints(groups=labels, include=[7] if trial % 2 else [])
        by_rank = trial % 4 > 1
        weight = criterion(n, 8, np.log(n)) if by_rank else np.array([np.inf, np.inf, 1.0])
        problem = SparseRidgeProblem(X, y, gamma=0.0, tau=2, constraints=asked)
        compared = Comparison(weight, by_rank)
        rules, ranks = problem.constraints, np.array([2, 1, 2, 1, 1])
        weights = {}
        for chosen in itertools.chain(*(itertools.combinations(range(5), k) for k in range(6))):
            support = tuple(rules.columns_of(list(chosen)).tolist())
            size = ranks[list(chosen)].sum() if by_rank else len(chosen)
            if rules.allowed(list(support)) and size < weight.size and weight[size] < np.inf:
                weights[support] = weight[size]
        best = compared.near_best(problem)
        least = min(w * problem.objective(list(T)) for T, w in weights.items())
        assert best.value[0] == pytest.approx(least, rel=1e-9)
        support = best.answers[0].support
        alone = [j for j in support.tolist() if rules.columns[rules.unit[j]].size == 1]
        if not alone:
            continue
        directions = np.array([left_of(problem, support, j) for j in alone])
        events, _, _ = selection_events(problem, support, compared, directions)
        for event, direction in zip(events, directions, strict=True):
            exact = enumerated(problem, direction, support, list(weights), weights)
            found.append(compare(event, exact, 10.0 * np.linalg.norm(y)))
    assert "wrong" not in found
    assert found.count("equal") > 0.9 * len(found) > 20


def exact_squares(columns, vectors):
    """Products of what columns leave of vectors, in exact arithmetic: residuals' Gram matrix."""
    basis = [list(column) for column in columns]
    left = [list(vector) for vector in vectors]
    for i, u in enumerate(basis):
        length = sum(a * a for a in u)
        if length == 0:
            continue
        for other in (*basis[i + 1 :], *left):
            share = sum(a * b for a, b in zip(u, other, strict=True)) / length
            other[:] = [b - share * a for a, b in zip(u, other, strict=True)]
    return [[sum(a * b for a, b in zip(u, v, strict=True)) for v in left] for u in left]


def test_a_line_agrees_with_exact_arithmetic() -> None:
    for trial, (note, random) in enumerate(draws(60, 620)):
        n, p, size = 8, 5, 2
        X = random.integers(-3, 4, (n, p)).astype(float)
        X[:, -1] = X[:, 0] if trial % 3 == 0 else X[:, -1]
        y = random.integers(-9, 10, n).astype(float)
        weight = np.array([np.inf, np.inf, 1.0])
        problem = SparseRidgeProblem(X, y, gamma=0.0, tau=size)
        support = Comparison(weight).near_best(problem).answers[0].support
        direction = left_of(problem, support, int(support[0]))
        if direction is None:
            continue
        events, _, _ = selection_events(problem, support, Comparison(weight), direction[None])
        # The same direction among the rows, not at length 1, in fractions.
        integers = [[Fraction(int(v)) for v in column] for column in X.T]
        response, (j, other) = [Fraction(int(v)) for v in y], support.tolist()
        share = sum(a * b for a, b in zip(integers[j], integers[other], strict=True))
        share /= sum(a * a for a in integers[other])
        line = [a - share * b for a, b in zip(integers[j], integers[other], strict=True)]
        length = float(sum(a * a for a in line)) ** 0.5
        values = {
            T: exact_squares([integers[i] for i in T], [response, line])
            for T in itertools.combinations(range(p), size)
        }
        own, pieces = values[tuple(support.tolist())], [(-np.inf, np.inf)]
        for rows in values.values():
            differ = [rows[a][b] - own[a][b] for a, b in ((1, 1), (0, 1), (0, 0))]
            if any(differ):  # Supports that span the same are not compared.
                a, b, c = (float(value) for value in differ)
                pieces = without(pieces, negative((a, 2.0 * b, c)))
        exact = length * np.array(pieces)
        assert compare(events[0], exact, 100.0 * np.linalg.norm(y)) == "equal", note


def test_a_limit_leaves_the_event_in_doubt_and_never_wrong() -> None:
    random = np.random.default_rng(2)
    for nodes in (0, 1, 5, 25, 100):
        X = random.standard_normal((40, 9))
        y = X[:, 0] + random.standard_normal(40)
        weight = criterion(40, 9, 2.0)
        problem, compared = SparseRidgeProblem(X, y, gamma=0.0, tau=1), Comparison(weight)
        support = compared.near_best(problem).answers[0].support
        direction = left_of(problem, support, int(support[0]))
        every = [T for k in range(10) for T in itertools.combinations(range(9), k)]
        weights = {T: weight[len(T)] for T in every}
        exact = enumerated(problem, direction, support, every, weights)
        limits = Limits(node_limit=nodes)
        events, status, work = selection_events(problem, support, compared, direction[None], limits)
        assert work.n_nodes <= max(nodes, 1)
        assert compare(events[0], exact, 10.0 * np.linalg.norm(y)) != "wrong"
        if nodes < 5:
            assert status is Status.NODE_LIMIT


def test_more_intervals_than_a_tree_has_room_for_become_one() -> None:
    known = np.column_stack([4.0 * np.arange(20), 4.0 * np.arange(20) + 1.0])
    gathering = new_gathering(1, 1, 1)
    search = SimpleNamespace(surely=[known], doubt=[np.array([[-np.inf, -9.0], [99.0, np.inf]])])
    _Search.look_at(search, gathering)  # type: ignore[arg-type]
    assert gathering.n_region[0] == 1
    assert gathering.region[0, 0].tolist() == [-9.0, 99.0]
    search.surely = [known[:3]]
    _Search.look_at(search, gathering)  # type: ignore[arg-type]
    left = [[-9.0, 0.0], [1.0, 4.0], [5.0, 8.0], [9.0, 99.0]]
    assert gathering.region[0, : gathering.n_region[0]].tolist() == left


def test_a_limit_of_time_holds_for_many_neighbours() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 20)), rng.standard_normal(40)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=8)
    support, weights = np.arange(8), Comparison(np.ones(9))
    events, status, work = selection_events(
        problem, support, weights, rng.standard_normal((1, 21)), Limits(0.0)
    )
    assert status is Status.TIME_LIMIT
    assert work.n_nodes == 0
    assert events[0].inner.size == 0
    assert events[0].outer.tolist() == [[-np.inf, np.inf]]
