"""Files of VIPR: derivations in fractions, cuts against every subset, and viprchk."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.constrained import exact_ridge

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError
from sparsecv.solvers import SparseRidgeProblem, solve

SENSES = {"G": 1, "E": 0, "L": -1}


class Row(NamedTuple):
    """A constraint sum a_i x_i (>=, =, <=) rhs with the assumptions that it rests on."""

    sense: int
    rhs: Fraction
    left: dict[int, Fraction]
    assumed: frozenset[int] = frozenset()

    def dominates(self, other: Row) -> bool:
        if not self.left and {1: self.rhs > 0, 0: self.rhs != 0, -1: self.rhs < 0}[self.sense]:
            return True
        gap = self.rhs - other.rhs
        enough = {1: gap >= 0, 0: gap == 0, -1: gap <= 0}[other.sense]
        return self.left == other.left and self.sense in (0, other.sense) and enough


class File(NamedTuple):
    """What a file states: its constraints, range and solution."""

    rows: list[Row]
    low: Fraction
    high: Fraction
    power: int


def pairs(words: Iterator[str]) -> dict[int, Fraction]:
    found = [(int(next(words)), Fraction(next(words))) for _ in range(int(next(words)))]
    return {i: x for i, x in found if x}


def section(words: Iterator[str], name: str, count: int = 1) -> list[str]:
    assert next(words) == name
    return [next(words) for _ in range(count)]


def checked(path: Path) -> File:
    """Check a file of VIPR 1.0 as its specification says; return what it states."""
    lines = path.read_text(encoding="utf-8").split("\n")
    words = iter(" ".join(line for line in lines if not line.startswith("% ")).split())
    assert section(words, "VER") == ["1.0"]
    n = int(section(words, "VAR")[0])
    names = [next(words) for _ in range(n)]
    whole = {int(next(words)) for _ in range(int(section(words, "INT")[0]))}
    assert names[0] == "t"
    assert whole == set(range(1, n))
    assert section(words, "OBJ") == ["min"]
    objective = pairs(words)
    count, _ = map(int, section(words, "CON", 2))

    def row() -> Row:
        next(words)
        sense, rhs = SENSES[next(words)], Fraction(next(words))
        nonlocal ahead
        ahead = next(words)
        if ahead == "OBJ":
            return Row(sense, rhs, objective)
        return Row(sense, rhs, pairs(itertools.chain([ahead], words)))

    ahead = ""
    rows = [row() for _ in range(count)]
    assert next(words) == "RTP"
    assert next(words) == "range"
    low, high = Fraction(next(words)), Fraction(next(words))
    assert section(words, "SOL", 2) == ["1", "best"]
    point = pairs(words)
    assert all(point[i].denominator == 1 for i in whole & point.keys())
    for one in rows:
        gap = sum(a * point.get(i, Fraction(0)) for i, a in one.left.items()) - one.rhs
        assert gap * one.sense > 0 or gap == 0
    assert low <= sum(a * point.get(i, 0) for i, a in objective.items()) <= high
    stated = list(rows)
    for _ in range(int(section(words, "DER")[0])):
        new = row()
        assert next(words) == "{"
        rows.append(derived(next(words), words, new, rows, whole))
        assert [next(words), next(words)] == ["}", "-1"]
    assert next(words, None) is None
    assert not rows[-1].assumed
    assert rows[-1].dominates(Row(1, low, objective))
    power = next(line for line in lines if "times 2^" in line).split("2^")[1].split(";")[0]
    return File(stated, low, high, int(power))


def derived(kind: str, words: Iterator[str], new: Row, rows: list[Row], whole: set[int]) -> Row:
    """The constraint with its assumptions, if the reason of its kind is good."""
    if kind == "asm":
        return new._replace(assumed=frozenset([len(rows)]))
    if kind == "uns":
        a, at_a, b, at_b = (int(next(words)) for _ in range(4))
        assert rows[a].dominates(new)
        assert rows[b].dominates(new)
        more, less = sorted((rows[at_a], rows[at_b]), key=lambda one: -one.sense)
        assert (more.sense, less.sense, more.rhs - less.rhs) == (1, -1, 1)
        assert less.rhs.denominator == 1
        assert more.left == less.left
        assert all(i in whole and x.denominator == 1 for i, x in more.left.items())
        return new._replace(assumed=(rows[a].assumed - {at_a}) | (rows[b].assumed - {at_b}))
    assert kind == "lin"
    multipliers = pairs(words)
    signs = {rows[i].sense * (1 if x > 0 else -1) for i, x in multipliers.items()} - {0}
    assert len(signs) <= 1
    left: dict[int, Fraction] = {}
    for i, x in multipliers.items():
        for j, a in rows[i].left.items():
            left[j] = left.get(j, Fraction(0)) + x * a
    rhs = sum((x * rows[i].rhs for i, x in multipliers.items()), Fraction(0))
    got = Row(min(signs, default=0), rhs, {j: a for j, a in left.items() if a})
    assert got.dominates(new)
    return new._replace(assumed=frozenset().union(*(rows[i].assumed for i in multipliers)))


def objectives(found: Any, standardize: bool) -> dict[tuple[int, ...], Fraction]:
    """The least objective of every subset of the size, in fractions, from the table of a proof."""
    cells = [line.split(",") for line in found.data.decode().splitlines()[1:]]
    rows, words = [[Fraction(x) for x in line] for line in cells], found.claim[0].split()
    size, gamma = int(words[1]), Fraction(words[words.index("gamma") + 2])
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    if "intercept True" in found.claim[2]:
        moved = [[x - m for x, m in zip(row, means, strict=True)] for row in rows]
    else:
        moved = rows
    around = [[(row[j] - means[j]) ** 2 for row in rows] for j in range(len(means) - 1)]
    v = [sum(squares) / len(rows) if standardize else Fraction(1) for squares in around]
    u = [gamma / 2 * x for x in v]
    subsets = itertools.combinations(range(len(v)), size)
    return {subset: exact_ridge(moved, u, subset)[0] for subset in subsets}


def table(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    return X.round(2), (X[:, :3].sum(axis=1) + 2.0 * rng.standard_normal(n)).round(2)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(16, 6, 2), (9, 8, 3), (12, 3, 3), (12, 1, 1)])
def test_the_tree_is_derived_and_cuts_hold_for_every_subset(
    seed: int, shape: tuple[int, int, int], tmp_path: Path
) -> None:
    (n, p, tau), standardize = shape, seed % 2 == 0
    gamma, how = (0.01, 1.0, 30.0)[seed % 3], {"standardize": standardize}
    model = SparseRidge(tau=tau, gamma=gamma, fit_intercept=seed < 4, **how).fit(*table(n, p, seed))
    found = model.certificate(tmp_path / "proof")
    found.vipr(tmp_path / "p.vipr")
    assert (tmp_path / "p.vipr.csv").read_bytes() == found.data
    file, every = checked(tmp_path / "p.vipr"), objectives(found, standardize)
    unit, best = Fraction(2) ** file.power, min(every.values())
    assert best * (1 - Fraction(2, 10**6)) <= file.low / unit <= best <= file.high / unit
    assert file.high / unit <= best * (1 + Fraction(1, 10**9))
    for one in file.rows[2 * p + 1 :]:
        for subset, value in every.items():
            weight = sum((one.left.get(j + 1, Fraction(0)) for j in subset), Fraction(0))
            assert value * unit * one.left[0] + weight >= one.rhs


def branching(tmp_path: Path) -> list[str]:
    """The lines of a file whose tree has many leaves, some of them without a subset of the size."""
    X, y = table(40, 14, 3)
    found = solve(SparseRidgeProblem(X, y, gamma=0.1, tau=4)).certificate()
    found.vipr(tmp_path / "p.vipr")
    lines = (tmp_path / "p.vipr").read_text().split("\n")
    assert sum("{ uns" in line for line in lines) >= 5
    return lines


def test_changed_derivations_are_refused(tmp_path: Path) -> None:
    lines, path = branching(tmp_path), tmp_path / "p.vipr"
    checked(path)
    first = next(i for i, line in enumerate(lines) if line.startswith("DER"))
    cut = next(i for i, line in enumerate(lines) if line.startswith("C1 "))
    join = next(i for i, line in enumerate(lines) if "{ uns" in line)
    low = next(i for i, line in enumerate(lines) if line.startswith("RTP"))
    words = {at: lines[at].split() for at in (cut, join, low)}
    words[cut][2] = str(int(words[cut][2]) * 9 // 10 - 1)
    words[join][5], words[join][7] = words[join][7], words[join][5]
    words[low][2] = words[low][3]
    for at, changed in words.items():
        path.write_text("\n".join([*lines[:at], " ".join(changed), *lines[at + 1 :]]))
        with pytest.raises(AssertionError):
            checked(path)
    path.write_text("\n".join([*lines[:first], "DER 0", ""]))
    with pytest.raises(AssertionError):
        checked(path)


def test_a_choice_has_no_file(tmp_path: Path) -> None:
    model = SparseRidgeCV(gammas=[1.0], rule="minimum", time_limit=None).fit(*table(20, 3, 0))
    with pytest.raises(InputError, match="proves a fit"):
        model.certificate(tmp_path / "proof").vipr(tmp_path / "p.vipr")


def test_viprchk_accepts_the_file(tmp_path: Path) -> None:
    """The checker of VIPR's authors: on the path, or built from VIPRCHK_SOURCE, a file of C++."""
    program, source = shutil.which("viprchk"), os.environ.get("VIPRCHK_SOURCE")
    if program is None and source is not None:
        program = str(tmp_path / "viprchk")
        command = ["g++", "-O1", "-std=c++17", source, "-o", program, "-lgmpxx", "-lgmp"]
        subprocess.run(command, check=True, capture_output=True)
    if program is None:
        pytest.skip("viprchk is not on the path, and VIPRCHK_SOURCE names no source of it")
    branching(tmp_path)
    command = [program, str(tmp_path / "p.vipr")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "Successfully verified" in done.stdout
