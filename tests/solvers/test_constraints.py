"""Constraints on columns: the record, what users may write, and what cannot be obeyed."""

from itertools import chain, combinations

import numpy as np
import pytest
from support.constrained import KINDS, random_rules, resolved

from sparsecv import Constraints
from sparsecv.errors import InputError
from sparsecv.solvers import SparseRidgeProblem


def some_kinds(rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(kind for kind in KINDS if rng.random() < 0.5)


def subsets(p: int) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(p), s) for s in range(p + 1))


def test_the_record_allows_what_enumeration_allows() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        p = int(rng.integers(2, 8))
        rules = random_rules(rng, p, some_kinds(rng))
        made, *_ = resolved(p, **rules.keywords)
        right = {
            tuple(sorted(j for u in chosen for j in rules.units[u])): len(chosen)
            for chosen in subsets(len(rules.units))
            if rules.allows(frozenset(chosen))
        }
        assert {s for s in subsets(made.p) if made.allowed(s)} == set(right)
        sizes = set(right.values())
        assert (made.min_size, made.max_size) == (min(sizes), max(sizes))
        assert sizes == set(range(made.min_size, made.max_size + 1))
        assert made.allowed(made.columns_of(np.flatnonzero(made.include)))
        for support, size in right.items():
            for wanted in range(made.max_size + 2):
                full = made.padded(support, wanted)
                assert set(support) <= set(full)
                assert right[tuple(full.tolist())] == min(max(size, wanted), made.max_size)


def test_a_sub_problem_allows_what_the_whole_problem_allows() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        p = int(rng.integers(3, 8))
        rules = random_rules(rng, p, tuple(k for k in some_kinds(rng) if k != "include"))
        made, *_ = resolved(p, **rules.keywords)
        units = np.flatnonzero(rng.random(made.n_units) < 0.7)
        columns = rng.permutation(made.columns_of(units))
        if columns.size == 0 or made.exclude[units].all():
            continue
        inner = made.restricted(columns)
        for support in subsets(columns.size):
            assert inner.allowed(support) == made.allowed(columns[list(support)])
        assert (inner.lower == made.lower[columns]).all()


NAMES = ["a", "b", "c", "a:b", "b:a:c", "time=1:30"]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"include": "age"}, "include must be a list of columns, such as"),
        ({"include": ["d"]}, "include: there is no column 'd'"),
        ({"include": ["timE=1:30"]}, "did you mean 'time=1:30'?"),
        ({"exclude": [6]}, "no column 6; columns are 0 to 5"),
        ({"exclude": [1.5]}, "a column is a name or a position; got 1.5"),
        ({"include": ["a"], "exclude": ["a"]}, "column 'a' is both included and excluded"),
        ({"exclude": NAMES}, "every column is excluded"),
        ({"groups": ["x", "y"]}, "2 labels for 6 columns"),
        ({"groups": {"x": ["a"], "y": ["a", "b"]}}, "is in the groups 'x' and 'y'"),
        ({"groups": "x"}, "groups must be labels"),
        ({"positive": ["z"]}, "positive: there is no column 'z'"),
        ({"bounds": {"a": (1, 2)}}, "bounds of 'a': give (low, high) with low <= 0 <= high"),
        ({"bounds": {"a": 3}}, "give (low, high)"),
        ({"bounds": {"a": (False, 2.0)}}, "bounds of 'a': True and False are no numbers"),
        ({"bounds": {"a": (None, np.True_)}}, "bounds of 'a': True and False are no numbers"),
        ({"bounds": [1]}, "bounds must map columns"),
        ({"bounds": {"b": (None, "2")}}, "bounds of 'b': "),
        ({"positive": "b"}, "positive must be a list"),
        ({"groups": {"both": "ab"}}, "groups must be a list"),
    ],
)
def test_what_cannot_be_obeyed_is_one_clear_sentence(rules: dict, words: str) -> None:
    with pytest.raises(InputError) as caught:
        resolved(6, NAMES, **rules)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_group_is_named_like_a_column() -> None:
    names = ["x", "f=1", "f=2", "z"]
    groups = {"f": ["f=1", "f=2"]}
    made, *_ = resolved(4, names, groups=groups, include=["f"])
    assert made.unit.tolist() == [0, 1, 1, 2]
    assert made.include.tolist() == [False, True, False]


def test_sizes_that_no_model_has_are_refused() -> None:
    with pytest.raises(InputError, match=r"a size of 3 is too small: .* take 4"):
        SparseRidgeProblem(
            np.eye(6),
            np.ones(6),
            gamma=1.0,
            tau=3,
            constraints=Constraints(include=[1, 3, 4, 5]),
        )
    with pytest.raises(InputError, match="a size of 5 is too large: 4 can be in"):
        SparseRidgeProblem(
            np.eye(6), np.ones(6), gamma=1.0, tau=5, constraints=Constraints(exclude=[0, 1])
        )
