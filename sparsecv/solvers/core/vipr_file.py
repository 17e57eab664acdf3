"""The proof of a fit as a file of VIPR 1.0, which checkers of mixed-integer proofs read.

The file states a problem of whole numbers: t is the objective in a small unit, z_j says whether
column j is in the subset, and every leaf of the certificate's tree is a constraint of the problem,
t + sum W_j z_j >= C. This is inequality (1) or (2) of :mod:`sparsecv.verify`, which holds for every
subset. The derivations follow the tree, and prove the claimed bound on t from the constraints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from ...errors import InputError
from ...verify import ONE, Gram, Problem, Table

# The unit of t is about y'y / 2^BITS. Rounding takes p + 2 units off a bound, and the leaves of
# certificates of at most 500 columns have 1e-11 of y'y to spare.
BITS = 64


@dataclass
class ViprFile:
    """The constraints and derivations of a tree, while it is followed.

    scale: What the checker's objective is multiplied by to give t.
    goal: The bound on t that is derived.
    first: The index of the first derivation, which is the number of constraints.
    """

    problem: Problem
    size: int
    scale: Fraction
    goal: int
    first: int
    cuts: list[str]
    derived: list[str]

    def cut(self, inside: Iterable[int], free: Iterable[int], point: Any) -> tuple[int, list[int]]:
        """C and W_0, ..., W_(p-1) of coefficients, rounded so that the constraint is weaker."""
        problem, (columns, bits, c) = self.problem, point
        g = [problem.slope(j, point) for j in range(len(problem.b))]
        linear = sum(problem.b[j] * x for j, x in zip(columns, c, strict=True)) << bits
        square = linear - sum(g[j] * x for j, x in zip(columns, c, strict=True))
        along, times = (problem.yy << (2 * bits)) - linear, ONE
        length = along - linear + square
        worth = [Fraction(x * x * problem.den, w) for x, w in zip(g, problem.num, strict=True)]
        if problem.plain and along > 0:  # The multiple of y - Xc that gives the largest bound.
            some = list(inside)
            top = sorted((worth[j] for j in free), reverse=True)[: max(self.size - len(some), 0)]
            times = floor(along * ONE / (length + sum(top) + sum(worth[j] for j in some)))
        unit = self.scale / ((ONE * ONE) << (2 * bits))
        constant = floor(unit * times * (2 * ONE * along - times * length))
        return constant, [ceil(unit * times * times * x) for x in worth]

    def derive(self, constraint: str, reason: str) -> int:
        """Write a derivation, and return its index."""
        index = self.first + len(self.derived)
        self.derived.append(f"D{index} {constraint} {{ {reason} }} -1")
        return index

    def leaf(self, inside: Mapping[int, int], outside: Mapping[int, int], point: Any) -> int:
        """Derive the goal at a leaf, whose columns in and out are assumptions with these indices.

        The size times a price is subtracted from the leaf's constraint. What is left of a
        coefficient is removed by a bound of its column, which is an assumption or 0 <= z_j <= 1.
        """
        p, k, fit = len(self.problem.b), self.size, self.problem.columns
        free = [j for j in range(p) if j not in inside and j not in outside]
        only = [*inside] if len(inside) == k else [*inside, *free]
        if set(only) == set(fit):
            point = fit, self.problem.bits, self.problem.c
        constant, W = self.cut(inside, free, point)
        pairs = " ".join(f"{j + 1} {w}" for j, w in enumerate(W))
        self.cuts.append(f"C{len(self.cuts)} G {constant} {p + 1} 0 1 {pairs}")
        multipliers = {2 * p + len(self.cuts): 1}
        if len(inside) <= k <= len(inside) + len(free):
            prices = sorted((W[j] for j in free), reverse=True)
            price = prices[max(k - len(inside) - 1, 0)] if prices else 0
        else:  # No subset of the size is at the leaf: 0 >= 1 follows from bounds and the size.
            multipliers, W, price = {}, [0] * p, 1 if len(inside) > k else -1
        multipliers[2 * p] = -price
        for j, w in enumerate(W):
            bound = outside.get(j, p + j) if w > price else inside.get(j, j)
            multipliers[bound] = price - w
        used = {index: x for index, x in multipliers.items() if x}
        terms = " ".join(f"{index} {x}" for index, x in used.items())
        return self.derive(f"G {self.goal} OBJ", f"lin {len(used)} {terms}")

    def follow(self, tree: list[Any]) -> None:
        """Derive the goal at all leaves, and at every node from its two children."""
        stack: list[tuple[dict[int, int], dict[int, int]]] = [({}, {})]
        open_nodes: list[list[int]] = [[]]
        for entry in tree:
            inside, outside = stack.pop()
            if isinstance(entry, int):
                more = self.derive(f"G 1 1 {entry + 1} 1", "asm")
                less = self.derive(f"L 0 1 {entry + 1} 1", "asm")
                stack += [(inside, {**outside, entry: less}), ({**inside, entry: more}, outside)]
                open_nodes.append([more, less])
                continue
            done = self.leaf(inside, outside, entry)
            while len(open_nodes[-1]) == 3:
                more, less, with_column = open_nodes.pop()
                reason = f"uns {with_column} {more} {done} {less}"
                done = self.derive(f"G {self.goal} OBJ", reason)
            open_nodes[-1].append(done)


def vipr_text(certificate: str, data: str) -> str:
    """The file of VIPR for the text of a certificate of a fit, and the path of its table."""
    lines = certificate.split("\n")
    head, *blocks = (json.loads(line) for line in lines if line.startswith("{"))
    if "objective" not in head:
        raise InputError("a file of VIPR proves a fit: a choice has a certificate only")
    (block,), table = blocks, Table(data, head)
    p, k, (_, *fit) = table.p, block["size"], block["fits"][0]
    diagonal = tuple(block["diagonal"] or [0] * p)
    gram, gamma = Gram(table, [], head["intercept"]), Fraction(head["gammas"][0])
    problem = Problem(table, gram, gamma, diagonal, fit)
    whole = gram.unit * ONE * table.factor[-1] ** 2
    power = BITS + whole.bit_length() - problem.yy.bit_length()
    scale = Fraction(2) ** power / whole
    goal = floor((1 - Fraction(head["share"])) * problem.f * scale) - p - 2
    first = 2 * p + 1 + sum(not isinstance(entry, int) for entry in block["tree"])
    made = ViprFile(problem, k, scale, goal, first, [], [])
    made.follow(block["tree"])
    words = [*lines[1:4], f"Table: sha256 {head['sha256']}"]
    words += [f"t is the objective times 2^{power}; a column is in the subset where z is 1."]
    words += [f"z{j} is {name!r}" for j, name in enumerate(head["columns"])]
    columns, least = range(p), ceil(problem.f * scale)
    parts = [
        *(f"% {line}" for line in words),
        "VER 1.0",
        f"VAR {p + 1}\nt {' '.join(f'z{j}' for j in columns)}",
        f"INT {p}\n{' '.join(str(j + 1) for j in columns)}",
        "OBJ min\n1 0 1",
        f"CON {first} {2 * p}",
        *(f"L{j} G 0 1 {j + 1} 1" for j in columns),
        *(f"U{j} L 1 1 {j + 1} 1" for j in columns),
        f"SIZE E {k} {p} {' '.join(f'{j + 1} 1' for j in columns)}",
        *made.cuts,
        f"RTP range {goal} {least}",
        f"SOL 1\nbest {k + 1} 0 {least} {' '.join(f'{j + 1} 1' for j in sorted(fit[0]))}",
        f"DER {len(made.derived)}",
        *made.derived,
    ]
    return "\n".join([*parts, ""])
