"""Check a certificate of sparsecv: ``python verify.py CERTIFICATE DATA``.

This file needs Python's standard library only. It searches for nothing and solves nothing, and all
its arithmetic is on whole numbers, so that nothing rests on rounding.

A table [X y] has rows with and without a fold. On the training rows, centred by their means where
the model has an intercept, a subset S of k columns has the objective

    f(S) = min ||y - X b||^2 + sum_j u_j b_j^2  over all b that are 0 outside S,  u_j = gamma/2 v_j,

where v_j is the variance of column j on all rows (with the scale "unit-norm" its squared length,
with "none" 1): the same as ridge regression on columns that are divided by sqrt(v_j).

A tree decides columns one by one: a node has columns that are in, columns that are out, and free
ones, and each branching puts one free column in and out. The leaves therefore cover every subset.
A leaf gives numbers c_j. With G = X'X, a diagonal D >= 0 for which Q = G - D has no negative
eigenvalue, w = u + D and g = X'y - Q c, every subset S of k columns below the leaf has

    f(S) >= y'y - c'Q c - (sum of g_j^2 / w_j over the columns that are in)
                        - (sum of the k - #in largest g_j^2 / w_j over the free columns).      (1)

Proof. b'Q b >= 2 c'Q b - c'Q c as (b - c)'Q (b - c) >= 0. So the objective of any b is at least
y'y - c'Q c - 2 g'b + sum_j w_j b_j^2, and each column j of S lowers this by g_j^2 / w_j at most.
With D = 0 and r = y - X c, the same holds for every multiple of r; the best multiple gives
(y'r)^2 / (r'r + both sums).                                                                 (2)
"""

import csv
import hashlib
import json
import sys
from fractions import Fraction
from math import isqrt, lcm
from operator import mul

FORMAT = "sparsecv certificate, format 1"
ONE = 1 << 32  # Entries of D are given in units of G_jj / ONE, and everything is multiplied by ONE.
TIE = Fraction(1, 10**9)  # Numbers that the claim prints are correct up to this share.


class Wrong(Exception):
    """What is wrong with a certificate, and where."""


def need(condition, what):
    if not condition:
        raise Wrong(what)


class Table:
    """The named columns, the response last, as whole numbers: each times its factor."""

    def __init__(self, path, head):
        with open(path, "rb") as file:
            content = file.read()
        need(hashlib.sha256(content).hexdigest() == head["sha256"], f"{path}: another file is meant")
        lines = list(filter(None, csv.reader(content.decode("utf-8-sig").splitlines())))
        names, self.factor = [*head["columns"], head["response"]], head["factors"]
        need(len(set(names)) == len(names) == len(self.factor), "columns: names or factors")
        for name in names:
            need(lines[0].count(name) == 1, f"{path}: the table has no column {name!r}, or several")
        at, self.rows = [lines[0].index(name) for name in names], []
        self.n, self.p = len(lines) - 1, len(names) - 1
        for number, line in enumerate(lines[1:], 2):
            row = [Fraction(line[i].strip()) * f for i, f in zip(at, self.factor, strict=True)]
            need(all(x.denominator == 1 for x in row), f"{path}, line {number}: factors")
            self.rows.append([1, *(x.numerator for x in row)])
        columns = list(zip(*self.rows, strict=True))
        self.sums = [[sum(map(mul, a, b)) for b in columns] for a in columns]
        squares = Gram(self, [], True).G
        self.v = [Fraction(f * f) for f in self.factor[:-1]]  # v_j, for the scale "none"
        if head["scale"] != "none":
            most = {"unit-variance": self.n**2, "unit-norm": self.n}[head["scale"]]
            self.v = [Fraction(squares[j][j], most) for j in range(self.p)]
        need(min(self.v) > 0, "columns: a column is constant")


class Gram:
    """G, b = X'y and y'y without the held-out rows, multiplied by ``unit``."""

    def __init__(self, table, held_out, centred):
        z = table.sums
        for i in held_out:
            row = table.rows[i]
            z = [[s - x * y for s, y in zip(sums, row, strict=True)] for sums, x in zip(z, row)]
        self.unit, total = (z[0][0], z[0]) if centred else (1, [0] * len(z))
        need(self.unit > 0, "folds: a fold has no training rows")
        z = [[self.unit * x - s * t for x, t in zip(row, total)] for row, s in zip(z, total)]
        self.total, self.G = total, [row[1:-1] for row in z[1:-1]]
        self.b, self.yy = z[-1][1:-1], z[-1][-1]


def no_negative_eigenvalue(Q):
    """Whether Q = R'R + E + d I, with E + d I diagonally dominant, for some whole R.

    R is Q's Cholesky factor, rounded. E is what rounding leaves, and is summed exactly.
    """
    p, Q = len(Q), [[x << 64 for x in row] for row in Q]  # so that rounding is small beside d
    d = max(Q[j][j] for j in range(p)) >> 44
    left, R = [0] * p, []
    for i in range(p):
        rest = [Q[i][j] - sum(row[i] * row[j] for row in R) for j in range(i, p)]
        rest[0] -= d
        if rest[0] <= 0:
            return False
        root = isqrt(rest[0])
        R.append([0] * i + [x // root for x in rest])
        for j in range(i, p):
            error = rest[j - i] - root * R[i][j]
            left[i] += abs(error)
            left[j] += abs(error) * (j > i)
    return max(left) <= d


class Problem:
    """Q, b, y'y (times unit * ONE) and w = numerator / denominator of a fold, a gamma and a D."""

    def __init__(self, table, gram, gamma, diagonal):
        self.Q = [[x * ONE for x in row] for row in gram.G]
        for j, q in enumerate(diagonal):
            self.Q[j][j] -= q * gram.G[j][j]
        self.b, self.yy = [x * ONE for x in gram.b], gram.yy * ONE
        u = [gram.unit * ONE * gamma / 2 * v for v in table.v]
        self.den = lcm(*(x.denominator for x in u))
        ridge = [x.numerator * (self.den // x.denominator) for x in u]
        extra = [q * gram.G[j][j] * self.den for j, q in enumerate(diagonal)]
        self.num, self.plain = list(map(sum, zip(ridge, extra))), not any(diagonal)
        self.gram = gram

    def fit(self, columns, bits, c):
        """Take c / 2^bits as coefficients; keep the objective, and what the best ones may change.

        With s the gradient b - (Q + w) c, the best coefficients b satisfy (b - c)'(Q + w)(b - c) =
        s'(Q + w)^-1 s <= sum_j s_j^2 / w_j, as Q has no negative eigenvalue.
        """
        self.columns, self.bits, self.c = columns, bits, c
        self.objective, self.off = (self.den * self.yy) << (2 * bits), 0
        for j, x in zip(columns, c, strict=True):
            linear = self.den * (self.b[j] << bits)
            fitted = self.den * sum(self.Q[j][i] * y for i, y in zip(columns, c, strict=True))
            slope = linear - fitted - self.num[j] * x
            self.objective -= x * (linear + slope)
            self.off -= -slope * slope // (self.den * self.num[j])
        self.objective = Fraction(self.objective, self.den << (2 * bits))

    def closes(self, inside, free, k, point):
        """Whether (1) or (2) gives ``goal``, or the subset of the fit alone is below the node."""
        if set(inside) <= set(self.columns) and (len(inside) == k or len(inside) + len(free) <= k):
            if set(self.columns) <= {*inside, *free}:
                return True
        bits, columns, c = point
        slopes = {}
        for j in (*inside, *free):
            row = self.Q[j]
            slopes[j] = (self.b[j] << bits) - sum([row[i] * x for i, x in zip(columns, c)])
        linear = sum(self.b[i] * x for i, x in zip(columns, c, strict=True)) << bits
        square = linear - sum(slopes[i] * x for i, x in zip(columns, c, strict=True))
        # -a // b is -(a / b rounded up): the sums are never taken too small.
        total = -sum(-(slopes[j] ** 2) * self.den // self.num[j] for j in inside)
        worth = sorted(-(slopes[j] ** 2) * self.den // self.num[j] for j in free)
        total -= sum(worth[: k - len(inside)])
        yy = self.yy << (2 * bits)
        goal = self.goal << (2 * bits)
        if (yy - square - total) * ONE >= goal:
            return True
        along = yy - linear
        return (
            self.plain and along > 0 and along**2 * ONE >= goal * (along - linear + square + total)
        )

    def errors(self, table, held_out, centred):
        """Bounds on the sum of squared errors of the fit on held-out rows, in units of y."""
        low = high = 0
        for i in held_out:
            row, total = table.rows[i], self.gram.total
            moved = [self.gram.unit * x - s for x, s in zip(row, total)] if centred else row
            error = moved[-1] << self.bits
            error = abs(error - sum(moved[j + 1] * x for j, x in zip(self.columns, self.c)))
            length = sum(-(-(moved[j + 1] ** 2) * self.den // self.num[j]) for j in self.columns)
            off = isqrt(length * self.off) + 1  # Cauchy-Schwarz in the norm of Q + w
            low, high = low + max(error - off, 0) ** 2, high + (error + off) ** 2
        unit = (self.gram.unit * table.factor[-1]) ** 2 << (2 * self.bits)
        return Fraction(low, unit), Fraction(high, unit)


def check_tree(tokens, p, k, problems, place):
    """Follow a tree, node before children and in before out; every leaf must close every problem."""
    stack, at = [((), tuple(range(p)))], 0
    while stack:
        inside, free = stack.pop()
        need(at < len(tokens), f"{place}: the tree ends early")
        token, at = tokens[at], at + 1
        if isinstance(token, int):
            need(token in free, f"{place}, entry {at}: column {token} is decided already")
            left = tuple(j for j in free if j != token)
            stack += [(inside, left), ((*inside, token), left)]
        elif len(inside) <= k <= len(inside) + len(free):  # Otherwise no subset is below the leaf.
            need(set(token[1]) <= {*inside, *free}, f"{place}, entry {at}: a column is out")
            for fold, problem in problems.items():
                where = f"{place}, entry {at}" + (f", fold {fold + 1}" if len(problems) > 1 else "")
                need(problem.closes(inside, free, k, token), f"{where}: the bound is too small")
    need(at == len(tokens), f"{place}: the tree has more entries than nodes")


def claim(head):
    """The lines that say what a certificate proves, from its numbers."""
    p, k, names = len(head["columns"]), head["sizes"], head["columns"]
    centred = "with an intercept" if head["intercept"] else "without an intercept"
    scale = {"none": "as they are", "unit-norm": "scaled to length 1 about their means"}
    scaled = scale.get(head["scale"], "scaled to variance 1")
    model = f"||y - X b||^2 + (gamma/2) ||b||^2, {centred}, on {p} columns {scaled}"
    share = f"a share of {head['share']}"
    if "cv_error" not in head:
        named = ", ".join(names[j] for j in head["support"])
        return [
            f"No {k[0]} of the columns have an objective below {head['objective']} by more than "
            f"{share}.",
            f"The columns with this objective: {named}",
            f"Objective: {model}, gamma = {head['gammas'][0]}; y is {head['response']}; "
            f"{head['rows']} rows.",
        ]
    return [
        f"No pair of gamma and size has a cross-validation error below {head['cv_error']} by more "
        f"than a share of {head['pair_share']}.",
        f"The pair with this error: gamma = {head['gamma']}, size = {head['size']}. The pairs: "
        f"gamma in {', '.join(head['gammas'])}; size in {', '.join(map(str, k))}.",
        f"The error of a pair: the mean squared error on held-out rows, each of {head['rows']} rows"
        f" held out once, {len(head['held_out'])} folds. Every fold has its best subset of the size"
        " (no other subset's objective is lower"
        + (")." if head["share"] == "0" else f" by more than {share})."),
        f"Objective: {model} by all rows; y is {head['response']}.",
    ]


def check(certificate, data):
    """Check a certificate file against a table; return the lines of its claim, or raise Wrong."""
    with open(certificate, encoding="utf-8") as file:
        lines = file.read().splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("{")), 0)
    need(lines[:1] == [FORMAT] and start > 0, f"{certificate}: this is no certificate")
    try:
        return _check(
            [json.loads(x, parse_float=_whole, parse_constant=_whole) for x in lines[start:]],
            lines[1:start],
            data,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Wrong(f"{certificate}: malformed ({error!r})") from error


def _whole(text):
    raise ValueError(f"{text} is no whole number")


def _check(entries, words, data):
    head, blocks = entries[0], entries[1:]
    need(words == claim(head), "claim: the words do not say what the numbers say")
    table, centred = Table(data, head), head["intercept"]
    n, p, folds, single = table.n, table.p, head["held_out"], "cv_error" not in head
    rows = sorted(i for fold in folds for i in fold)
    need(n == head["rows"], "claim: the number of rows is another")
    need(
        folds == [[]] if single else rows == list(range(n)), "folds: not every row is held out once"
    )
    gammas, sizes, share = (
        list(map(Fraction, head["gammas"])),
        head["sizes"],
        Fraction(head["share"]),
    )
    need(min(gammas) > 0 and 0 <= share < 1 and all(0 < k <= p for k in sizes), "claim: numbers")
    grams, safe, errors = [Gram(table, fold, centred) for fold in folds], set(), {}
    for number, block in enumerate(blocks, 1):
        place, g, k, diagonal = f"block {number}", block["gamma"], block["size"], block["diagonal"]
        diagonal, problems = tuple(diagonal) or (0,) * p, {}
        need(len(diagonal) == p and min(diagonal) >= 0, f"{place}: the diagonal is malformed")
        need(g in range(len(gammas)) and k in sizes, f"{place}: no such gamma or size")
        for fold, columns, bits, c in block["fits"]:
            where = f"{place}, fold {fold + 1}"
            need(fold in range(len(folds)), f"{where}: there is no such fold")
            need(len(set(columns)) == len(columns) == k, f"{where}: not {k} columns")
            need(min(columns) >= 0 and 0 <= bits < 4096, f"{where}: the fit is malformed")
            problem = problems[fold] = Problem(table, grams[fold], gammas[g], diagonal)
            if (fold, diagonal) not in safe and any(diagonal):
                need(no_negative_eigenvalue(problem.Q), f"{where}: G - D is indefinite")
                safe.add((fold, diagonal))
            problem.fit(columns, bits, c)
            problem.goal = -int(-(1 - share) * problem.objective * ONE // 1)
            need((g, k, fold) not in errors, f"{where}: it is there twice")
            errors[g, k, fold] = problem.errors(table, folds[fold], centred)
        check_tree(block["tree"], p, k, problems, place)
    for g, gamma in enumerate(head["gammas"]):
        for k in sizes:
            for fold in range(len(folds)):
                need(
                    (g, k, fold) in errors, f"gamma = {gamma}, size = {k}, fold {fold + 1}: missing"
                )
    if single:
        need(
            len(gammas) == len(sizes) == 1 and sorted(columns) == head["support"], "claim: support"
        )
        unit = problem.gram.unit * ONE * table.factor[-1] ** 2
        claimed, found = Fraction(head["objective"]), problem.objective / unit
        need(abs(found - claimed) <= TIE * claimed, f"claim: the objective is {float(found)!r}")
        return words
    least, chosen = Fraction(head["cv_error"]), (Fraction(head["gamma"]), head["size"])
    need(
        chosen in [(gamma, k) for gamma in gammas for k in sizes],
        "claim: the pair is none of the grid",
    )
    for g, gamma in enumerate(gammas):
        for k in sizes:
            low, high = (sum(errors[g, k, j][e] for j in range(len(folds))) / n for e in (0, 1))
            if (gamma, k) == chosen:
                need(
                    least * (1 - TIE) <= low and high <= least * (1 + TIE),
                    f"claim: the error of the pair is {float(low)!r}",
                )
            where = f"gamma = {head['gammas'][g]}, size = {k}"
            need(
                low >= least * (1 - Fraction(head["pair_share"])),
                f"{where}: the error {float(low)!r} is below",
            )
    return words


def main(arguments):
    """Print the claim and VERIFIED, or what is wrong."""
    if len(arguments) != 2:
        print("usage: python verify.py CERTIFICATE DATA", file=sys.stderr)
        return 2
    try:
        print("\n".join([*check(*arguments), "VERIFIED"]))
    except (Wrong, OSError, UnicodeDecodeError) as error:
        print(f"NOT VERIFIED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
