"""
The leave-one-out curve, with intervals
=======================================

The CV error is computed at every number of columns. Where a time limit stops the proofs, sparsecv keeps
an interval that contains the exact error. This picture shows both: the exact curve, and the intervals
that bounds alone give, without solving a single mixed-integer problem.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

from sparsecv import SparseRidgeCV

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
exact = SparseRidgeCV(cv="loo", gammas=[100.0]).fit(X, y)
bounds = SparseRidgeCV(cv="loo", gammas=[100.0], method="bounds").fit(X, y)

print(f"chosen: {exact.tau_} columns, CV error {exact.cv_error_:.1f}, proved: {exact.certified_}")

# %%
# Every entry of ``surface_`` has an error, an interval, and a mark that says whether the error is proved.

curve, range_ = exact.surface_, bounds.surface_
figure, axes = plt.subplots()
axes.fill_between(
    range_["tau"], range_["lower"][0], range_["upper"][0], alpha=0.25, label="bounds alone"
)
axes.errorbar(curve["tau"], curve["cv_error"][0], yerr=np.nan, marker="o", label="exact")
axes.plot(exact.tau_, exact.cv_error_, "*", color="C1", markersize=14, label="least error")
axes.set(xlabel="number of columns", ylabel="leave-one-out error", title="Diabetes data, γ = 100")
axes.legend()
plt.show()
