"""Audits of drawn tables, of which every number is computed again by brute force.

``python -m experiments.selection.audits`` draws 200 small tables, fits a size, a criterion or a
cross-validation to each, and computes every number of the audit again: near-best models and their
signs by enumeration, what is lost without a column, the rows that remove it, p-values and the tails
at the ends of intervals on a curve of responses, the error to expect beside its rivals, and other
partitions. It prints what is wrong. ``--audits N`` draws another number.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter

import numpy as np

from ..common import ROOT, machine

sys.path.insert(0, str(ROOT / "tests"))  # another package may bring a folder named tests
from support.audits import drawn, fitted, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    verdicts, kinds, bad, seconds = Counter[str](), Counter[str](), 0, 0.0
    for seed in range(asked.audits):
        case = drawn(np.random.default_rng(seed))
        started = time.process_time()
        model, audit = fitted(case)
        seconds += time.process_time() - started
        verdicts.update(one.verdict for one in audit.columns)
        kinds["cross-validation" if case.held_out else str(case.how["tau"])] += 1
        found = list(wrong(case, model, audit))
        bad += bool(found)
        for text in found:
            print(f"table {seed}, {case.how}: {text}", flush=True)
    print(f"{asked.audits} audits: " + ", ".join(f"{n} of {k}" for k, n in sorted(kinds.items())))
    print("columns: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items())))
    print(f"audits with a wrong number: {bad}; CPU seconds of fit and audit: {seconds:.1f}")


if __name__ == "__main__":
    main()
