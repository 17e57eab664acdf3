"""Check a certificate of sparsecv, with Python alone: ``python verify.py CERTIFICATE DATA``.

On training rows [X y], centred by their means with an intercept, let k columns S have the objective
    f(S) = min ||y - X b||^2 + sum_j u_j b_j^2  over all b that are 0 outside S,  u_j = gamma/2 v_j,
v_j being the variance of column j (its squared length about the mean with the scale "unit-norm", 1
with "none" and where it is constant): ridge regression on columns divided by sqrt(v_j). Claims on a
CV error take v_j from all rows, others from the training rows. A tree puts one free column in and
out at each node, so that its leaves hold every subset. A leaf names c. With G = X'X, w = u + D,
g = X'y - Q c and any diagonal D >= 0 for which Q = G - D has no negative eigenvalue, S has there
    f(S) >= y'y - c'Q c - (sum of g_j^2 / w_j over the columns that are in)
                        - (sum of the k - #in largest g_j^2 / w_j over the free columns).      (1)
Proof. (b - c)'Q (b - c) >= 0 gives b'Q b >= 2 c'Q b - c'Q c. The objective of b is therefore at
least y'y - c'Q c - 2 g'b + sum_j w_j b_j^2, and column j of S lowers this by g_j^2 / w_j at most.
With D = 0 this holds for every multiple of r = y - X c: f(S) >= (y'r)^2 / (r'r + both sums). (2)
"""

import csv
import hashlib
import json
import re
import sys
from fractions import Fraction
from math import isqrt, lcm
from operator import mul
from pathlib import Path
from typing import Any

FORMAT = "sparsecv certificate, format 1"
ONE = 1 << 32  # Entries of D are given in units of G_jj / ONE, and sums are multiplied by ONE.
Seq = tuple[int, ...]


class Wrong(Exception):
    """What is wrong with a certificate, and where."""


def need(condition: bool, what: str) -> None:
    """Raise Wrong where a condition fails."""
    if not condition:
        raise Wrong(what)


def decimal(text: str, place: str) -> Fraction:
    """The number that a text of digits states, with at most three digits in its exponent."""
    plain = re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?\s*", text, re.A | re.I)
    need(plain is not None, f"{place}: {text[:20]!r} is no decimal number")
    return Fraction(text)


class Data:
    """The named columns as whole numbers, each times its factor; column 0 is 1, y is the last."""

    def __init__(self, path: str, head: dict[str, Any]) -> None:
        content = Path(path).read_bytes()
        need(hashlib.sha256(content).hexdigest() == head["sha256"], f"{path}: other data are meant")
        text = content.decode("utf-8-sig").split("\n")  # A cell ends on the line that it begins on.
        lines = [cells for line in text for cells in csv.reader([line], strict=True) if cells]
        names, self.factor = [*head["columns"], head["response"]], head["factors"]
        need(len(names) <= 501, "columns: more than 500")  # The memory grows with their square.
        need(all(names.count(x) == lines[0].count(x) == 1 for x in names), f"{path}: column names")
        at, self.p, self.rows = [lines[0].index(name) for name in names], len(names) - 1, []
        for i, line in enumerate(lines[1:], 2):
            row = [decimal(line[a], f"line {i}") * f for a, f in zip(at, self.factor, strict=True)]
            need(len(line) == len(lines[0]) and all(x == int(x) for x in row), f"line {i}")
            self.rows.append([1, *(x.numerator for x in row)])
        self.n, columns = len(self.rows), list(zip(*self.rows, strict=True))
        half = [[sum(map(mul, a, b)) for b in columns[: i + 1]] for i, a in enumerate(columns)]
        z = [[half[max(i, j)][min(i, j)] for j in range(len(half))] for i in range(len(half))]
        self.sums, self.scale = z, head["scale"]

    def variances(self, z: list[list[int]]) -> list[Fraction]:
        """The numbers v_j, from sums of products of rows."""
        n, factors = z[0][0], enumerate(self.factor[:-1], 1)
        total = {"unit-variance": n**2, "unit-norm": n, "none": 0}[self.scale]
        squares = [(total and n * z[j][j] - z[0][j] ** 2, f * f) for j, f in factors]
        return [Fraction(square, total) if square else Fraction(one) for square, one in squares]


class Gram:
    """G, X'y, y'y, v_j of the rows that are not held out; centred, all but v_j times ``unit``."""

    def __init__(self, table: Data, held_out: list[int], centred: bool, own_scale: bool) -> None:
        z: list[list[int]] = table.sums
        for row in (table.rows[i] for i in held_out):
            z = [[s - x * y for s, y in zip(z[a], row, strict=True)] for a, x in enumerate(row)]
        need(z[0][0] > 0, "folds: a fold has no training row")
        self.v = table.variances(z if own_scale else table.sums)
        self.unit, self.total = m, t = (z[0][0], z[0]) if centred else (1, [0] * len(z))
        z = [[m * x - t[a] * s for x, s in zip(z[a], t, strict=True)] for a in range(len(t))]
        self.G, self.b, self.yy = [row[1:-1] for row in z[1:-1]], z[-1][1:-1], z[-1][-1]


class Problem:
    """One fold at one gamma; Q, b, yy and w = num / den are multiplied by gram.unit * ONE."""

    def __init__(self, table: Data, gram: Gram, gamma: Fraction, diagonal: Seq, fit: Any) -> None:
        D, p, self.gram = [q * gram.G[j][j] for j, q in enumerate(diagonal)], table.p, gram
        self.Q = [[ONE * gram.G[i][j] - D[i] * (i == j) for j in range(p)] for i in range(p)]
        self.b, self.yy, self.plain = [x * ONE for x in gram.b], gram.yy * ONE, not any(D)
        w = [gram.unit * ONE * gamma / 2 * v + d for v, d in zip(gram.v, D, strict=True)]
        self.den = lcm(*(x.denominator for x in w))
        self.num = [x.numerator * (self.den // x.denominator) for x in w]
        (self.columns, self.bits, self.c), self.goal, self.known = fit, 0, [{*fit[0]}]
        # With s = b - (Q + w) c the objective of c is y'y - c'(b + s), and the best coefficients b*
        # have (b* - c)'(Q + w)(b* - c) = s'(Q + w)^-1 s <= sum s_j^2 / w_j, which is ``off``.
        value = self.off = 0
        for j, x in zip(self.columns, self.c, strict=True):
            slope = self.den * self.slope(j, fit) - self.num[j] * x
            value -= x * ((self.den * self.b[j] << self.bits) + slope)
            self.off += -(-slope * slope // (self.den * self.num[j]))
        self.f = self.yy + Fraction(value, self.den << (2 * self.bits))

    def semidefinite(self) -> bool:
        """Whether a proof succeeds that Q has no negative eigenvalue: 2^128 Q = R'R + d I + E."""
        p, Q = len(self.Q), [[x << 128 for x in row] for row in self.Q]
        d, off, R = max(Q[j][j] for j in range(p)) >> 44, [0] * p, list[list[int]]()
        for i in range(p):
            left = [Q[i][j] - d * (i == j) - sum(row[i] * row[j] for row in R) for j in range(i, p)]
            if left[0] <= 0:
                return False
            R.append([0] * i + [x // isqrt(left[0]) for x in left])
            for j in range(i, p):
                error = abs(left[j - i] - R[i][i] * R[i][j])
                off[i], off[j] = off[i] + error, off[j] + error * (i != j)  # Sums of |E| by rows.
        return max(off) <= d

    def slope(self, j: int, point: Any) -> Any:
        """(X'y - Q c)_j at c / 2^bits, times 2^bits."""
        (columns, bits, c), row = point, self.Q[j]
        need(bits < 9999, "coefficients: too many digits")
        return (self.b[j] << bits) - sum(map(mul, [row[i] for i in columns], c))

    def closes(self, inside: Seq, free: Seq, k: int, point: Any) -> bool:
        """Whether (1) or (2) reaches the goal, or a known subset is the only one."""
        alone = set(inside if len(inside) == k else inside + free) in self.known
        (columns, bits, c), g = point, {j: self.slope(j, point) for j in inside + free}
        linear = sum(self.b[j] * x for j, x in zip(columns, c, strict=True)) << bits  # c'X'y
        square = linear - sum(g[j] * x for j, x in zip(columns, c, strict=True))  # c'Q c
        worth = {j: -(-g[j] * g[j] * self.den // self.num[j]) for j in g}  # rounded up
        sums = sum(sorted((worth[j] for j in free), reverse=True)[: k - len(inside)])
        sums += sum(worth[j] for j in inside)
        yy, goal = self.yy << (2 * bits), self.goal << (2 * bits)
        along, length = yy - linear, yy - 2 * linear + square  # y'r and r'r
        scaled = self.plain and along > 0 and along**2 * ONE >= goal * (length + sums)
        return bool(alone or scaled or (yy - square - sums) * ONE >= goal)

    def errors(self, table: Data, held_out: list[int]) -> tuple[Fraction, Fraction]:
        """Bounds on the sum of squared errors of b* on held-out rows, in squared units of y."""
        low, high, unit, total = 0, 0, self.gram.unit, self.gram.total
        for row in (table.rows[i] for i in held_out):
            x = [unit * z - s for z, s in zip(row, total, strict=True)]
            fitted = sum(x[j + 1] * y for j, y in zip(self.columns, self.c, strict=True))
            error = abs((x[-1] << self.bits) - fitted)
            length = sum(-(-(x[j + 1] ** 2 * self.den << 64) // self.num[j]) for j in self.columns)
            moved = isqrt((length * self.off >> 64) + 1) + 1  # >= |x'(b* - c)|, by Cauchy-Schwarz
            low, high = low + max(error - moved, 0) ** 2, high + (error + moved) ** 2
        whole = (unit * table.factor[-1]) ** 2 << (2 * self.bits)
        return Fraction(low, whole), Fraction(high, whole)


def check_tree(tree: list[Any], p: int, k: int, problems: dict[int, Problem], place: str) -> None:
    """Follow a tree, a node before its children and "in" before "out", and check its leaves."""
    stack: list[tuple[Seq, Seq]] = [((), tuple(range(p)))]
    for number, entry in enumerate(tree, 1):
        here, (inside, free) = f"{place}, entry {number}", stack.pop()
        if isinstance(entry, int):
            need(entry in free, f"{here}: column {entry} is not free")
            left = tuple(j for j in free if j != entry)
            stack += [(inside, left), ((*inside, entry), left)]
        elif len(inside) <= k <= len(inside) + len(free):  # Other leaves hold no subset of size k.
            need(set(entry[0]) <= {*inside, *free}, f"{here}: a column is out")
            for fold, problem in problems.items():
                need(problem.closes(inside, free, k, entry), f"{here}, fold {fold + 1}: too small")
    need(not stack, f"{place}: the tree ends before its last leaf")


def claim(head: dict[str, Any]) -> list[str]:
    """The lines that say what a certificate proves, from its numbers."""
    names, sizes, gammas = head["columns"], [*map(str, head["sizes"])], ", ".join(head["gammas"])
    what = f"Objective: ||y - X b||^2 + (gamma/2) ||b||^2, y = {head['response']}, intercept "
    what += f"{head['intercept']}, {head['rows']} rows, {len(names)} columns, scale {head['scale']}"
    some, held = f"of the columns {', '.join(names)}", [len(fold) for fold in head["held_out"]]
    rows = ", ".join(f"{held.count(m)} of {m} row{'s' * (m > 1)}" for m in sorted(set(held)))
    if "supports" in head:
        best = [", ".join(names[j] for j in support) for support in head["supports"]]
        least, usual = f"{' or '.join(sizes)} {some} have an objective", max(best, key=best.count)
        share = f" at gamma = {gammas} by more than a share of {head['share']}"
        if "limit" in head:
            values, limit, w = head["values"], head["limit"], head["weights"]
            kind, by = "value", f" times {', '.join(w)} in turn"
            kind, by = ("objective", "") if {*w} == {"1"} else (kind, by)
            least = f"No {'other ' * (limit != values[0])}{least}{by} below {limit}{share}."
            every = [f"Columns with the {kind} {x}: {s}" for x, s in zip(values, best, strict=True)]
            return [least, *every, what]
        least = f"No {least} below that of the columns named{share}, whichever is left out: {rows}."
        named = f"Columns named: {usual}"
        parts = [", ".join(map(str, part)) for part in head["held_out"]]
        for one in sorted({*best} - {usual}):
            left = [part for part, own in zip(parts, best, strict=True) if own == one]
            named += f"; without row {' or '.join(left)}: {one}"
        return [least, f"{named}. The first row is row 0.", f"{what} (of the rows left in)"]
    least = f"No pair (gamma, size) has a CV error below {head['cv_error']} by more than a share"
    least += f" of {head['pair_share']}; gamma = {head['gamma']}, size = {head['size']} has it."
    error = f"CV error: mean squared error on held-out rows of {len(held)} folds ({rows}), each "
    error += f"with its best columns of the size, up to a share of {head['share']} of the objective"
    return [least, f"Pairs: gamma in {gammas}; size in {', '.join(sizes)} {some}", error, what]


def check(certificate: str, data: str) -> list[str]:
    """Check a certificate against a table; return the lines of its claims, or raise Wrong."""
    try:
        text = Path(certificate).read_text(encoding="utf-8", errors="replace")
        first, *parts = f"\n{text}".split(f"\n{FORMAT}\n")  # A file may make several claims.
        need(not first, f"{certificate}: the first line of a certificate is {FORMAT!r}")
        for one in (part.split("\n") for part in parts):
            got = [json.loads(x, parse_float=str, parse_constant=str) for x in one if x[:1] == "{"]
            words, others = claim(got[0]), [x for x in one if x[:1] not in ("", "{")]
            need(others == words and "".join(words).isprintable(), "claim: words or format")
            check_entries(got[0], got[1:], data)
    except Exception as error:
        raise error if isinstance(error, Wrong | OSError) else Wrong(repr(error)) from None
    return [x for x in text.split("\n") if x[:1] not in ("", "{") and x != FORMAT]


def check_entries(head: dict[str, Any], blocks: list[dict[str, Any]], data: str) -> None:
    """Check that blocks, each a tree for folds at one gamma and one size, prove the head's claim:
    all columns with values below a limit, the best ones of every fold, or the least CV error."""
    table, centred, folds, chosen = Data(data, head), head["intercept"], head["held_out"], False
    n, p, held, best = table.n, table.p, sorted(i for f in folds for i in f), head.get("supports")
    of_fits, near, known, sizes = best is not None, "limit" in head, {}, head["sizes"]
    gammas, share = [decimal(x, "gammas") for x in head["gammas"]], decimal(head["share"], "share")
    need(folds == [[]] if near else held == [*range(n)] and all(folds), "folds: no partition")
    need(n == head["rows"] and min(gammas) >= 0 <= share * 10**6 <= 1, "claim: rows, gamma, share")
    need(isinstance(centred, bool) and of_fits <= (len(gammas) * (near or len(sizes)) == 1), "pair")
    need(len({*sizes}) == len(sizes), "sizes: one is named twice")  # Which weight would count?
    weights = dict(zip(sizes, head["weights"], strict=True)) if near else {}
    grams, safe, fits = [Gram(table, fold, centred, of_fits) for fold in folds], set(), {}
    for number, block in enumerate(blocks, 1):
        g, k, place, problems = block["gamma"], block["size"], f"block {number}", {}
        diagonal = tuple(block["diagonal"] or [0] * p)
        for fold, *fit in block["fits"]:
            here, columns = f"{place}, fold {fold + 1}", set(fit[0])
            need(len(fit[0]) == len(columns) == k and columns <= set(range(p)), f"{here}: columns")
            problem = problems[fold] = Problem(table, grams[fold], gammas[g], diagonal, fit)
            if any(diagonal) and (fold, diagonal) not in safe:
                need(min(diagonal) >= 0 and problem.semidefinite(), f"{here}: the diagonal")
                safe.add((fold, diagonal))
            problem.goal = -int((share - 1) * problem.f * ONE // 1)  # rounded up, times ONE
            if near:
                weight = decimal(weights[k], "weights")
                need(weight > 0 and problem.off <= share * problem.f * 4 ** fit[1], f"{here}: fit")
                unit = grams[0].unit * ONE * table.factor[-1] ** 2 / weight
                problem.goal = -int((share - 1) * decimal(head["limit"], "limit") * unit * ONE // 1)
                problem.known = [{*one} for one in head["supports"] if len(one) == k]
                known[tuple(sorted(columns))] = problem.f / unit
            fits[g, k, fold] = sorted(columns), problem.f, problem.errors(table, folds[fold])
        check_tree(block["tree"], p, k, problems, place)
    for g, k in ((g, k) for g in range(len(gammas)) for k in sizes):
        here = f"gamma = {head['gammas'][g]}, size = {k}"
        need(all((g, k, fold) in fits for fold in range(len(folds))), f"{here}: a fold is missing")
        found = [fits[g, k, fold] for fold in range(len(folds))]
        if near:
            both = zip((known[tuple(s)] for s in head["supports"]), head["values"], strict=True)
            chosen = all(0 <= (f - decimal(x, "fit")) * 10**9 <= f for f, x in both)
        elif of_fits:
            chosen = best == [columns for columns, *_ in found]
        else:
            low, high = (sum(errors[end] for *_, errors in found) / n for end in (0, 1))
            least, off = (decimal(head[name], name) for name in ("cv_error", "pair_share"))
            need(0 <= off * 10**6 <= 1 and low >= least * (1 - off), f"{here}: has {float(low)!r}")
            mine = (head["gammas"][g], k) == (head["gamma"], head["size"])
            chosen = chosen or (mine and high <= least * (1 + off))
    need(chosen, "claim: the columns, or the pair and its error, are not those that are proved")


if __name__ == "__main__":
    try:
        print("\n".join([*check(*sys.argv[1:]), "VERIFIED"]))
    except (Wrong, OSError, TypeError) as wrong:
        sys.exit(f"NOT VERIFIED: {wrong}")
