"""What experiments/paper/differences.md calls confirmed, refuted or undecided follows from results.

A statement that has a number in its paper is judged by the 95 % interval of ours, which the result
file prints with the interval that as few splits as the paper's would give:

- confirmed: the interval holds the paper's number, and leaves out the number that would mean no
  effect; or it leaves out no effect, and the interval of the paper's number of splits holds the
  paper's number.
- undecided: the interval holds the paper's number and no effect.
- refuted: the interval leaves out the paper's number and does not show the effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.pages import RESULTS, page, part, stored

if not RESULTS.is_dir():
    pytest.skip("no results beside the tests: this is not a checkout", allow_module_level=True)
WORDS = ("confirmed", "refuted", "undecided")


def verdict(
    paper: float, ours: tuple[float, float], as_paper: tuple[float, float], none: float | None
) -> str:
    """The rule above; ``none`` is the number that means no effect, and lies below an effect."""
    holds = ours[0] <= paper <= ours[1]
    effect = none is None or ours[0] > none
    if effect and (holds or as_paper[0] <= paper <= as_paper[1]):
        return "confirmed"
    return "undecided" if holds else "refuted"


def of_stability(
    line: str, none: float | None, file: str = "stability_tables.txt", paper: float | None = None
) -> str:
    """The verdict on one line of a summary of the stability paper's tables."""
    first = re.search(rf"^  {re.escape(line)} .*$", stored(file), re.M)
    assert first, line
    found = re.fullmatch(r".*? [-\d.]+ % +\[(.*), (.*)\] +ten splits \[(.*), (.*)\]", first[0])
    assert found, first[0]
    low, high, least, most = map(float, found.groups())
    return verdict(paper or PRINTED[line], (low, high), (least, most), none)


# What the stability paper prints, in percent, by the line of our summary.
PRINTED = {
    "test error of nested below plain, all sets": 4.85,
    "... overdetermined sets": 10.0,
    "CV error below test error, plain": 21.8,
    "nested CV error below test error, nested": 0.9,
    "nested and plain choose the same": 67.0,
}


def reduction(folds: str, way: str) -> float:
    found = re.search(
        rf"^{folds} +unit norm +{way} +problems +([\d.]+)", stored("mio_counts.txt"), re.M
    )
    assert found
    return float(found[1])


def of_algorithm_one() -> str:
    """The paper's share lies between ours with the two forms of Corollary 3."""
    between = [
        reduction(folds, "paper") <= printed <= reduction(folds, "paper-exact")
        for folds, printed in (("leave-one-out", 70.0), ("folds of ten rows", 52.0))
    ]
    return "confirmed" if all(between) else "refuted"


def of_nesting() -> str:
    """Over all sets, and over those of more rows than columns."""
    each = {
        of_stability("test error of nested below plain, all sets", 0.0),
        of_stability("... overdetermined sets", 0.0),
    }
    assert len(each) == 1
    return each.pop()


def of_parity() -> str:
    """Every interval of a peer's test error over ours holds 1."""
    text = part("tables_three_four.txt", "test error over that of sparse ridge")
    peers = [line for line in text.splitlines() if re.match(r"  (MCP|glmnet|L0Learn)", line)]
    pairs = [
        (float(a), float(b)) for line in peers for a, b in re.findall(r"\[(\S+), (\S+)\]", line)
    ]
    assert len(pairs) >= 40
    return "confirmed" if all(low <= 1.0 <= high for low, high in pairs) else "refuted"


def of_leave_one_out() -> str:
    """Seven orders of magnitude are in the range of the draws, without an intercept alone."""
    rows = [
        one for one in stored("motivating_draws.txt").splitlines() if one.startswith("loo  n=10")
    ]
    low, high = {}, {}
    for row in rows:
        found = re.search(r"τ to (.*?) +excess.*CV / test \S+ \[(\S+), (\S+)\]", row)
        assert found
        low[found[1]], high[found[1]] = float(found[2]), float(found[3])
    plain, centred = "10 heuristic", "10 heuristic, intercept"
    assert low[centred] > 0.1
    return "confirmed" if low[plain] <= 1e-7 <= high[plain] else "refuted"


def of_all_cases() -> str:
    """One case with a higher test error is enough against "all"."""
    for cost in ("C = γ", "C = 1/γ"):
        found = re.search(
            rf"^{cost}: .* lower test error in (\d+) .* the same in \d+, a higher one in (\d+)",
            stored("corrected_tables.txt"),
            re.M,
        )
        assert found
        lower, higher = map(int, found.groups())
        assert lower > higher > 0
    return "refuted"


def of_mean_loss() -> str:
    """The errors of the formula lie outside the range that the paper prints, on every set."""
    outside = []
    for block in re.split(r"^(?=\w+: \d+ splits?$)", stored("corrected_tables.txt"), flags=re.M)[
        1:
    ]:
        formula = re.search(r"^  C = 1/\(2nγ\) +any choice +([\d.]+)", block, re.M)
        printed = [float(one) for one in re.findall(r"\(([\d.]+)\)", block)]
        if formula and printed:
            outside.append(not min(printed) <= float(formula[1]) <= max(printed))
    assert len(outside) >= 5
    return "refuted" if all(outside) else "confirmed"


# How the words in bold begin, and what decides.
STATEMENTS: dict[str, Callable[[], str]] = {
    "Algorithm 1 leaves most": of_algorithm_one,
    "Models of low CV error are about as good": of_parity,
    "Nesting with stability lowers CART's": lambda: of_stability(
        "test error of nested below plain, all sets", 0.0, "stability_trees.txt", 2.2
    ),
    "Nesting with stability lowers the": of_nesting,
    "The plain CV error is far below": lambda: of_stability(
        "CV error below test error, plain", 0.0
    ),
    "The nested error is nearly unbiased": lambda: of_stability(
        "nested CV error below test error, nested", None
    ),
    "Both choose the same": lambda: of_stability("nested and plain choose the same", None),
    "The leave-one-out error of the example": of_leave_one_out,
    "Bias-corrected CV chooses better": of_all_cases,
    "The third paper's machines weight": of_mean_loss,
}


def said() -> dict[str, str]:
    """What stands behind every statement in bold, by the statement."""
    text = page("experiments/paper/differences.md").split("### ")[1]
    found = re.findall(r"^- \*\*(.*?)\*\*(.*?)(?=^- \*\*|\Z)", text, re.M | re.S)
    return {" ".join(head.split()): " ".join(rest.split()) for head, rest in found}


@pytest.mark.parametrize("begins", STATEMENTS)
def test_a_verdict_follows_from_the_results(begins: str) -> None:
    words = next(rest for head, rest in said().items() if head.startswith(begins))
    first = re.search("|".join(WORDS), words)
    assert first, words
    assert first[0] == STATEMENTS[begins]()


def test_every_verdict_is_tested() -> None:
    for head, words in said().items():
        tested = any(head.startswith(begins) for begins in STATEMENTS)
        assert tested == any(word in words for word in WORDS), head


def test_on_how_many_sets_sparse_ridge_has_the_least_cv_error() -> None:
    blocks = re.split(r"^(?=\w+: \d+ splits$)", stored("tables_three_four.txt"), flags=re.M)[1:]
    ratio = r"all sizes over the least peer's \(\w.*\): (\S+) \[(\S+), (\S+)\]"
    ratios = {b.split(":")[0]: tuple(map(float, re.findall(ratio, b)[0])) for b in blocks}
    above = {name for name, (mean, _, _) in ratios.items() if mean > 1.0}
    assert (len(ratios), above) == (11, {"autompg", "steam"})
    assert all(ratios[name][1] <= 1.0 <= ratios[name][2] for name in above)


@pytest.mark.parametrize(
    ("ours", "as_paper", "none", "expected"),
    [
        ((1.0, 6.0), (0.0, 9.0), 0.0, "confirmed"),
        ((1.0, 4.0), (-2.0, 9.0), 0.0, "confirmed"),
        ((-1.0, 6.0), (-5.0, 9.0), 0.0, "undecided"),
        ((-1.0, 4.0), (-5.0, 9.0), 0.0, "refuted"),
        ((1.0, 4.0), (0.0, 4.5), 0.0, "refuted"),
        ((-1.0, 6.0), (-5.0, 9.0), None, "confirmed"),
    ],
)
def test_the_rule(
    ours: tuple[float, float], as_paper: tuple[float, float], none: float | None, expected: str
) -> None:
    assert verdict(5.0, ours, as_paper, none) == expected
