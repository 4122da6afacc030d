# %% [markdown] lang="en"
# # 06 SymPy as referee
#
# **Needs** 03, 05 · **Minutes** 35
#
# **Question.** Differences say that a gradient is right to ten digits, at *one* point. But a rule like dW
# = Xᵀ G claims more: it should hold for all numbers and all sizes. Who can judge a claim like that? A
# program that does school algebra: SymPy. And if it can differentiate by itself, why do we need an
# engine at all?
# %% [markdown] lang="zh" of="ba4501"
# # 06 让SymPy当裁判
#
# **需要** 03, 05 · **分钟** 35
#
# **问题。** 差分告诉我们，梯度（gradient）在*一个*点上对到第十位。可是像dW = Xᵀ G这样的规则说的不止这些：
# 它应当对所有的数、所有的大小都成立。这样的断言由谁来裁判？由一个会做中学代数的程序：SymPy。
# 可是，既然它自己就会求导，我们又何必要引擎呢？
# %% [markdown] lang="en"
# ## Letters instead of numbers
#
# SymPy calculates with symbols. `diff` knows the rules of school.
# %% [markdown] lang="zh" of="63b103"
# ## 用字母代替数
#
# SymPy用符号来计算。`diff`懂得学校里教的求导规则。
# %% [markdown] lang="en" role="predict"
# **Predict.** Many write the backward rule of y = eˣ as g · exp(x). Which number that is *already there*
# would do?
# %% [markdown] lang="zh" of="83ebce"
# **预测。** 许多人把y = eˣ的反向规则写成g · exp(x)。其实有一个*现成的*数就可以用，是哪个数？
# %%
import numpy as np
import sympy as sp

import tinyattn as ta

x = sp.Symbol("x")
for f in (sp.exp(x), sp.tanh(x), 1 / (1 + sp.exp(-x))):
    print(f"{f!s:18} slope {sp.diff(f, x)}")

y = sp.exp(x)
assert sp.diff(y, x) == y  # the output itself: nothing to compute
y = sp.tanh(x)
assert sp.simplify(sp.diff(y, x) - (1 - y**2)) == 0
y = 1 / (1 + sp.exp(-x))
assert sp.simplify(sp.diff(y, x) - y * (1 - y)) == 0
# %% [markdown] lang="en"
# The output y. So engines keep it and write g · y; likewise tanh: g (1 − y²), and for the third, which is
# called sigmoid: g y (1 − y). "exp's backward should use the input" is no mistake, only work done twice.
#
# ## A matrix rule, proved entry by entry
#
# Give each entry its own letter. Then the claim dW = Xᵀ G of lesson 05 is a claim about polynomials, and
# those are equal or not, without any rounding.
# %% [markdown] lang="zh" of="adb7d5"
# 就是输出y。所以引擎把它留着，写成g · y；同样，tanh是g (1 − y²)；第三个函数叫sigmoid，是g y (1 − y)。
# “exp的反向应当用输入来算”并没有错，只是把算过的又算了一遍。
#
# ## 逐个元素证明一条矩阵规则
#
# 给每个元素一个自己的字母。这样，第05课的断言dW = Xᵀ G就成了关于多项式的断言，而两个多项式要么相等，
# 要么不等，没有任何舍入。
# %% [markdown] lang="en" role="predict"
# **Predict.** The loss is Σ G · (X W). How many derivatives must be compared for a W of 2 × 3?
# %% [markdown] lang="zh" of="73d4d5"
# **预测。** 损失是Σ G · (X W)。W是2 × 3的，一共要比较几个导数？
# %%
def letters(name, rows, columns):
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}{i}{j}"))

X, W, G = letters("x", 2, 2), letters("w", 2, 3), letters("g", 2, 3)
loss = sum(sp.matrix_multiply_elementwise(G, X * W))
derived = W.applyfunc(lambda entry: sp.diff(loss, entry))
claim = X.T * G
print("entry [0, 0]:", derived[0, 0], "  and of Xᵀ G:", claim[0, 0])

assert derived.shape == (2, 3)
assert (derived - claim).expand() == sp.zeros(2, 3)  # six times 0, exactly
assert (derived - (G.T * X).T).expand() == sp.zeros(2, 3)  # another way to write it
# %% [markdown] lang="en"
# ## A wrong rule has no place to hide
#
# The commonest wrong softmax rule keeps s (1 − s) only (lesson 07 has the whole story). Differences find
# a *number* that is off. SymPy finds *what* is missing.
# %% [markdown] lang="zh" of="cf36a2"
# ## 错误的规则无处藏身
#
# softmax最常见的错误规则，是只留下s (1 − s)（完整的来龙去脉见第07课）。差分找出的是有偏差的*数*，
# SymPy找出的是*漏了什么*。
# %%
a, b = sp.symbols("a b")
s = sp.exp(a) / (sp.exp(a) + sp.exp(b))
missing = sp.simplify(sp.diff(s, b))
t = 1 - s  # the other share
print("slope of share a by score b:", missing)
assert sp.simplify(sp.diff(s, a) - s * (1 - s)) == 0  # so far right
assert sp.simplify(missing + s * t) == 0  # minus the product of both shares
# %% [markdown] lang="en"
# ## All sizes at once
#
# Entries need sizes: 2 × 3 proves nothing about 4 × 7. tinyattn therefore derives in matrices of
# *unknown* size, n × d, from the definitions of the operations, and checks each line against the
# indices.
#
# How to read the lines: a bar marks a gradient, so Ȳ is what arrives at Y; ⊙ multiplies entry by entry; 1
# is a column of ones, so 1ᵀ E 1 is the sum of all entries of E. The word beside a line says by which kind
# of step it was found, and the node is that of `Graph.of` (lesson 02).
# %% [markdown] lang="zh" of="ef4e43"
# ## 一次管所有的大小
#
# 按元素来证，大小就是定死的：2 × 3成立，说明不了4 × 7。所以tinyattn用大小*未知*的n × d矩阵来推导，
# 从各个运算的定义出发，并按下标逐行核对。
#
# 怎样读这些行：头上的横线表示梯度，Ȳ就是传到Y的梯度；⊙是逐元素相乘；1是全为1的一列，所以1ᵀ E 1就是E的
# 所有元素之和。行尾的词说明这一行是用哪一类步骤得到的，node就是`Graph.of`里的结点（第02课）。
# %% [markdown] lang="en" role="predict"
# **Predict.** For L = Σ (X W)², which formula for the gradient of W? (Start from G = 2 Y.)
# %% [markdown] lang="zh" of="6670d7"
# **预测。** 对L = Σ (X W)²，W的梯度是什么公式？（从G = 2 Y入手。）
# %%
X = ta.tensor(np.linspace(0.1, 1.2, 6).reshape(3, 2), name="X")
W = ta.tensor([[1.0, -1.0], [0.5, 2.0]], requires_grad=True, name="W")
Y = X @ W
E = Y * Y
L = ta.sum(E)

derivation = ta.derive(L, W)
print(derivation)
proof = derivation.prove()
print(proof)
assert "W̄ = Xᵀ Ȳ" in str(derivation) and "proved for all sizes" in str(proof)
# %% [markdown] lang="en"
# Read the lines from the top: each is one step of lesson 03's walk, as a formula. In the picture each
# stands at its node.
# %% [markdown] lang="zh" of="b2d6d8"
# 从上往下读：每一行都是第03课那一遍里的一步，只是写成了公式。图里，每一行写在自己的结点上。
# %% picture="formulas"
import viz

shown = ("op", "rule", "grad")
viz.draw(L, view="backward", gradients=True, show=shown, legend=False)
# %% [markdown] lang="en"
# ## A difference without subtraction
#
# Rounding spoilt the differences of lesson 01, because they subtract two nearly equal numbers. There is a
# trick: go a tiny step h in the *imaginary* direction, f(x + ih). Its imaginary part, divided by h, is
# the slope. Nothing is subtracted, so h may be as small as one likes. This is the **complex step**.
# %% [markdown] lang="zh" of="a4a749"
# ## 不做减法的差分
#
# 第01课的差分毁在舍入上，因为它要把两个几乎相等的数相减。有一个窍门：往*虚数*方向走极小的一步h，即
# f(x + ih)。它的虚部除以h，就是斜率。这里没有减法，所以h想取多小就取多小。这叫**复数步**（complex step）。
# %%
h = 1e-20
slope = np.exp(1 + 1j * h).imag / h
print("complex step:", slope, "  e:", np.e)
assert abs(slope - np.e) < 1e-15
# %% [markdown] lang="en"
# ## Five witnesses
#
# `ta.compare` asks everybody: the engine (autograd), the derived formula, SymPy from the definitions
# alone, the complex step, and central differences. Each difference of two of them has a *bound* beside
# it: so much can rounding do at most.
# %% [markdown] lang="zh" of="489b38"
# ## 五个证人
#
# `ta.compare`把大家都问一遍：引擎的自动微分（autograd）、推导出的公式、只从定义出发的SymPy、复数步，
# 以及中心差分。
# 每两个证人的差距旁边都写着一个*界*（bound）：舍入最多只能造成这么大的差距。
# %% [markdown] lang="en" role="predict"
# **Predict.** Who will agree to about 16 digits, and who only to ten?
# %% [markdown] lang="zh" of="708155"
# **预测。** 谁和谁能一致到大约16位？谁只能到十位？
# %%
report = ta.compare(L, [W])
print(report)
assert report  # true when all agree

L.backward()
assert np.allclose(W.grad, 2 * X.data.T @ Y.data, rtol=1e-14)
size = np.abs(W.grad).max()
exact = [pair.difference / size for pair in report.pairs if pair.second != "difference"]
rough = [pair.difference / size for pair in report.pairs if pair.second == "difference"]
print(f"relative: at most {max(exact):.0e}, and with differences {max(rough):.0e}")
assert max(exact) < 1e-14 and 1e-13 < max(rough) < 1e-8
# %% [markdown] lang="en"
# All but the differences, which round (lesson 01). The bounds are not guessed but derived for these
# numbers.
#
# ## Does the referee ever say no?
#
# A referee who always nods is worthless. Make an operation with the wrong rule on purpose. `ta.Op` takes
# a name, the function, one backward rule for each input (g arrives, y is the output, x the input), the
# definition as a formula, and inputs to try it on.
# %% [markdown] lang="zh" of="4cd0ee"
# 除了差分都能；差分有舍入误差（第01课）。这些界不是猜的，而是针对这些数推导出来的。
#
# ## 裁判会说“不”吗？
#
# 只会点头的裁判毫无用处。我们故意造一个规则写错的运算。`ta.Op`要的是：名字，函数，每个输入一条反向规则
# （g是传来的梯度，y是输出，x是输入），写成公式的定义，以及拿来试的输入。
# %% [markdown] lang="en" role="predict"
# **Predict.** One of five has the wrong rule. Can the table show *which*?
# %% [markdown] lang="zh" of="b7e357"
# **预测。** 五个证人里，有一个用的规则是错的。从表里看得出是*哪一个*吗？
# %%
def shares(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)

careless = ta.Op(
    "careless_softmax", shares, (lambda g, y, x: g * y * (1 - y),),  # the diagonal only
    "y[..., i] = exp(x[..., i]) / sum_j exp(x[..., j])",
    sample=lambda rng: [((rng.normal(size=(2, 3)),), ())],
)
S = ta.tensor([[2.0, 1.0, 0.0]], requires_grad=True, name="S")
P = careless(S)
report = ta.compare(ta.sum(P * P), [S])
print(report)
assert not report and "careless_softmax" in str(report.blame)
# %% [markdown] lang="en"
# Yes: four agree, one stands alone; and it names the operation and the formula that should have held.
#
# ## Then why not SymPy for everything?
#
# Because expressions *swell*. SymPy writes the whole derivative as one expression; what is shared is
# written out again and again. Take self-attention, which lesson 10 explains; here only its size matters.
# For two words of width 2 the engine has this many nodes:
# %% [markdown] lang="zh" of="48798a"
# 看得出：四个一致，一个落单；它还指出了是哪个运算，以及本该成立的公式。
#
# ## 那为什么不全交给SymPy？
#
# 因为表达式会*膨胀*。SymPy把整个导数写成一个式子，凡是共用的部分，都一遍又一遍地重写。
# 就拿自注意力（self-attention）来说：它到第10课才讲，这里只看大小。两个词、宽度为2时，引擎的结点只有这么几个：
# %%
def attention(X, Q, K, V):
    return ta.softmax((X @ Q) @ (X @ K).mT) @ (X @ V)

rng = np.random.default_rng(6)
tensors = [ta.tensor(rng.normal(size=(2, 2)), requires_grad=True) for _ in range(4)]
B = attention(*tensors)
nodes = len(ta.Graph.of(ta.sum(B * B)))
print("nodes:", nodes)
assert nodes == 13
# %% [markdown] lang="en" role="predict"
# **Predict.** And how many operations has the one formula for the gradient of *one* weight?
# %% [markdown] lang="zh" of="5784d7"
# **预测。** 那么，只对*一个*权重的梯度，写成一个式子要多少次运算？
# %%
def attention_loss(n, d):
    X = letters("x", n, d)
    Q, K, V = (letters(name, d, d) for name in "qkv")
    E = ((X * Q) * (X * K).T).applyfunc(sp.exp)
    mixed = E * (X * V)
    B = sp.Matrix(n, d, lambda i, j: mixed[i, j] / sum(E[i, :]))
    return sum(b**2 for b in B), Q[0, 0]

counts = {}
for n in (1, 2, 3):
    loss, weight = attention_loss(n, 2)
    counts[n] = sp.count_ops(sp.diff(loss, weight))
    print(f"{n} words: the gradient of one weight takes {counts[n]} operations")
assert counts[1] == 0 and 700 < counts[2] < 1500 and 2 * counts[2] < counts[3] < 3500
# %% [markdown] lang="en"
# About a thousand for two words, more than two thousand for three (and none for one, which can only look
# at itself). The walk of lesson 03 computes each shared piece once. So: the engine works, SymPy judges,
# on small cases.
#
# ## Exercises
#
# **1** (5 minutes). The rule of tanh, from its output.
# %% [markdown] lang="zh" of="6c6e59"
# 两个词大约一千次，三个词两千多次（一个词是零次，因为它只能看自己）。第03课的那一遍，
# 凡是共用的部分都只算一次。所以：干活靠引擎，裁判靠SymPy，而且只判小的例子。
#
# ## 练习
#
# **1**（5分钟）。tanh的规则，由它的输出来算。
# %% exercise="06.tanh_rule"
from tinyattn.learn import grade, hint, reveal


def tanh_rule(g, y):
    """g arrives at y = tanh(x): the gradient of x, from g and y alone."""
    ...

grade("06.tanh_rule", tanh_rule)
# %% [markdown] lang="en"
# **2** (10 minutes). The rule of a quotient, for what stands below the bar. Ask SymPy if you are not sure.
# %% [markdown] lang="zh" of="9facb5"
# **2**（10分钟）。商的规则，求的是分母那一边。拿不准就问SymPy。
# %% exercise="06.divisor_rule"
def divisor_rule(g, a, b):
    """g arrives at y = a / b, entry by entry: the gradient of b."""
    ...

grade("06.divisor_rule", divisor_rule)
# %% [markdown] lang="en"
# ## Summary
#
# - Differences test a gradient at a point; SymPy tests the rule, exactly. exp, tanh and sigmoid need
#   only their output.
# - `ta.derive` gives each step as a formula for all sizes; `ta.compare` lets five witnesses testify and
#   names the culprit.
# - A gradient written as one expression swells: a thousand operations for 13 nodes. So SymPy judges, it
#   does not do the work.
# %% [markdown] lang="zh" of="b4044e"
# ## 小结
#
# - 差分在一个点上检验梯度；SymPy精确地检验规则本身。exp、tanh和sigmoid只需要自己的输出。
# - `ta.derive`把每一步写成对所有大小都成立的公式；`ta.compare`请五个证人作证，并指出是谁错了。
# - 把梯度写成一个式子，它就会膨胀：13个结点，一千次运算。所以SymPy只当裁判，不干活。
