# %% [markdown] lang="en"
# # 04 Broadcasting, sums, and corners
#
# **Needs** 03 · **Minutes** 35
#
# **Question.** A layer adds one bias b, three numbers, to each of a thousand rows. Forwards NumPy simply
# repeats b. But backwards a thousand rows of slopes arrive at three numbers. Which three numbers come
# out?
# %% [markdown] lang="en"
# ## Repeating forwards is adding backwards
#
# The rows are copies: turn b₀ a little, and *every* row changes at its place 0. That is lesson 03 again:
# several paths, so the slopes are added.
# %% [markdown] lang="en" role="predict"
# **Predict.** Below, the slopes G that arrive are (1, 2), (10, 20), (100, 200). What is the gradient of b
# = (5, 7)?
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
# ## And adding forwards is repeating backwards
#
# The other way round: s = x₀ + x₁ + x₂ changes as fast as each of them. So the one slope that arrives at
# a sum is handed to every input. A mean divides by n, so each gets g / n.
# %% [markdown] lang="en" role="predict"
# **Predict.** x has 4 entries, y = mean(x), and 8 arrives at y. What does each entry get?
# %%
x = ta.tensor([3.0, 1.0, 4.0, 1.0], requires_grad=True)
print("sum: ", ta.grad(ta.sum(x), x, seed=8.0).data)
print("mean:", ta.grad(ta.mean(x), x, seed=8.0).data)

assert ta.grad(ta.sum(x), x, seed=8.0).data.tolist() == [8, 8, 8, 8]
assert ta.grad(ta.mean(x), x, seed=8.0).data.tolist() == [2, 2, 2, 2]
# %% [markdown] lang="en"
# Repeating and adding belong together like a matrix and its transpose. For any g and b of fitting
# shapes, "repeat b, then weigh with g" is the same number as "add g up, then weigh with b":
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
# %% [markdown] lang="en" role="predict"
# **Predict.** A number with shape (2, 1, 3) was used where (4, 2, 5, 3) was needed. Which axes are added
# up?
# %%
def sum_to(g, shape):
    missing = g.ndim - len(shape)
    g = g.sum(axis=tuple(range(missing)))
    stretched = tuple(i for i, size in enumerate(shape) if size == 1)
    return g.sum(axis=stretched, keepdims=True)

for small in [(), (3,), (1,), (5, 1), (2, 1, 3), (4, 1, 1, 1)]:
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
# %% [markdown] lang="en" role="predict"
# **Predict.** And for a square x, as attention scores are?
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
# to the right, and *at* 0 none. An engine must choose; any number between is defensible. Here it is 0,
# and ties of max share equally.
# %% [markdown] lang="en" role="predict"
# **Predict.** What does the central difference of lesson 01 say at the corner?
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
# %% exercise="04.bias_gradient"
from tinyattn.learn import grade, hint, reveal


def bias_gradient(G):
    """G, shape (n, d), is what arrives at Y = X @ W + b; the gradient of b, shape (d,)."""
    ...

grade("04.bias_gradient", bias_gradient)
# %% [markdown] lang="en"
# **2** (15 minutes). Undo any broadcasting. You have seen it above; now without looking.
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
