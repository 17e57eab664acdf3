"""Seeds that differ from run to run, and how many examples are drawn.

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


def draws(count: int, family: int) -> Iterator[tuple[str, np.random.Generator]]:
    """A generator for each of ``count`` problems, and the note that a failing test prints."""
    for i in range(max(1, round(DRAWS * count))):
        note = f"SPARSECV_SEED={SEED}, family {family}, problem {i}"
        yield note, np.random.default_rng([SEED, family, i])


def examples(count: int) -> int:
    """How many examples hypothesis draws: at most 60 except in the profile ``fresh``."""
    return min(count, 60) if settings.default.derandomize else count
