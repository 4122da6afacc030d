# %% [markdown] lang="en"
# # 03 Backward: the chain rule and adding up
#
# **Needs** 01, 02 · **Minutes** 40
#
# **Question.** Lesson 01 needs two runs for every knob. With a million knobs that is hopeless. The graph
# of lesson 02 knows who influenced whom. Can *one* walk along it, from the result back to the leaves,
# give all slopes at once?
# %% [markdown] lang="en"
# ## Along a chain: multiply
#
# If u changes three times as fast as x, and y changes ten times as fast as u, then y changes thirty
# times as fast as x. Slopes along a path are **multiplied**: that is the whole chain rule.
# %% [markdown] lang="en" role="predict"
# **Predict.** u = 3x, y = u². What is the slope of y at x = 2? (The slope of u² is 2u.)
# %%
import numpy as np

import tinyattn as ta

x = ta.tensor(2.0, requires_grad=True)
u = 3 * x
y = u**2
y.backward()  # walk from y back to the leaves
print("slope:", x.grad)

first, second = 3, 2 * u.item()  # slope of u for x, of y for u
assert x.grad == first * second == 36
measured = ((3 * 2.001) ** 2 - (3 * 1.999) ** 2) / 0.002
assert abs(measured - 36) < 1e-6  # lesson 01 agrees
# %% [markdown] lang="en"
# ## Several paths: add
#
# y = (a + b) · b of lesson 02: b reaches y in two ways, through the sum and directly. Turn b by a little
# ε. The sum grows by ε, which changes y by ε · b; the other factor grows by ε, which changes y by ε · (a
# + b). Both happen. The slope is the **sum over the paths**.
# %% [markdown] lang="en" role="predict"
# **Predict.** a = 2, b = 3. What is the slope of y for a, and for b?
# %%
a = ta.tensor(2.0, requires_grad=True)
b = ta.tensor(3.0, requires_grad=True)
total = a + b
y = total * b
y.backward()
print("for a:", a.grad, "  for b:", b.grad)

through_the_sum, direct = b.item() * 1, total.item()
assert a.grad == 3 and b.grad == through_the_sum + direct == 3 + 5
# %% [markdown] lang="en"
# ## The walk, node by node
#
# Going backwards, each node gets a number: *how fast y changes when this node changes*. y itself gets 1.
# Then each operation passes its number on to its inputs, each time multiplied with the local slope; what
# arrives at a node is added up. The engine can show every piece that it passes.
# %%
graph = ta.Graph.of(y, gradients=True)
names = [node.name for node in graph.nodes]
for piece in graph.contributions:
    print(f"{names[piece.node]:6} passes {piece.value:4} to {names[piece.target]}")

arrived = {"a": 0.0, "b": 0.0, "total": 0.0}
for piece in graph.contributions:
    arrived[names[piece.target]] += float(piece.value)
print(arrived)
assert arrived == {"a": 3, "b": 8, "total": 3}
assert len(graph.contributions) == 4  # one for each arrow, however many paths there are
# %% [markdown] lang="en"
# ## "The `+=` must be a bug"
#
# Suppose each piece *replaced* what was there. Many do, in their first engine.
# %% [markdown] lang="en" role="predict"
# **Predict.** With = instead of +=, what would come out for b? And for x in y = x · x at x = 5, where 10
# is right?
# %%
def walk(graph, adding):
    slopes = {len(graph) - 1: 1.0}
    for node in reversed(graph.nodes):
        if node.op is None:
            continue
        left, right = (graph.nodes[i].value for i in node.inputs)
        locally = (1.0, 1.0) if node.op_name == "add" else (right, left)
        for i, slope in zip(node.inputs, locally):
            before = slopes.get(i, 0.0) if adding else 0.0
            slopes[i] = before + slopes[node.index] * slope
    return {graph.nodes[i].name: float(s) for i, s in slopes.items()}

x = ta.tensor(5.0, requires_grad=True)
square = x * x
print("adding:   ", walk(graph, True), walk(ta.Graph.of(square), True))
print("replacing:", walk(graph, False), walk(ta.Graph.of(square), False))
# %%
assert walk(graph, adding=True) == {"y": 1, "total": 3, "b": 8, "a": 3}
assert walk(ta.Graph.of(square), adding=True)["x"] == 10
assert walk(graph, adding=False)["b"] == 3            # the direct path is lost
assert walk(ta.Graph.of(square), adding=False)["x"] == 5  # half of 2x
# %% [markdown] lang="en"
# ## Why backwards in order?
#
# A node may pass on only when *everything* has arrived at it; otherwise it passes on too little.
# Reversed order of making does it: whoever uses a node was made after it, so it has its turn before.
#
# And because each arrow is used once, the work grows with the arrows, not with the paths. Below, every
# line doubles the number of paths.
# %% [markdown] lang="en" role="predict"
# **Predict.** After 60 lines of `y = y + y` there are 2⁶⁰ paths, a billion billions. How long does the
# walk take?
# %%
x = ta.tensor(1.0, requires_grad=True)
y = x
for _ in range(60):
    y = y + y
y.backward()
pieces = len(ta.Graph.of(y, gradients=True).contributions)
print("pieces:", pieces, "  slope:", x.grad)
assert x.grad == 2.0**60 and pieces == 120
# %% [markdown] lang="en"
# No time at all: 120 arrows, so 120 pieces.
#
# ## Twice backward
#
# Adding over *paths* is a must. Adding over *calls* is a custom: a leaf's `.grad` keeps what is there,
# and the next `backward` adds to it, so that a loss can be worked off in parts. Hence `zero_grad`
# between the steps of training.
# %% [markdown] lang="en" role="predict"
# **Predict.** f(w) = w², from w = 3, ten steps of w − 0.4 · slope. Where do we end with and without
# zero_grad?
# %%
def descend(clearing):
    w = ta.tensor(3.0, requires_grad=True)
    for _ in range(10):
        if clearing:
            w.zero_grad()
        loss = w * w
        loss.backward()
        w.assign(w.data - 0.4 * w.grad)
    return w.item()

print("with zero_grad:", descend(True), "  without:", descend(False))
assert abs(descend(True)) < 1e-5     # each step leaves a fifth of w
assert abs(descend(False)) > 0.3     # old slopes push it about
# %% [markdown] lang="en"
# ## "backward needs a single number"
#
# A slope answers: how fast does *this one number* change? For a result of several numbers you must say
# which combination you mean: a weight for each of them, the **seed**. The engine does not guess.
# %%
x = ta.tensor([1.0, 2.0, 3.0], requires_grad=True)
squares = x * x
try:
    squares.backward()
except ta.GraphError as error:
    print(error)
else:
    raise AssertionError("three numbers have no one slope")

squares.backward([1.0, 0.0, 10.0])  # 1 · x₀² + 0 · x₁² + 10 · x₂²
print(x.grad)
assert x.grad.tolist() == [2, 0, 60]
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (5 minutes). The chain rule by hand, for (s · x + t)².
# %% exercise="03.slope"
from tinyattn.learn import grade, hint, reveal


def slope(s, t, x):
    """The slope of (s * x + t) ** 2 at x, without differences."""
    ...

grade("03.slope", slope)
# %% [markdown] lang="en"
# **2** (20 minutes). The walk itself, for the lists of steps of lesson 02. It is the heart of every
# engine; take your time.
# %% exercise="03.backward"
def backward(leaves, steps):
    """One slope for each place: how fast the last value changes when this one does."""
    ...

grade("03.backward", backward)
# %% [markdown] lang="en"
# ## Summary
#
# - Along a path slopes are multiplied, over several paths they are added. Replacing instead of adding
#   loses paths.
# - Walk in reversed order of making, one piece for each arrow: all slopes in one walk, however many
#   paths there are.
# - Leaves keep adding over calls: clear them with `zero_grad`. Several results need a seed that says
#   which you mean.
