"""
How many terms has each equation? Cross-validation over trajectories
====================================================================

The rows of one trajectory are not independent, so folds of single rows understate the error.
``SparseRidgeCVOptimizer`` holds out whole trajectories and chooses the number of terms of each
equation by itself. PySINDy's own optimizers ask for these numbers.
"""

import numpy as np
import pysindy
from matplotlib import pyplot as plt
from scipy.integrate import solve_ivp

from sparsecv.integrations.pysindy import SparseRidgeCVOptimizer


def hunters_and_prey(t, u):
    return [u[0] * (1.0 - 0.1 * u[1]), u[1] * (-1.5 + 0.075 * u[0])]


rng, t = np.random.default_rng(0), np.arange(0, 12, 0.02)
starts = rng.uniform([8, 4], [30, 15], (8, 2))
paths = [solve_ivp(hunters_and_prey, (0, 12), u, t_eval=t, rtol=1e-9).y.T for u in starts]
measured = [path + 0.01 * rng.standard_normal(path.shape) for path in paths]

trajectory = np.repeat(np.arange(8), len(t))
optimizer = SparseRidgeCVOptimizer(groups=trajectory)
model = pysindy.SINDy(
    optimizer=optimizer,
    feature_library=pysindy.PolynomialLibrary(degree=3),
    differentiation_method=pysindy.SmoothedFiniteDifference(),
)
model.fit(measured, t=t, feature_names=["prey", "hunters"])
model.print()
print("terms chosen:", optimizer.sizes_, "— true: 2 and 2")

# %%
# The CV error against the number of terms, for both equations.

figure, axes = plt.subplots()
for fit, name in zip(optimizer.models_, ("prey", "hunters"), strict=True):
    least = fit.surface_["cv_error"].min(axis=0)
    axes.semilogy(fit.surface_["tau"], least, "o-", label=name)
axes.set(xlabel="number of terms", ylabel="CV error", title="Eight trajectories, held out in turn")
axes.legend()
plt.show()
