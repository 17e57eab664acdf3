"""
Algorithm 1 closes its bounds
=============================

Figure 1 of the paper *Optimal Cross-Validation for Sparse Linear Regression*: relaxations bound
the leave-one-out error at every number of columns before a mixed-integer problem is solved. Then
problems are solved one after the other, where the lower bound is least, until the best number of
columns is known within 1 %. The paper's figure has 200 rows and 20 columns, this one 100 and 15.
"""

import numpy as np
from matplotlib import pyplot as plt

from sparsecv.cv.grid_errors import cross_validate
from sparsecv.cv.settings import Settings
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.row_table import RowTable
from sparsecv.tables.synthetic import make_synthetic

n, sizes = 100, list(range(2, 15))
X, y, _ = make_synthetic(n=n, p=15, tau_true=7, rho=0.7, nu=1.0, seed=0)
folds = RowFolds(RowTable(X, y), make_folds("loo", n))
found = cross_validate(folds, [n**-0.5], sizes, Settings("search", bounds="paper"))

# Each step of the search is [problems solved, position of τ, lower bound, upper bound] and replaces
# the bounds of this τ. The first steps, one for every τ, come from relaxations.
steps = found.by_gamma[0].history
ends = [len(sizes), (len(sizes) + len(steps)) // 2, len(steps)]
figure, panels = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True)
for axes, end in zip(panels, ends, strict=True):
    lower, upper = np.zeros(len(sizes)), np.zeros(len(sizes))
    for _, t, low, high in steps[:end]:
        lower[int(t)], upper[int(t)] = low, high
    axes.fill_between(sizes, lower, upper, alpha=0.3)
    axes.plot(sizes, lower, "o-", markersize=3, label="lower bound")
    axes.plot(sizes, upper, "s-", markersize=3, label="upper bound")
    axes.set(
        xlabel="number of columns",
        title=f"{int(steps[end - 1][0]):,} problems solved",
        xticks=[2, 5, 8, 11, 14],
    )
panels[0].set_ylabel("leave-one-out error")
panels[0].set_ylim(bottom=0)
panels[0].legend()
plt.show()

print(f"best number of columns: {found.best().tau}")
print(f"solved: {found.by_gamma[0].n_mio:,} of {n * len(sizes):,} problems")

# %%
# The bounds of this package are tighter: fewer problems remain.

ours = cross_validate(folds, [n**-0.5], sizes, Settings("search"))
print(f"with the package's own bounds: {ours.by_gamma[0].n_mio:,} problems")
