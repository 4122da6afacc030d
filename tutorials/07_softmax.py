# %% [markdown] lang="en"
# # 07 Softmax and its Jacobian
#
# **Needs** 03, 04 · **Minutes** 40
#
# **Question.** Softmax makes shares of scores: sᵢ = exp(xᵢ) / Σⱼ exp(xⱼ). It stands in the middle of
# attention, and every gradient to a query or a key goes through it. Many notes say "its derivative is s
# (1 − s)". Is that all?
# %% [markdown] lang="en"
# ## Only differences count
#
# Add the same number c to every score: above and below the fraction bar a factor exp(c) appears, and
# cancels.
# %% [markdown] lang="en" role="predict"
# **Predict.** What is the softmax of (1002, 1001, 1000), and what does the plain formula give on a
# computer?
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=4, suppress=True)
x = np.array([2.0, 1.0, 0.0])
s = ta.softmax(x).data
print("shares of (2, 1, 0):         ", s)
print("shares of (1002, 1001, 1000):", ta.softmax(x + 1000).data)
with np.errstate(all="ignore"):
    plain = np.exp(x + 1000) / np.exp(x + 1000).sum()
print("by the plain formula:        ", plain)

assert np.allclose(ta.softmax(x + 1000).data, s, rtol=0, atol=1e-15)
assert np.isnan(plain).all()  # exp(1002) is infinite, and inf / inf is no number
assert np.allclose(s, [0.6652, 0.2447, 0.0900], atol=5e-5) and abs(s.sum() - 1) < 1e-15
# %% [markdown] lang="en"
# So subtract the largest score first: the same shares, and no overflow.
#
# ## One score up, every share moves
#
# The shares always sum to 1. If one grows, others must shrink. So there is not one derivative but a
# table: how fast does share i change when score j does? Such a table of slopes, results by inputs, is a
# **Jacobian**.
# %% [markdown] lang="en" role="predict"
# **Predict.** For (2, 1, 0): which signs are on the diagonal of the table, and which beside it?
# %%
J = ta.jacobian(ta.softmax, x).data
print(J)
by_formula = np.diag(s) - np.outer(s, s)  # i = j: s (1 - s);  i != j: -sᵢ sⱼ
assert np.allclose(J, by_formula, rtol=0, atol=1e-15)
assert (np.diag(J) > 0).all() and (J - np.diag(np.diag(J)) <= 0).all()
assert np.allclose(J.diagonal(), s * (1 - s), rtol=0, atol=1e-15)
# %% [markdown] lang="en"
# s (1 − s) is the *diagonal*. Beside it stands −sᵢ sⱼ: what one share gains the others lose, in
# proportion to both.
#
# ## What the missing part does
#
# Let g = (1, 0, 0) arrive: only the first share matters for the loss.
# %% [markdown] lang="en" role="predict"
# **Predict.** Which scores get a slope that is not 0?
# %%
g = np.array([1.0, 0.0, 0.0])
diagonal_only = s * (1 - s) * g
truth = ta.vjp(ta.softmax, x)[1](g)[0].data
print("diagonal only:", diagonal_only)
print("truth:        ", truth)

def first(x):
    return ta.softmax(x).data[0]

measured = [(first(x + step) - first(x - step)) / 2e-5 for step in 1e-5 * np.eye(3)]
assert np.allclose(truth, measured, rtol=0, atol=1e-9)
assert np.allclose(truth, [0.2227, -0.1628, -0.0599], atol=5e-5)
assert np.allclose(diagonal_only, [0.2227, 0, 0], atol=5e-5)
# %% [markdown] lang="en"
# The first share also grows when another score *falls*. Who forgets this trains a model that never
# learns to look away.
#
# ## What the table must look like
#
# Three facts that need no calculation:
# %% [markdown] lang="en" role="predict"
# **Predict.** To what does each row of the table sum? (Move all scores together: what happens?) And each
# column?
# %%
rng = np.random.default_rng(7)
for n in (2, 3, 5, 9):
    J = ta.jacobian(ta.softmax, rng.normal(size=n)).data
    assert np.allclose(J, J.T, rtol=0, atol=1e-15)   # symmetric
    assert np.abs(J.sum(axis=1)).max() < 1e-14       # moving all scores: no change
    assert np.abs(J.sum(axis=0)).max() < 1e-14       # the shares go on summing to 1
    print(f"n = {n}: rank of J is", np.linalg.matrix_rank(J))
    assert np.linalg.matrix_rank(J) == n - 1         # one direction is lost, no more
# %% [markdown] lang="en"
# ## Never build the table
#
# For 1000 scores J has a million entries. Going back we only need Jᵀ g, and it is short. Multiply
# (diag(s) − s sᵀ) g out:
#
# x̄ = s · (g − Σⱼ gⱼ sⱼ)
#
# Σ g s is the *mean* of what arrives, weighted with the shares. So a score is pushed up if its g is
# above that mean, and down if it is below, in proportion to its share.
# %% [markdown] lang="en" role="predict"
# **Predict.** The same g = 5 arrives at every share. What is the gradient of the scores?
# %%
x, g = rng.normal(size=1000), rng.normal(size=1000)
s = ta.softmax(x).data
short = s * (g - (g * s).sum())
assert np.allclose(short, ta.vjp(ta.softmax, x)[1](g)[0].data, rtol=0, atol=1e-15)
assert np.allclose(short, (np.diag(s) - np.outer(s, s)) @ g, rtol=0, atol=1e-15)
print("numbers needed:", s.size, "instead of", s.size**2)

same = s * (5 - (5 * s).sum())
print("largest slope when 5 arrives everywhere:", np.abs(same).max())
assert np.abs(same).max() < 1e-14  # nothing: shares sum to 1 whatever the scores
# %% [markdown] lang="en"
# ## Sure of itself, deaf
#
# Multiply the scores by 10: the largest share comes close to 1, and all entries of the Jacobian close to
# 0.
# %% [markdown] lang="en" role="predict"
# **Predict.** By how much does the summed |J| shrink from scores (2, 1, 0) to (20, 10, 0): half, a
# hundredth, less?
# %%
sizes = []
for loud in (1, 3, 10):
    scores = loud * np.array([2.0, 1.0, 0.0])
    largest = ta.softmax(scores).data.max()
    sizes.append(np.abs(ta.jacobian(ta.softmax, scores).data).sum())
    print(f"scores {scores}   largest share {largest:.5f}   sum |J| {sizes[-1]:.5f}")

assert sizes[0] > sizes[1] > sizes[2] and sizes[2] < sizes[0] / 1000
# %% [markdown] lang="en"
# Less than a thousandth is left: a softmax that has decided no longer learns. Lesson 12 shows why
# attention runs into this, and the cure, √d.
#
# ## With the logarithm: p − y
#
# As the last step of a classifier, softmax is followed by the loss −log p of the right class. Two
# awkward rules, one after the other, and they simplify to the plainest gradient there is.
# %% [markdown] lang="en" role="predict"
# **Predict.** p = (0.7, 0.2, 0.1) and the third class is right. What is the gradient of the scores? (It is
# p − y.)
# %%
scores = np.log(np.array([0.7, 0.2, 0.1]))
gradient = ta.grad(lambda z: ta.cross_entropy(z, 2))(scores).data
p, y = np.array([0.7, 0.2, 0.1]), np.array([0.0, 0.0, 1.0])
print("gradient", gradient, "  p - y =", p - y)
assert np.allclose(gradient, p - y, rtol=0, atol=1e-12)
J = np.diag(p) - np.outer(p, p)
assert np.allclose(J @ (-y / p), p - y, rtol=0, atol=1e-12)  # one rule after the other

far = np.array([0.0, -1000.0])  # the right class has a share of 0 for the computer
with np.errstate(all="ignore"):
    print("-log(softmax):", -np.log(ta.softmax(far).data)[1])
print("-log_softmax: ", -ta.log_softmax(far).data[1])
assert -ta.log_softmax(far).data[1] == 1000  # so take the logarithm inside
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (5 minutes). Softmax along the last axis, for scores of any size.
# %% exercise="07.softmax"
from tinyattn.learn import grade, hint, reveal


def softmax(x):
    """Shares along the last axis of the array x, in its shape, without overflow."""
    ...

grade("07.softmax", softmax)
# %% [markdown] lang="en"
# **2** (10 minutes). Its backward rule, for rows.
# %% exercise="07.softmax_vjp"
def softmax_vjp(g, s):
    """g arrives at the shares s (last axis): the gradient of the scores. No table."""
    ...

grade("07.softmax_vjp", softmax_vjp)
# %% [markdown] lang="en"
# **3** (10 minutes). The gradient of the mean loss of several rows.
# %% exercise="07.cross_entropy_gradient"
def cross_entropy_gradient(x, targets):
    """x (n, c) scores, targets n class numbers: gradient of the mean of -log p[target]."""
    ...

grade("07.cross_entropy_gradient", cross_entropy_gradient)
# %% [markdown] lang="en"
# ## Summary
#
# - J = diag(s) − s sᵀ: s (1 − s) is only its diagonal. Rows and columns sum to 0, and its rank is n − 1.
# - Going back: s · (g − Σ g s), no table. What arrives is compared with its mean.
# - A share near 1 lets hardly any gradient through. With −log after it, the gradient is p − y.
