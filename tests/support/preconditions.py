"""What must hold when kernels are called: one table, asserted where kernels run as plain Python.

With ``NUMBA_DISABLE_JIT=1`` a kernel is the function that its module defines.
:func:`assert_on_entry` puts a function before it that asserts what the table says, in every module
that has the kernel.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from inspect import signature
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from sparsecv.cv import error_bounds  # noqa: F401  # Its kernels are in the table.
from sparsecv.solvers.core.leaves import OUT

Check = Callable[[SimpleNamespace], bool]
# How often every kernel of the table was called, under its name.
CALLED: Counter[str] = Counter()


def falls(values: Any) -> bool:
    """Whether numbers do not increase."""
    return all(a >= b for a, b in pairwise(values.tolist()))


def has_no_excluded(one: SimpleNamespace) -> bool:
    """Whether the coefficients of a node are 0 on excluded columns, where units are columns."""
    beta, state = one.node.beta[0], one.node.state[0]
    return beta.size != state.size or not beta[state == OUT].any()


def is_within(one: SimpleNamespace) -> bool:
    """Whether the coefficients that a bounded fit starts from lie within the bounds."""
    columns, fit = one.fit.columns[: one.m], one.fit
    coef = fit.coef[columns]
    return bool(((fit.lower[columns] <= coef) & (coef <= fit.upper[columns])).all())


# Under the name of a kernel, what must hold of its arguments, which have their names.
ON_ENTRY: dict[str, Check] = {
    "cv.error_bounds.coefficient_error": lambda one: 0.0 <= one.low <= one.high,
    "cv.error_bounds.bracket_row": lambda one: 0.0 <= one.low <= one.high,
    "cv.error_bounds.least_square": lambda one: one.low <= one.high,
    "cv.error_bounds.bound_cell": lambda one: 0.0 <= one.cell[0] <= one.cell[2] <= one.cell[1],
    "solvers.branching.driver.branch": lambda one: one.open_nodes.counts[0].spare >= 2,
    "solvers.branching.driver.branching_column": lambda one: (
        one.open_nodes.counts[0].spare >= 1 and one.node.bound[0] < one.target
    ),
    "solvers.branching.node.exclude": lambda one: one.node.state[0, one.i] != OUT,
    "solvers.core.bounded_fit.fit_inside": is_within,
    "solvers.core.bounded_fit.fits_inside": lambda one: not one.fit.free.any(),
    "solvers.kernels.completion.complete": lambda one: (
        one.which.k <= one.which.n
        and (np.isinf(one.least) or falls(one.work.free.share[: one.which.n]))
    ),
    "solvers.kernels.completion.project_out": lambda one: one.ridge >= 0.0,
    "solvers.kernels.envelope.split_point": lambda one: 0.0 <= one.low <= one.high,
    "solvers.kernels.fits.independent": lambda one: not np.tril(one.R[: one.m, : one.m], -1).any(),
    "solvers.kernels.fits.ridge_triangle": lambda one: (
        one.ridge >= 0.0
        and min(one.R.shape[0], one.work.shape[0]) > one.m
        and np.unique(one.columns[: one.m]).size == one.m
    ),
    "solvers.kernels.linalg.factor_row": lambda one: bool((np.diag(one.L)[: one.a] > 0.0).all()),
    "solvers.kernels.linalg.column_worth": lambda one: one.low <= 0.0 <= one.high and one.w > 0.0,
    "solvers.kernels.linalg.order_steps": lambda one: not np.isnan(one.step[: one.u]).any(),
    "solvers.relaxation.descent.descend": lambda one: one.k >= 0 and has_no_excluded(one),
    "solvers.relaxation.dual_bound.gram_bound": has_no_excluded,
    "solvers.relaxation.dual_bound.residual_bound": has_no_excluded,
    "solvers.relaxation.newton.newton": has_no_excluded,
    "solvers.relaxation.newton.place_knot": lambda one: falls(-one.work.when[: one.count]),
    "solvers.relaxation.relaxer.relax": lambda one: one.k >= 0 and has_no_excluded(one),
    "solvers.supports.members.add_member": lambda one: 0 <= one.a < one.k,
}


def _asserting(name: str, kernel: Any, holds: Check) -> Any:
    """A kernel that first asserts what must hold of its arguments."""
    of = signature(kernel)

    @wraps(kernel)
    def checked(*given: Any, **named: Any) -> Any:
        CALLED[name] += 1
        arguments = SimpleNamespace(**of.bind(*given, **named).arguments)
        assert holds(arguments), f"{name} was called with arguments that it does not take"
        return kernel(*given, **named)

    return checked


def assert_on_entry() -> None:
    """Let every kernel of the table assert what it says, where kernels are plain Python."""
    modules = [one for name, one in sys.modules.items() if name.startswith("sparsecv.")]
    for name, holds in ON_ENTRY.items():
        home, _, inside = f"sparsecv.{name}".rpartition(".")
        kernel = getattr(sys.modules[home], inside)
        checked = _asserting(name, kernel, holds)
        for module in modules:
            for own, value in list(vars(module).items()):
                if value is kernel:
                    setattr(module, own, checked)
