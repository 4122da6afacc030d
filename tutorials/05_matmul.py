# %% [markdown] lang="en"
# # 05 The gradient of a matrix product
#
# **Needs** 03, 04 · **Minutes** 35
#
# **Question.** Y = X W is in every layer; attention has half a dozen of them. Books state its gradients as
# dX = G Wᵀ and dW = Xᵀ G, where G holds the slopes that arrive at Y. Where do the transposes come from?
# "So that the shapes fit" is what many remember. Is that a reason?
# %% [markdown] lang="en"
# ## One entry at a time
#
# Y[i, j] = Σₖ X[i, k] · W[k, j]. Look at one number, W[k, j]. It meets the k-th entry of *every* row of
# X, and each time it ends up in column j of Y. Several paths: multiply along each, add them up:
#
# dW[k, j] = Σᵢ X[i, k] · G[i, j].
# %% [markdown] lang="en" role="predict"
# **Predict.** X = [[1, 2], [3, 4]], G = [[10, 0], [1, 0]]. What is dW[0, 0]? Which paths are there?
# %%
import numpy as np

import tinyattn as ta

X = ta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
W = ta.tensor([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
G = np.array([[10.0, 0.0], [1.0, 0.0]])
Y = X @ W
Y.backward(G)
print("dW =\n", W.grad)

assert W.grad[0, 0] == 1 * 10 + 3 * 1  # by X[0, 0] to Y[0, 0], and by X[1, 0] to Y[1, 0]
assert W.grad.tolist() == [[13, 0], [24, 0]]
# %% [markdown] lang="en"
# ## The sum over i is a matrix product
#
# In Σᵢ X[i, k] · G[i, j] the summed index i is the *first* of X. A matrix product sums over the *last*
# of its left factor. Turn X round, and it is one: Xᵀ[k, i] · G[i, j], so dW = Xᵀ G. In the same way
# dX[i, k] = Σⱼ G[i, j] · W[k, j] = (G Wᵀ)[i, k]. The transposes only bring the summed index into place.
#
# Loops over single entries, written from the index formulas, know nothing of transposes:
# %%
def by_loops(X, W, G):
    dX, dW = np.zeros(X.shape), np.zeros(W.shape)
    for i in range(X.shape[0]):
        for j in range(W.shape[1]):
            for k in range(X.shape[1]):
                dX[i, k] += G[i, j] * W[k, j]
                dW[k, j] += X[i, k] * G[i, j]
    return dX, dW

rng = np.random.default_rng(5)
x, w, g = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
dX, dW = by_loops(x, w, g)
assert np.allclose(dX, g @ w.T, rtol=0, atol=1e-12)
assert np.allclose(dW, x.T @ g, rtol=0, atol=1e-12)
print("shapes:", dX.shape, "as X,", dW.shape, "as W")
# %% [markdown] lang="en"
# ## "The shapes fit, so it is right"
#
# With sizes 4, 3, 2 only one product of G and W has the shape of X. But q, k and v matrices are often
# square.
# %% [markdown] lang="en" role="predict"
# **Predict.** All matrices are 3 × 3. How many of G Wᵀ, G W, Wᵀ G, W G have the shape of X, and how many
# are right?
# %%
x, w, g = (rng.normal(size=(3, 3)) for _ in range(3))
right, _ = by_loops(x, w, g)
candidates = {"G Wᵀ": g @ w.T, "G W": g @ w, "Wᵀ G": w.T @ g, "W G": w @ g}
for name, candidate in candidates.items():
    off = np.abs(candidate - right).max()
    print(f"{name:5} shape {candidate.shape}   largest error {off:.2f}")

fitting = [name for name, c in candidates.items() if np.allclose(c, right)]
assert fitting == ["G Wᵀ"] and all(c.shape == x.shape for c in candidates.values())
# %% [markdown] lang="en"
# All four fit, one is right. Shapes can refute a formula, never prove it. Differences can come close to
# proving it; the last word has algebra (lesson 06).
#
# ## Two products in a row
#
# For Y = (X A) B go back step by step: first through B, then through A. No new formula is needed, and no
# tensor with four indices, as a "derivative of a matrix by a matrix" would be.
# %% [markdown] lang="en" role="predict"
# **Predict.** Write dA in terms of X, B and G. How many transposes?
# %%
A = ta.tensor(rng.normal(size=(3, 2)), requires_grad=True)
B = ta.tensor(rng.normal(size=(2, 5)), requires_grad=True)
X = ta.tensor(rng.normal(size=(4, 3)))
G = rng.normal(size=(4, 5))
Y = (X @ A) @ B
dA, dB = ta.grad(Y, [A, B], seed=G)

through_b = G @ B.data.T       # what arrives at X A
assert np.allclose(dA.data, X.data.T @ through_b, rtol=0, atol=1e-12)  # Xᵀ G Bᵀ: two
assert np.allclose(dB.data, (X @ A).data.T @ G, rtol=0, atol=1e-12)
print("dA = Xᵀ G Bᵀ, shape", dA.shape, "  dB = (X A)ᵀ G, shape", dB.shape)
# %% [markdown] lang="en"
# ## A batch shares W
#
# A batch of 10 sentences has shape (10, n, d); W has none of the first axis, it is broadcast. Lesson 04
# says what follows.
# %% [markdown] lang="en" role="predict"
# **Predict.** What becomes of the ten matrices Xᵀ G, one from each sentence?
# %%
X = ta.tensor(rng.normal(size=(10, 4, 3)))
W = ta.tensor(rng.normal(size=(3, 2)), requires_grad=True)
G = rng.normal(size=(10, 4, 2))
Y = X @ W
Y.backward(G)

each = np.swapaxes(X.data, 1, 2) @ G  # (10, 3, 2): one for each sentence
print("each:", each.shape, " together:", W.grad.shape)
assert np.allclose(W.grad, each.sum(axis=0), rtol=0, atol=1e-12)
rows = X.data.reshape(40, 3).T @ G.reshape(40, 2)  # or: forty rows, never mind whose
assert np.allclose(W.grad, rows, rtol=0, atol=1e-12)
# %% [markdown] lang="en"
# They are added. To W, ten sentences of four words are just forty rows.
#
# ## q · k, once more
#
# The score of a query and a key is a product of two vectors: s = q · k. Its slopes: each is the *other*
# one, times what arrives. If q is used for n keys, it collects n pieces. You will meet both in lesson
# 14.
# %%
q = ta.tensor([2.0, 1.0], requires_grad=True)
K = ta.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]], requires_grad=True)
g = np.array([1.0, 10.0, 100.0])
scores = K @ q
scores.backward(g)
print("dq:", q.grad, "\ndK:\n", K.grad)
assert q.grad.tolist() == [1 * 1 + 10 * 1, 1 * 1 + 100 * 1]  # keys, weighted with g
assert K.grad.tolist() == [[2, 1], [20, 10], [200, 100]]  # q, once for each key
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (5 minutes). The gradient for the left factor.
# %% exercise="05.grad_left"
from tinyattn.learn import grade, hint, reveal


def grad_left(G, X, W):
    """Y = X @ W, G arrives at Y: the gradient of X."""
    ...

grade("05.grad_left", grad_left)
# %% [markdown] lang="en"
# **2** (10 minutes). The gradient for the weights, when X is a batch (b, n, d) and W is shared by all of
# it.
# %% exercise="05.grad_shared"
def grad_shared(G, X, W):
    """Y = X @ W with X (b, n, d), W (d, m), G (b, n, m): the gradient of W."""
    ...

grade("05.grad_shared", grad_shared)
# %% [markdown] lang="en"
# ## Summary
#
# - dX = G Wᵀ and dW = Xᵀ G: write one entry, add over its paths; the transposes bring the summed index
#   into place.
# - Fitting shapes prove nothing: with square matrices four formulas fit, and one is right.
# - A batch shares W, so its pieces are added; go through several products one after the other.
