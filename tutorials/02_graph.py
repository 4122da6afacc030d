# %% [markdown] lang="en"
# # 02 The computation graph
#
# **Needs** 01 · **Minutes** 25
#
# **Question.** Lesson 01 measured a slope by running the whole calculation again for every knob. To do
# better, a machine must know how the result *came about*: which numbers went into which step. What
# exactly must it write down while it calculates, and when is that enough?
# %% [markdown] lang="zh" of="cbc73e"
# # 02 计算图
#
# **需要** 01 · **分钟** 25
#
# **问题。** 第01课量一个斜率的办法，是为每个旋钮把整个计算重跑一遍。要做得更好，
# 机器就必须知道结果是*怎么来的*：哪些数进了哪一步。计算的时候究竟要记下什么？记到什么程度才够？
# %% [markdown] lang="en"
# ## A calculation is a list of small steps
#
# y = (a + b) · b takes two steps. Make a and b **tensors** that ask for a gradient, calculate as usual,
# and the engine takes notes. `Graph.of(y)` shows them: one line, a **node**, for each number that was
# given or made.
# %% [markdown] lang="zh" of="8999e0"
# ## 计算就是一串小步骤
#
# y = (a + b) · b要走两步。把a和b做成要求梯度（gradient）的**张量**（tensor），照常计算，
# 引擎会在旁边做记录。这份记录就是**计算图**（computation graph），用`Graph.of(y)`可以看到它：
# 每个给出的数和算出的数占一行，一行就是一个**结点**（node）。
# %% [markdown] lang="en" role="predict"
# **Predict.** How many nodes has (a + b) · b?
# %% [markdown] lang="zh" of="450e08"
# **预测。** (a + b) · b有多少个结点？
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
# %% [markdown] lang="zh" of="888b29"
# 这些名字就是你自己的变量名。前两个结点是**叶子**（leaf）：它们不是算出来的。
# 其余的结点会说明自己由哪个运算、从哪些结点得来。
#
# ## 谁用了谁
#
# 反过来读：谁*用到*了b？有两个结点用到它，所以从b出去两个箭头。那么x · x呢？
# 那里是一个结点把同一个数用了两次。
# %% [markdown] lang="en" role="predict"
# **Predict.** How many arrows lead from x to x · x: one or two?
# %% [markdown] lang="zh" of="32d4c4"
# **预测。** 从x到x · x有几个箭头：一个还是两个？
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
# %% [markdown] lang="zh" of="82e0f3"
# 两个。运算的每个*输入位*（slot）都有自己的箭头。现在看起来像是吹毛求疵，可是到了第03课，少一个箭头，
# x²的斜率就会算成x，而不是2x。
#
# ## 图
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
# %% [markdown] lang="zh" of="605530"
# ## 怎样的次序行得通
#
# 输入总是排在由它算出的东西之前，道理很简单：得先有输入才行。这样的次序叫作**拓扑序**（topological）。
# 它不费任何工夫：按产生的先后编号就行了。
#
# 这样一来，记录就成了一个*程序*：顺着清单往下走，对每个运算代入各个输入的值，结果就会重新出来。
# 记得够不够，就用这一点来检验。
# %% [markdown] lang="en" role="predict"
# **Predict.** We keep only operation names and arrows, and put in a = 10, b = 1. What is y?
# %% [markdown] lang="zh" of="71aa0e"
# **预测。** 只保留运算的名字和箭头，再代入a = 10、b = 1。y是多少？
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
# %% [markdown] lang="zh" of="510dd1"
# ## 图里*没有*什么
#
# 图里记的是发生过的事，而不是你的程序怎么写。循环每转一圈，留下一个结点；`if`只留下走过的那个分支；
# Python的`if`和`for`本身，什么也不留下。
# %% [markdown] lang="en" role="predict"
# **Predict.** A loop multiplies by x five times, starting from x. How many nodes?
# %% [markdown] lang="zh" of="4f9c54"
# **预测。** 从x开始，用循环乘五次x。一共多少个结点？
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
# %% [markdown] lang="zh" of="0d00b4"
# 所以，把x = 2时的图拿来，代入x = −2重放，如果`if`本该走另一边，结果就错了。一张图只属于一次运行。
# 因此引擎在训练的每一步都造一张新图：这很便宜。
#
# ## 整个矩阵只是一个结点
#
# 一个结点可以装下一个数组。X @ W是*一个*结点，虽然里面有许多乘法和加法；要不然，
# 小小的一步注意力（attention）就会有好几百个结点。另外，如果没有叶子要求梯度，那就什么也不记。
# %%
X = ta.tensor(np.ones((4, 3)))
W = ta.tensor(np.ones((3, 2)), requires_grad=True)
Q = X @ W
print(ta.Graph.of(Q).nodes)
assert len(ta.Graph.of(Q)) == 3 and Q.requires_grad

scalar_steps = 4 * 2 * (3 + 2)  # 8 results, each with 3 products and 2 sums
attention = 5 * 4 * 4 * (4 + 3)  # four words of width 4 take five such products (lesson 11)
print("as single numbers that would be", scalar_steps, "steps, for attention", attention)
assert scalar_steps == 40 and attention == 560

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
# %% [markdown] lang="zh" of="6b9d68"
# ## 练习
#
# 一个计算由两部分给出：叶子的数，以及一份步骤清单。`("multiply", 2, 1)`的意思是：
# 把第2个位置上的数与第1个位置上的数相乘，结果放到下一个空位置上。
#
# **1**（10分钟）。运行这样的清单。
# %% exercise="02.run"
from tinyattn.learn import grade, hint, reveal


def run(leaves, steps):
    """All values, leaves first, a list; a step is "add" or "multiply" and two places."""
    ...

grade("02.run", run)
# %% [markdown] lang="en"
# **2** (10 minutes). Which places does one place depend on, directly or through others?
# %% [markdown] lang="zh" of="d960ba"
# **2**（10分钟）。一个位置直接或间接地依赖哪些位置？
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
# %% [markdown] lang="zh" of="9c5e08"
# ## 小结
#
# - 图里每个给出或算出的数都有一个结点，每个输入位都有一个箭头：x · x有两个从x来的箭头。
# - 按产生的先后排列，输入总在前面（拓扑序），所以图就是一个可以重新运行的程序。
# - 它记的是一次运行里发生的事：循环每一圈留下一个结点，`if`只留下走过的分支。
