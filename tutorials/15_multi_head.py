# %% [markdown] lang="en"
# # 15 Multi-head: several kinds of relevance
#
# **Needs** 11, 12 · **Minutes** 40
#
# **Question.** One attention measures relevance in *one* way. But a verb may need its subject, its object
# and its tense, all at once, from different words. The notes say: then measure in several ways. What
# exactly is different from one large attention, and what does it cost?
# %% [markdown] lang="en"
# ## One head must compromise
#
# Each word gets *one* list of shares that sum to 1. Suppose word 3 must know both the content of word 1
# and that of word 2. One head can only give a mixture.
# %% [markdown] lang="en" role="predict"
# **Predict.** Word 1 says 0 and word 2 says 8. A head that looks at both equally gives 4. Which other
# pairs give 4 as well?
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=3, suppress=True)
half = np.array([0.5, 0.5])
print("0 and 8:", half @ np.array([0.0, 8.0]), "  3 and 5:", half @ np.array([3.0, 5.0]))
assert half @ np.array([0.0, 8.0]) == half @ np.array([3.0, 5.0]) == 4

two_heads = np.array([[1.0, 0.0], [0.0, 1.0]])  # one list of shares for each word looked at
print("two heads:", two_heads @ np.array([0.0, 8.0]), two_heads @ np.array([3.0, 5.0]))
assert (two_heads @ np.array([0.0, 8.0])).tolist() == [0, 8]
# %% [markdown] lang="en"
# All pairs that sum to 8: the mixture forgets who said what. Two heads keep it.
#
# ## Heads are small attentions side by side
#
# h heads, each with its own narrow W_q, W_k, W_v of width d/h. Each does what lesson 11 did; the outputs
# are put side by side (concatenated), and a last matrix W_o mixes them.
# %%
rng = np.random.default_rng(15)
n, d, h = 5, 8, 2
d_h = d // h
X = ta.tensor(rng.normal(size=(n, d)))
W_q, W_k, W_v, W_o = (ta.tensor(rng.normal(size=(d, d)) / np.sqrt(d)) for _ in range(4))

def one_head(X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    return ta.softmax(Q @ K.mT / np.sqrt(K.shape[-1])) @ V

def columns(W, i):
    return W[:, i * d_h : (i + 1) * d_h]

heads = [one_head(X, *(columns(W, i) for W in (W_q, W_k, W_v))) for i in range(h)]
slowly = ta.concatenate(heads, axis=-1) @ W_o
assert slowly.shape == X.shape and heads[0].shape == (n, d_h)
# %% [markdown] lang="en"
# ## In one go: an axis for the heads
#
# Programs use *one* large W_q and cut its result: (n, d) becomes (n, h, d_h), and the head goes to the
# front, (h, n, d_h), where `@` and softmax treat it as a batch.
# %% [markdown] lang="en" role="predict"
# **Predict.** Why not reshape (n, d) to (h, n, d_h) directly? The sizes would fit.
# %%
def split(Y):
    return ta.transpose(ta.reshape(Y, (n, h, d_h)), (1, 0, 2))

def join(Y):
    return ta.reshape(ta.transpose(Y, (1, 0, 2)), (n, d))

Q, K, V = (split(X @ W) for W in (W_q, W_k, W_v))
weights = ta.softmax(Q @ K.mT / np.sqrt(d_h))
output = join(weights @ V) @ W_o
assert np.allclose(output.data, slowly.data, rtol=0, atol=1e-12)

directly = ta.reshape(X @ W_q, (h, n, d_h))
print("first row of head 1 that way:", directly.data[1, 0], "\nand rightly:", Q.data[1, 0])
assert not np.allclose(directly.data, Q.data)  # it cuts words apart and mixes them
# %% [markdown] lang="en"
# Reshape reads row by row: it would give words 1, 2 and half of 3 to the first head. First (n, h, d_h),
# then transpose.
#
# ## More heads, more parameters?
# %% [markdown] lang="en" role="predict"
# **Predict.** d = 8. How many numbers have W_q, W_k, W_v and W_o together, for h = 1, 2, 8?
# %%
def numbers(d, h):
    width = d // h
    return h * 3 * d * width + h * width * d  # q, k, v of each head, and W_o

print({heads: numbers(8, heads) for heads in (1, 2, 8)})
assert numbers(8, 1) == numbers(8, 2) == numbers(8, 8) == 256

def shares(h):
    return h * n * n  # what grows: the tables of weights

print("shares for 5 words:", {heads: shares(heads) for heads in (1, 2, 8)})
assert shares(8) == 8 * shares(1)
# %% [markdown] lang="en"
# The same: the heads share the width. What each *loses* is richness: its relevance x_i M x_jᵀ, with M =
# W_q W_kᵀ of one head, has a rank of at most d/h (lesson 10).
# %%
for heads_now in (1, 2, 8):
    width = d // heads_now
    M = W_q.data[:, :width] @ W_k.data[:, :width].T
    print(f"h = {heads_now}: rank of one head's relevance {np.linalg.matrix_rank(M)}")
    assert np.linalg.matrix_rank(M) == d // heads_now
# %% [markdown] lang="en"
# ## Heads have no order
#
# Give head 1 the number 2 and the other way round, together with their rows of W_o.
# %% [markdown] lang="en" role="predict"
# **Predict.** Does the output change? And if W_o is left as it was?
# %%
order = np.r_[d_h:d, 0:d_h]  # the columns of head 2, then those of head 1

def multi_head(W_q, W_k, W_v, W_o):
    Q, K, V = (split(X @ W) for W in (W_q, W_k, W_v))
    return (join(ta.softmax(Q @ K.mT / np.sqrt(d_h)) @ V) @ W_o).data

exchanged = multi_head(W_q[:, order], W_k[:, order], W_v[:, order], W_o[order])
half_done = multi_head(W_q[:, order], W_k[:, order], W_v[:, order], W_o)
print("with its rows of W_o:", np.abs(exchanged - output.data).max())
print("without them:        ", np.abs(half_done - output.data).max())
assert np.allclose(exchanged, output.data, rtol=0, atol=1e-12)
assert np.abs(half_done - output.data).max() > 0.1
# %% [markdown] lang="en"
# No, if they take their rows along: "head 3 does syntax" is a name given afterwards. It also shows that
# concatenating and W_o together are just a *sum*: each head's output times its own rows of W_o.
# %%
parts = [heads[i] @ W_o[i * d_h : (i + 1) * d_h] for i in range(h)]
assert np.allclose((parts[0] + parts[1]).data, output.data, rtol=0, atol=1e-12)
# %% [markdown] lang="en"
# ## Two designed heads
#
# *the dog saw the cat*. Head 1 shall find an equal word (both *the*), head 2 the word before. Words are
# one-hot, positions as well; a head uses the part that it needs.
# %% picture="same_word"
import viz

words = ["the", "dog", "saw", "the", "cat"]
word = np.eye(4)[[0, 1, 2, 0, 3]]
place = np.eye(5)
loud = 6.0
same = ta.softmax(ta.tensor(loud * word @ word.T)).data
before = ta.softmax(ta.tensor(loud * np.eye(5, k=-1) @ place)).data  # i asks for i - 1

print("word 4 (the), head 1:", same[3], "\nword 4 (the), head 2:", before[3])
assert np.allclose(same[3], [0.498, 0.001, 0.001, 0.498, 0.001], atol=5e-4)
assert before[3].argmax() == 2 and before[3, 2] > 0.98
viz.attention(same, words, title="head 1: the same word")
# %% picture="word_before"
viz.attention(before, words, title="head 2: the word before")
# %% [markdown] lang="en"
# Each row of each head sums to 1 by itself. Could *one* head do both for word 4? It would have to give
# three words a third each, and nothing after it could tell which third came from where. Word 1 has none
# before it: its row in head 2 is even.
# %%
assert np.allclose(same.sum(axis=1), 1) and np.allclose(before.sum(axis=1), 1)
assert np.allclose(before[0], 1 / 5)
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (10 minutes). Cut the heads apart, for any sizes.
# %% exercise="15.split_heads"
from tinyattn.learn import grade, hint, reveal


def split_heads(Y, h):
    """Y (n, d): the heads side by side become (h, n, d / h)."""
    ...

grade("15.split_heads", split_heads)
# %% [markdown] lang="en"
# **2** (15 minutes). All of it.
# %% exercise="15.multi_head"
def multi_head(X, W_q, W_k, W_v, W_o, h):
    """X (n, d), all W (d, d), h heads, scaled dot products: the outputs (n, d)."""
    ...

grade("15.multi_head", multi_head)
# %% [markdown] lang="en"
# ## Summary
#
# - A head is a small attention; h of them give h lists of shares for each word, so that what they found
#   stays apart.
# - The number of parameters does not depend on h; the rank of each head's relevance falls to d/h, the
#   shares grow with h.
# - Cut with reshape (n, h, d/h), then transpose. Heads have no order: with their rows of W_o they are
#   simply added.
