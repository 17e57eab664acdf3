"""Trees that prove one support, as a certificate holds them for :mod:`sparsecv.verify`.

The tree on the relaxation searches with the incumbent known, screens and enumerates nothing, and
hands out its leaves. A certificate has these leaves with coefficients rounded to few bits. Numbers
here are floating point and only choose what is written: the checker's integers decide.

Without it a proof ends with the process that has found it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..schedule import SECONDS_OF_A_CERTIFIED_TREE
from ..verify import ONE
from .branching.search import Search, Tree
from .core.certificate_file import Certificate, CertifiedTable, IntegerScale, Point
from .core.leaves import FREE, IN, Leaves
from .core.limits import Limits
from .core.problem import SparseRidgeProblem
from .core.result import Status
from .core.rounding import CLAIMED_BELOW, LEAST_EIGENVALUE_SHARE, WRITTEN_SHARE_OF_YY
from .kernels.linalg import Array
from .relaxation.diagonal import Fitted, fit_diagonal, interior, shared_diagonal
from .relaxation.extraction import MAX_COLUMNS
from .relaxation.gram import GramForm
from .relaxation.relaxer import Relaxer
from .relaxation.root import relaxed_node
from .supports.rounding import pad_support

# A leaf's coefficients are written with the first of these numbers of bits that proves the leaf.
BITS = (16, 24, 32, 60)
# So many bits of the largest coefficient of a fit leave all bits of one that is up to 1e44 times as
# small, as that of a column of so much larger numbers is: a choice.
BITS_OF_FITS = 200
# The leaves of one certificate take at most this share of an objective off it: a choice.
SHARE = 1e-6
# Whole numbers of the checker grow with the columns, and its time with their square: a choice.
MAX_COLUMNS_CERTIFIED = 500
# Steps of the fit of the diagonal at the root: a choice.
FITTING_STEPS = 8
HIDDEN = "no certificate: rounding hides the proof, as columns nearly depend or the fit is perfect"
NO_DIAGONAL = (
    "no certificate: at gamma = 0 it needs columns that are far from dependent, fewer than rows"
)
# What a tree lists: a column that is branched on, or the coefficients of a leaf.
Token = int | Point


@dataclass(frozen=True)
class Form:
    """The Gram form of one problem with the diagonal that the certificate names.

    diagonal: Entries of D in units of G_jj / ONE; empty where D = 0.
    lengths, shape (p,): The problem's columns are the columns of all rows divided by these numbers.
        Leaves have coefficients of the columns of all rows.
    """

    problem: SparseRidgeProblem
    gram: GramForm
    diagonal: list[int]
    lengths: Array

    @classmethod
    def of(cls, problem: SparseRidgeProblem, gram: GramForm, ratio: Array, lengths: Array) -> Form:
        """The form whose diagonal has at most these shares of the diagonal of G."""
        whole = np.floor(ratio * ONE)
        D = whole / ONE * np.diag(gram.G)
        diagonal = [int(x) for x in whole] if D.any() else []
        return cls(problem, replace(gram, D=D), diagonal, lengths)

    def parts(self, beta: Array) -> tuple[Array, Array]:
        """The dual bound at coefficients β, up to rounding: a constant and worths of columns.

        The constant is yᵀy − βᵀQβ with Q = G − D, and the worth of a column is g²/(γ/2 + D) with
        the slope g = b − Qβ.
        """
        gram = self.gram
        beta = beta * self.lengths
        g = gram.b - beta @ gram.quadratic()
        constant = gram.yy - np.einsum("ij,ij->i", beta, gram.b - g)
        return constant, g * g / (self.problem.gamma / 2.0 + gram.D)

    def bounds(self, leaves: Leaves) -> Array:
        """Lower bounds on the objectives below leaves, at their coefficients.

        Where D = 0, the larger of that and of the bound at the best multiple of the residual r is
        returned, ‖r‖² = 2·along − constant.
        """
        gram, (constant, worth) = self.gram, self.parts(leaves.beta)
        total = leaves.most_worth(worth, self.problem.tau)
        found = constant - total
        if not self.diagonal:
            along = gram.yy - (leaves.beta * self.lengths) @ gram.b
            below = np.maximum(2.0 * along - constant + total, 1e-300)
            found = np.maximum(found, np.where(along > 0.0, along**2 / below, found))
        return np.asarray(found)


def certified_shares(gram: GramForm, D: Array, scale: Array) -> Array:
    """The shares of the diagonal of G that a diagonal D has; 0 where the checker would refuse it.

    scale: Columns of the checker are those of the form times these numbers.
    """
    lengths = np.diag(gram.G)
    shares = np.maximum(
        D / np.maximum(lengths, 1e-300) * (1.0 - 1e-6) - LEAST_EIGENVALUE_SHARE, 0.0
    )
    values = np.linalg.eigvalsh((gram.G - np.diag(shares * lengths)) * np.outer(scale, scale))
    return shares if values[0] > LEAST_EIGENVALUE_SHARE * values[-1] else np.zeros(shares.size)


def leaves_of(form: Form, support: NDArray[np.intp], raised: float) -> Leaves:
    """Leaves of a search of the form's problem, which together hold every support of τ units.

    The coefficients of the leaves are those that :class:`Form` says leaves have: they belong to the
    columns of all rows, and not to the problem's columns.

    support: The incumbent.
    raised: A node becomes a leaf where its bound reaches 1 + ``raised`` times the objective of
        ``support``. The number may be negative.
    Raises InputError: The search ends at a limit, of time or of leaves.
    """
    problem, gram = form.problem, form.gram
    tree = Tree(gram, problem, 0.0)
    tree.enter(support, 0)
    tree.now["tolerance"] = -raised
    limit = Limits(time_limit=SECONDS_OF_A_CERTIFIED_TREE).within(nodes=tree.keep_leaves())
    relaxer = Relaxer.of(problem, gram, np.arange(problem.p))
    tree.add(relaxed_node(relaxer, float(tree.now["upper"][0]) * (1.0 + raised)))
    if Search(tree).run(limit) is not Status.OPTIMAL:
        where = f"size {problem.tau}, gamma = {problem.gamma:g}"
        raise InputError(f"no certificate: its tree at {where} has too many leaves")
    leaves = tree.leaves()
    return leaves._replace(beta=leaves.beta / form.lengths)


def preorder(states: NDArray[np.int8], points: Sequence[Token]) -> list[Token]:
    """The tree that leaves came from, a node before its children, the child with a column in first.

    A column that is decided at every leaf below a node divides them. Such a column is the one that
    the search branched on, or as good.
    """
    tokens: list[Token] = []
    stack: list[tuple[NDArray[np.intp], NDArray[np.bool_]]] = [
        (np.arange(states.shape[0]), np.zeros(states.shape[1], dtype=bool))
    ]
    while stack:
        at, used = stack.pop()
        if at.size == 1:
            tokens.append(points[at[0]])
            continue
        here = states[at]
        inside, free = (here == IN).sum(axis=0), (here == FREE).any(axis=0)
        divides = ~free & ~used & (inside > 0) & (inside < at.size)
        column = int(
            np.flatnonzero(divides)[np.argmax(np.minimum(inside, at.size - inside)[divides])]
        )
        tokens.append(column)
        used = used.copy()
        used[column] = True
        within = here[:, column] == IN
        stack += [(at[~within], used), (at[within], used)]
    return tokens


def points_of(
    forms: Sequence[Form],
    goals: Sequence[float],
    known: Sequence[Sequence[NDArray[np.intp]]],
    leaves: Leaves,
    units: IntegerScale,
) -> tuple[list[Token], NDArray[np.bool_]]:
    """The rounded coefficients of every leaf, and for which problems they close all leaves.

    goals, known: What bounds have to exceed, and the supports of the size that need not, for every
        problem.
    """
    points: list[Token] = [0] * leaves.size

    def closed(some: Leaves) -> NDArray[np.bool_]:
        """For every problem and leaf, shape (problems, leaves), whether the leaf is closed.

        It is where its bound is above the goal, or its only support is the incumbent.
        """
        found, inside = np.empty((len(forms), some.size), dtype=bool), some.state == IN
        full = inside.sum(axis=1) == forms[0].problem.tau
        for f, (form, goal, own) in enumerate(zip(forms, goals, known, strict=True)):
            alone = np.zeros(some.size, dtype=bool)
            for support in own:
                alone |= full & inside[:, support].all(axis=1)
            found[f] = alone | (form.bounds(some) - goal > WRITTEN_SHARE_OF_YY * form.gram.yy)
        return found

    left, best = np.arange(leaves.size), closed(leaves)
    for bits in BITS:
        tried, solved = units.rounded(leaves.beta[left], bits)
        enough = closed(leaves.some(left)._replace(beta=solved))
        for a, point in zip(left, tried, strict=True):
            points[a] = point
        left = left[~(enough | ~best[:, left]).all(axis=0)]
        if left.size == 0:
            break
    best[:, left] = False
    return points, np.asarray(best.all(axis=1))


def block_of(
    forms: Sequence[Form],
    numbers: Sequence[int],
    supports: Sequence[NDArray[np.intp]],
    leaves: Leaves,
    points: list[Token],
    units: IntegerScale,
    gamma: int = 0,
) -> dict[str, Any]:
    """A tree and what it proves, as the checker reads it.

    forms, numbers, supports: Problems, the positions of their folds, and the incumbents.
    leaves, points: The leaves of the tree, and their rounded coefficients.
    gamma: Position of the problems' γ in the list of the certificate.
    Returns: Also a fit for every problem, as [fold, columns, power, whole numbers]: coefficients of
        the incumbent times 2^power. All τ columns are named, of which some may have the number 0.
    """
    fits = []
    for form, number, support in zip(forms, numbers, supports, strict=True):
        beta = np.zeros(form.problem.p)
        beta[support] = form.problem.fit(support).coef / form.lengths[support]
        columns, power, c = units.rounded(beta[None], BITS_OF_FITS)[0][0]
        zero = [int(j) for j in support if j not in columns]
        fits.append([number, columns + zero, power, c + [0] * len(zero)])
    size, diagonal = forms[0].problem.tau, forms[0].diagonal
    known = {"gamma": gamma, "size": size, "diagonal": diagonal, "fits": fits}
    return known | {"tree": preorder(leaves.state, points)}


def refuse(problem: SparseRidgeProblem, least_squares: bool = False) -> None:
    """Refuse a problem that certificates do not serve.

    least_squares: Whether γ = 0 is served.
    """
    problem.refuse_constraints("a certificate")
    served = least_squares and problem.given_gamma == 0.0
    if problem.gamma != problem.given_gamma and not served:
        raise InputError("a certificate serves no gamma = 0, or a tiny gamma: go without")
    if problem.p > MAX_COLUMNS_CERTIFIED:
        raise InputError(
            f"a certificate serves at most {MAX_COLUMNS_CERTIFIED} columns; there are {problem.p}"
        )


class Listing(NamedTuple):
    """Supports whose values, weight times objective, are known to be below a limit.

    supports: Each as columns in increasing order, the best first.
    best: For every size that is compared, the best support of exactly this size; size 0 has none.
    weights: The weight of each of these sizes.
    within: The limit is 1 + within times the least value.
    """

    supports: Sequence[NDArray[np.intp]]
    best: Mapping[int, NDArray[np.intp]]
    weights: Mapping[int, float]
    within: float = 0.0


def fit_certificate(
    problem: SparseRidgeProblem, support: NDArray[np.intp], source: CertifiedTable
) -> Certificate:
    """The certificate that no support of the problem's size is better than a support by a share.

    problem: All rows, at the γ and τ of the fit; its columns are those of the source.
    support: At most τ columns, which are filled up to τ.
    Raises InputError: Certificates do not serve the problem, or rounding hides the proof.
    """
    tau = problem.tau
    support = pad_support(np.asarray(support, dtype=np.intp), tau, problem.p)
    return listing_certificate(problem, Listing([support], {tau: support}, {tau: 1.0}), source)


def listing_certificate(
    problem: SparseRidgeProblem, listing: Listing, source: CertifiedTable
) -> Certificate:
    """The certificate that no other supports than those of a list have values below a limit.

    The limit is proved up to ``SHARE`` of it. Leaves are taken where they are below it by half of
    that at most, so that rounding of their coefficients may cost the other half.

    problem: All rows, at the γ of the fit; its columns are those of the source.
    Raises InputError: Certificates do not serve the problem, or rounding hides the proof.
    """
    refuse(problem, least_squares=True)
    gram, units = GramForm.of(problem), source.integer_scale
    first = listing.supports[0]
    values = [listing.weights[one.size] * problem.objective(one) for one in listing.supports]
    limit = (1.0 + listing.within) * values[0]
    D = _diagonal(problem.replace(tau=max(first.size, 1)), gram, problem.objective(first))
    ratio, blocks = certified_shares(gram, D, 1.0 / units.ratio), list[dict[str, Any]]()
    for size, weight in listing.weights.items():
        own = [one for one in listing.supports if one.size == size]
        here = problem.replace(tau=max(size, 1))
        form = Form.of(here, gram, ratio, np.ones(problem.p))
        if problem.given_gamma == 0.0 and not (form.diagonal and min(form.diagonal) > 0):
            raise InputError(NO_DIAGONAL)
        empty: Point = ([], 0, [])
        if size == 0:
            if not own and problem.yy * weight < limit * (1.0 - SHARE):
                raise InputError(HIDDEN)
            known = {"gamma": 0, "size": 0, "diagonal": form.diagonal, "fits": [[0, *empty]]}
            blocks.append(known | {"tree": [empty]})
            continue
        best, target = listing.best[size], limit / weight
        raised = target * (1.0 - SHARE / 2.0) / problem.objective(best) - 1.0
        leaves = leaves_of(form, best, raised)
        points, closed = points_of([form], [target * (1.0 - SHARE)], [own], leaves, units)
        if not closed.all():
            raise InputError(HIDDEN)
        fits = own or [best]
        many = [form] * len(fits), [0] * len(fits), fits
        blocks.append(block_of(*many, leaves, points, units))
    head: dict[str, Any] = {
        "gammas": [repr(problem.given_gamma)],
        "sizes": list(listing.weights),
        "weights": ["1" if one == 1.0 else repr(float(one)) for one in listing.weights.values()],
        "held_out": [[]],
        "share": repr(SHARE),
        "supports": [one.tolist() for one in listing.supports],
        "values": [_claimed(value) for value in values],
        # The checker wants claims that are at most the exact values, and near to them.
        "limit": _claimed(limit),
    }
    return Certificate.of(source, source.head(**head), blocks)


def _claimed(value: float) -> str:
    """A value that is claimed, a little below the value as floating point has it."""
    return repr(float(f"{value * (1.0 - CLAIMED_BELOW):.12g}"))


def _diagonal(problem: SparseRidgeProblem, gram: GramForm, target: float) -> Array:
    """The diagonal D of a tree: fitted to the root, as far as that is possible.

    problem: At the τ that D is fitted for.
    target: The objective that bounds have to reach.
    """
    if gram.scaled or problem.p > MAX_COLUMNS:
        return gram.D
    if problem.given_gamma == 0.0:  # Every entry has to be above 0.
        return shared_diagonal(gram)
    start = Fitted(interior(gram), Leaves.root(problem.p, problem.p))
    found = fit_diagonal(
        gram,
        ridge=problem.gamma / 2.0,
        to_choose=problem.tau,
        start=start,
        target=target,
        steps=FITTING_STEPS,
    )
    return found.D if found.bound > 0.0 else gram.D  # A bound of 0 says nothing.


def given_certificate(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> Certificate:
    """The certificate of a problem that was made from X and y."""
    if problem.given is None:
        raise InputError("a certificate needs a problem that was made from X and y")
    refuse(problem)
    X, y, names = problem.given
    labels = [f"x{j}" for j in range(problem.p)] if names is None else names
    response = "response" if "y" in labels else "y"
    while response in labels:
        response += "*"
    rows = np.column_stack([X, y])
    source = CertifiedTable.of(
        rows, [*labels, response], intercept=False, scale="none", divisors=np.ones(problem.p)
    )
    return fit_certificate(problem, support, source)
