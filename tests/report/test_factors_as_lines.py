"""A factor is one line wherever a line is a feature, and its levels have a table of their own."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LassoCV
from support.inside import linear_peers

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.design.features import cut_name

GROUPS = Constraints(count="groups")
LONG = "how_satisfied_are_you_with_the_place_where_you_live_and_with_your_neighbours_overall"
STATE, REGION = "state (51 levels)", "region (4 levels)"


def table(n: int = 400) -> tuple[pd.DataFrame, pd.Series]:
    """Rows with a factor of 51 levels, one of four, and four numbers; one of them does nothing."""
    rng = np.random.default_rng(1)
    state = np.concatenate([np.arange(51), rng.integers(0, 51, n - 51)])
    X = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "state": [f"State of {k:02d}" for k in state],
            "region": rng.choice(list("NESW"), n),
            LONG: rng.normal(size=n),
            "idle": rng.normal(size=n),
        }
    )
    y = X["age"] + 2.0 * X[LONG] + rng.normal(size=51)[state] + 0.7 * (X["region"] == "N")
    return X, y + rng.normal(size=n)


@pytest.mark.parametrize("width", [80, 100])
def test_screens_have_a_line_for_each_factor(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    X, y = table()
    taus = [1, 2, 3, 4, 5]
    model = SparseRidgeCV(gammas=[0.1], taus=taus, rule="minimum", constraints=GROUPS).fit(X, y)
    lines = model.summary().splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(model.summary().split())
    chosen = text[text.index(" columns ") : text.index(" rule ")]
    assert chosen.count("state") == chosen.count("region") == 1
    assert STATE in chosen
    assert REGION in chosen
    assert "age" in chosen
    assert "…" in chosen
    start = next(i for i, line in enumerate(lines) if line.startswith("The model"))
    first = [line.split("  ")[0] for line in lines[start + 3 : start + 3 + model.tau_]]
    assert STATE in first
    assert REGION in first
    assert len(set(first)) == model.tau_
    # The long name keeps both its ends, on one line.
    (cut,) = (name for name in first if "…" in name)
    ends = cut.split("…")
    assert LONG.startswith(ends[0])
    assert LONG.endswith(ends[1])
    assert min(map(len, ends)) > 5
    below = next(i for i, line in enumerate(lines) if line.startswith("The columns of these"))
    levels = lines[below + 3 :]
    assert levels[0].startswith("state=State of")
    assert any(line.startswith("… ") and "more column" in line for line in levels)
    every = next(i for i, line in enumerate(lines) if line.startswith("Every size"))
    sizes = [line for line in lines[every + 3 :] if "+" in line]
    assert all("=State" not in line and " more" not in line for line in sizes)


def test_frames_have_a_line_or_a_name_for_each_factor() -> None:
    X, y = table()
    model = SparseRidge(tau=4, constraints=GROUPS).fit(X, y)
    path = model.path_
    assert path["names"].iloc[-1] == ["age", STATE, REGION, LONG]
    assert path["columns"].iloc[-1] == model.support_.tolist()
    assert len(path["coef"].iloc[-1]) == model.support_.size
    near = model.near_best(0.3)
    assert len({tuple(names) for names in near["names"]}) == len(near) > 1
    assert [len(names) for names in near["names"]] == near["tau"].tolist()
    worth = model.importance()
    assert sorted(worth.index) == sorted(["age", STATE, REGION, LONG, "idle"])
    assert worth.loc[STATE, "position"] == 1
    assert worth["proved"].all()
    ranked = model.alternatives(2)
    assert [len(names) for names in ranked["names"]] == ranked["tau"].tolist()


def test_partitions_have_a_line_for_each_factor() -> None:
    X, y = table(120)
    model = SparseRidgeCV(gammas=[0.1], rule="minimum", cv=3, constraints=GROUPS).fit(X, y)
    found = model.partitions(2)
    assert list(found.index) == ["age", STATE, REGION, LONG, "idle"]
    assert found.loc[STATE, "selected"] == (STATE in model.path_["names"][model.tau_ - 1])


def test_inference_says_which_features_it_leaves_out() -> None:
    X, y = table()
    model = SparseRidge(tau="bic").fit(X, y)
    found = model.inference()
    assert found.attrs["left_out"] == [STATE, REGION]
    assert f"Left out are therefore: {STATE}, {REGION}." in " ".join(model.summary().split())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_effect_of_a_factor_is_the_spread_of_what_it_adds(
    intercept: bool, weighted: bool
) -> None:
    """It is compared with the predictions of the factor's part alone, by numpy."""
    X, y = table(150)
    X = X.assign(other=X["age"] + 7.0)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(y)) if weighted else None
    rules = Constraints(groups={"both": ["other", "idle"]}, count="groups")
    model = SparseRidge(tau=5, gamma=0.3, fit_intercept=intercept, constraints=rules)
    model.fit(X, y + 3.0, sample_weight=weights)
    run = model._run_
    effects = dict(zip(run.features.names, run.feature_effects(run.model).tolist(), strict=True))
    spread = run.design.raw_spread
    assert effects["age"] == pytest.approx(model.coef_[0] * spread[0])
    dummies = pd.get_dummies(X["state"]).to_numpy(dtype=float)
    names = model.coef_names_.tolist()
    own = [names.index(f"state=State of {k:02d}") for k in range(51)]
    parts = {
        STATE: dummies @ model.coef_[own],
        "both (2 columns)": X[["other", "idle"]]
        @ model.coef_[[names.index("other"), names.index("idle")]],
    }
    for name, part in parts.items():
        mean = np.average(part, weights=weights)
        variance = np.average((part - mean) ** 2, weights=weights)
        assert effects[name] == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_models_of_a_pickle_and_of_a_file_keep_their_names() -> None:
    import pickle

    X, y = table(150)
    model = SparseRidgeCV(gammas=[0.1], rule="minimum", cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.path_["names"].tolist() == model.path_["names"].tolist()


def test_long_names_lose_their_middle() -> None:
    assert cut_name("abcdefghij", 10) == "abcdefghij"
    assert cut_name("abcdefghijk", 7) == "abc…ijk"
    assert cut_name(f"{LONG} (51 levels)", 24).endswith(" (51 levels)")
    for room in range(1, 40):
        for name in ("abcdefghijklmnop", f"{LONG} (51 levels)", f"{LONG} (2 columns)"):
            assert len(cut_name(name, room)) <= max(room, 3)
    # Where hardly any of a name would be left beside its number of levels, that number goes.
    assert cut_name(f"+{LONG} (18 levels)", 15) == "+how_sa…overall"
    assert cut_name("+region (5 levels)", 15) == "+region…"
    for room in range(8, 40):
        shown = cut_name(f"{LONG} (18 levels)", room)
        assert len(shown.removesuffix(" (18 levels)").replace("…", "")) >= min(8, room - 1), room


def test_the_lasso_of_a_size_counts_a_factor_as_sizes_do() -> None:
    """Its errors at a size are those of penalties that select no more, by scikit-learn.

    A factor of L levels of which any has a coefficient counts as L − 1.
    """
    X, y = table()
    model = SparseRidgeCV(gammas=[0.1], rule="minimum", cv=3).fit(X, y)
    data = model._run_.held_out.study.data  # type: ignore[union-attr]
    sizes = np.array([0, 1, 3, 4, 50, 54, 56])
    found = linear_peers(data, sizes)["lasso"]
    A = pd.get_dummies(X, dtype=float)
    A = A[["age", *(c for c in A if "=" in c or ("_" in c and c != LONG)), LONG, "idle"]].to_numpy()
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    fit = LassoCV(cv=list(data.folds.splits())).fit(A, y)
    error = fit.mse_path_ @ (data.folds.sizes / data.folds.sizes.sum())
    used = np.abs(fit.path(A, y, alphas=fit.alphas_)[1]) > 0.0
    units = [[0], list(range(1, 52)), list(range(52, 56)), [56], [57]]
    counts = [1, 50, 3, 1, 1]
    features = sum(n * used[own].any(axis=0) for n, own in zip(counts, units, strict=True))
    expected = [error[features <= size].min() for size in sizes]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[-1] == pytest.approx(error.min(), rel=1e-6)  # All features: the best penalty.
