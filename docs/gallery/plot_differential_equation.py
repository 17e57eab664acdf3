"""
A differential equation from data, without a licence
====================================================

PySINDy finds the equations of a system from measurements, by least squares on a library of
monomials with few terms. Its exact optimizer needs Gurobi, whose free licence is too small for
degree 5. ``SparseRidgeOptimizer`` takes the same parameters, needs no licence, and proves each
equation to be the best of its size.
"""

import numpy as np
import pysindy
from matplotlib import pyplot as plt
from scipy.integrate import solve_ivp

from sparsecv.integrations.pysindy import SparseRidgeOptimizer


def lorenz(t, u):
    return [10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2]]


t = np.arange(0, 10, 0.002)
path = solve_ivp(lorenz, (0, 10), [-8, 8, 27], t_eval=t, rtol=1e-10, atol=1e-10).y.T
measured = path + 0.002 * path.std() * np.random.default_rng(0).standard_normal(path.shape)

model = pysindy.SINDy(
    optimizer=SparseRidgeOptimizer(target_sparsity=None, group_sparsity=(2, 3, 2), alpha=1e-5),
    feature_library=pysindy.PolynomialLibrary(degree=5),
    differentiation_method=pysindy.SmoothedFiniteDifference(),
)
model.fit(measured, t=t, feature_names=["x", "y", "z"])
model.print()
print(f"{model.feature_library.n_output_features_} library terms; proved:", model.optimizer.proved_)

# %%
# The library has 56 monomials that nearly depend on each other; the sizes 2, 3, 2 were given. The
# right-hand side that was found is integrated from the first measurement.

again = model.simulate(measured[0], t[t < 4])
figure, axes = plt.subplots(figsize=(7, 3.6))
axes.plot(t[t < 4], measured[t < 4, 0], color="0.6", linewidth=4, label="measured x")
axes.plot(t[t < 4], again[:, 0], "--", color="C1", label="integrated from the equations found")
axes.set(xlabel="time", ylabel="x", title="Lorenz system, 0.2 % noise")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=2)
plt.show()
