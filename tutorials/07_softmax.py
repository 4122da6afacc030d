# %% [markdown] lang="en"
# # 07 Softmax and its Jacobian
#
# **Needs** 03, 04 · **Minutes** 40
#
# **Question.** Softmax makes shares of scores: sᵢ = exp(xᵢ) / Σⱼ exp(xⱼ). It stands in the middle of
# attention, and every gradient to a query or a key goes through it. Many notes say "its derivative is s
# (1 − s)". Is that all?
# %% [markdown] lang="zh" of="c26594"
# # 07 softmax和它的雅可比矩阵
#
# **需要** 03, 04 · **分钟** 40
#
# **问题。** softmax把分数变成份额：sᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)。它处在注意力（attention）的正中间，
# 凡是传到查询（query）和键（key）的梯度（gradient），都要从它这里穿过。
# 许多笔记说“它的导数是s (1 − s)”。就只有这些吗？
# %% [markdown] lang="en"
# ## Only differences count
#
# Add the same number c to every score: above and below the fraction bar a factor exp(c) appears, and
# cancels.
# %% [markdown] lang="zh" of="920e40"
# ## 只有差才算数
#
# 给每个分数加上同一个数c：分子和分母各多出一个因子exp(c)，正好约掉。
# %% [markdown] lang="en" role="predict"
# **Predict.** What is the softmax of (1002, 1001, 1000), and what does the plain formula give on a
# computer?
# %% [markdown] lang="zh" of="9848b7"
# **预测。** (1002, 1001, 1000)的softmax是多少？在计算机上直接套公式，又会得到什么？
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
# %% [markdown] lang="zh" of="01120a"
# 所以要先减去最大的分数：份额不变，也不会溢出。
#
# ## 一个分数上升，所有份额都动
#
# 份额加起来总是1。一个变大，别的就得变小。所以导数不是一个数，而是一张表：分数j变化时，
# 份额i变化得多快？这种由斜率组成的表，行是输出，列是输入，叫作**雅可比矩阵**（Jacobian）。
# %% [markdown] lang="en" role="predict"
# **Predict.** For (2, 1, 0): which signs are on the diagonal of the table, and which beside it?
# %% [markdown] lang="zh" of="fac485"
# **预测。** 对(2, 1, 0)：表的对角线上是什么符号？对角线之外呢？
# %%
J = ta.jacobian(ta.softmax, x).data
print(J)
by_formula = np.diag(s) - np.outer(s, s)  # np.outer(s, s)[i, j] is sᵢ sⱼ
assert np.allclose(J, by_formula, rtol=0, atol=1e-15)
assert (np.diag(J) > 0).all() and (J - np.diag(np.diag(J)) <= 0).all()
assert np.allclose(J.diagonal(), s * (1 - s), rtol=0, atol=1e-15)
# %% [markdown] lang="en"
# s (1 − s) is the *diagonal*. Beside it stands −sᵢ sⱼ: what one share gains the others lose, in
# proportion to both. In one formula: J = diag(s) − s sᵀ, where diag(s) has the shares on its diagonal and
# s sᵀ is the table of all products sᵢ sⱼ.
#
# ## What the missing part does
#
# Let g = (1, 0, 0) arrive: only the first share matters for the loss.
# %% [markdown] lang="zh" of="bd5666"
# s (1 − s)是*对角线*。对角线之外是−sᵢ sⱼ：一个份额得到的，就是其他份额失去的，多少与两者都成正比。
# 合成一个公式：J = diag(s) − s sᵀ，其中diag(s)的对角线上是各个份额，s sᵀ是所有乘积sᵢ sⱼ组成的表。
#
# ## 漏掉的部分有什么作用
#
# 设传来的梯度是g = (1, 0, 0)：损失只与第一个份额有关。
# %% [markdown] lang="en" role="predict"
# **Predict.** Which scores get a slope that is not 0?
# %% [markdown] lang="zh" of="dcc983"
# **预测。** 哪些分数的斜率不是0？
# %%
g = np.array([1.0, 0.0, 0.0])
diagonal_only = s * (1 - s) * g

def back(x, g):
    t = ta.tensor(x, requires_grad=True)
    return ta.grad(ta.softmax(t), t, seed=g).data  # as in lesson 04

truth = back(x, g)
print("diagonal only:", diagonal_only)
print("truth:        ", truth)

def first(x):
    return ta.softmax(x).data[0]

measured = [(first(x + step) - first(x - step)) / 2e-5 for step in 1e-5 * np.eye(3)]
assert np.allclose(truth, measured, rtol=0, atol=1e-9)
assert np.allclose(truth, [0.2227, -0.1628, -0.0599], atol=5e-5)
assert np.allclose(diagonal_only, [0.2227, 0, 0], atol=5e-5)
# %% [markdown] lang="en"
# The first share also grows when another score *falls*. Whoever forgets this trains a model that never
# learns to look away.
#
# ## What the table must look like
#
# Three facts need no calculation: it is symmetric, and you can say to what its rows and its columns sum.
# A fourth is counted by NumPy: the **rank** of the table, in how many independent directions the shares can
# move.
# %% [markdown] lang="zh" of="771410"
# 别的分数*下降*，第一个份额也会变大。忘了这一点，训练出来的模型就永远学不会把目光移开。
#
# ## 这张表必须是什么样子
#
# 有三件事，不用计算就能知道：它是对称的；它的各行、各列加起来是多少，也说得出来。第四件事由NumPy来数：
# 这张表的**秩**（rank），也就是份额能沿多少个独立的方向变动。
# %% [markdown] lang="en" role="predict"
# **Predict.** To what does each row of the table sum? (Move all scores together: what happens?) And each
# column?
# %% [markdown] lang="zh" of="a0e78b"
# **预测。** 表的每一行加起来是多少？（把所有分数一起挪动，会怎样？）每一列呢？
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
# For 1000 scores J has a million entries. Going back we only need Jᵀ g, a **vector-Jacobian product**, and
# it is short. Multiply
# (diag(s) − s sᵀ) g out, and the gradient of x, for which one writes x̄, is
#
# x̄ = s · (g − Σⱼ gⱼ sⱼ)
#
# Σ g s is the *mean* of what arrives, weighted with the shares. So a score is pushed up if its g is
# above that mean, and down if it is below, in proportion to its share.
# %% [markdown] lang="zh" of="768ae4"
# ## 永远不要写出整张表
#
# 1000个分数，J就有一百万个元素。反过来走的时候，我们只需要Jᵀ g，也就是向量—雅可比积（vector-Jacobian
# product），它很短。把(diag(s) − s sᵀ) g乘开，就得到x的梯度，记作x̄：
#
# x̄ = s · (g − Σⱼ gⱼ sⱼ)
#
# Σ g s是传来的梯度按份额加权的*平均*。所以，一个分数的g高于这个平均，它就被往上推；低于平均，
# 就被往下推；力度与它的份额成正比。
# %% [markdown] lang="en" role="predict"
# **Predict.** The same g = 5 arrives at every share. What is the gradient of the scores?
# %% [markdown] lang="zh" of="083c55"
# **预测。** 每个份额上传来的都是同样的g = 5。分数的梯度是多少？
# %%
x, g = rng.normal(size=1000), rng.normal(size=1000)
s = ta.softmax(x).data
short = s * (g - (g * s).sum())
assert np.allclose(short, back(x, g), rtol=0, atol=1e-15)
assert np.allclose(short, (np.diag(s) - np.outer(s, s)) @ g, rtol=0, atol=1e-15)
print("numbers needed:", s.size, "instead of", s.size**2)
assert s.size**2 == 1_000_000

same = s * (5 - (5 * s).sum())
print("largest slope when 5 arrives everywhere:", np.abs(same).max())
assert np.abs(same).max() < 1e-14  # nothing: shares sum to 1 whatever the scores
# %% [markdown] lang="en"
# ## Sure of itself, deaf
#
# Multiply the scores by 10: the largest share comes close to 1, and all entries of the Jacobian close to
# 0.
# %% [markdown] lang="zh" of="619f33"
# ## 太有把握，就听不进话
#
# 把分数乘以10：最大的份额接近1，雅可比矩阵的所有元素都接近0。
# %% [markdown] lang="en" role="predict"
# **Predict.** By how much does the summed |J| shrink from scores (2, 1, 0) to (20, 10, 0): half, a
# hundredth, less?
# %% [markdown] lang="zh" of="2057fe"
# **预测。** 分数从(2, 1, 0)变成(20, 10, 0)，|J|的总和缩小到多少：一半，百分之一，还是更小？
# %%
sizes = []
for loud in (1, 3, 10):
    scores = loud * np.array([2.0, 1.0, 0.0])
    largest = ta.softmax(scores).data.max()
    sizes.append(np.abs(ta.jacobian(ta.softmax, scores).data).sum())
    print(f"scores {scores}   largest share {largest:.5f}   sum |J| {sizes[-1]:.5f}")

assert sizes[0] > sizes[1] > sizes[2] and sizes[2] < sizes[0] / 1000
# %% picture="sure_and_deaf"
import viz

scores = [loud * np.array([2.0, 1.0, 0.0]) for loud in range(11)]
largest = [ta.softmax(x).data.max() for x in scores]
slopes = [np.abs(ta.jacobian(ta.softmax, x).data).sum() for x in scores]
assert int(np.argmax(slopes)) == 0 and largest == sorted(largest)
viz.curve({"largest share": largest, "sum |J|": slopes}, x_title="loudness",
          title="Softmax of loudness times (2, 1, 0)")
# %% [markdown] lang="en"
# Less than a thousandth is left: a softmax that has decided no longer learns. In the picture one line goes
# to 1 while the other dies away. Lesson 12 shows why attention runs into this, and the cure, √d.
#
# ## With the logarithm: p − y
#
# As the last step of a classifier, softmax is followed by the loss −log p of the right class. Two
# awkward rules, one after the other, and they simplify to the plainest gradient there is.
# %% [markdown] lang="zh" of="18b63c"
# 剩下不到千分之一：已经打定主意的softmax，不再学习。图里，一条线升到1，另一条就衰减下去。
# 第12课会说明为什么注意力会碰到这个问题，以及它的解药√d。
#
# ## 配上对数：p − y
#
# 在分类器的最后一步，softmax后面接的是损失−log p，其中p是正确类别的份额。两条麻烦的规则一前一后，
# 合起来却化简成最朴素的梯度。
# %% [markdown] lang="en" role="predict"
# **Predict.** p = (0.7, 0.2, 0.1) and the third class is right. What is the gradient of the scores? (It is
# p − y.)
# %% [markdown] lang="zh" of="1a8f13"
# **预测。** p = (0.7, 0.2, 0.1)，正确的是第三类。分数的梯度是多少？（它是p − y。）
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
# %% [markdown] lang="zh" of="5a25fb"
# ## 练习
#
# **1**（5分钟）。沿最后一个轴的softmax，分数多大都行。
# %% exercise="07.softmax"
from tinyattn.learn import grade, hint, reveal


def softmax(x):
    """Shares along the last axis of the array x, in its shape, without overflow."""
    ...

grade("07.softmax", softmax)
# %% [markdown] lang="en"
# **2** (10 minutes). Its backward rule, for rows.
# %% [markdown] lang="zh" of="1b02cc"
# **2**（10分钟）。它的反向规则，按行来算。
# %% exercise="07.softmax_vjp"
def softmax_vjp(g, s):
    """g arrives at the shares s (last axis): the gradient of the scores. No table."""
    ...

grade("07.softmax_vjp", softmax_vjp)
# %% [markdown] lang="en"
# **3** (10 minutes). The gradient of the mean loss of several rows.
# %% [markdown] lang="zh" of="11ed88"
# **3**（10分钟）。损失取几行的平均时，它的梯度。
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
# %% [markdown] lang="zh" of="62c7d7"
# ## 小结
#
# - J = diag(s) − s sᵀ：s (1 − s)只是它的对角线。各行各列加起来都是0，秩是n − 1。
# - 反过来走：s · (g − Σ g s)，不用写出表。传来的梯度要与它的平均相比较。
# - 份额接近1时，几乎不让梯度通过。后面接上−log，梯度就是p − y。
