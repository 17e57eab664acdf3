"""Claims of a fit, each recomputed by enumeration of every support on every set of rows.

Of the package only the fitted results and the γ of the default grid appear here; every number that
a claim is about is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv.selection.claims import Claim
from sparsecv.selection.result import Result

from .brute_force import Data, enumerate_size, ridge
from .folds import TIE, in_fold, standardised
from .inside import Choice, choice_of_size, claim_of, grown_grid

Array = NDArray[np.float64]
Index = NDArray[np.intp]
# Errors of which one is computed by the package and one here differ by at most this share, and by
# at most this share of the mean of y².
SHARE = 1e-7
# So many γ between the ends of a range are looked at.
TRIED = 25


class Table:
    """Rows in folds, and best subsets of any of the rows by enumeration.

    tied: Whether some problem had several best supports, as the fits so far have found.
    """

    def __init__(self, X: Array, y: Array, pairs: Sequence[tuple[Index, Index]]) -> None:
        self.A, self.b, _ = standardised(X, y, intercept=True)
        self.n, self.p = self.A.shape
        self.pairs = list(pairs)
        self.every = np.arange(self.n)
        self.size = float(np.mean(self.b**2))
        self.tied = False
        self._known = dict[tuple[bytes, float, int], list[Array]]()

    def best(
        self, train: Index, gamma: float, tau: int, target: Array | None = None
    ) -> list[Array]:
        """Coefficients (p,) of every best support of some rows, about the means of these rows.

        target: What is fitted in place of y, shape (rows,).
        """
        key = train.tobytes(), gamma, tau
        if target is None and key in self._known:
            return self._known[key]
        A, b, _, _ = in_fold(self.A, self.b, train, train, True)
        b = b if target is None else target
        found = enumerate_size(Data(A, b, gamma), tau)
        tied = found.objective <= found.least * (1.0 + TIE) + 1e-15 * float(b @ b)
        coefs = []
        for c in np.flatnonzero(tied):
            coef, support = np.zeros(self.p), list(found.supports[c])
            coef[support] = ridge(A[:, support], b, gamma)
            coefs.append(coef)
        if target is None:
            self._known[key] = coefs
        self.tied |= len(coefs) > 1
        return coefs

    def squares(self, train: Index, test: Index, coef: Array, of: Array | None = None) -> Array:
        """Squared errors of a model of some rows on others, or squared distances to another model.

        of: The coefficients of the other model, whose predictions take the place of y.
        """
        _, _, H, t = in_fold(self.A, self.b, train, test, True)
        return np.asarray(((t if of is None else H @ of) - H @ coef) ** 2)

    def errors(self, gammas: Array, taus: Index, pairs: Any = None) -> tuple[Array, Array]:
        """Least and greatest sums of squared errors over tied supports, shape (γ, τ, fold)."""
        found = [
            [
                [
                    [self.squares(train, test, c).sum() for c in self.best(train, gamma, tau)]
                    for train, test in pairs or self.pairs
                ]
                for tau in taus.tolist()
            ]
            for gamma in gammas.tolist()
        ]
        ends = [[[[end(f) for f in t] for t in g] for g in found] for end in (min, max)]
        return np.array(ends[0]), np.array(ends[1])


def wrong_claims(result: Result, X: Array, y: Array, seed: int = 0) -> Iterator[str]:
    """Yield a line for every claim of a fit that does not hold.

    result: A cross-validation of a table without constraints, weights or missing values, whose
        folds partition the rows.
    seed: Of the γ of a range that are looked at.
    """
    assert result.held_out is not None
    study, surface, _ = result.held_out
    folds = study.data.folds
    judge = _Judge(result, Table(X, y, [folds.split(j) for j in range(folds.k)]), seed)
    for name, claim in result.claims.items():
        yield from judge.bounds(claim, result.choices[name])
        yield from judge.truth(claim, result.choices[name])
    choice = result.choices[study.rule]
    sizes = [model.tau for model in result.sizes]
    size = int(np.random.default_rng(seed).choice(sizes))
    own = choice_of_size(surface, choice, size)
    yield from judge.truth(claim_of(study, surface, own), own)


class _Judge:
    """What is recomputed for all claims of one fit.

    low, high, shape (γ, τ): The least and the greatest CV error over tied supports of every pair.
    """

    def __init__(self, result: Result, table: Table, seed: int) -> None:
        assert result.held_out is not None
        self.study, self.surface, _ = result.held_out
        self.table, self.rng = table, np.random.default_rng(seed)
        self.gammas, self.taus = self.surface.gammas, self.surface.taus
        self.sums, most = table.errors(self.gammas, self.taus)
        self.low, self.high = self.sums.sum(axis=2) / table.n, most.sum(axis=2) / table.n
        self.near = SHARE * table.size

    def between(self) -> tuple[Array, Array]:
        """The least and greatest CV errors at some γ of the range that was searched, all sizes."""
        assert self.surface.minimum is not None
        span = self.surface.minimum.span
        drawn = np.exp(self.rng.uniform(np.log(span.low or 1e-6), np.log(span.high), TRIED))
        low, high = self.table.errors(drawn, self.taus)
        return low.sum(axis=2) / self.table.n, high.sum(axis=2) / self.table.n

    def bounds(self, claim: Claim, choice: Choice) -> Iterator[str]:
        """Bounds of the least CV error over everything searched."""
        least, most = float(self.low.min()), float(self.high.min())
        if self.surface.minimum is not None:
            # The least error over a range may lie below that at the γ that are looked at here.
            most = min(most, float(self.between()[1].min()))
            least = -np.inf
        if choice.projection is not None:
            found = min(one.cv_error for one in choice.projection.sizes)
            least, most = min(least, found), min(most, found)
        if not claim.lower <= most * (1.0 + SHARE) + self.near:
            yield f"{claim.rule}: lower bound {claim.lower!r}, least error {most!r}"
        if not claim.upper >= least * (1.0 - SHARE) - self.near:
            yield f"{claim.rule}: upper bound {claim.upper!r}, least error {least!r}"
        if not claim.lower <= choice.cv_error * (1.0 + SHARE) + self.near and claim.proved:
            yield f"{claim.rule}: cv_error {choice.cv_error!r} below the bound {claim.lower!r}"

    def truth(self, claim: Claim, choice: Choice) -> Iterator[str]:
        """What is stated, where it is proved, over the range that the claim names."""
        said = "It is proved that" if claim.proved else "It is not proved that"
        if not claim.sentence.startswith(said) or f"(rule {claim.rule}; " not in claim.sentence:
            yield f"{claim.rule}: the sentence is {claim.sentence!r}"
        if claim.proved:
            judges: dict[str, Callable[[Claim, Choice], Iterator[str]]] = {
                "minimum": self.minimum,
                "one-se": self.minimum if choice.size_given else self.one_se,
                "stability": self.stability,
                "corrected": self.corrected,
                "projected": self.projected,
            }
            for line in judges[claim.rule](claim, choice):
                yield f"{claim.rule}, {'size given' if choice.size_given else 'all sizes'}: {line}"

    def _smaller(self, values: Array, chosen: float, tolerance: float = 0.0) -> bool:
        """Whether some value is smaller than the chosen one by more than the tolerance."""
        return bool(values.min() < chosen * (1.0 - tolerance) - SHARE * abs(chosen) - self.near)

    def _columns(self, claim: Claim) -> NDArray[np.bool_]:
        """The sizes that a claim names, as columns of the surface."""
        return np.isin(self.taus, claim.sizes)

    def minimum(self, claim: Claim, choice: Choice) -> Iterator[str]:
        g, t = choice.position
        searched = self.surface.tolerance is not None
        low, high = self.low[g, t], self.high[g, t]
        if not searched and not (
            low * (1.0 - SHARE) - self.near <= choice.cv_error <= high * (1.0 + SHARE) + self.near
        ):
            yield f"CV error {choice.cv_error!r}, not in [{low!r}, {high!r}]"
        values = self.high[:, self._columns(claim)]
        if claim.span is not None:
            values = np.concatenate([values, self.between()[1]])
        # Of a search the error of the chosen pair need not be known.
        chosen = float(low) if searched else choice.cv_error
        if self._smaller(values, chosen, claim.tolerance):
            yield f"{chosen!r} is chosen, {values.min()!r} is smaller"

    def one_se(self, claim: Claim, choice: Choice) -> Iterator[str]:
        yield from self.minimum(replace(claim, sizes=np.array([choice.tau])), choice)
        weight = np.array([test.size for _, test in self.table.pairs])
        means = self.sums / weight
        spread = (weight * (means - self.low[:, :, None]) ** 2).sum(axis=2) / weight.sum()
        std_error = np.sqrt(spread / max(weight.size - 1, 1))
        # Any pair whose error is the least up to rounding may set the limit.
        least = self.low <= self.high.min() * (1.0 + SHARE) + self.near
        if self.table.tied:
            return
        limits = (self.low + std_error)[least]
        fewer = self.high[:, self.taus < choice.tau]
        if fewer.size and fewer.min() < limits.min() * (1.0 - SHARE) - self.near:
            yield f"fewer columns have {fewer.min()!r}, the limit is {limits.min()!r}"
        if choice.cv_error > limits.max() * (1.0 + SHARE) + self.near:
            yield f"the chosen pair has {choice.cv_error!r}, the limit is {limits.max()!r}"

    def _losses(self, gamma: float, tau: int, train: Index) -> Array:
        """Squared errors on all rows of the model of some rows, shape (n,)."""
        return self.table.squares(train, self.table.every, self.table.best(train, gamma, tau)[0])

    def _least_criterion(
        self, claim: Claim, choice: Choice, value: Callable[[float, int], float]
    ) -> Iterator[str]:
        """Whether no pair that the claim names has a smaller value than the chosen pair."""
        values = np.array([[value(g, int(t)) for t in claim.sizes] for g in claim.gammas.tolist()])
        chosen = value(choice.gamma, choice.tau)
        if self.table.tied:
            return
        if abs(chosen - choice.criterion) > SHARE * abs(chosen) + self.near:
            yield f"the criterion is {choice.criterion!r}, recomputed {chosen!r}"
        if self._smaller(values, chosen):
            yield f"{chosen!r} is chosen, {values.min()!r} is smaller"

    def stability(self, claim: Claim, choice: Choice) -> Iterator[str]:
        table = self.table

        def value(gamma: float, tau: int) -> float:
            full = self._losses(gamma, tau, table.every)
            single = [self._losses(gamma, tau, train) for train, _ in table.pairs]
            held = [one[test].mean() for one, (_, test) in zip(single, table.pairs, strict=True)]
            change = max(np.abs(one - full).mean() for one in single)
            assert choice.lambda_ is not None
            return float(np.mean(held) + choice.lambda_ * change)

        return self._least_criterion(claim, choice, value)

    def corrected(self, claim: Claim, choice: Choice) -> Iterator[str]:
        table = self.table

        def value(gamma: float, tau: int) -> float:
            full = self._losses(gamma, tau, table.every)
            single = [self._losses(gamma, tau, train) for train, _ in table.pairs]
            held = sum(
                float(one[test].sum()) for one, (_, test) in zip(single, table.pairs, strict=True)
            )
            return held / table.n + float(full.mean()) - float(np.mean(single))

        return self._least_criterion(claim, choice, value)

    def projected(self, claim: Claim, choice: Choice) -> Iterator[str]:
        """The average and its projections, computed from nothing but the rows."""
        assert choice.projection is not None
        found, table = choice.projection, self.table
        own = _Average(self)
        if table.tied:
            return
        error, distance, coef = own.projected(choice.tau)
        model = found.sizes[found.chosen]
        near = 100.0 * self.near
        if abs(own.error - found.average.error) > near:
            yield f"the average's error is {found.average.error!r}, recomputed {own.error!r}"
        if not any(abs(one - model.distance) <= near for one in distance):
            yield f"the distance is {model.distance!r}, recomputed {distance!r}"
        # Distances that are equal up to rounding leave open which ridge weight is taken.
        alike = [i for i, one in enumerate(distance) if one <= min(distance) + near]
        if not any(abs(error[i] - choice.cv_error) <= near for i in alike):
            yield f"the CV error is {choice.cv_error!r}, recomputed {[error[i] for i in alike]}"
        raw = (
            model.coef[self.study.design.kept]
            * self.study.design.raw_spread[self.study.design.kept]
        )
        if not any(
            np.allclose(coef[i], raw, rtol=1e-4, atol=1e-4 * np.sqrt(table.size)) for i in alike
        ):
            yield f"the coefficients are {raw!r}, recomputed {[coef[i] for i in alike]!r}"


class _Average:
    """The average of all models of all rows and of every fold, by enumeration.

    error: Its CV error.
    """

    def __init__(self, judge: _Judge) -> None:
        self.judge, table, study = judge, judge.table, judge.study
        gammas, taus = judge.gammas, judge.taus
        # The mean alone has no part in the average.
        self.none = np.where(taus > 0, 0.0, np.inf)
        weights = _weights(judge.low + self.none, gammas, table.n)
        some, most = weights.any(axis=1), int(np.flatnonzero(weights.any(axis=0))[-1]) + 1
        means = [judge.low[some][:, :most]]
        for number in range(1, study.partitions):
            folds = study.data.partition(number, study.settings.seed).folds
            pairs = [folds.split(j) for j in range(folds.k)]
            sums, _ = table.errors(gammas[some], taus[:most], pairs)
            means.append(sums.sum(axis=2) / table.n)
        self.weights = np.zeros(weights.shape)
        mean = np.mean(means, axis=0) + self.none[:most]
        self.weights[some, :most] = _weights(mean, gammas[some], table.n)
        self.of_all = self._averaged(table.every, self.weights, gammas)
        self.of_folds = self._of_folds()
        sums = [
            table.squares(train, test, coef).sum()
            for (train, test), coef in zip(table.pairs, self.of_folds, strict=True)
        ]
        self.error = float(np.sum(sums)) / table.n

    def _averaged(self, train: Index, weights: Array, gammas: Array) -> Array:
        """The average of the models of some rows."""
        table, coef = self.judge.table, np.zeros(self.judge.table.p)
        for g, t in np.argwhere(weights > 0.0):
            best = table.best(train, float(gammas[g]), int(self.judge.taus[t]))[0]
            coef += weights[g, t] * best
        return coef

    def _of_folds(self) -> list[Array]:
        """The average of every fold, with the weights that models without two blocks decide."""
        judge, table = self.judge, self.judge.table
        block = np.arange(len(table.pairs)) % 5
        held = [
            np.sort(np.concatenate([table.pairs[j][1] for j in np.flatnonzero(block == b)]))
            for b in range(block.max() + 1)
        ]
        known = dict[tuple[int, float], Array]()

        def errors(b: int, gamma: float) -> Array:
            if (b, gamma) not in known:
                total = np.zeros(judge.taus.size)
                for c in range(len(held)):
                    if c != b:
                        train = np.setdiff1d(table.every, np.concatenate([held[b], held[c]]))
                        for t, tau in enumerate(judge.taus.tolist()):
                            coef = table.best(train, gamma, tau)[0]
                            total[t] += table.squares(train, held[c], coef).sum()
                known[b, gamma] = total + self.none
            return known[b, gamma]

        found = list[tuple[Array, Array]]()
        for b in range(len(held)):
            n, grid = table.n - held[b].size, judge.gammas
            if judge.study.gammas is None:
                # Columns of these tables do not nearly depend, so that rounding moves nothing.
                score, never = self._score(errors, b, n), lambda *_: False
                grid = np.sort(grown_grid(lambda _: None, score, never, never)[0])
            found.append((_weights(np.array([errors(b, g) for g in grid.tolist()]), grid, n), grid))
        return [self._averaged(train, *found[block[j]]) for j, (train, _) in enumerate(table.pairs)]

    @staticmethod
    def _score(errors: Callable[[int, float], Array], b: int, n: int) -> Callable[[float], float]:
        """The soft least error of a block at a γ, which decides how far its grid goes."""

        def score(gamma: float) -> float:
            h = errors(b, gamma)
            h = h[np.isfinite(h)]
            return float(h.min() * np.mean((h / h.min()) ** (-n / 10.0)) ** (-10.0 / n))

        return score

    def projected(self, tau: int) -> tuple[list[float], list[float], list[Array]]:
        """CV errors, distances and models of the projections onto a size, one for every γ⊥."""
        table, judge = self.judge.table, self.judge
        unit = float(f"{(table.A**2).sum(axis=0).mean() / 100.0:.5e}")
        ridges = np.array([0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0])
        averaged = judge.gammas[self.weights.any(axis=1)] / unit
        while averaged[averaged > 0.0].min(initial=np.inf) < ridges[0] * (1.0 - 1e-12):
            ridges = np.append(ridges[0] / 10.0, ridges)
        if (averaged == 0.0).any():
            ridges = np.append(0.0, ridges)
        errors, distances, coefs = list[float](), list[float](), list[Array]()
        for gamma in (ridges * unit).tolist():
            error = distance = 0.0
            for (train, test), own in zip(table.pairs, self.of_folds, strict=True):
                A, _, _, _ = in_fold(table.A, table.b, train, train, True)
                coef = table.best(train, gamma, tau, A @ own)[0]
                error += table.squares(train, test, coef).sum()
                distance += table.squares(train, test, coef, own).sum()
            A, _, _, _ = in_fold(table.A, table.b, table.every, table.every, True)
            errors.append(error / table.n)
            distances.append(distance / table.n)
            coefs.append(table.best(table.every, gamma, tau, A @ self.of_all)[0])
        return errors, distances, coefs


def _weights(errors: Array, gammas: Array, n: float) -> Array:
    """Weights (h / least h)^(−n/10) times the length of log γ, shape (γ, τ), which sum to 1."""
    order = np.argsort(gammas)
    positive = gammas[order][gammas[order] > 0.0]
    logs = np.log(np.where(gammas[order] > 0.0, gammas[order], 1.0))
    if positive.size < gammas.size and positive.size:
        step = np.log(positive[1] / positive[0]) if positive.size > 1 else np.log(10.0)
        logs[gammas[order] == 0.0] = np.log(positive[0]) - step
    lengths = np.ones(gammas.size)
    if gammas.size > 1 and np.ptp(logs) > 0.0:
        steps = np.diff(logs)
        lengths[order] = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    weight = (errors / errors.min()) ** (-n / 10.0) * lengths[:, None]
    weight[weight < 1e-4 * weight.max()] = 0.0
    return np.asarray(weight / weight.sum())
