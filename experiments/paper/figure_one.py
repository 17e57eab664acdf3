"""This script draws Figure 1 of the first paper: bounds on the leave-one-out error by Algorithm 1.

    python -m experiments.paper.figure_one

The data have n = 200, p = 20, τ_true = 10, ρ = 0.7 and ν = 1; γ is 1/√n and τ is 2..19. The paper
solved 1,694 of 3,600 problems (53 % fewer). The paper's draw of the data is not known, so the
script draws five data sets.
"""

from __future__ import annotations

import numpy as np

from experiments.common import RESULTS, fold_rows, machine, run
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol
from sparsecv.plots.search_bounds import animate_bounds, plot_bounds


def main() -> None:
    print(machine())
    gamma, taus = 1.0 / np.sqrt(200.0), np.arange(2, 20)
    for scale in ("unit-variance", "unit-norm"):
        for seed in range(5):
            data = fold_rows(f"synthetic:200,20,10,0.7,1,{seed}", "loo", Protocol("paper", scale))
            exact = run(data, [gamma], None, taus).by_gamma[0]
            line = f"{scale:<13} draw {seed}:"
            for bounds in ("paper", "paper-exact", "best"):
                result = run(data, [gamma], Settings("search", bounds=bounds), taus)
                one, best = result.by_gamma[0], result.best()
                good = exact.cv_error[best.tau_index] <= exact.cv_error.min() / 0.99
                line += (
                    f"  {bounds} {one.n_mio:>5,} ({100 * (1 - one.n_mio / 3600):.1f} % fewer"
                    f"{'' if good else ', WRONG τ'})"
                )
                if seed == 0 and scale == "unit-norm":
                    title = f"n = 200, p = 20, {bounds}"
                    plot_bounds(one, str(RESULTS / f"figure_one_{bounds}.png"), title)
                    if bounds == "best":
                        animate_bounds(one, str(RESULTS / "figure_one.gif"), title)
            print(line, flush=True)


if __name__ == "__main__":
    main()
