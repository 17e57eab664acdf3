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
from .core.rounding import CLAIMED_BELOW, EQUAL_SHARE, LEAST_EIGENVALUE_SHARE, WRITTEN_SHARE_OF_YY
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
# Folds that each leave out one row share a tree. It is pruned at this share above the objective of
# all rows, because the bounds of its leaves are smaller for the folds. The number is a choice.
RAISED = 0.01
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

    support: The incumbent, of τ columns.
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

    forms: All at the same τ.
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
    """One block of a certificate: a tree, and the supports that it proves for several problems.

    forms, numbers, supports: The problems, the positions of their folds, and their incumbents.
    leaves, points: The leaves of the tree, and their coefficients as :func:`preorder` takes them.
    units: What turns coefficients into whole numbers.
    gamma: Position of the problems' γ in the certificate's list of γ.
    Returns: A dictionary of γ's position, the size, the diagonal, the tree and the fits. A fit is
        [fold, columns, power, whole numbers], the incumbent's coefficients times 2^power. All τ
        columns are named, of which some may have the number 0.
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
    Raises InputError: The problem has constraints, a γ of 0 or lost beside the columns, or more
        than ``MAX_COLUMNS_CERTIFIED`` columns.
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

    @classmethod
    def of_support(cls, problem: SparseRidgeProblem, support: NDArray[np.intp]) -> Listing:
        """The list of one support alone, which is compared with those of the problem's size.

        support: At most τ columns, which are filled up to τ.
        Raises InputError: Certificates do not serve the problem, or γ is 0.
        """
        refuse(problem)
        tau = problem.tau
        support = pad_support(np.asarray(support, dtype=np.intp), tau, problem.p)
        return cls([support], {tau: support}, {tau: 1.0})

    def certificate(self, problem: SparseRidgeProblem, source: CertifiedTable) -> Certificate:
        """The certificate that no other supports than those of the list have values below a limit.

        The limit is proved up to ``SHARE`` of it. Leaves are taken where they are below it by half
        of that at most, so that rounding of their coefficients may cost the other half.

        problem: All rows, at the γ of the fit; its columns are those of the source.
        Raises InputError: Certificates do not serve the problem, or rounding hides the proof.
        """
        refuse(problem, least_squares=True)
        gram, units = GramForm.of(problem), source.integer_scale
        first = self.supports[0]
        values = [self.weights[one.size] * problem.objective(one) for one in self.supports]
        limit = (1.0 + self.within) * values[0]
        if not limit > 0.0:
            raise InputError(HIDDEN)
        D = _diagonal(problem.replace(tau=max(first.size, 1)), gram, problem.objective(first))
        ratio, blocks = certified_shares(gram, D, 1.0 / units.ratio), list[dict[str, Any]]()
        for size, weight in self.weights.items():
            own = [one for one in self.supports if one.size == size]
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
            best, target = self.best[size], limit / weight
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
            "sizes": list(self.weights),
            "weights": ["1" if one == 1.0 else repr(float(one)) for one in self.weights.values()],
            "held_out": [[]],
            "share": repr(SHARE),
            "supports": [one.tolist() for one in self.supports],
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


class ProvedFolds(NamedTuple):
    """The problems of folds and their best supports, at every γ and of every size.

    problems: Of fold 0, 1, ..., and last of all rows.
    lengths: By what each problem divides columns, over what that of all rows divides them by.
    gammas, shape (γ,), and sizes, shape (τ,): The pairs (γ, τ).
    supports: For every γ and size a list of supports: of fold 0, 1, ..., and last of all rows.
    limits: Where they are reached, the certificate is given up.
    joint: Whether folds share trees, as each of them leaves out one row.
    """

    problems: list[SparseRidgeProblem]
    lengths: list[Array]
    gammas: Array
    sizes: NDArray[np.intp]
    supports: list[list[list[NDArray[np.intp]]]]
    limits: Limits
    joint: bool

    def certificate(
        self, source: CertifiedTable, parts: Sequence[NDArray[np.intp]], **claim: Any
    ) -> Certificate:
        """The certificate of a claim on the folds.

        source: The table that the certificate is about.
        parts: The numbers of the rows that every fold leaves out.
        claim: Entries of the certificate, as the checker reads them, that say what is claimed.
        Raises InputError: The folds have constraints, a tiny γ or too many columns, or rounding
            hides the proof.
        """
        refuse(self.problems[-1].replace(gamma=float(min(self.gammas))))
        for worse in (EQUAL_SHARE, -SHARE):
            if blocks := self.blocks(source, worse):
                break
        else:
            why = "columns nearly depend or the fit is perfect"
            raise InputError(f"no certificate: rounding hides the proof, as {why}")
        numbers: dict[str, Any] = {
            "gammas": [repr(float(gamma)) for gamma in self.gammas],
            "sizes": self.sizes.tolist(),
            "held_out": [part.tolist() for part in parts],
            "share": "0" if worse > 0.0 else repr(SHARE),
        }
        return Certificate.of(source, source.head(**numbers, **claim), blocks)

    def least_pair_certificate(
        self,
        source: CertifiedTable,
        parts: Sequence[NDArray[np.intp]],
        gamma: float,
        size: int,
        cv_error: float,
    ) -> Certificate:
        """The certificate that no pair of a γ and a size has a smaller CV error than one of them.

        source, parts: As of :meth:`certificate`.
        gamma, size, cv_error: The pair of least CV error, and this error.
        """
        pair = {"gamma": repr(gamma), "size": size, "cv_error": repr(cv_error)}
        return self.certificate(source, parts, pair_share=repr(SHARE), **pair)

    def blocks(self, source: CertifiedTable, worse: float) -> list[dict[str, Any]]:
        """Trees for every fold, γ and size; empty where one of them does not prove its fold.

        Folds that each leave out one row share a tree, at whose leaves every fold has a bound of
        its own. A fold that these bounds leave open has a tree of its own.

        source: The table that the certificate is about, in whose whole numbers the checker counts.
        worse: Bounds on other subsets exceed 1 + worse times the objective of a fold's subset.
        """
        units, blocks, lengths = source.integer_scale, list[dict[str, Any]](), self.lengths
        grams = [GramForm.of(problem) for problem in self.problems]
        # Bounds need XᵀX − D to be positive definite for a diagonal D, given here as shares of the
        # diagonal of XᵀX.
        ratios = [
            certified_shares(gram, gram.D, length / units.ratio)
            for gram, length in zip(grams, lengths, strict=True)
        ]
        if self.joint:
            # The problems of one tree need the same shares.
            ratios = [np.min(ratios, axis=0)] * len(ratios)
        for g, gamma in enumerate(map(float, self.gammas)):
            for size, known in zip(self.sizes.tolist(), self.supports[g], strict=True):
                if self.limits.reached(0) is not None:
                    raise InputError("no certificate: its trees take longer than the time limit")
                every = list[_Problem]()
                for j, problem in enumerate(self.problems):
                    here = problem.replace(gamma=gamma, tau=size)
                    form = Form.of(here, grams[j], ratios[j], lengths[j])
                    support = pad_support(np.asarray(known[j], dtype=np.intp), size, here.p)
                    # With worse > 0 leaves are pruned that far above, and may lose some of it.
                    goal = here.objective(support) * (1.0 + min(worse, 0.0))
                    every.append(_Problem(j, form, support, goal))
                *folds, all_rows = every
                if self.joint:
                    block, folds = _block(folds, all_rows, RAISED, units, g)
                    blocks += block
                for fold in folds:
                    block, not_proved = _block([fold], fold, worse, units, g)
                    if not_proved:
                        return []
                    blocks += block
        return blocks


class _Problem(NamedTuple):
    """The training problem of a fold, or of all rows, at one γ and size.

    number: Of the fold; the number of folds for all rows.
    support: The support that is to be proved.
    goal: What the bounds on all other supports have to exceed.
    """

    number: int
    form: Form
    support: NDArray[np.intp]
    goal: float


def _block(
    folds: list[_Problem], tree: _Problem, raised: float, units: IntegerScale, g: int
) -> tuple[list[dict[str, Any]], list[_Problem]]:
    """Search one tree, and prove folds by bounds of their own at its leaves.

    tree: The problem that the tree is searched for, which may be none of the folds.
    raised: The tree is pruned at 1 + raised times the objective of its problem's support.
    units: The units of the checker's whole numbers.
    g: The number of the γ.
    Returns: The tree with what it proves, as the checker reads it, in a list that is empty where it
        proves no fold; and the folds that it does not prove.
    """
    leaves = leaves_of(tree.form, tree.support, raised)
    _, forms, supports, goals = zip(*folds, strict=True)
    known = [[support] for support in supports]
    points, closed = points_of(forms, goals, known, leaves, units)
    proved = [fold for fold, done in zip(folds, closed, strict=True) if done]
    not_proved = [fold for fold, done in zip(folds, closed, strict=True) if not done]
    if not proved:
        return [], not_proved
    numbers, forms, supports, _ = zip(*proved, strict=True)
    return [block_of(forms, numbers, supports, leaves, points, units, gamma=g)], not_proved


def given_certificate(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> Certificate:
    """The certificate that no other support of τ columns is better by the share ``SHARE``.

    support: The proved optimum, of at most τ columns.
    Raises InputError: The problem was not made from X and y, certificates do not serve it, γ is 0,
        rounding hides the proof, or its tree is too large.
    """
    if problem.given is None:
        raise InputError("a certificate needs a problem that was made from X and y")
    listing = Listing.of_support(problem, support)
    X, y, names = problem.given
    labels = [f"x{j}" for j in range(problem.p)] if names is None else names
    response = "response" if "y" in labels else "y"
    while response in labels:
        response += "*"
    rows = np.column_stack([X, y])
    source = CertifiedTable.of(
        rows, [*labels, response], intercept=False, scale="none", divisors=np.ones(problem.p)
    )
    return listing.certificate(problem, source)
