# %% [markdown] lang="en"
# # 08 Sequences of vectors: words, sound, and what comes out
#
# **Needs** 04, 05 · **Minutes** 35
#
# **Question.** Attention takes a sequence of vectors. But a sentence is letters, and sound is a wavy line.
# How do vectors come of them? And what may come out at the other end: one label, one for each vector, or
# as many as it likes?
# %% [markdown] lang="en"
# ## One-hot: a vector that is only a name
#
# Number the words of a vocabulary. Word 3 is the vector with a 1 at place 3 and 0 elsewhere.
# %% [markdown] lang="en" role="predict"
# **Predict.** Which two of *cat*, *dog*, *of* are closest to each other, as one-hot vectors?
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=3, suppress=True)
names = ["cat", "dog", "of"]
one_hot = np.eye(3)
distances = [[np.linalg.norm(a - b) for b in one_hot] for a in one_hot]
print(np.array(distances))
assert np.allclose(distances, np.sqrt(2) * (1 - np.eye(3)))  # all pairs alike
# %% [markdown] lang="en"
# None: all are √2 apart. One-hot says *which* word, nothing of what it is like; and with 50 000 words it
# has 50 000 entries.
#
# ## Word vectors: a table to look up
#
# Give each word a row of d numbers in a table E (*embedding*). Multiplying a one-hot vector with E picks
# its row. So nobody multiplies: one looks up.
# %% [markdown] lang="en" role="predict"
# **Predict.** The sentence uses rows 1, 0, 1. Each output sends back a slope of 1. What is the gradient of
# row 0, 1, 2?
# %%
E = ta.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
ids = [1, 0, 1]
by_product = np.eye(3)[ids] @ E.data
X = ta.embedding(E, ids)
print(X.data)
X.backward(np.ones((3, 2)))
print("gradient of the table:\n", E.grad)

assert np.array_equal(X.data, by_product)
assert E.grad.tolist() == [[1, 1], [2, 2], [0, 0]]
# %% [markdown] lang="en"
# A row that was used twice gets both pieces (lesson 03); a row that was not used gets nothing. A rare
# word learns rarely.
#
# ## Where do good rows come from?
#
# "You shall know a word by the company it keeps" (Firth 1957). Count for each word of the sample corpus
# what stands before and after it. Words used alike then have rows alike, and a *singular value
# decomposition* presses the counts into a few numbers.
# %%
from itertools import pairwise

from tinyattn.data import sample_corpus

corpus = sample_corpus("english") + sample_corpus("english", "held-out")
words = sorted({word.lower() for s in corpus for word in s.words})
number = {word: i for i, word in enumerate(words)}
counts = np.zeros((len(words), 2 * len(words)))
for s in corpus:
    row = [number[word.lower()] for word in s.words]
    for left, right in pairwise(row):
        counts[right, left] += 1
        counts[left, len(words) + right] += 1

U, sizes, _ = np.linalg.svd(np.log1p(counts), full_matrices=False)
vectors = U[:, :5] * sizes[:5]
print(counts.shape, "counts became", vectors.shape)
assert vectors.shape == (len(words), 5)
# %% [markdown] lang="en" role="predict"
# **Predict.** The nearest neighbour of a word: in how many of 100 cases has it the same part of speech? By
# chance it is 17.
# %%
unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
alike = unit @ unit.T - 2 * np.eye(len(words))  # a word is not its own neighbour
nearest = alike.argmax(axis=1)
seen = {word: [] for word in words}
for s in corpus:
    for word, tag in zip(s.words, s.tags):
        seen[word.lower()].append(tag)
tag = np.array([max(sorted(set(seen[word])), key=seen[word].count) for word in words])

same = np.mean(tag[nearest] == tag)
chance = np.mean([(tag == one).sum() - 1 for one in tag]) / (len(words) - 1)
for word in ("a", "we", "old"):
    print(f"{word:4} is nearest to {words[nearest[number[word]]]}")
print(f"same part of speech: {same:.2f}, by chance {chance:.2f}")
assert abs(chance - 0.17) < 0.02
assert same > 2.5 * chance  # and nobody told it what a part of speech is
# %% [markdown] lang="en"
# Far more often than by chance, from 72 short sentences. Two of the five numbers can be drawn:
# %%
def drawn(chosen, width=60, height=14):
    places = unit[[number[word] for word in chosen]][:, 1:3]
    low, high = places.min(axis=0), places.max(axis=0)
    sheet = [[" "] * (width + 8) for _ in range(height + 1)]
    for word, (x, y) in zip(chosen, (places - low) / (high - low)):
        row, column = round((1 - y) * height), round(x * width)
        sheet[row][column : column + len(word)] = word
    return "\n".join("".join(line).rstrip() for line in sheet)

sheet = drawn("a the my his we i they old new man saw can".split())
print(sheet)
assert all(word in sheet for word in ("they", "old", "can"))
# %% [markdown] lang="en"
# With `ta.data.read_glove(path)` you can do the same with vectors made from billions of words.
#
# ## Sound: a frame is a vector
#
# Sound is 16 000 numbers a second, or 8000 here. Take a short piece, 25 ms, as one vector (a *frame*);
# move on by 10 ms, and take the next. So neighbouring frames overlap.
# %% [markdown] lang="en" role="predict"
# **Predict.** One second at 8000 numbers a second, frames of 200, steps of 80. How many frames?
# %%
from tinyattn.data import frames, made_up_wave

wave = made_up_wave(rate=8000)[:8000]
second = np.resize(wave, 8000)
F = frames(second, length=200, hop=80)
print(second.shape, "became", F.shape)
assert F.shape == ((8000 - 200) // 80 + 1, 200) == (98, 200)
assert np.array_equal(F[0, 80:], F[1, :120])  # 120 of 200 numbers are shared
# %% [markdown] lang="en"
# About a hundred vectors a second: sound makes *long* sequences. That is why attention over sound often
# looks only nearby.
#
# ## What comes out
#
# | in | out | example |
# |---|---|---|
# | n vectors | n labels | part of speech of each word |
# | n vectors | one label | is this review friendly? |
# | n vectors | m vectors, m unknown | translation |
# | one vector | one label | what is in this picture? |
#
# These lessons do the first kind. The second is made from it by a mean; the third by a second network
# that decides when to stop.
# %% [markdown] lang="en" role="predict"
# **Predict.** The same 2 × 3 matrix labels each of 5 words. What are the shapes for n labels, and for one?
# %%
rng = np.random.default_rng(8)
X, W = ta.tensor(rng.normal(size=(5, 2))), ta.tensor(rng.normal(size=(2, 3)))
each = X @ W
one = ta.mean(X, axis=0) @ W
print("for each word:", each.shape, "  for the sentence:", one.shape)
assert each.shape == (5, 3) and one.shape == (3,)
assert np.allclose(one.data, each.data.mean(axis=0))  # linear: either order

longer = ta.tensor(rng.normal(size=(9, 2))) @ W
assert longer.shape == (9, 3)  # n may be anything; W does not know it
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (10 minutes). The gradient of a table.
# %% exercise="08.table_gradient"
from tinyattn.learn import grade, hint, reveal


def table_gradient(G, ids, rows):
    """G (n, d) arrives at E[ids]; E has `rows` rows: the gradient of E, (rows, d)."""
    ...

grade("08.table_gradient", table_gradient)
# %% [markdown] lang="en"
# **2** (5 minutes). How many whole frames fit?
# %% exercise="08.frame_count"
def frame_count(samples, length, hop):
    """The number of frames of `length` that fit whole into `samples`, `hop` apart."""
    ...

grade("08.frame_count", frame_count)
# %% [markdown] lang="en"
# ## Summary
#
# - One-hot names a word, and all pairs are equally far apart. A table E gives it a place; one-hot times
#   E is a look-up.
# - Rows used twice get both slopes, unused rows none. Words in like company get like vectors, without
#   being told.
# - Sound is cut into overlapping frames. Out may come a label for each vector, one for all, or a new
#   sequence.
