# %% [markdown] lang="en"
# # 05 The gradient of a matrix product
#
# **Needs** 03, 04 · **Minutes** 35
#
# **Question.** Y = X W is in every layer, and attention consists of hardly anything else. Books state its
# gradients as dX = G Wᵀ and dW = Xᵀ G, where G holds the slopes that arrive at Y. Where do the transposes
# come from? "So that the shapes fit" is what many remember. Is that a reason?
# %% [markdown] lang="zh" of="e5a98c"
# # 05 矩阵乘法的梯度
#
# **需要** 03, 04 · **分钟** 35
#
# **问题。** 每一层网络里都有Y = X W，注意力（attention）更是几乎全由它组成。书上写道，它的梯度（gradient）是
# dX = G Wᵀ和dW = Xᵀ G，其中G是传到Y的斜率。这些转置是从哪里来的？许多人只记得“这样形状才对得上”。
# 这算是理由吗？
# %% [markdown] lang="en"
# ## One entry at a time
#
# Y[i, j] = Σₖ X[i, k] · W[k, j]. Look at one number, W[k, j]. It meets the k-th entry of *every* row of
# X, and each time it ends up in column j of Y. Several paths: multiply along each, add them up:
#
# dW[k, j] = Σᵢ X[i, k] · G[i, j].
# %% [markdown] lang="zh" of="feb909"
# ## 一次只看一个元素
#
# Y[i, j] = Σₖ X[i, k] · W[k, j]。只盯住一个数W[k, j]：它与X的*每一行*的第k个元素相遇，每次都落到Y的第j列。
# 路径有好几条：沿每一条相乘，几条之间相加：
#
# dW[k, j] = Σᵢ X[i, k] · G[i, j]。
# %% [markdown] lang="en" role="predict"
# **Predict.** X = [[1, 2], [3, 4]], G = [[10, 0], [1, 0]]. What is dW[0, 0]? Which paths are there?
# %% [markdown] lang="zh" of="bc7c85"
# **预测。** X = [[1, 2], [3, 4]]，G = [[10, 0], [1, 0]]。dW[0, 0]是多少？有哪几条路径？
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
# Look: the way back, with the rule at Y in the notation of the books. A bar marks a gradient, so Ȳ is our
# G.
# %% [markdown] lang="zh" of="955a1f"
# 看图：这是往回走的路，Y那里用书上的记号写着规则。头上的横线表示梯度，所以Ȳ就是我们的G。
# %% picture="both_factors"
import viz

L = ta.sum(Y * G)  # a single number whose slopes for Y are G
shown = ("op", "rule", "grad")
drawing = viz.draw(L, view="backward", gradients=True, show=shown, legend=False)
assert "W̄ = Xᵀ Ȳ" in drawing.text and "X̄ = Ȳ Wᵀ" in drawing.text
drawing
# %% [markdown] lang="en"
# ## The sum over i is a matrix product
#
# In Σᵢ X[i, k] · G[i, j] the summed index i is the *first* of X. A matrix product sums over the *last*
# of its left factor. Turn X round, and it is one: Xᵀ[k, i] · G[i, j], so dW = Xᵀ G. In the same way
# dX[i, k] = Σⱼ G[i, j] · W[k, j] = (G Wᵀ)[i, k]. The transposes only bring the summed index into place.
#
# Loops over single entries, written from the index formulas, know nothing of transposes:
# %% [markdown] lang="zh" of="3204c7"
# ## 对i求和，就是一次矩阵乘法
#
# 在Σᵢ X[i, k] · G[i, j]里，求和的下标i是X的*第一个*下标。矩阵乘法求和用的，却是左边因子的*最后一个*下标。
# 把X转过来就行了：Xᵀ[k, i] · G[i, j]，所以dW = Xᵀ G。同理，dX[i, k] = Σⱼ G[i, j] · W[k, j] = (G Wᵀ)[i, k]。
# 转置的作用，只是把求和的下标放到该放的位置。
#
# 用循环照着下标公式一个元素一个元素地算，根本不知道有转置这回事：
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
# With sizes 4, 3, 2 only one of the products G Wᵀ, G W, Wᵀ G and W G exists at all. But the matrices in
# attention are often square.
# %% [markdown] lang="zh" of="c8eaa0"
# ## “形状对得上，所以是对的”
#
# 大小是4、3、2时，G Wᵀ、G W、Wᵀ G、W G这四个乘积里，只有一个算得出来。可是注意力里的矩阵常常是方阵。
# %% [markdown] lang="en" role="predict"
# **Predict.** All matrices are 3 × 3. How many of G Wᵀ, G W, Wᵀ G, W G have the shape of X, and how many
# are right?
# %% [markdown] lang="zh" of="a005d1"
# **预测。** 所有矩阵都是3 × 3。G Wᵀ、G W、Wᵀ G、W G里，有几个的形状与X相同？有几个是对的？
# %%
def products(g, w):
    pairs = {"G Wᵀ": (g, w.T), "G W": (g, w), "Wᵀ G": (w.T, g), "W G": (w, g)}
    return {name: a @ b for name, (a, b) in pairs.items() if a.shape[1] == b.shape[0]}

assert list(products(g, w)) == ["G Wᵀ"]  # sizes 4, 3, 2: the shapes decide
x, w, g = (rng.normal(size=(3, 3)) for _ in range(3))
right, _ = by_loops(x, w, g)
candidates = products(g, w)
for name, candidate in candidates.items():
    off = np.abs(candidate - right).max()
    print(f"{name:5} shape {candidate.shape}   largest error {off:.2f}")

fitting = [name for name, c in candidates.items() if np.allclose(c, right)]
assert fitting == ["G Wᵀ"] and all(c.shape == x.shape for c in candidates.values())
# %% [markdown] lang="en"
# All four fit, one is right. Shapes can refute a formula, never prove it. Differences can come close to
# proving it; algebra has the last word (lesson 06).
#
# ## Two products in a row
#
# For Y = (X A) B go back step by step: first through B, then through A. No new formula is needed, and no
# tensor with four indices, as a "derivative of a matrix by a matrix" would be.
# %% [markdown] lang="zh" of="a2853d"
# 四个都对得上，只有一个是对的。形状能否定一个公式，却证明不了它。差分可以接近于证明；
# 最后要由代数说了算（第06课）。
#
# ## 连着两次乘法
#
# 对Y = (X A) B，一步一步往回走：先穿过B，再穿过A。不需要新的公式，更不需要带四个下标的张量（tensor），
# 也就是所谓“矩阵对矩阵的导数”。
# %% [markdown] lang="en" role="predict"
# **Predict.** Write dA in terms of X, B and G. How many transposes?
# %% [markdown] lang="zh" of="595082"
# **预测。** 用X、B和G写出dA。要用几次转置？
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
# %% [markdown] lang="zh" of="b4a1a0"
# ## 一批句子共用W
#
# 10个句子合成一批（batch），形状是(10, n, d)；W没有第一个轴，要广播（broadcasting）过去。后面会怎样，
# 第04课已经说了。
# %% [markdown] lang="en" role="predict"
# **Predict.** What becomes of the ten matrices Xᵀ G, one from each sentence?
# %% [markdown] lang="zh" of="6d6217"
# **预测。** 每个句子给出一个矩阵Xᵀ G，一共十个。它们最后怎样了？
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
# ## One vector against many
#
# A product of two vectors, s = q · k, sums up qᵢ kᵢ. Its slopes: each vector gets the *other* one, times
# what arrives. If one q meets n vectors k, the rows of K, it collects n pieces. That is what attention
# does (lesson 10), and lesson 14 goes back through it.
# %% [markdown] lang="zh" of="c35c21"
# 它们相加。在W看来，十个四个词的句子，不过是四十行。
#
# ## 一个向量对许多向量
#
# 两个向量的点积s = q · k，是把qᵢ kᵢ加起来。它的斜率：每个向量得到的，是*另一个*向量乘以传来的数。
# 如果同一个q与n个向量k（K的各行）分别相乘，它就收到n份。注意力做的正是这件事（第10课），
# 第14课再沿着它往回走。
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
# %% [markdown] lang="zh" of="9dc3be"
# ## 练习
#
# **1**（5分钟）。左边因子的梯度。
# %% exercise="05.grad_left"
from tinyattn.learn import grade, hint, reveal


def grad_left(G, X, W):
    """Y = X @ W, G arrives at Y: the gradient of X."""
    ...

grade("05.grad_left", grad_left)
# %% [markdown] lang="en"
# **2** (10 minutes). The gradient for the weights, when X is a batch (b, n, d) and W is shared by all of
# it.
# %% [markdown] lang="zh" of="bdbce9"
# **2**（10分钟）。X是一批（b, n, d），W由整批共用时，参数W的梯度。
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
# %% [markdown] lang="zh" of="1385f6"
# ## 小结
#
# - dX = G Wᵀ，dW = Xᵀ G：写出一个元素，把各条路径加起来；转置只是把求和的下标放到该放的位置。
# - 形状对得上什么也证明不了：方阵时四个公式都对得上，只有一个是对的。
# - 一批句子共用W，所以各份要相加；连着几次乘法，就一次一次往回走。
