"""Problems as files: what is written comes back, and damaged files are one clear error."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparsecv import Constraints
from sparsecv.errors import InputError
from sparsecv.solvers import SparseRidgeProblem, solve

RULES: list[dict[str, Any]] = [
    {},
    {"constraints": Constraints(include=["a"], exclude=["e"], positive=["c"])},
    {"constraints": Constraints(bounds={"b": (-0.1, None), "c": (-1.0, 0.2)})},
    {"constraints": Constraints(groups={"pair": ["a", "c"]})},
    {"constraints": Constraints(heredity={"c": ["a", "b"]})},
    {"constraints": Constraints(heredity=("weak", {"d": ["a", "b"]}))},
    {"penalty_factors": {"b": 3.0, "d": 0.0}},
]


def frame() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 5))
    return pd.DataFrame(X, columns=list("abcde")), X @ [1.0, 0.0, 0.7, 0.5, 0.3] + rng.normal(
        size=30
    )


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("gamma", [0.0, 2.5])
def test_a_problem_comes_back(rules: dict[str, Any], gamma: float, tmp_path: Path) -> None:
    X, y = frame()
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=2, **rules)
    problem.save(tmp_path / "hard.npz")
    same = SparseRidgeProblem.load(tmp_path / "hard.npz")
    a, b = solve(problem), solve(same)
    assert a.support.tolist() == b.support.tolist()
    assert (a.objective, a.lower_bound, same.given_gamma) == (b.objective, b.lower_bound, gamma)
    assert same.given is not None
    assert same.given.names == list("abcde")


def test_what_cannot_be_saved_or_read_is_said(tmp_path: Path) -> None:
    X, y = frame()
    problem, path = SparseRidgeProblem(X, y, gamma=1.0, tau=2), tmp_path / "p.npz"
    problem.save(path)
    whole = path.read_bytes()
    with np.load(path) as file:
        kept = dict(file)
    for content in (b"", b"text", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"p\.npz"):
            SparseRidgeProblem.load(path)
    wrong: dict[str, Any] = {
        "X": np.array([[np.nan] * 5] * 30),
        "y": np.zeros(3),
        "gamma": -1.0,
        "tau": 9,
        "factors": np.full(5, -1.0),
        "text": '{"names": null, "constraints": {"include": ["z"]}}',
    }
    for name, value in wrong.items():
        np.savez(path, **{**kept, name: np.array(value)})
        with pytest.raises(InputError):
            SparseRidgeProblem.load(path)
    np.savez(path, X=np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match=r"p\.npz"):
        SparseRidgeProblem.load(path)
    with pytest.raises(InputError, match="no-such"):
        SparseRidgeProblem.load(tmp_path / "no-such.npz")
    with pytest.raises(InputError, match="X and y"):
        SparseRidgeProblem.from_gram(np.eye(2), np.ones(2), 3.0, gamma=1.0, tau=1).save(path)
