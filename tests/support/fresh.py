"""Seeds that differ from run to run, and how many examples are drawn.

A plain run draws few examples of every family, so that it ends within minutes. The profile
``fresh`` of hypothesis (``pytest --hypothesis-profile fresh``) draws many, in every family.
SPARSECV_SEED repeats a run; SPARSECV_DRAWS multiplies the number of problems of every family.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import numpy as np
from hypothesis import settings

SEED = int(os.environ.get("SPARSECV_SEED", "0")) or secrets.randbits(48) | 1
DRAWS = float(os.environ.get("SPARSECV_DRAWS", "1"))


# A plain run draws one in so many of the problems that the profile ``fresh`` draws, three at least,
# and at most so many examples of hypothesis. Both are choices that keep a plain run within minutes.
PLAIN_RUN_DIVIDES_BY = 10
PLAIN_RUN_EXAMPLES = 20


def plain_run() -> bool:
    """Whether few examples are drawn, and the same ones in every run."""
    return bool(settings.default.derandomize)


def draws(count: int, family: int) -> Iterator[tuple[str, np.random.Generator]]:
    """A generator for each of ``count`` problems, and the note that a failing test prints."""
    share = DRAWS / PLAIN_RUN_DIVIDES_BY if plain_run() else DRAWS
    for i in range(max(min(count, 3), round(share * count))):
        note = f"SPARSECV_SEED={SEED}, family {family}, problem {i}"
        yield note, np.random.default_rng([SEED, family, i])


def examples(count: int) -> int:
    """How many examples hypothesis draws."""
    return min(count, PLAIN_RUN_EXAMPLES) if plain_run() else count


def rounds(count: int) -> int:
    """How often a test repeats what a process survives, such as being killed."""
    return max(2, count // PLAIN_RUN_DIVIDES_BY) if plain_run() else count
