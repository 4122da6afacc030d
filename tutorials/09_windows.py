# %% [markdown] lang="en"
# # 09 "I saw a saw": one word, a window, and what windows cost
#
# **Needs** 07 · **Minutes** 30
#
# **Question.** A tagger shall say of each word whether it is a verb, a noun, ... In *I saw a saw* the same
# word must get two different tags. A layer that looks at one word at a time cannot do it. How far does
# it help to look at the neighbours as well, and at how many?
# %% [markdown] lang="en"
# ## Sixty sentences with a trap
#
# The package brings a small corpus, written by hand: *saw*, *can*, *park*, *light*, ... stand in two
# roles. 60 sentences to learn from, 12 held out.
# %%
import numpy as np

from tinyattn.data import sample_corpus

learn_from, held_out = sample_corpus("english"), sample_corpus("english", "held-out")
print(held_out[0].words, held_out[0].tags)
tags = sorted({tag for s in learn_from for tag in s.tags})
words = ["<edge>", "<new>"] + sorted({word.lower() for s in learn_from for word in s.words})
number = {word: i for i, word in enumerate(words)}

roles = {}
for sentence in learn_from + held_out:
    for word, tag in zip(sentence.words, sentence.tags):
        roles.setdefault(word.lower(), set()).add(tag)
print(len(words), "words,", len(tags), "tags;  saw:", sorted(roles["saw"]))
assert list(held_out[0].words) == ["I", "saw", "a", "saw"]
# %% [markdown] lang="en"
# ## A linear tagger with a window
#
# For each word take the k words before and the k after. Each of these 2k + 1 places has a table of its
# own: one row for each word, one number in it for each tag. The scores are the sum of the rows. k = 0
# looks at the word alone.
# %%
def windows(sentences, k):
    rows, right = [], []
    for s in sentences:
        ids = [0] * k + [number.get(word.lower(), 1) for word in s.words] + [0] * k
        for at, tag in enumerate(s.tags):
            rows.append([ids[at + j] + j * len(words) for j in range(2 * k + 1)])
            right.append(tags.index(tag) if tag in tags else -1)
    return np.array(rows), np.array(right)

rows, right = windows(held_out[:1], k=1)
print([[words[i % len(words)] for i in row] for row in rows])
assert rows.shape == (4, 3)
# %% [markdown] lang="en"
# It learns by the rule of lesson 07: p − y goes to each row that was used.
# %%
def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def train(k, steps=100):
    rows, right = windows(learn_from, k)
    W, y = np.zeros(((2 * k + 1) * len(words), len(tags))), np.eye(len(tags))[right]
    for _ in range(steps):
        slope = softmax(W[rows].sum(axis=1)) - y
        np.add.at(W, rows, -10 / len(rows) * slope[:, None, :])  # repeated rows add up
    return W

models = {k: train(k) for k in (0, 1, 3, 8)}
assert models[0].shape == (len(words), len(tags))
# %% [markdown] lang="en"
# ## One word at a time
# %% [markdown] lang="en" role="predict"
# **Predict.** k = 0. Which tags do the two *saw* get, and of the words with two roles, what share comes
# out right?
# %%
def predict(k, sentence):
    rows, _ = windows([sentence], k)
    return models[k][rows].sum(axis=1)  # scores: one row for each word

def accuracy(k, sentences):
    right, ambiguous = [], []
    for s in sentences:
        guesses = [tags[i] for i in predict(k, s).argmax(axis=1)]
        right += [guess == tag for guess, tag in zip(guesses, s.tags)]
        ambiguous += [len(roles[word.lower()]) > 1 for word in s.words]
    return np.mean(right), np.mean(np.array(right)[ambiguous])

scores = predict(0, held_out[0])
print([tags[i] for i in scores.argmax(axis=1)])
# %%
print("held out: all words, and those with two roles:", np.round(accuracy(0, held_out), 2))
assert np.array_equal(scores[1], scores[3])  # exactly: the same word, the same row
assert accuracy(0, held_out)[1] < 0.65  # and no training can change that
# %% [markdown] lang="en"
# The same tag for both, so one is wrong, whatever it has learned. On words with two roles it can only
# bet on the more frequent one.
#
# ## A look to each side
# %% [markdown] lang="en" role="predict"
# **Predict.** k = 1. How much better on words with two roles?
# %%
print([tags[i] for i in predict(1, held_out[0]).argmax(axis=1)])
print("held out: all words, and those with two roles:", np.round(accuracy(1, held_out), 2))
found = predict(1, held_out[0]).argmax(axis=1)
assert tags[found[1]] == "VERB" and tags[found[3]] == "NOUN"
assert accuracy(1, held_out)[1] > accuracy(0, held_out)[1] + 0.2
# %% [markdown] lang="en"
# *I ‥ a* around the first, *a ‥* before the second: the neighbours decide. Then more neighbours should
# be better still?
#
# ## Wider and wider
# %% [markdown] lang="en" role="predict"
# **Predict.** From k = 1 to k = 8: what happens to the accuracy on the sentences learned from, and on
# those held out?
# %%
print(" k    numbers   learned from   held out")
for k, W in models.items():
    seen, new = accuracy(k, learn_from)[0], accuracy(k, held_out)[0]
    print(f"{k:2} {W.size:10} {seen:14.2f} {new:10.3f}")

assert accuracy(1, learn_from)[0] > 0.99 and accuracy(8, learn_from)[0] > 0.99
assert accuracy(8, held_out)[0] < accuracy(1, held_out)[0]  # overfitting
assert models[8].size == 17 * models[0].size
# %% [markdown] lang="en"
# What it has seen it knows by heart, at every width. On new sentences the wide window is *worse*: it has
# seventeen times the numbers to learn from the same 60 sentences, and finds reasons in words that are
# none. This is **overfitting**.
#
# ## And it is still blind
#
# However wide the window, what stands one step further does not exist.
# %% [markdown] lang="en" role="predict"
# **Predict.** With k = 3, change the word that is four places away. By how much do the scores change?
# %%
class Changed:
    words, tags = list(learn_from[0].words), learn_from[0].tags

before = predict(3, Changed)[0]
Changed.words = [*Changed.words[:4], "saw", *Changed.words[5:]]
after = predict(3, Changed)[0]
print("largest change:", np.abs(after - before).max())
assert np.array_equal(before, after)
# %% [markdown] lang="en"
# Exactly nothing. So a window is too narrow for some sentences and too wide for the data; and every
# place has a table of its own, so that what it learns of *the* one place to the left it must learn again
# for two places.
#
# ## What we want instead
#
# A layer that looks at the *whole* sentence, of any length, with a number of parameters that does not
# grow with it; that decides itself, for each word, where to look. Compare, for words as vectors of width
# d:
# %%
def window_numbers(n, d):
    return (2 * n + 1) * d * d  # a matrix for each place, as far as the sentence goes

def attention_numbers(n, d):
    return 3 * d * d  # W_q, W_k, W_v: n does not occur

for n in (10, 100, 1000):
    window, attention = window_numbers(n, 64), attention_numbers(n, 64)
    print(f"{n:4} words: window {window:10,}   attention {attention:,}")
assert attention_numbers(10, 64) == attention_numbers(1000, 64) == 12_288
assert window_numbers(1000, 64) > 600 * attention_numbers(1000, 64)
# %% [markdown] lang="en"
# That layer is self-attention. Lesson 10 builds it for one word.
#
# ## Exercises
#
# **1** (10 minutes). Cut a window out of a sentence, also at its edges.
# %% exercise="09.window"
from tinyattn.learn import grade, hint, reveal


def window(ids, at, k, edge):
    """The numbers at places at - k to at + k of the list ids; edge where no word is."""
    ...

grade("09.window", window)
# %% [markdown] lang="en"
# **2** (5 minutes). What it costs.
# %% exercise="09.parameters"
def parameters(k, vocabulary, tags):
    """How many numbers the linear tagger of this lesson has to learn."""
    ...

grade("09.parameters", parameters)
# %% [markdown] lang="en"
# ## Summary
#
# - A word alone: both *saw* get exactly the same scores. One neighbour to each side mends most of it.
# - A wider window has more to learn from the same data: perfect on what it saw, worse on what is new.
# - Outside the window it is blind. Wanted: the whole sentence, any length, no more parameters. That is
#   attention.
