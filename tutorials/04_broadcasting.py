# %% [markdown] lang="en"
# # 04 Broadcasting, sums, and corners
#
# **Needs** 03 · **Minutes** 35
#
# **Question.** A layer adds one bias b, three numbers, to each of a thousand rows. Forwards NumPy simply
# repeats b. But backwards a thousand rows of slopes arrive at three numbers. Which three numbers come
# out?
# %% [markdown] lang="zh" of="976f70"
# # 04 广播、求和与拐角
#
# **需要** 03 · **分钟** 35
#
# **问题。** 一层网络把同一个偏置（bias）b，一共三个数，加到一千行上。前向的时候，NumPy只是把b重复了一千遍，
# 这叫**广播**（broadcasting）。可是反过来走，有一千行斜率传到这三个数上。最后得到的是哪三个数？
# %% [markdown] lang="en"
# ## Repeating forwards is adding backwards
#
# The rows are copies: turn b₀ a little, and *every* row changes at its place 0. That is lesson 03 again:
# several paths, so the slopes are added.
# %% [markdown] lang="zh" of="249473"
# ## 前向是重复，反向就是相加
#
# 各行的b都是副本：把b₀拧动一点，*每一行*的第0个数都跟着变。这又是第03课讲的：路径有好几条，斜率要相加。
# %% [markdown] lang="en" role="predict"
# **Predict.** Below, the slopes G that arrive are (1, 2), (10, 20), (100, 200). What is the gradient of b
# = (5, 7)?
# %% [markdown] lang="zh" of="1ad8f0"
# **预测。** 下面传来的斜率G是(1, 2)、(10, 20)、(100, 200)。b = (5, 7)的梯度（gradient）是多少？
# %%
import numpy as np

import tinyattn as ta

X = ta.tensor(np.zeros((3, 2)))
b = ta.tensor([5.0, 7.0], requires_grad=True)
Y = X + b
print(Y.data)

G = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
Y.backward(G)
print("gradient of b:", b.grad)
assert b.grad.tolist() == [111, 222] == G.sum(axis=0).tolist()
assert b.grad.shape == b.shape  # always: a gradient has the shape of its tensor
# %% [markdown] lang="en"
# Look at b and Y: in Y every row has a gradient of its own, in b they have become one row.
# %% [markdown] lang="zh" of="aee7ea"
# 看看图里的b和Y：在Y里每一行各有自己的梯度，到了b，它们合成了一行。
# %% picture="rows_added"
import viz

loss = ta.sum(Y * G)  # a single number whose slopes for Y are G
gradients = {node.name: node.grad for node in ta.Graph.of(loss, gradients=True).nodes}
assert gradients["Y"].tolist() == G.tolist() and gradients["b"].tolist() == [111, 222]
viz.draw(loss, gradients=True, legend=False)
# %% [markdown] lang="en"
# ## And adding forwards is repeating backwards
#
# The other way round: s = x₀ + x₁ + x₂ changes as fast as each of them. So the one slope that arrives at
# a sum is handed to every input. A mean divides by n, so each gets g / n.
#
# Below, `ta.grad(y, x, seed=g)` walks as `y.backward(g)` does, but hands the gradient of x to you instead
# of adding it to `x.grad`.
# %% [markdown] lang="zh" of="b418d1"
# ## 前向是相加，反向就是重复
#
# 反过来也一样：s = x₀ + x₁ + x₂，它变化得和每个xᵢ一样快。所以传到和上的那一个斜率，原样交给每个输入。
# 平均还要除以n，所以每个输入得到g / n。
#
# 下面的`ta.grad(y, x, seed=g)`和`y.backward(g)`走的是同一遍，不同的是，它把x的梯度交给你，而不是加到
# `x.grad`里。
# %% [markdown] lang="en" role="predict"
# **Predict.** x has 4 entries, y = mean(x), and 8 arrives at y. What does each entry get?
# %% [markdown] lang="zh" of="0da677"
# **预测。** x有4个元素，y = mean(x)，传到y的是8。每个元素得到多少？
# %%
x = ta.tensor([3.0, 1.0, 4.0, 1.0], requires_grad=True)
print("sum: ", ta.grad(ta.sum(x), x, seed=8.0).data)
print("mean:", ta.grad(ta.mean(x), x, seed=8.0).data)

assert ta.grad(ta.sum(x), x, seed=8.0).data.tolist() == [8, 8, 8, 8]
assert ta.grad(ta.mean(x), x, seed=8.0).data.tolist() == [2, 2, 2, 2]
# %% [markdown] lang="en"
# Repeating and adding belong together. For any g and b of fitting shapes, "repeat b, then weigh with g"
# (multiply entry by entry, and add everything) is the same number as "add g up, then weigh with b":
# %% [markdown] lang="zh" of="dc89cd"
# 重复与相加是一对。只要g和b的形状对得上，“先重复b，再用g加权”（逐个元素相乘，再全部加起来），
# 和“先把g加起来，再用b加权”，得到的是同一个数：
# %%
rng = np.random.default_rng(4)
g, bias = rng.normal(size=(5, 3)), rng.normal(size=3)
left = np.sum(g * np.broadcast_to(bias, (5, 3)))
right = np.sum(g.sum(axis=0) * bias)
print(left, right)
assert abs(left - right) < 1e-12
# %% [markdown] lang="en"
# ## The rule in all cases
#
# NumPy lines shapes up at the *right* and stretches sizes of 1. So going back: add over the axes that
# were missing on the left, and over those that were 1 (keep the 1).
# %% [markdown] lang="zh" of="945791"
# ## 一条规则管所有情形
#
# NumPy把两个形状*靠右*对齐，再把大小为1的轴拉长。所以往回走的时候：左边原来没有的轴，要加起来；
# 原来大小为1的轴，也要加起来（但保留这个1）。
# %% [markdown] lang="en" role="predict"
# **Predict.** An array of shape (2, 1, 3) was used where (4, 2, 5, 3) was needed. Which axes of the large
# shape are added up?
# %% [markdown] lang="zh" of="2978d5"
# **预测。** 需要(4, 2, 5, 3)的地方，用了一个形状为(2, 1, 3)的数组。大形状的哪几个轴要加起来？
# %%
def sum_to(g, shape):
    missing = g.ndim - len(shape)
    g = g.sum(axis=tuple(range(missing)))
    stretched = tuple(i for i, size in enumerate(shape) if size == 1)
    return g.sum(axis=stretched, keepdims=True)

for small in [(), (3,), (1,), (5, 1), (2, 1, 3), (4, 1, 1, 1)]:  # six cases
    t = ta.tensor(rng.normal(size=small), requires_grad=True)
    g = rng.normal(size=(4, 2, 5, 3))
    got = ta.grad(ta.broadcast_to(t, (4, 2, 5, 3)), t, seed=g).data
    assert got.shape == small and np.allclose(got, sum_to(g, small))
    print(f"{small!s:13} <- (4, 2, 5, 3)   copies: {g.size // t.size}")
# %% [markdown] lang="en"
# Axis 0, which was missing, and axis 2, which was 1.
#
# ## A trap: dividing by row sums
#
# `x / x.sum(axis=1)` looks like "make each row sum to 1". The sums have shape (n,), and lined up at the
# right they meet the *columns*. For most shapes this is an error, luckily.
# %% [markdown] lang="zh" of="76b99a"
# 第0个轴，原来没有；第2个轴，原来是1。
#
# ## 一个陷阱：除以每行的和
#
# `x / x.sum(axis=1)`看起来像是“让每一行加起来等于1”。可是这些和的形状是(n,)，靠右一对齐，对上的是*列*。
# 幸好，多数形状下这会报错。
# %% [markdown] lang="en" role="predict"
# **Predict.** And for a square x, as attention scores are?
# %% [markdown] lang="zh" of="9cd820"
# **预测。** 那么，如果x是方的，就像注意力（attention）的分数那样呢？
# %%
x = np.array([[1.0, 3.0], [2.0, 2.0]])
y = np.array([[1.0, 5.0], [2.0, 2.0]])
for name, scores in (("x", x), ("y", y)):
    careless = scores / scores.sum(axis=1)
    careful = scores / scores.sum(axis=1, keepdims=True)
    print(name, "rows sum to", careless.sum(axis=1), "keepdims:", careful.sum(axis=1))
    assert (careful.sum(axis=1) == 1).all()
assert abs(careless.sum(axis=1) - 1).max() > 0.2  # y: no error, and wrong
try:
    ta.tensor(np.ones((2, 3))) / ta.tensor(np.ones((2, 3))).sum(axis=1)
except ta.ShapeError as error:
    print(error)
else:
    raise AssertionError("(2, 3) / (2,) must not fit")
# %% [markdown] lang="en"
# No error, and wrong numbers whenever the row sums differ. (In x both are 4, so even the numbers look
# right: a test with friendly numbers proves nothing.) `keepdims=True` keeps the shape (n, 1).
#
# ## Corners: max and relu
#
# max hands its slope to the winner alone. relu(x) = max(x, 0) has a corner at 0: slope 0 to the left, 1
# to the right, and *at* 0 none. An engine must choose; any number from 0 to 1 is defensible. Here it is
# 0, and ties of max share equally.
# %% [markdown] lang="zh" of="652ba7"
# 不报错；只要各行的和不相等，数就是错的。（在x里两行的和都是4，所以连数看起来都对：用凑巧的数来检验，
# 什么也证明不了。）`keepdims=True`能把形状保持为(n, 1)。
#
# ## 拐角：max和relu
#
# max把斜率只交给最大的那个。relu(x) = max(x, 0)在0处有一个拐角：左边斜率是0，右边是1，而*在0处*没有斜率。
# 引擎只好选一个：从0到1的任何数都说得过去。这里选的是0；max遇到并列的，就平分。
# %% [markdown] lang="en" role="predict"
# **Predict.** What does the central difference of lesson 01 say at the corner?
# %% [markdown] lang="zh" of="c6b52c"
# **预测。** 在拐角处，第01课的中心差分会给出多少？
# %%
x = ta.tensor([2.0, 5.0, 5.0, 1.0], requires_grad=True)
print("max: ", ta.grad(ta.max(x), x).data)
z = ta.tensor([-1.0, 0.0, 2.0], requires_grad=True)
print("relu:", ta.grad(ta.sum(ta.relu(z)), z).data)
h = 1e-5
at_the_corner = (max(0 + h, 0) - max(0 - h, 0)) / (2 * h)
print("central difference of relu at 0:", at_the_corner)

assert ta.grad(ta.max(x), x).data.tolist() == [0, 0.5, 0.5, 0]  # 5 twice: shared
assert ta.grad(ta.sum(ta.relu(z)), z).data.tolist() == [0, 0, 1]
assert at_the_corner == 0.5  # neither: so never test a gradient on a corner
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (5 minutes). The gradient of the bias of a layer Y = X W + b.
# %% [markdown] lang="zh" of="db092e"
# ## 练习
#
# **1**（5分钟）。一层网络Y = X W + b里，偏置的梯度。
# %% exercise="04.bias_gradient"
from tinyattn.learn import grade, hint, reveal


def bias_gradient(G):
    """G, shape (n, d), is what arrives at Y = X @ W + b; the gradient of b, shape (d,)."""
    ...

grade("04.bias_gradient", bias_gradient)
# %% [markdown] lang="en"
# **2** (15 minutes). Undo any broadcasting. You have seen it above; now without looking.
# %% [markdown] lang="zh" of="8c3fff"
# **2**（15分钟）。撤销任意一次广播。上面已经见过了，现在不看着写一遍。
# %% exercise="04.sum_to"
def sum_to(g, shape):
    """Add g up to an array of the given shape, which broadcasts to the shape of g."""
    ...

grade("04.sum_to", sum_to)
# %% [markdown] lang="en"
# ## Summary
#
# - Repeating forwards is adding backwards, adding forwards is repeating backwards; a mean divides by n.
# - Going back, add over the axes that were missing on the left and over those of size 1. Gradients keep
#   their shape.
# - At a corner there is no slope, only a choice (here 0, ties share). Keep tests away from corners and
#   friendly numbers.
# %% [markdown] lang="zh" of="3af0ba"
# ## 小结
#
# - 前向是重复，反向就是相加；前向是相加，反向就是重复；平均还要除以n。
# - 往回走时，左边原来没有的轴和大小为1的轴都要加起来。梯度的形状总与原来的数组相同。
# - 拐角处没有斜率，只有约定（这里取0，并列的平分）。检验时要避开拐角，也要避开凑巧的数。
