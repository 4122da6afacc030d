# %% [markdown] lang="en"
# # 06 SymPy as referee
#
# **Needs** 03, 05 · **Minutes** 35
#
# **Question.** Differences say that a gradient is right to ten digits, at *one* point. But a rule like dW
# = Xᵀ G claims more: it should hold for all numbers and all sizes. Who can judge a claim like that? A
# program that does school algebra: SymPy. And if it can differentiate by itself, why do we need an
# engine at all?
# %% [markdown] lang="en"
# ## Letters instead of numbers
#
# SymPy calculates with symbols. `diff` knows the rules of school.
# %% [markdown] lang="en" role="predict"
# **Predict.** Many write the backward rule of y = eˣ as g · exp(x). Which number that is *already there*
# would do?
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
# The output y. So engines keep it and write g · y; likewise tanh: g (1 − y²), sigmoid: g y (1 − y).
# "exp's backward should use the input" is no mistake, only work done twice.
#
# ## A matrix rule, proved entry by entry
#
# Give each entry its own letter. Then the claim dW = Xᵀ G of lesson 05 is a claim about polynomials, and
# those are equal or not, without any rounding.
# %% [markdown] lang="en" role="predict"
# **Predict.** The loss is Σ G · (X W). How many derivatives must be compared for a W of 2 × 3?
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
# %% [markdown] lang="en" role="predict"
# **Predict.** For L = Σ (X W)², which formula for the gradient of W? (Start from G = 2 Y.)
# %%
X = ta.tensor(np.arange(6.0).reshape(3, 2), name="X")
W = ta.tensor([[1.0, -1.0], [0.5, 2.0]], requires_grad=True, name="W")
Y = X @ W
L = ta.sum(Y * Y)

derivation = ta.derive(L, W)
print(derivation)
proof = derivation.prove()
print(proof)
assert "Xᵀ" in str(derivation) and "proved for all sizes" in str(proof)
# %% [markdown] lang="en"
# Read the lines from the top: each is one step of lesson 03's walk, as a formula.
#
# ## Five witnesses
#
# `ta.compare` asks everybody: the engine (autograd), the derived formula, SymPy from the definitions
# alone, the complex step (a difference without subtraction), and central differences.
# %% [markdown] lang="en" role="predict"
# **Predict.** Who will agree to about 16 digits, and who only to ten?
# %%
report = ta.compare(L, [W])
print(report)
assert report

W.zero_grad()
L.backward()
assert np.allclose(W.grad, 2 * X.data.T @ Y.data, rtol=1e-14)
# %% [markdown] lang="en"
# All but the differences, which round (lesson 01). The bound beside each is not guessed but derived for
# these numbers.
#
# ## Does the referee ever say no?
#
# A referee who always nods is worthless. Make an operation with the wrong rule on purpose.
# %% [markdown] lang="en" role="predict"
# **Predict.** One of five has the wrong rule. Can the table show *which*?
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
# written out again and again. Two words, width 2, one weight:
# %% [markdown] lang="en" role="predict"
# **Predict.** The engine's graph of this attention has about a dozen nodes. How many operations has the
# one formula?
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
assert counts[2] > 500 and counts[3] > 2 * counts[2]
# %% [markdown] lang="en"
# About a thousand for two words (none for one: it can only look at itself), and that for *one* of four
# weights. The walk of lesson 03 computes each shared piece once. So: the engine works, SymPy judges, on
# small cases.
#
# ## Exercises
#
# **1** (5 minutes). The rule of tanh, from its output.
# %% exercise="06.tanh_rule"
from tinyattn.learn import grade, hint, reveal


def tanh_rule(g, y):
    """g arrives at y = tanh(x): the gradient of x, from g and y alone."""
    ...

grade("06.tanh_rule", tanh_rule)
# %% [markdown] lang="en"
# **2** (10 minutes). The rule of a quotient, for what stands below the bar. Ask SymPy if you are not sure.
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
# - A gradient written as one expression swells: thousands of operations for a dozen nodes. So SymPy
#   judges, it does not work.
