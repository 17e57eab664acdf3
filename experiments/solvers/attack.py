"""This script counts wrong claims of sparsecv, bounds or optimal supports, on random problems.

    python -m experiments.solvers.attack [--only NAME ...] [--problems N] [--seed S] [--minutes M]

The families of problems are those of the tests (``families.py`` of ``tests/support`` and the
modules whose names end in attacks). Rational arithmetic, enumeration, a second search or the same
table in other units judges the claims. For every family the script prints the number of problems,
the number of problems with a wrong claim, and CPU seconds. Every problem with a wrong claim is
printed with its number, which the option ``--first`` takes. Ctrl-C continues with the next family.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time

import numpy as np

from experiments.common import ROOT, machine

sys.path.insert(0, str(ROOT / "tests"))  # another package may bring a folder named tests
from support.attacks import SOLVERS
from support.claim_attacks import CLAIMS
from support.counted_attacks import COUNTED
from support.fold_attacks import FOLDS
from support.heldout_attacks import HELD_OUT
from support.limit_attacks import LIMITS
from support.no_ridge_attacks import NO_RIDGE
from support.table_attacks import TABLES
from support.tie_attacks import TIES
from support.unit_attacks import UNITS

ATTACKS = {
    **SOLVERS,
    **COUNTED,
    **FOLDS,
    **NO_RIDGE,
    **HELD_OUT,
    **CLAIMS,
    **TIES,
    **UNITS,
    **LIMITS,
    **TABLES,
}
# How many problems of a family are drawn; 2,000 of a family that is not named here.
PROBLEMS = {
    "offset grid": 450,
    "one-factor grid": 450,
    "enumeration": 5000,
    "two trees": 200,
    "paths of units": 1000,
    "units left out": 1000,
    "fold schemes": 500,
    "leave-one-out": 30,
    "dependent tables": 5000,
    "dependent rows": 5000,
    "dependent cells": 5000,
    "perfect fits": 5000,
    "counts": 5000,
    "ties": 5000,
    "held-out errors": 5000,
    "units": 5000,
    "claims": 5000,
    "limits": 5000,
    "realistic tables": 5000,
}


def run(name: str, problems: int, first: int, seed: int, minutes: float) -> int:
    """Problems of which something was wrong."""
    started, wrong, done = time.process_time(), 0, 0
    for number in range(first, first + problems):
        rng = np.random.default_rng([seed, list(ATTACKS).index(name), number])
        try:
            lines = list(ATTACKS[name](rng, number))
        except KeyboardInterrupt:  # Ctrl-C: on to the next family
            break
        done += 1
        wrong += bool(lines)
        for line in lines:
            print(f"  {name} {number}: {line}", flush=True)
        if time.process_time() - started > 60.0 * minutes:
            break
    seconds = time.process_time() - started
    print(f"| {name} | {done:,} | {wrong} | {seconds:.0f} |", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(ATTACKS), choices=list(ATTACKS))
    parser.add_argument("--problems", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--minutes", type=float, default=np.inf, help="CPU time of a family")
    given = parser.parse_args()
    print(f"{machine()}; seed {given.seed}\n")
    print("| family | problems | wrong | CPU s |\n|---|---:|---:|---:|")
    wrong = 0
    for name in given.only:
        problems = given.problems or PROBLEMS.get(name, 2000)
        wrong += run(name, problems, given.first, given.seed, given.minutes)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
