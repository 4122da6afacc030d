# %% [markdown] lang="en"
# # 16 Position: why "I saw a saw" needs it
#
# **Needs** 10, 11 · **Minutes** 40
#
# **Question.** Lesson 10 ended with a shock: after all the work, the two *saw* of "I saw a saw" came out
# the same, to the last bit. A matrix has rows in an order; how can attention not know it? And what is
# the least we must add?
# %% [markdown] lang="en"
# ## Shuffle the words
# %% [markdown] lang="en" role="predict"
# **Predict.** Put the words in another order before attention. Are the outputs the same, shuffled
# likewise, or new?
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=3, suppress=True)
rng = np.random.default_rng(16)
d = 6
W_q, W_k, W_v = (rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(3))

def attend(X, keep=None):
    Q, K, V = (ta.tensor(X) @ W for W in (W_q, W_k, W_v))
    return (ta.softmax(Q @ K.mT / np.sqrt(d), keep=keep) @ V).data

X = rng.normal(size=(5, d))
order = np.array([3, 1, 4, 0, 2])
off = np.abs(attend(X[order]) - attend(X)[order]).max()
print("attend(shuffled) against shuffled(attend):", off)
assert off < 1e-14 and np.abs(attend(X[order]) - attend(X)).max() > 0.1
# %% [markdown] lang="en"
# Shuffled likewise. Whatever P does to the rows, f(P X) = P f(X): attention is **equivariant**. It is not
# *invariant*, which would be f(P X) = f(X); that it becomes when the outputs are averaged afterwards.
# %%
before, after = attend(X).mean(axis=0), attend(X[order]).mean(axis=0)
assert np.allclose(after, before, rtol=0, atol=1e-14)
assert not np.allclose(attend(X[order]), attend(X))  # not invariant by itself
# %% [markdown] lang="en"
# ## So two equal words must agree
#
# Exchange the two *saw*: the input is the same as before. So the outputs, exchanged, are the same as
# before. So they are equal. No training can change that.
# %% [markdown] lang="en" role="predict"
# **Predict.** Random matrices, a thousand times: how large does the difference of the two *saw* become at
# most?
# %%
table = rng.normal(size=(3, d))  # one vector each for I, saw, a
sentence = table[[0, 1, 2, 1]]
largest = 0.0
for _ in range(1000):
    W_q, W_k, W_v = (rng.normal(size=(d, d)) for _ in range(3))
    B = attend(sentence)
    largest = max(largest, np.abs(B[1] - B[3]).max())
print("largest difference of the two saw:", largest)
assert largest < 1e-12
# %% [markdown] lang="en"
# ## A code for each place
#
# The cure is simple: give each place a vector of its own, and **add** it to the word's vector before
# attention. The oldest recipe uses waves: slow ones tell the region, fast ones the exact place.
# %% picture="with_codes"
import viz


def waves(n, d):
    place = np.arange(n)[:, None]
    speed = 1 / 100 ** (np.arange(0, d, 2) / d)
    code = np.empty((n, d))
    code[:, 0::2], code[:, 1::2] = np.sin(place * speed), np.cos(place * speed)
    return code

P = waves(4, d)
W_q, W_k, W_v = (rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(3))
B = attend(sentence + P)
print(P, "\ndifference of the two saw:", np.abs(B[1] - B[3]).max())
assert np.abs(B[1] - B[3]).max() > 0.1
coded = sentence + P
weights = ta.softmax((coded @ W_q) @ (coded @ W_k).T / np.sqrt(d))
viz.attention(weights, ["I", "saw", "a", "saw"], title="with codes of the places")
# %% [markdown] lang="en"
# The tie is gone: the rows of the two *saw* differ.
#
# ## Why add, not put beside?
#
# Adding seems to muddle word and place. Putting the code *beside* the word (concatenating) keeps both;
# but it makes every matrix larger.
# %% [markdown] lang="en" role="predict"
# **Predict.** A matrix W acts on e + p. Which matrix acting on (e, p) side by side gives the same?
# %%
W = rng.normal(size=(d, 4))
added = (sentence + P) @ W
beside = np.concatenate([sentence, P], axis=1) @ np.concatenate([W, W], axis=0)
print("largest difference:", np.abs(added - beside).max())
assert np.allclose(added, beside, rtol=0, atol=1e-12)

free, tied = 2 * d * 4, d * 4
print("numbers: beside", free, " added", tied)
assert free == 2 * tied
# %% [markdown] lang="en"
# W above W: since W (e + p) = W e + W p, adding is putting beside with both halves *tied*. It costs no
# width, and training can use some directions for words and others for places. Both work.
#
# ## Waves know distances
#
# The product of two codes depends only on how far apart the places are: sin a sin b + cos a cos b =
# cos(a − b).
# %% [markdown] lang="en" role="predict"
# **Predict.** Is the product of codes 3 and 5 equal to that of 30 and 32? Of 3 and 6?
# %%
P = waves(40, 16)
products = P @ P.T
print("3 · 5:", products[3, 5], "  30 · 32:", products[30, 32], "  3 · 6:", products[3, 6])
for distance in (0, 1, 7):
    diagonal = products.diagonal(distance)
    assert np.ptp(diagonal) < 1e-12  # the same all along
assert abs(products[3, 6] - products[3, 5]) > 0.3
# %% [markdown] lang="en"
# So "the word two places back" can be asked for in the same way everywhere.
#
# A *table* of codes that is learned does as well, up to the longest sentence seen in training; for place
# 41 it has no row. Waves go on.
#
# ## Another way to break the tie: not looking ahead
#
# A language model may not see later words (a **causal mask**). Then place 2 sees two words, place 4 sees
# four.
# %% [markdown] lang="en" role="predict"
# **Predict.** Without any code, but with a causal mask: are the two *saw* told apart? And "saw saw saw"?
# %%
def causal(n):
    return np.tril(np.ones((n, n), dtype=bool))

B = attend(sentence, keep=causal(4))
print("I saw a saw:", np.abs(B[1] - B[3]).max())
assert np.abs(B[1] - B[3]).max() > 0.01

B = attend(table[[1, 1, 1]], keep=causal(3))
print("saw saw saw:", np.abs(B[0] - B[2]).max())
assert np.abs(B[0] - B[2]).max() < 1e-14  # a mean of equal values, however many
# %% [markdown] lang="en"
# By what they see, they are; but a mask alone cannot count equal words.
#
# ## Does it learn?
#
# The proof of the pudding: learn that the first *saw* is a verb (+1) and the second a noun (−1), with
# and without codes.
# %% [markdown] lang="en" role="predict"
# **Predict.** Guessing 0 for both has loss 1. How low does the loss get without codes?
# %%
def train(codes, steps=300):
    rng = np.random.default_rng(0)
    drawn = (rng.normal(size=size) / 3 for size in ((d, d), (d, d), (d, d), d))
    *W, w = (ta.tensor(numbers, requires_grad=True) for numbers in drawn)
    for _ in range(steps):
        Q, K, V = (ta.tensor(sentence + codes) @ one for one in W)
        tags = ta.softmax(Q @ K.mT / np.sqrt(d)) @ V @ w
        loss = ((tags[1] - 1) ** 2 + (tags[3] + 1) ** 2) / 2
        for t, slope in zip([*W, w], ta.grad(loss, [*W, w])):
            t.assign(t.data - 0.05 * slope.data)
    return loss.item(), tags.data[[1, 3]]
# %%
results = {"without codes": train(np.zeros((4, d))), "with codes": train(waves(4, d))}
for name, (loss, tags) in results.items():
    print(f"{name:14} loss {loss:.4f}   tags of the two saw {tags}")

assert abs(results["without codes"][0] - 1) < 1e-6  # no better than guessing, for ever
assert results["with codes"][0] < 0.01
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (10 minutes). The waves.
# %% exercise="16.waves"
from tinyattn.learn import grade, hint, reveal


def waves(n, d, base):
    """(n, d), d even: columns 2i and 2i+1 are sin and cos of place / base ** (2i / d)."""
    ...

grade("16.waves", waves)
# %% [markdown] lang="en"
# **2** (10 minutes). A test that a function treats words like attention does.
# %% exercise="16.equivariant"
def equivariant(f, X, order):
    """True if f, applied to the shuffled rows X[order], gives the shuffled rows of f(X)."""
    ...

grade("16.equivariant", equivariant)
# %% [markdown] lang="en"
# ## Summary
#
# - Attention is equivariant: shuffle the words, and the outputs are shuffled. So equal words get equal
#   outputs, for ever.
# - Add a code of the place, and the tie is gone. Adding is concatenating with tied halves.
# - Products of wave codes depend on the distance only. A causal mask tells places apart too, unless all
#   words are equal.
