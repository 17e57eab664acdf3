"""This script counts claims about problems whose columns nearly depend on each other.

    python -m experiments.solvers.outside [--problems N] [--seed S] [--minutes M]

A problem is called outside where double precision need not suffice for a proof: its columns,
brought to lengths between 1 and 2 by powers of two, have a condition number above 1e7 together with
the rows of the ridge. Without a ridge singular values below 1e-12 of the largest are those of
columns that depend on others exactly, and do not count. Problems are drawn from the families of the
tests that hold such ones, and asked for every size; rational arithmetic judges the answers. For
every family the script prints how many problems were drawn and how many of them are outside, the
number of answers of these, how many are called optimal, and how many claims are wrong.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time

import numpy as np

from experiments.common import ROOT, machine

sys.path.insert(0, str(ROOT / "tests"))  # another package may bring a folder named tests
from support.doors import every_size, wrong
from support.families import FAMILIES, Case

EXTREME = ("ugly", "wide", "any gamma", "far from zero", "levels", "near", "twins", "near groups")
MAX_CONDITION = 1e7
DEPENDENT_SHARE = 1e-12


def is_outside(case: Case) -> bool:
    """Whether double precision need not suffice for a proof."""
    X, gamma = case.data.X, case.data.gamma
    longest = np.abs(X).max(axis=0)
    X = X[:, longest > 0.0] / longest[longest > 0.0]
    lengths = np.linalg.norm(X, axis=0)
    scale = np.exp2(np.floor(np.log2(lengths)))
    ridge = np.sqrt(gamma / 2.0) / longest[longest > 0.0] / scale
    if X.shape[1] == 0 or not np.isfinite(ridge).all():
        return False
    values = np.linalg.svd(np.vstack([X / scale, np.diag(ridge)]), compute_uv=False)
    if gamma == 0.0:
        values = values[values > DEPENDENT_SHARE * values[0]]
    return bool(values[0] > MAX_CONDITION * values[-1])


def count(name: str, problems: int, seed: int, minutes: float) -> int:
    """Print one row of the table; returns the number of wrong claims."""
    drawn, outside, answers, optimal, errors = 0, 0, 0, 0, 0
    started = time.process_time()
    while drawn < problems and time.process_time() - started < 60.0 * minutes:
        rng = np.random.default_rng([seed, list(FAMILIES).index(name), drawn])
        drawn += 1
        case = FAMILIES[name](rng)
        if not is_outside(case):
            continue
        outside += 1
        for one in every_size(case, rng):
            answers += 1
            optimal += not isinstance(one, str) and one.status == "optimal"
            for line in wrong(case, one):
                errors += 1
                print(f"  {name} {drawn - 1}: {line}", flush=True)
    row = (f"{number:,}" for number in (drawn, outside, answers, optimal, errors))
    print(f"| {name} | {' | '.join(row)} |", flush=True)
    return errors


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=2000, help="how many of a family are drawn")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--minutes", type=float, default=np.inf, help="CPU time of a family")
    given = parser.parse_args()
    print(f"{machine()}; seed {given.seed}\n")
    print("| family | drawn | outside | answers | called optimal | wrong |")
    print("|---|---:|---:|---:|---:|---:|")
    errors = [count(name, given.problems, given.seed, given.minutes) for name in EXTREME]
    return 1 if any(errors) else 0


if __name__ == "__main__":
    sys.exit(main())
