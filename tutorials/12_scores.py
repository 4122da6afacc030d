# %% [markdown] lang="en"
# # 12 Scores: dot, additive, and why the square root
#
# **Needs** 07, 11 · **Minutes** 40
#
# **Question.** Every formula for attention has a √d in it: softmax(Q Kᵀ / √d_k). Where does it come from?
# Why the root, and not d_k itself? And the notes ask: could one not *add* query and key instead of
# multiplying them?
# %% [markdown] lang="zh" of="b57769"
# # 12 分数：点积、加性，以及为什么要开根号
#
# **需要** 07, 11 · **分钟** 40
#
# **问题。** 凡是注意力（attention）的公式，里面都有一个√d：softmax(Q Kᵀ / √d_k)。它是从哪里来的？
# 为什么要开根号，而不是直接除以d_k？笔记里还问：查询（query）和键（key）能不能不相乘，而是*相加*？
# %% [markdown] lang="en"
# ## How large is a dot product?
#
# Let query and key have d random entries, each of mean 0 and spread (standard deviation) 1, as they have
# when training begins. q · k is a sum of d products. Some are positive, some negative.
# %% [markdown] lang="zh" of="17f442"
# ## 点积有多大？
#
# 设查询和键各有d个随机元素，每个元素的均值为0，标准差（standard deviation）为1，训练刚开始时就是这样。
# q · k是d个乘积的和，有正有负。
# %% [markdown] lang="en" role="predict"
# **Predict.** From d = 4 to d = 64: does the spread of q · k grow 16 times, 4 times, or not at all?
# %% [markdown] lang="zh" of="2e8136"
# **预测。** 从d = 4到d = 64，q · k的标准差变成16倍、4倍，还是不变？
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=3, suppress=True)
rng = np.random.default_rng(12)

for d in (4, 64, 512):
    q, k = rng.normal(size=(5_000, d)), rng.normal(size=(5_000, d))
    spread = (q * k).sum(axis=1).std()
    print(f"d = {d:3}   spread of q · k: {spread:6.2f}   √d = {np.sqrt(d):6.2f}")
    assert abs(spread / np.sqrt(d) - 1) < 0.03
    assert abs((q * k).var() - 1) < 0.03  # variance of one product: .std squared
# %% [markdown] lang="en"
# Four times. The square of a spread, the **variance**, obeys a simple law: for a sum of independent numbers
# the variances are added. Each product has variance 1, so d of them have d, and the spread is the root of
# that. This is the √d: **the scores are measured in their own spread**.
#
# ## What happens without it
#
# Lesson 07: large scores make softmax sure, and a sure softmax lets no gradient through.
# %% [markdown] lang="zh" of="dfaa35"
# 是4倍。标准差的平方叫**方差**（variance），它有一条简单的规律：互相独立的数相加，方差也相加。
# 每个乘积的方差是1，d个加起来就是d；标准差是它的平方根。√d就是这样来的：
# **用分数自己的标准差作单位来量分数**。
#
# ## 不除会怎样
#
# 第07课讲过：分数大了，softmax就太有把握；而太有把握的softmax，不让梯度（gradient）通过。
# %% [markdown] lang="en" role="predict"
# **Predict.** One query, 16 keys, all random, so none deserves preference. What is the largest weight for
# d = 512?
# %% [markdown] lang="zh" of="3743f6"
# **预测。** 一个查询，16个键，全是随机的，所以没有哪个键该受偏爱。d = 512时，最大的权重是多少？
# %%
def largest_and_slope(d, scale, tries=300):
    largest, slope = 0.0, 0.0
    for _ in range(tries):
        scores = rng.normal(size=(16, d)) @ rng.normal(size=d) * scale(d)
        s = ta.softmax(scores).data
        largest += s.max() / tries
        slope += np.abs(np.diag(s) - np.outer(s, s)).sum() / tries
    return largest, slope

plain = {d: largest_and_slope(d, lambda d: 1.0) for d in (4, 64, 512)}
for d, (largest, slope) in plain.items():
    print(f"d = {d:3}   largest weight {largest:.2f}   summed |Jacobian| {slope:.2f}")
assert 0.4 < plain[4][0] < 0.6 and plain[64][0] > 0.75 and plain[512][0] > 0.9
assert plain[4][1] > 2 * plain[64][1] > 4 * plain[512][1]  # the gradient fades
# %% [markdown] lang="en"
# 0.9: by mere chance one word takes everything, and training cannot change its mind.
#
# ## √d, or d?
# %% [markdown] lang="zh" of="12a226"
# 0.9：全凭运气，一个词就独占了一切，而训练也没法让它改主意。
#
# ## 除以√d，还是除以d？
# %% [markdown] lang="en" role="predict"
# **Predict.** If √d calms the scores, does dividing by d do it even better?
# %% [markdown] lang="zh" of="801651"
# **预测。** √d能让分数安静下来，那么除以d是不是更好？
# %%
by_root = {d: largest_and_slope(d, lambda d: 1 / np.sqrt(d)) for d in (4, 64, 512)}
by_d = {d: largest_and_slope(d, lambda d: 1 / d) for d in (4, 64, 512)}
for d in (4, 64, 512):
    print(f"d = {d:3}   largest weight: by √d {by_root[d][0]:.3f}   by d {by_d[d][0]:.3f}")
print(f"all 16 alike would be {1 / 16:.4f}")

root = [largest for largest, _ in by_root.values()]
assert max(root) - min(root) < 0.06 and 0.2 < min(root)  # the same at every width
assert by_d[512][0] < 0.08  # nearly 1/16: nobody is looked at
assert by_root[512][1] > 5 * plain[512][1]  # and the gradient flows again
# %% [markdown] lang="en"
# Too calm is as bad: with d the weights become all alike as d grows. Only with √d does the width not
# matter. Four queries and six keys of width 64, as they are and divided by √64:
# %% [markdown] lang="zh" of="572652"
# 太安静也一样糟：除以d的话，d越大，各个权重就越趋于相等。只有除以√d，结果才与宽度无关。
# 下面是宽度为64的四个查询和六个键，先是原样的，再是除以√64的：
# %% picture="unscaled"
import viz

other = np.random.default_rng(64)
chance = other.normal(size=(4, 64)) @ other.normal(size=(6, 64)).T
asking, answering = ["q1", "q2", "q3", "q4"], ["k1", "k2", "k3", "k4", "k5", "k6"]
viz.attention(ta.softmax(chance), asking, answering, title="softmax(Q Kᵀ)")
# %% picture="scaled"
sharp, soft = ta.softmax(chance).data.max(axis=1), ta.softmax(chance / 8).data.max(axis=1)
assert (sharp > soft).all() and sharp.max() > 0.9
viz.attention(ta.softmax(chance / 8), asking, answering, title="softmax(Q Kᵀ / √d)")
# %% [markdown] lang="en"
# Two cautions. It holds *at the start*; training may make scores as large as it likes. And √d_k is not
# "the size of the key tensor": d_k is the number of entries of *one* query or key.
# %% [markdown] lang="zh" of="13c33a"
# 有两点要当心。第一，这个结论只在*训练开始时*成立；训练可以把分数变得要多大有多大。第二，
# √d_k里的d_k不是“键这个张量（tensor）的大小”，而是*一个*查询或一个键的元素个数。
# %%
Q = ta.tensor(rng.normal(size=(5, 64)))
K = ta.tensor(rng.normal(size=(7, 64)))
V = ta.tensor(rng.normal(size=(7, 3)))
scores = Q @ K.mT / ta.sqrt(ta.size_of(K, -1))  # 8 = √64, not √(7 · 64)
B = ta.softmax(scores) @ V
assert np.allclose(scores.data, Q.data @ K.data.T / 8, rtol=0, atol=1e-12)
ready = ta.scaled_dot_product_attention(Q, K, V)
assert np.allclose(B.data, ready.data, rtol=0, atol=1e-12)
print("scores:", scores.shape, "spread", scores.data.std())
# %% [markdown] lang="en"
# ## "Could one not add?"
#
# Try the simplest: put q and k together by adding, and weigh the sum with a learned vector w: score = w
# · (q + k).
# %% [markdown] lang="zh" of="ad96a6"
# ## “不能相加吗？”
#
# 先试最简单的办法：把q和k加起来，再用一个学来的向量w求加权和：score = w · (q + k)。
# %% [markdown] lang="en" role="predict"
# **Predict.** Two quite different queries, the same keys. How do their weights differ?
# %% [markdown] lang="zh" of="f8c6ff"
# **预测。** 两个很不一样的查询，面对同样的键，它们的权重有什么差别？
# %%
w = rng.normal(size=64)

def plainly_added(q):
    return ta.softmax(ta.tensor((q + K.data) @ w)).data

one, other = plainly_added(Q.data[0]), plainly_added(Q.data[1])
print("query 1:", one, "\nquery 2:", other)
assert np.allclose(one, other, rtol=0, atol=1e-12)
# %% [markdown] lang="en"
# Not at all! w · q is the same for every key, and softmax does not see what all scores share (lesson
# 07). The query is ignored. Query and key must meet *before* the sum, in something that is not a
# straight line.
#
# **Additive attention** does it with tanh: score = w · tanh(W_q q + W_k k). It was there before the dot
# product (Bahdanau 2014). "Additive" names this form; it has nothing to do with adding a bias.
# %% [markdown] lang="zh" of="4e869a"
# 毫无差别！w · q对每个键都是同一个数，而所有分数共有的东西，softmax是看不见的（第07课）。查询被忽略了。
# 查询和键必须在求和*之前*就相遇，而且要在一个非线性的函数里相遇。
#
# **加性注意力**（additive attention）用tanh做到这一点：score = w · tanh(W_q q + W_k k)。
# 它比点积出现得更早（Bahdanau 2014）。“加性”是这种形式的名字，与加偏置（bias）无关。
# %%
d_q, d_k, hidden = 6, 4, 5  # query and key may have different widths
W_q, W_k = rng.normal(size=(d_q, hidden)), rng.normal(size=(d_k, hidden))
w, q, K = rng.normal(size=hidden), rng.normal(size=(3, d_q)), rng.normal(size=(7, d_k))

def additive(q, K, W_q, W_k, w):
    # None makes a new axis of size 1: (3, 1, hidden) + (1, 7, hidden), every q with every k
    mixed = ta.tanh((q @ W_q)[:, None, :] + (K @ W_k)[None, :, :])  # (3, 7, hidden)
    return mixed @ w

scores = additive(*map(ta.tensor, (q, K, W_q, W_k, w)))
by_loops = [[w @ np.tanh(q_i @ W_q + k_j @ W_k) for k_j in K] for q_i in q]
assert scores.shape == (3, 7) and np.allclose(scores.data, by_loops, rtol=0, atol=1e-12)
weights = ta.softmax(scores).data
print(weights)
assert np.abs(weights[0] - weights[1]).max() > 0.05  # now the query counts
# %% [markdown] lang="en"
# Both kinds of score can be trained; check their gradients as in lesson 01:
# %% [markdown] lang="zh" of="0e0853"
# 两种分数都可以训练。像第01课那样检验它们的梯度：
# %%
def relative_error(f, x):
    exact, numeric = ta.grad(lambda x: ta.sum(ta.sin(f(x))))(x).data, np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[i] = 1e-5
        up, down = (np.sin(f(ta.tensor(x + s)).data).sum() for s in (step, -step))
        numeric[i] = (up - down) / 2e-5
    return np.linalg.norm(exact - numeric) / np.linalg.norm(exact)

for_dot = relative_error(lambda q: q @ K[:, :4].T / 2, rng.normal(size=(3, 4)))
for_additive = relative_error(lambda q: additive(q, K, W_q, W_k, w), q)
print(f"dot {for_dot:.1e}   additive {for_additive:.1e}")
assert max(for_dot, for_additive) < 1e-8
# %% [markdown] lang="en"
# ## Which one, then?
#
# | | dot | additive |
# |---|---|---|
# | numbers to learn | none | hidden · (d_q + d_k + 1) |
# | widths | equal | any |
# | work for n queries, m keys | one matrix product | n · m · hidden tanh, all kept in memory |
# | size | grows as √d, so scale | never above Σ abs(w) |
#
# For small widths both were found to do about equally well, and unscaled dot to fall behind for large
# ones (Vaswani 2017); that is what √d mends. Dot has won because matrix products are what machines do
# best.
# %% [markdown] lang="zh" of="9ee2dd"
# ## 那么该选哪一种？
#
# | | 点积 | 加性 |
# |---|---|---|
# | 要学的参数 | 没有 | hidden · (d_q + d_k + 1) |
# | 两边的宽度 | 必须相等 | 任意 |
# | n个查询、m个键的工作量 | 一次矩阵乘法 | n · m · hidden个tanh，都要留在内存里 |
# | 大小 | 随√d增长，所以要缩放 | 不会超过Σ abs(w) |
#
# 实验发现，宽度小的时候两者差不多；宽度大的时候，不缩放的点积会落后（Vaswani 2017），
# √d正是用来补救这一点的。点积最终胜出，是因为矩阵乘法正是机器最拿手的事。
# %%
n, m = 1000, 1000
print("numbers kept: dot", n * m, "  additive", n * m * hidden)
loud = additive(*map(ta.tensor, (1000 * q, K, W_q, W_k, w))).data
assert np.abs(loud).max() <= np.abs(w).sum() + 1e-9  # tanh is bounded
assert hidden * (d_q + d_k + 1) == W_q.size + W_k.size + w.size == 55
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (5 minutes). Scaled scores for all queries.
# %% [markdown] lang="zh" of="71cac4"
# ## 练习
#
# **1**（5分钟）。为所有查询计算缩放后的分数。
# %% exercise="12.scaled_scores"
from tinyattn.learn import grade, hint, reveal


def scaled_scores(Q, K):
    """Q (n, d_k) and K (m, d_k): the scores (n, m), divided by the root of d_k."""
    ...

grade("12.scaled_scores", scaled_scores)
# %% [markdown] lang="en"
# **2** (15 minutes). Additive scores.
# %% [markdown] lang="zh" of="fd569f"
# **2**（15分钟）。加性分数。
# %% exercise="12.additive"
def additive(Q, K, W_q, W_k, w):
    """Q (n, d_q), K (m, d_k), W_q (d_q, h), W_k (d_k, h), w (h,): the scores (n, m)."""
    ...

grade("12.additive", additive)
# %% [markdown] lang="en"
# ## Summary
#
# - The spread of q · k is √d_k at the start: divide by it, and softmax behaves the same at every width.
# - Without it one key wins by chance and the gradient fades; divided by d_k, all keys look alike.
# - Adding needs a bend: w · (q + k) ignores the query; w · tanh(W_q q + W_k k) does not, at a price in
#   work and memory.
# %% [markdown] lang="zh" of="cbf9ef"
# ## 小结
#
# - 训练开始时，q · k的标准差是√d_k：除以它，不管宽度是多少，softmax的表现都一样。
# - 不除，就会有一个键凭运气独占，梯度消退；除以d_k，则所有的键看起来都一样。
# - 相加需要一点弯曲：w · (q + k)忽略了查询，w · tanh(W_q q + W_k k)不会，代价是计算和内存。
