"""
The leave-one-out curve, with intervals
=======================================

The CV error is computed at every number of columns. Where a time limit stops the proofs, sparsecv
keeps an interval that contains the exact error. The picture shows the exact curve, and the
intervals that bounds alone give, before a single mixed-integer problem is solved.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

from sparsecv import SparseRidgeCV

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
exact = SparseRidgeCV(cv="loo", gammas=[20.0], rule="minimum").fit(X, y)
bounds = SparseRidgeCV(cv="loo", gammas=[20.0], method="search", tol=0.99).fit(X, y)
# The search of the least error ends where its bounds differ by 99 %: before it solves any problem.

print(f"chosen: {exact.tau_} columns, CV error {exact.cv_error_:.1f}, proved: {exact.certified_}")

# %%
# ``surface_`` has for every γ (first axis) and every number of columns (second axis) an error, its
# interval from ``lower`` to ``upper``, and ``exact``, which says whether the error is proved.

curve, known = exact.surface_, bounds.surface_
figure, axes = plt.subplots()
axes.fill_between(known["tau"], known["lower"][0], known["upper"][0], alpha=0.3, label="bounds")
axes.plot(curve["tau"], curve["cv_error"][0], "o-", color="C1", label="exact")
axes.plot(exact.tau_, exact.cv_error_, "*", color="black", markersize=13, label="least error")
axes.set(xlabel="number of columns", ylabel="leave-one-out error", title="Diabetes data, γ = 20")
axes.set_yscale("log")
axes.legend()
plt.show()

# %%
# The estimate at a size is the error of the model of exactly that size; the least error is
# certified where no other pair of the surface can be better.

print(f"proved at every size: {bool(curve['exact'].all())}")
print(f"solved for the intervals: {int(known['n_mio'].sum())} mixed-integer problems")
