"""Certificates of lists of near-best supports: honest ones are accepted, false ones refused."""

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.constrained import exact_ridge
from support.inside import Limits, audited, near_certificate, proof_of

from sparsecv import SparseRidge, SparseRidgeCV, verify

HOW: list[dict[str, Any]] = [{"tau": 2, "gamma": 1.0}, {"tau": 2, "gamma": 0.0}, {"tau": "bic"}]


def fitted(seed: int, how: dict[str, Any]) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 4)).round(2)
    X[:, 1] = (X[:, 0] + 0.2 * X[:, 1]).round(2)
    y = (X[:, 0] + X[:, 2] + rng.standard_normal(30)).round(2)
    return SparseRidge(**how, standardize=False).fit(X, y), X, y


def listing(model: Any, within: float) -> Any:
    found = model.near_best(within)
    supports = [np.array(one, dtype=np.intp) for one in found["columns"]]
    return near_certificate(model._kept_fit(), supports, within, Limits())


def saved(one: Any, folder: Path) -> tuple[str, str]:
    one.save(folder / "proof.txt")
    return str(folder / "proof.txt"), str(folder / "proof.txt.csv")


@pytest.mark.parametrize("how", HOW)
def test_a_list_is_that_of_exact_enumeration(how: dict[str, Any], tmp_path: Path) -> None:
    for seed in range(3):
        model, X, y = fitted(seed, how)
        made = listing(model, 0.05)
        assert verify.check(*saved(made, tmp_path)) == made.claim
        head = json.loads(next(x for x in made.text.split("\n") if x[:1] == "{"))
        rows = [[Fraction(str(x)) for x in row] for row in np.column_stack([X, y]).tolist()]
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        moved = [[x - m for x, m in zip(row, means, strict=True)] for row in rows]
        ridge = [Fraction(head["gammas"][0]) / 2] * 4
        weights = dict(zip(head["sizes"], map(Fraction, head["weights"]), strict=True))
        values = {
            support: weights[k] * exact_ridge(moved, ridge, support)[0]
            for k in weights
            for support in itertools.combinations(range(4), k)
        }
        below = {one for one, value in values.items() if value < Fraction(head["limit"])}
        assert below == {tuple(one) for one in head["supports"]}
        for one, value in zip(head["supports"], head["values"], strict=True):
            assert float(values[tuple(one)]) == pytest.approx(float(value), rel=1e-9)


def forged(made: Any, change: Callable[[dict[str, Any], list[Any]], None]) -> Any:
    """The certificate with a changed head or blocks, and the words that belong to them."""
    head, *blocks = [json.loads(x) for x in made.text.split("\n") if x[:1] == "{"]
    change(head, blocks)
    lines = [json.dumps(one) for one in (head, *blocks)]
    words = verify.claim(json.loads(lines[0], parse_float=str))
    return type(made)(words, "\n".join([verify.FORMAT, *words, *lines, ""]), made.data)


def leave_out(head: dict[str, Any], blocks: list[Any]) -> None:
    lost = head["supports"].pop()
    head["values"].pop()
    for block in blocks:
        others = [fit for fit in block["fits"] if sorted(fit[1]) != lost]
        block["fits"] = others or block["fits"]


def raise_the_limit(head: dict[str, Any], blocks: list[Any]) -> None:
    head["limit"] = repr(1.5 * float(head["limit"]))


def change_a_value(head: dict[str, Any], blocks: list[Any]) -> None:
    head["values"][-1] = repr(float(head["values"][-1]) * (1.0 - 1e-6))


def change_a_weight(head: dict[str, Any], blocks: list[Any]) -> None:
    head["weights"][1] = repr(float(head["weights"][1]) * 0.5)


def negative_weight(head: dict[str, Any], blocks: list[Any]) -> None:
    head["weights"][0] = "-1"


def weigh_a_size_twice(head: dict[str, Any], blocks: list[Any]) -> None:
    """The trees prove the claim with the second weight, and far less with the first."""
    head["sizes"].append(head["sizes"][-1])
    head["weights"].insert(-1, "0.001")


def drop_a_size(head: dict[str, Any], blocks: list[Any]) -> None:
    blocks.pop(1)


def swap_columns(head: dict[str, Any], blocks: list[Any]) -> None:
    head["supports"][0] = [0, 3]


def another_gamma(head: dict[str, Any], blocks: list[Any]) -> None:
    head["gammas"].append("2.0")


FORGERIES = [
    leave_out,
    raise_the_limit,
    change_a_value,
    change_a_weight,
    negative_weight,
    weigh_a_size_twice,
    drop_a_size,
    swap_columns,
    another_gamma,
]


@pytest.mark.parametrize("change", FORGERIES)
@pytest.mark.parametrize("how", HOW)
def test_forged_lists_are_refused(
    change: Callable[[dict[str, Any], list[Any]], None], how: dict[str, Any], tmp_path: Path
) -> None:
    model, _, _ = fitted(1, how)
    made = listing(model, 0.05)
    assert len(made.claim) > 3  # Several supports are listed.
    with pytest.raises(verify.Wrong):
        verify.check(*saved(forged(made, change), tmp_path))


def test_the_words_of_a_claim_name_every_weight_but_1(tmp_path: Path) -> None:
    """Objectives times eleven are not called objectives, though "11" has no digit but 1."""
    model, _, _ = fitted(1, HOW[0])
    made = listing(model, 0.05)
    assert made.claim[1].startswith("Columns with the objective")

    def times_eleven(head: dict[str, Any], blocks: list[Any]) -> None:
        head["weights"] = ["11"] * len(head["sizes"])
        limit, *values = [
            repr(11.0 * (1.0 - 1e-12) * float(x)) for x in (head["limit"], *head["values"])
        ]
        head["limit"], head["values"] = limit, values

    claim = verify.check(*saved(forged(made, times_eleven), tmp_path))
    assert "an objective times 11, 11, 11 in turn below" in claim[0]
    assert claim[1].startswith("Columns with the value")


def test_a_listed_subset_of_another_size_closes_no_leaf(tmp_path: Path) -> None:
    model, _, _ = fitted(1, {"tau": "bic"})
    made = listing(model, 0.3)

    def skip_a_tree(head: dict[str, Any], blocks: list[Any]) -> None:
        """One leaf holds all subsets of two of three columns, and the three are listed."""
        head["supports"].append([0, 1, 2, 3])
        head["values"].append("1.0")
        blocks[2]["tree"] = [[[], 0, []]]

    with pytest.raises(verify.Wrong, match="too small"):
        verify.check(*saved(forged(made, skip_a_tree), tmp_path))


def test_least_squares_with_dependent_columns_has_no_list() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    model = SparseRidge(tau=2, gamma=0.0).fit(X, X[:, 0] + rng.standard_normal(30))
    with pytest.raises(ValueError, match="far from dependent"):
        listing(model, 0.05)
    audit = audited(model._kept_fit(), None, Limits())
    assert proof_of(audit, model._kept_fit(), Limits()) is None
    assert "far from dependent" in audit.missing["certificate"]


def test_the_page_has_one_file_that_proves_list_and_choice(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 4)).round(2)
    y = (X[:, 0] + X[:, 2] + rng.standard_normal(40)).round(2)
    for model in (
        SparseRidge(tau="bic").fit(X, y),
        SparseRidgeCV(rule="minimum", gammas=[0.1, 1.0], cv=3).fit(X, y),
    ):
        model.report(tmp_path / "page.html", audit=True)
        paths = str(tmp_path / "page.proof.txt"), str(tmp_path / "page.proof.txt.csv")
        said = verify.check(*paths)
        assert sum(line.startswith("No other") for line in said) == 1
        pairs = [line for line in said if line.startswith("No pair")]
        assert len(pairs) == isinstance(model, SparseRidgeCV)
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "page.proof.txt proves" in page
        best = next(line for line in said if line.startswith("Columns with"))
        names = [f"x{j}" for j in model.support_]
        assert best.split(": ")[1] == ", ".join(names)
        text = Path(paths[0]).read_text(encoding="utf-8").replace("Columns with", "Columns of", 1)
        Path(paths[0]).write_text(text, encoding="utf-8")
        with pytest.raises(verify.Wrong, match="claim"):
            verify.check(*paths)
