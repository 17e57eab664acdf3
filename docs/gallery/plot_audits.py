"""
Does the conclusion survive? Three audits
=========================================

An audit puts on one page what says whether the columns of a small model can be trusted: models
that fit nearly as well, single rows that decide, p-values that know about the search, and a
judgement by rules that the page states.
"""

# %%
# A conclusion that holds
# -----------------------
# The width of a petal is to be predicted by one of three other lengths of an iris. No other
# column fits nearly as well as the length of the petal, no single flower decides, and the p-value
# knows that the best of three was taken: the column holds.

from sklearn.datasets import load_diabetes, load_iris, load_linnerud

from sparsecv import SparseRidge

iris = load_iris(as_frame=True).frame.drop(columns="target")
width = iris.pop("petal width (cm)")
SparseRidge(tau=1, gamma=0.0).fit(iris, width).report(audit=True)

# %%
# Columns that stand for each other
# ---------------------------------
# BIC chooses five of ten columns for the progression of diabetes. Four of them hold. The blood
# value s3 falls, although its p-value is .006: two of the five models within 1 % do without it,
# with s1 and another value in its place, and each of 19 patients alone decides whether s3 is in.
# What may be said is that blood values matter beside s5, and not that s3 does.

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = SparseRidge(tau="bic").fit(X, y)
model.near_best(0.01)[["names", "excess"]]

# %%
model.report(audit=True)

# %%
# A row that decides
# ------------------
# How many jumps twenty men made in a fitness club is to be told from one of their weight, waist
# and pulse. Weight is the best column. The audit names two men, each of whom alone decides that,
# and a second column fits nearly as well. There are too few rows to estimate σ from, so that
# there are no p-values, which the page says. Nothing may be concluded about weight.

men, exercises = load_linnerud(return_X_y=True, as_frame=True)[::-1]
model = SparseRidge(tau=1, gamma=0.0).fit(men, exercises["Jumps"])
model.row_influence().query("not stays")[["names", "lead"]]

# %%
# Without either of them the waist is the best column. Row 9 made 250 jumps, twice as many as
# anybody else.

exercises["Jumps"].sort_values().tail(3)

# %%
model.report(audit=True)
