# %% [markdown] lang="en"
# # 02 The computation graph
#
# **Needs** 01 · **Minutes** 25
#
# **Question.** Lesson 01 measured a slope by running the whole calculation again for every knob. To do
# better, a machine must know how the result *came about*: which numbers went into which step. What
# exactly must it write down while it calculates, and when is that enough?
# %% [markdown] lang="en"
# ## A calculation is a list of small steps
#
# y = (a + b) · b takes two steps. Make a and b **tensors** that ask for a gradient, calculate as usual,
# and the engine takes notes. `Graph.of(y)` shows them: one line, a **node**, for each number that was
# given or made.
# %% [markdown] lang="en" role="predict"
# **Predict.** How many nodes has (a + b) · b?
# %%
import numpy as np

import tinyattn as ta

a = ta.tensor(2.0, requires_grad=True)
b = ta.tensor(3.0, requires_grad=True)
total = a + b
y = total * b

graph = ta.Graph.of(y)
for node in graph.nodes:
    how = node.op_name or node.kind
    print(node.index, f"{node.name:6} {how:10} made of {node.inputs}  =", node.value)

assert len(graph) == 4 and y.item() == (2 + 3) * 3
# %% [markdown] lang="en"
# The names are those of your own variables. The two first nodes are **leaves**: nothing was calculated to
# get them. The others say which operation made them, and from which nodes.
#
# ## Who uses what
#
# Read it in the other direction: who *uses* b? Two nodes do, so b has two arrows going out. What about x
# · x, where one node uses the same number twice?
# %% [markdown] lang="en" role="predict"
# **Predict.** How many arrows lead from x to x · x: one or two?
# %%
print("b is used by (node, slot):", graph.consumers(1))
assert graph.consumers(1) == ((2, 1), (3, 1))

x = ta.tensor(5.0, requires_grad=True)
square = x * x
print("x is used by (node, slot):", ta.Graph.of(square).consumers(0))
assert ta.Graph.of(square).consumers(0) == ((1, 0), (1, 1))  # two: left and right factor
# %% [markdown] lang="en"
# Two. Each *slot* of an operation has its own arrow. It looks like pedantry now; in lesson 03 a missing
# arrow makes the slope of x² come out as x instead of 2x.
#
# ## The picture
# %% picture="sum_times_b"
import viz

drawing = viz.draw(y, legend=False)
assert all(name in drawing.text for name in ("a ", "b ", "total", "y "))
drawing
# %% [markdown] lang="en"
# ## An order in which everything works
#
# Inputs stand before what is made of them, simply because they had to exist first. Such an order is
# called **topological**. It costs nothing: number the nodes as they are made.
#
# And it makes the notes a *program*: go down the list, run each operation on the values of its inputs,
# and the result comes out again. That is the test of whether enough was written down.
# %% [markdown] lang="en" role="predict"
# **Predict.** We keep only operation names and arrows, and put in a = 10, b = 1. What is y?
# %%
def replay(graph, leaves):
    values = list(leaves)
    for node in graph.nodes[len(leaves):]:
        values.append(node.op(*[values[i] for i in node.inputs], *node.params.values()))
    return values

assert all(i < node.index for node in graph.nodes for i in node.inputs)  # topological
assert replay(graph, [2.0, 3.0]) == [2, 3, 5, 15]
print("a = 10, b = 1:", replay(graph, [10.0, 1.0]))
assert replay(graph, [10.0, 1.0])[-1] == (10 + 1) * 1
# %% [markdown] lang="en"
# ## What is *not* in the graph
#
# The graph holds what happened, not what your program says. A loop leaves one node for each round. An
# `if` leaves only the branch that was taken. Python's `if` and `for` themselves leave nothing.
# %% [markdown] lang="en" role="predict"
# **Predict.** A loop multiplies by x five times, starting from x. How many nodes?
# %%
def calculate(x, rounds):
    power = x
    for _ in range(rounds):
        power = power * x
    return power if power.item() > 0 else -power

up = ta.Graph.of(calculate(ta.tensor(2.0, requires_grad=True), rounds=5))
down = ta.Graph.of(calculate(ta.tensor(-2.0, requires_grad=True), rounds=4))
print("from  2:", [node.op_name for node in up.nodes])
print("from -2:", [node.op_name for node in down.nodes])

assert len(up) == 1 + 5
assert [node.op_name for node in down.nodes] == [""] + ["multiply"] * 4 + ["negative"]
# %% [markdown] lang="en"
# So a replay with x = −2 of the graph of x = 2 would be wrong if the `if` had gone the other way. A
# graph belongs to one run. That is why the engine makes a new one in every training step: it is cheap.
#
# ## Whole matrices are one node
#
# A node may hold an array. X @ W is *one* node, though it is many products and sums; otherwise one small
# attention step would be hundreds of nodes. And where no leaf asks for a gradient, nothing is written
# down at all.
# %%
X = ta.tensor(np.ones((4, 3)))
W = ta.tensor(np.ones((3, 2)), requires_grad=True)
Q = X @ W
print(ta.Graph.of(Q).nodes)
assert len(ta.Graph.of(Q)) == 3 and Q.requires_grad

scalar_steps = 4 * 2 * (3 + 2)  # 8 results, each with 3 products and 2 sums
print("as single numbers that would be", scalar_steps, "steps")
assert scalar_steps == 40

with ta.no_grad():
    unrecorded = X @ W
assert not unrecorded.requires_grad and len(ta.Graph.of(unrecorded)) == 1  # the bare result
# %% [markdown] lang="en"
# ## Exercises
#
# A calculation is given as numbers for the leaves and a list of steps. `("multiply", 2, 1)` means:
# multiply what stands at place 2 by what stands at place 1, and put the result at the next free place.
#
# **1** (10 minutes). Run such a list.
# %% exercise="02.run"
from tinyattn.learn import grade, hint, reveal


def run(leaves, steps):
    """All values, leaves first, a list; a step is "add" or "multiply" and two places."""
    ...

grade("02.run", run)
# %% [markdown] lang="en"
# **2** (10 minutes). Which places does one place depend on, directly or through others?
# %% exercise="02.needed"
def needed(leaves, steps, place):
    """The places that the value at `place` depends on, without itself, in rising order."""
    ...

grade("02.needed", needed)
# %% [markdown] lang="en"
# ## Summary
#
# - A graph has a node for every number given or made, and an arrow for every slot: x · x has two arrows
#   from x.
# - In the order of making, inputs come first (topological), so the graph is a program that can be run
#   again.
# - It holds what happened in one run: a loop leaves a node for each round, an `if` only its taken
#   branch.
