"""Certificates: honest ones are accepted, tampered ones are refused, and every bound holds."""

import copy
import csv
import hashlib
import io
import itertools
import json
import re
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import Matrix
from support.constrained import exact_ridge
from support.fresh import plain_run
from support.inside import main
from support.problems import regression

from sparsecv import Constraints, SparseRidge, SparseRidgeCV, verify
from sparsecv.errors import InputError
from sparsecv.solvers import SparseRidgeProblem, solve

SMALL = st.integers(-9, 9)


def written(rows: list[list[int]], scale: str = "none") -> verify.Data:
    """Rows of [X y] as the checker reads them."""
    text = "\n".join(",".join(map(str, row)) for row in rows)
    names = [f"x{j}" for j in range(len(rows[0]) - 1)]
    data = f"{','.join(names)},y\n{text}\n".encode()
    head = {"sha256": hashlib.sha256(data).hexdigest(), "columns": names, "response": "y"}
    head |= {"factors": [1] * len(rows[0]), "scale": scale}
    path = Path("table.csv")
    path.write_bytes(data)
    return verify.Data(str(path), head)


def problem_of(
    table: verify.Data, held_out: list[int], gamma: Fraction, diagonal: list[int], fit: Any
) -> verify.Problem:
    """A problem of the checker with an intercept."""
    return verify.Problem(
        table, verify.Gram(table, held_out, True, False), gamma, tuple(diagonal), fit
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@given(data=st.data())
def test_no_leaf_closes_above_the_best_subset(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tables"))
        p, n = data.draw(st.integers(2, 4)), data.draw(st.integers(3, 6))
        rows = data.draw(st.lists(st.lists(SMALL, min_size=p + 1, max_size=p + 1), min_size=n))
        gamma = Fraction(data.draw(st.integers(1, 40)), data.draw(st.integers(1, 9)))
        diagonal = data.draw(st.lists(st.integers(0, 1 << 31), min_size=p, max_size=p))
        diagonal = data.draw(st.sampled_from([[0] * p, diagonal]))
        k = data.draw(st.integers(1, p))
        problem = problem_of(written(rows), [], gamma, diagonal, ([], 0, []))
        if any(diagonal) and not problem.semidefinite():
            problem = problem_of(written(rows), [], gamma, [0] * p, ([], 0, []))
        states = data.draw(st.lists(st.sampled_from("iof"), min_size=p, max_size=p))
        inside = tuple(j for j in range(p) if states[j] == "i")
        free = tuple(j for j in range(p) if states[j] == "f")
        below = [
            (*inside, *more)
            for more in itertools.combinations(free, max(k - len(inside), 0))
            if len(inside) <= k
        ]
        if not below:
            return
        means = [Fraction(sum(column), len(rows)) for column in zip(*rows, strict=True)]
        moved = [[x - m for x, m in zip(row, means, strict=True)] for row in rows]
        fits = {support: exact_ridge(moved, [gamma / 2] * p, support) for support in below}
        least, coef = min(fits.values())
        unit = problem.gram.unit * verify.ONE
        problem.goal = int(least * unit * verify.ONE) + 1
        support = next(s for s, (value, _) in fits.items() if value == least)
        bits = data.draw(st.integers(0, 12))
        columns = list(inside + free)
        points = [
            data.draw(
                st.lists(st.integers(-4000, 4000), min_size=len(columns), max_size=len(columns))
            )
        ]
        best = dict(zip(support, coef, strict=True))
        points.append([round(best.get(j, Fraction(0)) * 2**bits) for j in columns])
        for point in points:
            assert not problem.closes(inside, free, k, (columns, bits, point))


@given(data=st.data())
def test_a_matrix_that_is_accepted_has_semidefinite(data: st.DataObject) -> None:
    p = data.draw(st.integers(1, 4))
    R = data.draw(st.lists(st.lists(SMALL, min_size=p, max_size=p), min_size=p, max_size=p))
    shift = data.draw(st.integers(-3, 3))
    Q = [[sum(row[i] * row[j] for row in R) + shift * (i == j) for j in range(p)] for i in range(p)]
    minors = []
    for size in range(1, p + 1):
        for at in itertools.combinations(range(p), size):
            minors.append(determinant([[Fraction(Q[i][j]) for j in at] for i in at]))
    problem = verify.Problem.__new__(verify.Problem)
    problem.Q = Q
    accepted = problem.semidefinite()
    assert not accepted or min(minors) >= 0
    if shift > 0:
        assert accepted


def determinant(A: Matrix) -> Fraction:
    if not A:
        return Fraction(1)
    return sum(
        (-1) ** j * A[0][j] * determinant([[*row[:j], *row[j + 1 :]] for row in A[1:]])
        for j in range(len(A))
    ) * Fraction(1)


@given(data=st.data())
def test_errors_on_held_out_rows_are_bracketed(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tables"))
        rows = data.draw(st.lists(st.lists(SMALL, min_size=4, max_size=4), min_size=4, max_size=7))
        gamma, held = Fraction(data.draw(st.integers(1, 20)), 4), [0, 2]
        support = (0, 2)
        c = data.draw(st.lists(st.integers(-50, 50), min_size=2, max_size=2))
        train = [row for i, row in enumerate(rows) if i not in held]
        means = [Fraction(sum(column), len(train)) for column in zip(*train, strict=True)]
        moved = [[x - m for x, m in zip(row, means, strict=True)] for row in rows]
        inside = [row for i, row in enumerate(moved) if i not in held]
        least, coef = exact_ridge(inside, [gamma / 2] * 3, support)
        exact = sum(
            (moved[i][-1] - sum(moved[i][j] * b for j, b in zip(support, coef, strict=True))) ** 2
            for i in held
        )
        for bits, point in ((3, c), (40, [round(b * 2**40) for b in coef])):
            table = written(rows)
            problem = problem_of(table, held, gamma, [0] * 3, (list(support), bits, point))
            low, high = problem.errors(table, held)
            assert low <= exact <= high
            assert problem.f >= least * problem.gram.unit * verify.ONE
        assert high - low <= Fraction(1, 10**6) * (1 + exact)


def table(n: int, p: int, seed: int, digits: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + rng.integers(-5, 5, p)
    y = X[:, : min(3, p)] @ rng.standard_normal(min(3, p)) + rng.standard_normal(n)
    return X.round(digits), y.round(digits)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(30, 6), (9, 12), (40, 1), (25, 10)])
def test_fits_are_accepted(seed: int, shape: tuple[int, int], here: Path) -> None:
    X, y = table(*shape, seed)
    tau, gamma = 1 + seed % min(3, shape[1]), (0.01, 1.0, 300.0)[seed % 3]
    options = {"fit_intercept": seed % 2 == 0, "standardize": seed < 4}
    model = SparseRidge(tau=tau, gamma=gamma, **options).fit(X, y)
    found = model.certificate(here / "proof")
    assert verify.check("proof", "proof.csv") == found.claim
    claimed = float(found.claim[0].split("below ")[1].split()[0])
    assert 0.0 <= model.objective_ - claimed <= 1e-10 * model.objective_


def test_a_solution_has_a_certificate_of_its_problem(here: Path) -> None:
    X, y = table(12, 30, 1, 12)
    found = solve(SparseRidgeProblem(X, y, gamma=2.0, tau=3))
    found.certificate().save(here / "proof")
    assert str(found.objective)[:8] in verify.check("proof", "proof.csv")[0]


def test_the_coefficient_of_a_long_column_keeps_its_digits(here: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((10, 4)), np.full(10, 1e8)])
    y = X[:, 0] + 0.3 * rng.standard_normal(10)
    found = solve(SparseRidgeProblem(X, y, gamma=1.0, tau=2)).certificate()
    found.save(here / "proof")
    assert verify.check("proof", "proof.csv") == found.claim


def test_numbers_of_many_places_have_no_certificate() -> None:
    X = np.array([[1.0, 2.0], [1e-310, 1.0], [3.0, 1.0]])
    found = solve(SparseRidgeProblem(X, X[:, 0] + [0.1, 0.2, 0.4], gamma=1.0, tau=1))
    with pytest.raises(InputError, match="decimal place 300"):
        found.certificate()


@pytest.mark.parametrize("cv", [4, "loo"])
@pytest.mark.parametrize("intercept", [True, False])
def test_choices_are_accepted(cv: Any, intercept: bool, here: Path) -> None:
    X, y = table(24, 5, 3)
    how = {"rule": "minimum", "time_limit": None, "fit_intercept": intercept}
    model = SparseRidgeCV(cv=cv, gammas=[0.1, 1.0, 30.0], **how).fit(X, y)
    found = model.certificate(here / "proof")
    assert verify.check("proof", "proof.csv") == found.claim
    assert f"gamma = {float(model.gamma_)!r}, size = {model.tau_} has it" in found.claim[0]
    assert repr(float(model.cv_error_)) in found.claim[0]


def test_ties_are_certified_up_to_a_share(here: Path) -> None:
    X, y = table(20, 3, 5)
    X = np.column_stack([X, X[:, 0]])  # Column 3 is column 0.
    found = SparseRidgeCV(gammas=[1.0], rule="minimum", time_limit=None).fit(X, y)
    claimed = found.certificate(here / "proof").claim
    assert "up to a share of 1e-06" in claimed[2]
    assert verify.check("proof", "proof.csv") == claimed


@given(data=st.data())
def test_columns_without_each_row_are_those_of_every_subset(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Columns may be copies of each other, and constant without a row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tables"))
        p, n = data.draw(st.integers(1, 4)), data.draw(st.integers(5, 9))
        cells = st.one_of(st.integers(-1, 1), SMALL)
        rows = data.draw(
            st.lists(st.lists(cells, min_size=p + 1, max_size=p + 1), min_size=n, max_size=n)
        )
        gamma = data.draw(st.sampled_from([0.01, 0.5, 3.0, 400.0]))
        intercept, scaled = data.draw(st.booleans()), data.draw(st.booleans())
        table = np.array(rows, dtype=float)
        tau = data.draw(st.integers(1, max(1, int((np.ptp(table[:, :-1], axis=0) > 0).sum()))))
        model = SparseRidge(tau, gamma, fit_intercept=intercept, standardize=scaled)
        try:
            found = model.fit(table[:, :-1], table[:, -1]).certificate("proof", rows=True)
        except InputError as refused:
            if re.search("perfect|constant|all-zero", str(refused)):
                return
            raise
        assert verify.check("proof", "proof.csv") == found.claim
        head = Tampered(found).head
        kept = [int(name[1:]) for name in head["columns"]]
        for (row,), support in zip(head["held_out"], head["supports"], strict=True):
            left = [[Fraction(x) for x in one] for i, one in enumerate(rows) if i != row]
            means = [sum(column, Fraction(0)) / (n - 1) for column in zip(*left, strict=True)]
            about = [[x - m for x, m in zip(one, means, strict=True)] for one in left]
            variance = [sum(one[j] ** 2 for one in about) / (n - 1) for j in kept]
            u = [Fraction(gamma) / 2 * (v if scaled and v else 1) for v in variance]
            used = [[one[j] for j in [*kept, p]] for one in (about if intercept else left)]
            every = itertools.combinations(range(len(kept)), tau)
            least = min(exact_ridge(used, u, one)[0] for one in every)
            mine, share = exact_ridge(used, u, tuple(support))[0], Fraction(head["share"])
            assert mine * (1 - share) <= least
            # The checker's objective is that of coefficients of 16 digits.
            fits = [fit for block in Tampered(found).blocks for fit in block["fits"]]
            fit = next(one for one in fits if one[0] == row)
            names = head["columns"]
            whole = verify.Data("proof.csv", head)
            gram = verify.Gram(whole, [row], intercept, True)
            problem = verify.Problem(whole, gram, Fraction(gamma), (0,) * len(names), fit[1:])
            value = problem.f / (gram.unit * verify.ONE * whole.factor[-1] ** 2)
            assert mine <= value <= mine * (1 + Fraction(1, 10**9))


def test_columns_are_scaled_by_the_rows_that_are_left(here: Path) -> None:
    rows = [[1, 5, 2], [4, 5, 0], [7, 5, 1], [9, 6, 3]]
    data = written(rows, "unit-variance")
    assert verify.Gram(data, [3], True, True).v == [6, 1]  # The second column is constant.
    every = [Fraction(147, 16), Fraction(3, 16)]
    assert verify.Gram(data, [], True, True).v == every
    assert verify.Gram(data, [3], True, False).v == every


@pytest.mark.parametrize("seed", range(6))
def test_columns_of_very_different_lengths_have_certificates(seed: int, here: Path) -> None:
    """A diagonal whose columns the checker's whole numbers cannot tell from 0 is left out."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 6)) * 10.0 ** rng.permutation(6) / 1e3
    y = X[:, 0] / X[:, 0].std() + rng.standard_normal(20)
    model = SparseRidge(2, 100.0, standardize=False).fit(X, y)
    for rows in (False, True):
        found = model.certificate(here / "proof", rows=rows)
        assert verify.check("proof", "proof.csv") == found.claim


def test_groups_of_rows_have_a_certificate(here: Path) -> None:
    X, y = regression(40, 4, {0: 1.0, 1: 1.0}, noise=0.5)
    y[20:24] += 20.0 * X[20:24, 3]
    how: dict[str, Any] = {"rule": "minimum", "taus": [2], "gammas": [1.0]}
    model = SparseRidgeCV(cv=3, **how).fit(X, y, groups=np.repeat(range(10), 4))
    found, rows = model.certificate(here / "proof", rows=True), model.row_influence()
    assert verify.check("proof", "proof.csv") == found.claim
    assert "whichever is left out: 10 of 4 rows" in found.claim[0]
    assert not rows["stays"].all()
    assert Tampered(found).head["supports"] == rows["columns"].tolist()
    assert "; without row 20, 21, 22, 23: " in found.claim[1]


def test_certificates_of_rows_refuse_what_they_cannot_prove(here: Path) -> None:
    X, y = table(30, 4, 1)
    refused: list[tuple[Any, str]] = [(SparseRidge("bic"), "criterion")]
    refused.append((SparseRidgeCV(cv=3), "projection"))
    for model, word in refused:
        with pytest.raises(InputError, match=word):
            model.fit(X, y).certificate(here / "proof", rows=True)
    model = SparseRidge(2).fit(X, y).set_params(time_limit=0)
    with pytest.raises(InputError, match="every row proved"):
        model.certificate(here / "proof", rows=True)


def test_commands_write_and_check(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = table(30, 4, 7)
    rows = ["a,b,c,d,target", *(",".join(map(str, row)) for row in np.column_stack([X, y]))]
    Path("t.csv").write_text("\n".join(rows))
    for command in (["fit", "t.csv", "--tau", "2"], ["cv", "t.csv", "--gamma", "1,10"]):
        assert main([*command, "--quiet", "--certificate", "proof"]) == 0
        assert main(["verify", "proof", "proof.csv"]) == 0
        assert capsys.readouterr().out.endswith("VERIFIED\n")
        # The file works by itself, outside of the package.
        alone = [sys.executable, "-I", verify.__file__, "proof", "proof.csv"]
        assert subprocess.run(alone, check=False, capture_output=True).returncode == 0
    assert main(["verify", "proof", "t.csv"]) == 2
    assert "NOT VERIFIED" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\x0bb", "a\u2028b"])
def test_names_that_do_not_stand_in_one_line_are_refused(name: str, here: Path) -> None:
    X, y = table(20, 2, 2)
    frame = pd.DataFrame(X, columns=["x", name])
    problem = SparseRidgeProblem(frame, y, gamma=1.0, tau=1)
    with pytest.raises(InputError, match="rename the column"):
        solve(problem).certificate()


@pytest.mark.parametrize(
    ("options", "word"),
    [({"gamma": 0.0}, "gamma = 0"), ({"constraints": Constraints(include=[0])}, "constraints")],
)
def test_what_certificates_do_not_serve_is_refused(options: Any, word: str, here: Path) -> None:
    X, y = table(20, 3, 2)
    model = SparseRidge(tau=2, **options).fit(X, y)
    with pytest.raises(InputError, match=word):
        model.certificate(here / "proof")
    weighted = SparseRidge(tau=2).fit(X, y, sample_weight=np.arange(20.0))
    with pytest.raises(InputError, match="weights"):
        weighted.certificate(here / "proof")


def test_the_checker_is_short_and_needs_python_alone() -> None:
    text = Path(verify.__file__).read_text()
    assert len(text.splitlines()) <= 280
    imported = re.findall(r"^(?:from|import) (\w+)", text, re.M)
    assert set(imported) <= sys.stdlib_module_names


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("framed", [False, True])
def test_what_the_caller_writes_after_the_fit_is_not_certified(
    order: str, framed: bool, here: Path
) -> None:
    """Estimators and problems have copies of X and y, however these lie in memory."""
    makers = (
        lambda X, y: SparseRidge(tau=2).fit(X, y).certificate,
        lambda X, y: SparseRidgeCV(gammas=[1.0], rule="minimum").fit(X, y).certificate,
        lambda X, y: solve(SparseRidgeProblem(X, y, gamma=1.0, tau=2)).certificate,
    )
    for make in makers:
        X, y = table(30, 4, 1)
        X = np.array(X, order=order)
        given = pd.DataFrame(X, columns=list("abcd"), copy=False) if framed else X
        write = make(given, y)
        X[:], y[:] = 7.0 * X, y[::-1].copy()
        found = write() if make is makers[2] else write(here / "proof")
        found.save(here / "proof")
        assert verify.check("proof", "proof.csv") == found.claim
        cells = list(csv.reader(io.StringIO(found.data.decode())))
        assert float(cells[1][0]) == pytest.approx(X[0, 0] / 7.0)


def test_the_screen_says_what_is_certified(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A certificate is about the least CV error, whatever rule or size is asked for."""
    X, y = table(30, 4, 7)
    rows = ["a,b,c,d,target", *(",".join(map(str, row)) for row in np.column_stack([X, y]))]
    Path("t.csv").write_text("\n".join(rows))
    asked = ["cv", "t.csv", "--gamma", "1,10", "--quiet", "--certificate", "proof"]
    for more, other in (
        ([], False),
        (["--rule", "minimum"], False),
        (["--rule", "one-se", "--size", "1"], True),
        (["--rule", "projected"], True),
    ):
        assert main([*asked, *more]) == 0
        said = capsys.readouterr().err
        assert f"proof proves: {verify.check('proof', 'proof.csv')[0]}" in said
        assert ("says nothing of the model" in said) == other, more
        assert "of the range" not in said
    asked[3] = "global:1:10"
    assert main([*asked, "--folds", "3"]) == 0
    assert "is of the 12 γ that it names, and not of every γ" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00", b"{}\n"])
def test_a_file_that_is_no_certificate_is_called_so(
    content: bytes, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other").write_bytes(content)
    assert main(["verify", "other", "other"]) == 2
    assert "other: the first line of a certificate is 'sparsecv certif" in capsys.readouterr().err
    alone = [sys.executable, "-I", verify.__file__, "other", "other"]
    assert b"first line" in subprocess.run(alone, check=False, capture_output=True).stderr


class Tampered:
    """A certificate in parts that tests change, and what they are written to."""

    def __init__(self, found: Any) -> None:
        lines = found.text.splitlines()
        self.words = [line for line in lines if not line.startswith("{")]
        self.head, *self.blocks = (json.loads(line) for line in lines if line.startswith("{"))
        self.cells = list(csv.reader(io.StringIO(found.data.decode())))

    def accepted(self, words: bool = True, digest: bool = True) -> bool:
        """Whether the checker accepts it, with the words and the digest that fit its numbers."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.cells)
        Path("t.csv").write_text(text.getvalue())
        if digest:
            self.head["sha256"] = hashlib.sha256(text.getvalue().encode()).hexdigest()
        if words:
            self.words[1:] = verify.claim(self.head)
        entries = [json.dumps(entry) for entry in (self.head, *self.blocks)]
        Path("t").write_text("\n".join([*self.words, *entries]))
        try:
            verify.check("t", "t.csv")
        except verify.Wrong as wrong:
            self.said = str(wrong)
            return False
        return True


def tamper(one: Tampered, kind: str, rng: np.random.Generator) -> None:
    """Make one change of a kind, chosen at random, that makes the certificate wrong."""
    block = one.blocks[rng.integers(len(one.blocks))]
    fit = block["fits"][rng.integers(len(block["fits"]))]
    tree, p = block["tree"], len(one.head["columns"])
    if kind in ("data", "response"):  # A column outside of all subsets need not matter.
        row = one.cells[rng.integers(1, len(one.cells))]
        at = rng.integers(len(row)) if kind == "data" else -1
        row[at] = str(float(row[at]) + 1.0)
    elif kind == "folds":
        held = one.head["held_out"]
        a, b = rng.choice(len(held), 2, replace=False)
        held[a].append(held[b].pop())
    elif kind == "answer":
        best = one.head["supports"][rng.integers(len(one.head["supports"]))]
        others = sorted(set(range(p)) - set(best))
        best[rng.integers(len(best))] = others[rng.integers(len(others))]
        best.sort()
    elif kind == "support":
        others = sorted(set(range(p)) - set(fit[1]))
        fit[1][rng.integers(len(fit[1]))] = others[rng.integers(len(others))]
    elif kind == "bound":
        where = (one.head["values"], 0) if "values" in one.head else (one.head, "cv_error")
        where[0][where[1]] = repr(float(where[0][where[1]]) * (1.0 + rng.choice([-1e-3, 1e-3])))
    elif kind == "leaf":
        del tree[rng.integers(len(tree))]
    elif kind == "coefficients":
        fit[3][rng.integers(len(fit[3]))] *= 2
    elif kind == "gamma":
        at = int(rng.integers(len(one.head["gammas"])))
        one.head["gammas"][at] = repr(float(one.head["gammas"][at]) * 1.5)
    elif kind == "diagonal":
        block["diagonal"] = [1 << 33] * p
    elif kind == "negative diagonal":
        block["diagonal"] = [-1] + [0] * (p - 1)
    elif kind == "digits":
        fit[2] = 10**9
    elif kind == "block":
        one.blocks.remove(block)


KINDS = (
    "data",
    "response",
    "folds",
    "answer",
    "support",
    "bound",
    "leaf",
    "coefficients",
    "gamma",
    "diagonal",
    "negative diagonal",
    "digits",
    "block",
)


def test_tampered_certificates_are_refused(here: Path) -> None:
    made = []
    for seed in range(2):
        X, y = table(26, 7, seed)
        fixed = SparseRidge(tau=3, gamma=0.5).fit(X, y)
        made += [fixed.certificate(here / "proof"), fixed.certificate(here / "proof", rows=True)]
        how = {"rule": "minimum", "time_limit": None, "taus": [1, 2, 3]}
        for cv in (4, "loo"):
            model = SparseRidgeCV(cv=cv, gammas=[0.1, 3.0], **how).fit(X, y)
            made.append(model.certificate(here / "proof"))
    rng, refused = np.random.default_rng(0), 0
    for found in made:
        assert Tampered(found).accepted()
        head = Tampered(found).head
        none = {"answer"}
        if "limit" in head:
            none = {"folds"}
        elif "supports" in head:
            none = {"bound", "response"}  # The columns may be the best for another response, too.
        for kind in sorted({*KINDS} - none):
            for _ in range(3 if plain_run() else 5):
                one = Tampered(found)
                tamper(one, kind, rng)
                assert not one.accepted(digest=kind != "data"), kind
                assert kind != "block" or "a fold is missing" in one.said
                refused += 1
    assert refused >= 150


@pytest.mark.parametrize("kind", ["pairs", "columns"])
def test_a_small_file_cannot_fill_the_memory(kind: str, here: Path) -> None:
    """Pairs (gamma, size) that no block proves, or columns whose products would be too many."""
    X, y = table(12, 3, 0)
    model = SparseRidgeCV(cv=3, gammas=[1.0], rule="minimum", time_limit=None).fit(X, y)
    one = Tampered(model.certificate(here / "proof"))
    if kind == "pairs":
        one.head["gammas"], one.head["sizes"] = ["1.0"] * 1500, [1] * 1500
    else:
        names = [f"c{j}" for j in range(1500)]
        one.cells = [[*names, "y"]] + [["1"] * 1501] * 3
        one.head |= {"columns": names, "factors": [1] * 1501}
    tracemalloc.start()
    try:
        assert not one.accepted()
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("names", [["y", "response"], ["y", "response", "y*"], ["response*", "y"]])
def test_the_response_of_a_problem_has_a_name_of_its_own(names: list[str], here: Path) -> None:
    X, y = table(20, len(names), 2)
    problem = SparseRidgeProblem(pd.DataFrame(X, columns=names), y, gamma=1.0, tau=1)
    found = solve(problem).certificate()
    found.save(here / "proof")
    assert verify.check("proof", "proof.csv") == found.claim
    assert Tampered(found).head["response"] not in names


def test_the_words_of_a_claim_cannot_be_changed(here: Path) -> None:
    X, y = table(26, 5, 1)
    found = SparseRidge(tau=2).fit(X, y).certificate(here / "proof")
    for at, old, new in ((1, "No 2", "No 3"), (1, "1e-06", "1e-09"), (2, "x0", "x9")):
        one = Tampered(found)
        if old in one.words[at]:
            one.words[at] = one.words[at].replace(old, new)
            assert not one.accepted(words=False)
    wrong: list[tuple[str, Any]] = [("share", "1e-12"), ("scale", "none"), ("rows", 9)]
    wrong += [("intercept", value) for value in (False, "False", "no", 1, None)]
    for name, value in wrong:
        one = Tampered(found)
        one.head[name] = value
        assert not one.accepted()
    for value in ("Infinity", 0.5, None, [], "1"):
        one = Tampered(found)
        one.blocks[0]["fits"][0][3][0] = value
        assert not one.accepted()


def test_a_changed_point_is_accepted_only_where_it_proves_its_leaf(here: Path) -> None:
    """A changed dual point is another dual point: what is proved is still true."""
    X, y = table(26, 7, 4)
    found = SparseRidge(tau=3, gamma=0.5).fit(X, y).certificate(here / "proof")
    rng, outcomes = np.random.default_rng(1), set()
    for _ in range(60):
        one = copy.deepcopy(Tampered(found))
        leaves = [entry for entry in one.blocks[0]["tree"] if isinstance(entry, list) and entry[2]]
        leaf = leaves[rng.integers(len(leaves))]
        at = rng.integers(len(leaf[2]))
        leaf[2][at] = int(leaf[2][at] * rng.choice([1.0001, 5.0, -1.0]))
        outcomes.add(one.accepted())
    assert outcomes == {True, False}


def test_coefficients_that_are_not_the_best_prove_no_objective(here: Path) -> None:
    X, y = table(20, 2, 1)
    one = Tampered(SparseRidge(tau=2, gamma=1.0).fit(X, y).certificate(here / "proof"))
    cells = [Fraction(row[-1]) for row in one.cells[1:]]
    mean = sum(cells, Fraction(0)) / len(cells)
    claimed = repr(float(sum((cell - mean) ** 2 for cell in cells)))
    one.head |= {"limit": claimed, "values": [claimed]}
    block = one.blocks[0]
    block |= {"diagonal": [], "fits": [[0, [0, 1], 0, [0, 0]]], "tree": [[[], 0, []]]}
    assert not one.accepted()


def test_shares_errors_and_further_lines_that_mislead_are_refused(here: Path) -> None:
    X, y = table(24, 3, 1)
    found = SparseRidgeCV(cv=3, gammas=[1.0], rule="minimum", time_limit=None).fit(X, y)
    made = found.certificate(here / "proof")
    for error, share in (("1e9", "100"), ("-1", "-50"), ("2", "0.9")):
        one = Tampered(made)
        one.head |= {"cv_error": error, "pair_share": share}
        assert not one.accepted()
    Path("t").write_text(made.text + "And for every gamma.\n")
    with pytest.raises(verify.Wrong):
        verify.check("t", "proof.csv")


@pytest.mark.parametrize("note", ["a\u2028b,1,2", "a\x0cb", '"a', "a,7", "a" * 200000])
def test_rows_are_lines_of_the_table(note: str, here: Path) -> None:
    X, y = table(20, 2, 1)
    one = Tampered(SparseRidge(tau=1).fit(X, y).certificate(here / "proof"))
    text = "\n".join(",".join([*row, "n"]) for row in one.cells[:-1])
    data = f"{text}\n{','.join(one.cells[-1])},{note}\n".encode()
    Path("t.csv").write_bytes(data)
    one.head |= {"sha256": hashlib.sha256(data).hexdigest()}
    entries = [json.dumps(entry) for entry in (one.head, *one.blocks)]
    Path("t").write_text("\n".join([verify.FORMAT, *verify.claim(one.head), *entries]))
    if note.isprintable() is False and "," not in note:
        verify.check("t", "t.csv")  # A form feed in a cell of another column ends no row.
    else:
        with pytest.raises(verify.Wrong):
            verify.check("t", "t.csv")


@pytest.mark.parametrize("line", ['{"a":' + "[" * 100000, "{", '{"tree": NaN}'])
def test_a_broken_file_is_one_error(line: str, here: Path) -> None:
    X, y = table(20, 2, 1)
    made = SparseRidge(tau=1).fit(X, y).certificate(here / "proof")
    Path("t").write_text(made.text + line)
    with pytest.raises(verify.Wrong):
        verify.check("t", "proof.csv")
    one = Tampered(made)
    one.blocks[0]["tree"][0] = [[0], 10**15, [1]]
    assert not one.accepted()


@pytest.mark.parametrize("number", ["1/3", "1e99999999", "1e-9999", "1_0", "nan", "", "٣"])
def test_only_short_decimals_are_numbers(number: str, here: Path) -> None:
    X, y = table(20, 2, 1)
    made = SparseRidge(tau=1).fit(X, y).certificate(here / "proof")
    of_cell, of_share = Tampered(made), Tampered(made)
    of_cell.cells[3][0] = number
    of_share.head["share"] = number
    for one, place in ((of_cell, "line 4"), (of_share, "share")):
        assert not one.accepted()
        with pytest.raises(verify.Wrong, match=f"^{place}: '{number}' is no decimal number$"):
            verify.check("t", "t.csv")


def test_no_objective_above_the_proved_one_is_claimed(here: Path) -> None:
    X, y = table(26, 5, 1)
    made = SparseRidge(tau=2, gamma=1.0).fit(X, y).certificate(here / "proof")
    for off, accepted in ((5e-10, False), (1e-10, False), (0.0, True), (-5e-10, True)):
        one = Tampered(made)
        claimed = repr(float(one.head["limit"]) * (1.0 + off))
        one.head |= {"limit": claimed, "values": [claimed]}
        assert one.accepted() == accepted


def test_a_claim_names_the_columns_and_the_rows_of_every_fold(here: Path) -> None:
    X, y = table(26, 5, 1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    claim = SparseRidge(tau=2).fit(frame, y).certificate(here / "proof").claim
    assert claim[0].startswith("No 2 of the columns a, b, c, d, e have an objective below ")
    how = {"gammas": [1.0], "rule": "minimum", "time_limit": None}
    claim = SparseRidgeCV(cv=4, **how).fit(frame, y).certificate(here / "proof").claim
    assert claim[1] == "Pairs: gamma in 1.0; size in 1, 2, 3, 4, 5 of the columns a, b, c, d, e"
    assert "held-out rows of 4 folds (2 of 6 rows, 2 of 7 rows), each with" in claim[2]
    claim = SparseRidgeCV(cv="loo", **how).fit(frame, y).certificate(here / "proof").claim
    assert "held-out rows of 26 folds (26 of 1 row), each with" in claim[2]


def test_a_fold_that_holds_out_no_row_is_refused(here: Path) -> None:
    """The fit of all rows proves such a fold, which would only change the number of folds."""
    X, y = table(26, 3, 1)
    how = {"rule": "minimum", "time_limit": None, "taus": [2]}
    made = SparseRidgeCV(cv=4, gammas=[1.0], **how).fit(X, y).certificate(here / "proof")
    one, whole = Tampered(made), Tampered(SparseRidge(tau=2).fit(X, y).certificate(here / "proof"))
    assert one.accepted()
    one.head["share"] = whole.head["share"]
    block = whole.blocks[0]
    block["fits"][0][0] = 4
    one.blocks.append(block)
    one.head["held_out"].append([])
    assert not one.accepted()
    with pytest.raises(verify.Wrong, match="folds: no partition"):
        verify.check("t", "t.csv")


def test_a_cell_with_a_line_break_is_no_number(here: Path) -> None:
    X, y = table(20, 2, 1)
    made = SparseRidge(tau=1).fit(X, y).certificate(here / "proof")
    for place in (0, -1):
        one = Tampered(made)
        cell = one.cells[3][place]
        one.cells[3][place] = f"{cell[:2]}\n{cell[2:]}"
        assert not one.accepted()
