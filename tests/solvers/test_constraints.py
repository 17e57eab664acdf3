"""Constraints on columns: the record, what users may write, and what cannot be obeyed."""

from itertools import chain, combinations

import numpy as np
from support.constrained import KINDS, random_rules, resolved


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


def test_a_group_is_named_like_a_column() -> None:
    names = ["x", "f=1", "f=2", "z"]
    groups = {"f": ["f=1", "f=2"]}
    made, *_ = resolved(4, names, groups=groups, include=["f"])
    assert made.unit.tolist() == [0, 1, 1, 2]
    assert made.include.tolist() == [False, True, False]
