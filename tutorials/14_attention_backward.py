# %% [markdown] lang="en"
# # 14 Attention's backward pass, node by node
#
# **Needs** 05, 07, 11, 12 · **Minutes** 45
#
# **Question.** You have all the parts: the gradient of a matrix product, of softmax, and adding up over
# paths. Put them together: a slope arrives at the outputs of attention. What reaches the values, the
# weights, the scores, queries and keys, and in the end the words? And how can we be *sure* that it is
# right?
# %% [markdown] lang="zh" of="239196"
# # 14 注意力的反向传播：逐个结点走一遍
#
# **需要** 05, 07, 11, 12 · **分钟** 45
#
# **问题。** 零件都齐了：矩阵乘法的梯度（gradient）、softmax的梯度、多条路径上的梯度相加。
# 现在把它们装到一起：注意力（attention）的输出处传来了一份梯度，反向传播（backpropagation）到值
# （value）、权重、分数、查询（query）和键（key），最后到各个词，各得到什么？又怎样才能*确信*算得没错？
# %% [markdown] lang="en"
# ## Forwards, and what arrives
# %% [markdown] lang="zh" of="ded359"
# ## 前向，以及传到输出的梯度
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=4, suppress=True)
rng = np.random.default_rng(14)
n, d, d_k = 4, 3, 2
X, W_q, W_k, W_v = (ta.tensor(rng.normal(size=size) / 1.5, requires_grad=True)
                    for size in ((n, d), (d, d_k), (d, d_k), (d, d_k)))

def attend(X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    scores = Q @ K.mT / np.sqrt(d_k)
    weights = ta.softmax(scores)
    return Q, K, V, scores, weights, weights @ V

Q, K, V, scores, weights, B = attend(X, W_q, W_k, W_v)
G = rng.normal(size=B.shape)  # what arrives at B
assert B.shape == (4, 2) and weights.shape == (4, 4)
# %% [markdown] lang="en"
# ## Step 1: B = weights V
#
# A matrix product, lesson 05: each factor gets the other one, transposed.
# %% [markdown] lang="zh" of="a53399"
# ## 第1步：B = weights V
#
# 这是矩阵乘法，第05课讲过：每个因子得到的，是另一个因子的转置与传来的梯度相乘。
# %% [markdown] lang="en" role="predict"
# **Predict.** Which of the two is right for the values: weights G, or weightsᵀ G? Both fit: weights is
# square.
# %% [markdown] lang="zh" of="2e969f"
# **预测。** 值的梯度是哪一个：weights G，还是weightsᵀ G？weights是方阵，两个的形状都对得上。
# %%
A = weights.data
dV = A.T @ G
dA = G @ V.data.T

assert np.allclose(dV, ta.grad(B, V, seed=G).data, rtol=0, atol=1e-12)
assert np.allclose(dA, ta.grad(B, weights, seed=G).data, rtol=0, atol=1e-12)
assert not np.allclose(A @ G, dV)
print("value 2 gets", dV[1], "= its weights in all rows,", A[:, 1], ", times G")
# %% [markdown] lang="en"
# weightsᵀ: a value receives from every word that looked at it, as much as it was looked at.
#
# ## Step 2: through softmax
#
# Lesson 07, for each row by itself: dS = weights · (dA − Σ dA · weights).
# %% [markdown] lang="zh" of="52afba"
# 是weightsᵀ：凡是看过某个值的词，都会给它传回梯度；看了多少，就传多少。
#
# ## 第2步：穿过softmax
#
# 第07课的结果，每一行各算各的：dS = weights · (dA − Σ dA · weights)。
# %% [markdown] lang="en" role="predict"
# **Predict.** To what does each row of dS sum?
# %% [markdown] lang="zh" of="ee38a8"
# **预测。** dS的每一行加起来是多少？
# %%
mean = (dA * A).sum(axis=-1, keepdims=True)  # for each query: the weighted mean of dA
dS = A * (dA - mean)
assert np.allclose(dS, ta.grad(B, scores, seed=G).data, rtol=0, atol=1e-12)
assert np.abs(dS.sum(axis=1)).max() < 1e-14
print(dS, "\nrow sums", dS.sum(axis=1))

# The mean needs no table: dA · A summed over the keys is G · B summed over the columns.
assert np.allclose(mean[:, 0], (G * B.data).sum(axis=-1), rtol=0, atol=1e-12)
# %% [markdown] lang="en"
# To 0: what one key gains, others lose. (The last line is a trick of FlashAttention, which never keeps
# the n × n table.)
#
# ## Step 3: through the scores
#
# scores = Q Kᵀ / √d_k. The factor goes along; K has been transposed, so its gradient comes back
# transposed.
# %% [markdown] lang="zh" of="556f5c"
# 是0：一个键得到的，就是别的键失去的。（代码最后一行是FlashAttention的窍门，它从不保存那张n × n的表。）
#
# ## 第3步：穿过分数
#
# scores = Q Kᵀ / √d_k。系数照样带着；K在前向时转置过，所以它的梯度回来时也要转置。
# %% [markdown] lang="en" role="predict"
# **Predict.** Does the gradient of K need dS or its transpose?
# %% [markdown] lang="zh" of="a148ba"
# **预测。** K的梯度用的是dS，还是dS的转置？
# %%
dQ = dS @ K.data / np.sqrt(d_k)
dK = dS.T @ Q.data / np.sqrt(d_k)

assert np.allclose(dQ, ta.grad(B, Q, seed=G).data, rtol=0, atol=1e-12)
assert np.allclose(dK, ta.grad(B, K, seed=G).data, rtol=0, atol=1e-12)
assert np.abs(dK.sum(axis=0)).max() < 1e-14  # move all keys alike: nothing changes
print("dQ\n", dQ, "\ndK\n", dK)
# %% [markdown] lang="en"
# ## Step 4: back to the words
#
# The matrices get Xᵀ times what arrived at their product. X itself was used three times.
# %% [markdown] lang="zh" of="7a4f01"
# ## 第4步：回到各个词
#
# 每个参数矩阵得到的，是Xᵀ乘以传到那个乘积上的梯度。X自己则用了三次。
# %% [markdown] lang="en" role="predict"
# **Predict.** How many pieces arrive at X, and what is done with them?
# %% [markdown] lang="zh" of="021f8f"
# **预测。** 传到X的梯度有几份？该怎样处理它们？
# %%
dW_q, dW_k, dW_v = (X.data.T @ g for g in (dQ, dK, dV))
pieces = [dQ @ W_q.data.T, dK @ W_k.data.T, dV @ W_v.data.T]
dX = sum(pieces)

B.backward(G)
by_hand = {"X": dX, "W_q": dW_q, "W_k": dW_k, "W_v": dW_v}
for (name, gradient), tensor in zip(by_hand.items(), (X, W_q, W_k, W_v)):
    off = np.abs(gradient - tensor.grad).max()
    print(f"{name:4} largest difference to the engine {off:.1e}")
    assert np.allclose(gradient, tensor.grad, rtol=0, atol=1e-12)
# %% [markdown] lang="en"
# ## Look
#
# The engine's own pieces, in the order in which it made them. The page shows the same, one piece at a
# time, with its numbers and rule: open it, and go through the four steps with the arrow keys.
# %% [markdown] lang="zh" of="21654d"
# ## 看一看
#
# 下面是引擎自己算出的每一份梯度，按它产生的顺序排列。网页里的内容是一样的，一次显示一份，
# 连同它的数和规则：打开网页，用方向键把这四步走一遍。
# %% picture="replay"
import viz

loss = ta.sum(B * G)  # the same slopes, as a single number to start from
graph = ta.Graph.of(loss, gradients=True)
names = [node.name for node in graph.nodes]
for piece in graph.contributions:
    print(f"{names[piece.node]:10} -> {names[piece.target]:10} shape {piece.value.shape}")

at_x = [piece for piece in graph.contributions if names[piece.target] == "X"]
assert len(at_x) == 3
assert np.allclose(sum(piece.value for piece in at_x), dX, rtol=0, atol=1e-12)
viz.step(loss)
# %% [markdown] lang="en"
# ## Sure?
#
# The engine and our calculation by hand agree; but both could believe the same wrong rule. Differences
# (lesson 01) know no rules.
# %% [markdown] lang="zh" of="01c298"
# ## 确信吗？
#
# 引擎和我们手算的一致；可是两边也许信了同一条错误的规则。有限差分（finite differences，
# 第01课）不认识任何规则。
# %%
def value(*arrays):
    return float((attend(*map(ta.tensor, arrays))[-1].data * G).sum())

def numeric(at, h=1e-5):
    arrays = [x.data.copy() for x in (X, W_q, W_k, W_v)]
    x = arrays[at]
    slopes = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        middle = x[i]
        for side in (1, -1):
            x[i] = middle + side * h
            slopes[i] += side * value(*arrays) / (2 * h)
        x[i] = middle
    return slopes
# %%
for at, (name, gradient) in enumerate(by_hand.items()):
    off = np.linalg.norm(numeric(at) - gradient) / np.linalg.norm(gradient)
    print(f"{name:4} relative difference {off:.1e}")
    assert off < 1e-8
# %% [markdown] lang="en"
# And the test that needs no good h: walk in a direction, and the rest after subtracting the slope must
# shrink a hundred times for a ten times smaller step.
# %% [markdown] lang="zh" of="144a2a"
# 还有那个不必挑选h的检验：沿一个方向走一步，减去斜率那一部分之后，剩余的部分在步长缩到十分之一时，
# 必须缩到百分之一。
# %% [markdown] lang="en" role="predict"
# **Predict.** Leave out the factor 1/√d_k in dQ only. Which of the two tests notices?
# %% [markdown] lang="zh" of="ce6bce"
# **预测。** 只在dQ里漏掉系数1/√d_k。两种检验里，哪一种会发现？
# %%
step = rng.normal(size=W_q.shape)

def rest(gradient, h):
    others = W_k.data, W_v.data
    change = value(X.data, W_q.data + h * step, *others) - value(X.data, W_q.data, *others)
    return abs(change - h * (gradient * step).sum())

forgotten = X.data.T @ (dS @ K.data)  # without / √d_k
for name, gradient in (("right", dW_q), ("factor forgotten", forgotten)):
    shrinks = rest(gradient, 1e-3) / rest(gradient, 1e-4)
    print(f"{name:17} the rest shrinks by {shrinks:.0f}")

assert abs(rest(dW_q, 1e-3) / rest(dW_q, 1e-4) - 100) < 5
assert rest(forgotten, 1e-3) / rest(forgotten, 1e-4) < 20
assert np.linalg.norm(numeric(1) - forgotten) / np.linalg.norm(forgotten) > 0.1
# %% [markdown] lang="en"
# Both. Keep them: they find what staring at formulas does not.
#
# ## Exercises
#
# **1** (10 minutes). What reaches the scores.
# %% [markdown] lang="zh" of="968264"
# 两种都会。把它们留在手边：盯着公式看不出来的错，它们找得出来。
#
# ## 练习
#
# **1**（10分钟）。传到分数的梯度。
# %% exercise="14.grad_scores"
from tinyattn.learn import grade, hint, reveal


def grad_scores(G, A, V):
    """G arrives at B = A @ V, where A = softmax(scores): the gradient of the scores."""
    ...

grade("14.grad_scores", grad_scores)
# %% [markdown] lang="en"
# **2** (20 minutes). All the way to X, without the engine.
# %% [markdown] lang="zh" of="cd6770"
# **2**（20分钟）。一直传到X，不用引擎。
# %% exercise="14.grad_x"
def grad_x(G, X, W_q, W_k, W_v):
    """G arrives at softmax(Q Kᵀ / √d_k) V with Q = X W_q and so on: the gradient of X."""
    ...

grade("14.grad_x", grad_x)
# %% [markdown] lang="en"
# ## Summary
#
# - dV = weightsᵀ G, dA = G Vᵀ, dS = weights · (dA − mean), dQ = dS K / √d_k, dK = dSᵀ Q / √d_k.
# - X is used three times, so three pieces are added: dQ W_qᵀ + dK W_kᵀ + dV W_vᵀ.
# - Square matrices hide wrong transposes: check with differences, or with the rest that must shrink a
#   hundredfold.
# %% [markdown] lang="zh" of="47ab0b"
# ## 小结
#
# - dV = weightsᵀ G，dA = G Vᵀ，dS = weights · (dA − 平均)，dQ = dS K / √d_k，dK = dSᵀ Q / √d_k。
# - X用了三次，所以有三份梯度相加：dQ W_qᵀ + dK W_kᵀ + dV W_vᵀ。
# - 方阵会掩盖写错的转置：要用差分检验，或者看剩余的部分是不是缩到百分之一。
