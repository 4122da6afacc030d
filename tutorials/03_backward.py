# %% [markdown] lang="en"
# # 03 Backward: the chain rule and adding up
#
# **Needs** 01, 02 · **Minutes** 40
#
# **Question.** Lesson 01 needs two runs for every knob. With a million knobs that is hopeless. The graph
# of lesson 02 knows who influenced whom. Can *one* walk along it, from the result back to the leaves,
# give all slopes at once?
# %% [markdown] lang="zh" of="5097b2"
# # 03 反向传播：链式法则与相加
#
# **需要** 01, 02 · **分钟** 40
#
# **问题。** 第01课里，每个旋钮都要把计算跑两遍；有一百万个旋钮，那就没有指望了。
# 第02课的计算图（computation graph）知道谁影响了谁。能不能沿着它只走*一遍*，从结果走回叶子，
# 就把所有斜率一次得到？这就是**反向传播**（backpropagation）。
# %% [markdown] lang="en"
# ## Along a chain: multiply
#
# If u changes three times as fast as x, and y changes ten times as fast as u, then y changes thirty
# times as fast as x. Slopes along a path are **multiplied**: that is the whole chain rule.
# %% [markdown] lang="zh" of="cb7e29"
# ## 沿着一条链：相乘
#
# 如果u的变化是x的三倍快，y的变化又是u的十倍快，那么y的变化就是x的三十倍快。一条路径上的斜率要**相乘**：
# 链式法则（chain rule）说的就是这件事。
# %% [markdown] lang="en" role="predict"
# **Predict.** u = 3x, y = u². What is the slope of y at x = 2? (The slope of u² is 2u.)
# %% [markdown] lang="zh" of="052689"
# **预测。** u = 3x，y = u²。在x = 2处，y的斜率是多少？（u²的斜率是2u。）
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
# %% [markdown] lang="zh" of="a74463"
# ## 有几条路径：相加
#
# 第02课的y = (a + b) · b：b通过两条路影响y，一条经过那个和，一条直接。把b拧动一点点ε：和增加ε，
# 使y变化ε · b；另一个因子也增加ε，使y变化ε · (a + b)。两件事都会发生，所以斜率是**各条路径之和**。
# %% [markdown] lang="en" role="predict"
# **Predict.** a = 2, b = 3. What is the slope of y for a, and for b?
# %% [markdown] lang="zh" of="921114"
# **预测。** a = 2，b = 3。y对a的斜率是多少？对b呢？
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
# %% [markdown] lang="zh" of="79f623"
# ## 一个结点一个结点地走
#
# 往回走的时候，每个结点都得到一个数：*这个结点变化时，y变化得多快*。y自己得到1。
# 然后每个运算把自己的数乘上局部的斜率，传给各个输入；到达同一个结点的数要加起来。引擎传递的每一份，
# 都可以显示出来。
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
# Look: the arrows of lesson 02, turned round. Each carries one piece; where two arrive, stands a plus.
# %% [markdown] lang="zh" of="38262c"
# 看图：第02课的箭头都掉过头来。每个箭头带着一份；两份到达的地方有一个加号。
# %% picture="walk"
import viz

drawing = viz.draw(y, gradients=True, view="backward", show=("op", "grad"), legend=False)
assert "8" in drawing.text
drawing
# %% [markdown] lang="en"
# ## "The `+=` must be a bug"
#
# Suppose each piece *replaced* what was there. Many do, in their first engine.
# %% [markdown] lang="zh" of="fea997"
# ## “这个`+=`一定是错的”
#
# 假设每传来一份，就*替换*掉原来的数。许多人写的第一个引擎就是这样。
# %% [markdown] lang="en" role="predict"
# **Predict.** With = instead of +=, what would come out for b? And for x in y = x · x at x = 5, where 10
# is right?
# %% [markdown] lang="zh" of="d7292d"
# **预测。** 用=而不用+=，b会得到多少？在y = x · x里，x = 5，正确的是10，这时x会得到多少？
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
# %% [markdown] lang="zh" of="443442"
# ## 为什么要按次序倒着走？
#
# 一个结点要等*所有*的份都到齐了，才能往下传，不然就传少了。把产生的次序倒过来，正好能保证这一点：
# 凡是用到某个结点的，都产生在它之后，所以倒着走时轮在它之前。
#
# 而且每个箭头只用一次，所以工作量随箭头的个数增长，而不是随路径的条数增长。下面的循环里，
# 每一行都让路径的条数翻倍。
# %% [markdown] lang="en" role="predict"
# **Predict.** After 60 lines of `y = y + y` there are 2⁶⁰ paths, a billion billions. How long does the
# walk take?
# %% [markdown] lang="zh" of="bf4f19"
# **预测。** `y = y + y`执行60次之后，路径有2⁶⁰条，也就是一百亿亿多条。走一遍要多久？
# %%
x = ta.tensor(1.0, requires_grad=True)
y = x
for _ in range(60):
    y = y + y
y.backward()
pieces = len(ta.Graph.of(y, gradients=True).contributions)
print("pieces:", pieces, "  slope:", x.grad)
assert x.grad == 2.0**60 > 10**9 * 10**9 and pieces == 120
# %% [markdown] lang="en"
# No time at all: 120 arrows, so 120 pieces.
#
# ## Twice backward
#
# Adding over *paths* is a must. Adding over *calls* is a custom: a leaf's `.grad` keeps what is there,
# and the next `backward` adds to it, so that a loss can be worked off in parts. Hence `zero_grad`
# between the steps of training.
# %% [markdown] lang="zh" of="dd084a"
# 一眨眼的工夫：120个箭头，所以只有120份。
#
# ## 调用两次backward
#
# 对*路径*求和，是必须的；对*调用*求和，只是一种约定：叶子的`.grad`保留原有的数，
# 下一次`backward`再加上去，这样一个损失就可以分几部分来算。所以训练时，每两步之间都要调用`zero_grad`。
# %% [markdown] lang="en" role="predict"
# **Predict.** f(w) = w², from w = 3, ten steps of w − 0.4 · slope. Where do we end with and without
# zero_grad?
# %% [markdown] lang="zh" of="b26601"
# **预测。** f(w) = w²，从w = 3出发，走十步w − 0.4 · 斜率。用和不用zero_grad，各走到哪里？
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
assert abs(descend(True) - 3 * 0.2**10) < 1e-12  # each step leaves a fifth of w
assert abs(descend(False)) > 0.3                 # old slopes push it about
# %% [markdown] lang="en"
# So was the += a mistake after all, where calls are concerned? No, as long as only *leaves* keep. What
# stands at the nodes in between must begin at 0 in each call, or old pieces would be passed on again.
# %% [markdown] lang="zh" of="f1123c"
# 那么，就几次调用而言，+=到底是不是错的？不是，只要保留下来的只有*叶子*的数。中间的结点在每次调用时都必须
# 从0开始，不然旧的份会再传一遍。
# %% [markdown] lang="en" role="predict"
# **Predict.** y = (3x)² at x = 2, slope 36 as above. What is `x.grad` after calling `y.backward()` twice?
# And if the node u = 3x had kept its 12 from the first call?
# %% [markdown] lang="zh" of="5e0de0"
# **预测。** y = (3x)²，在x = 2处，斜率是36，和前面一样。调用两次`y.backward()`之后，`x.grad`是多少？如果结点
# u = 3x保留了第一次的12，又会是多少？
# %%
x = ta.tensor(2.0, requires_grad=True)
u = 3 * x
y = u**2
y.backward()
y.backward()
first_call, second_call = 3 * 12, 3 * (12 + 12)  # u keeps 12, and gets 12 once more
print("twice:", x.grad, "  if u had kept its number:", first_call + second_call)
assert x.grad == 36 + 36 == 72 and first_call + second_call == 108
# %% [markdown] lang="en"
# ## "backward needs a single number"
#
# A slope answers: how fast does *this one number* change? For a result of several numbers you must say
# which combination you mean: a weight for each of them, the **seed**. The engine does not guess.
# %% [markdown] lang="zh" of="503aa5"
# ## “backward需要单个的数”
#
# 斜率回答的是：*这一个数*变化得多快？如果结果有好几个数，就必须说明你指的是它们的哪一种组合：
# 给每个数一个权重，这组权重叫**种子**（seed）。引擎不会替你猜。
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
# %% [markdown] lang="zh" of="e40d08"
# ## 练习
#
# **1**（5分钟）。对(s · x + t)²，手工使用链式法则。
# %% exercise="03.slope"
from tinyattn.learn import grade, hint, reveal


def slope(s, t, x):
    """The slope of (s * x + t) ** 2 at x, without differences."""
    ...

grade("03.slope", slope)
# %% [markdown] lang="en"
# **2** (20 minutes). The walk itself, for the lists of steps of lesson 02. It is the heart of every
# engine; take your time.
# %% [markdown] lang="zh" of="1dc708"
# **2**（20分钟）。就是那一遍倒着走的过程，用在第02课的步骤清单上。它是每个引擎的心脏，慢慢来。
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
# %% [markdown] lang="zh" of="f9b026"
# ## 小结
#
# - 一条路径上的斜率相乘，几条路径之间相加。用替换代替相加，就会丢掉路径。
# - 按产生的次序倒着走，每个箭头传一份：不管路径有多少条，走一遍就得到全部斜率。
# - 叶子在多次调用之间会一直累加，要用`zero_grad`清零。结果不止一个数时，要用种子说明指的是哪一种组合。
