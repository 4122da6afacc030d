# %% [markdown] lang="en"
# # 13 Normalising: softmax or relu?
#
# **Needs** 11, 12 · **Minutes** 35
#
# **Question.** The lecture notes say: softmax may be replaced by relu, "try it". So let us: what does
# softmax actually do for attention, what changes without it, and can the difference be measured?
# %% [markdown] lang="en"
# ## Relu keeps what is positive
#
# relu(scores) throws away negative scores and leaves the others as they are. No exponentials, no
# division.
# %% [markdown] lang="en" role="predict"
# **Predict.** A random 4 × 4 table of scores. To what do its rows sum after softmax, and after relu?
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=3, suppress=True)
rng = np.random.default_rng(13)
scores = ta.tensor(rng.normal(size=(4, 4)) / 2)
soft, hard = ta.softmax(scores).data, ta.relu(scores).data
print("softmax, rows sum to", soft.sum(axis=1))
print("relu,    rows sum to", hard.sum(axis=1))

assert np.allclose(soft.sum(axis=1), 1) and (soft > 0).all()
assert np.ptp(hard.sum(axis=1)) > 0.5 and (hard == 0).any()
# %% [markdown] lang="en"
# So with relu the output is a weighted sum, but no weighted *mean*: it may be longer than every value.
# And it does look away entirely from some words, which softmax never does.
#
# ## Longer sentences, larger outputs
# %% [markdown] lang="en" role="predict"
# **Predict.** All values are 1. What does one word get from a sentence of 10, and of 1000 words: with
# softmax, with relu?
# %%
def mean_output(n, normalise):
    ones = ta.tensor(np.ones((n, 1)))
    outputs = [normalise(ta.tensor(rng.normal(size=n))) @ ones for _ in range(200)]
    return np.mean([b.item() for b in outputs])

def relu_by_n(scores):
    return ta.relu(scores) / ta.size_of(scores, -1)

rules = {"softmax": ta.softmax, "relu": ta.relu, "relu / n": relu_by_n}
sizes = {name: [mean_output(n, rule) for n in (10, 100, 1000)]
         for name, rule in rules.items()}
for name, row in sizes.items():
    print(f"{name:9} n = 10, 100, 1000: ", np.array(row))

assert np.allclose(sizes["softmax"], 1)
assert abs(sizes["relu"][2] / sizes["relu"][0] - 100) < 10  # grows with n
assert np.ptp(sizes["relu / n"]) < 0.05  # divide by n, and it stays
# %% [markdown] lang="en"
# A layer that was trained on short sentences would shout on long ones. Dividing by n mends the size;
# that is what people who really use relu attention do.
#
# ## Dead rows
#
# Let all scores of a query be negative.
# %% [markdown] lang="en" role="predict"
# **Predict.** What does the word get from relu attention, and what gradient goes back to its query?
# %%
K = ta.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
V = ta.tensor([[1.0], [2.0], [3.0]])
unlucky = ta.tensor([-1.0, -2.0], requires_grad=True)
for name, rule in rules.items():
    out = rule(K @ unlucky) @ V
    slope = ta.grad(out[0], unlucky).data
    print(f"{name:9} output {out.data}   gradient of the query {slope}")
    assert (np.abs(slope).max() == 0) == name.startswith("relu")

assert (ta.relu(K @ unlucky) @ V).item() == 0
# %% [markdown] lang="en"
# Nothing, and *exactly* no gradient: it cannot learn its way out. With softmax there is always a little.
#
# ## The experiment
#
# A task only attention can solve: n words, each with a key of 8 random signs and a number as value. The
# query equals one of the keys; the answer is that key's value. So the right thing is a look-up. Only one
# number is learned, the loudness c of the scores.
# %%
def sentences(n, count, seed):
    rng = np.random.default_rng(seed)
    keys = rng.choice([-1.0, 1.0], size=(count, n, 8))
    values, wanted = rng.normal(size=(count, n)), rng.integers(0, n, size=count)
    rows = np.arange(count)
    return keys, keys[rows, wanted], values, values[rows, wanted]

def outputs(c, rule, data):
    keys, query, values, _ = data
    scores = ta.einsum("bnd,bd->bn", keys, query) * c / np.sqrt(8)
    return ta.sum(rule(scores) * values, axis=-1)

keys, query, values, answer = sentences(n=6, count=3, seed=0)
print("keys", keys.shape, "query", query.shape, "values", values.shape, "answers", answer)
assert np.array_equal(answer[0], values[0][(keys[0] == query[0]).all(axis=1)][0])
# %% [markdown] lang="en"
# One more candidate: relu with its row divided by its own sum, so that it is a mean again.
# %%
def relu_shares(scores):
    kept = ta.relu(scores)
    return kept / (ta.sum(kept, axis=-1, keepdims=True) + 1e-6)

rules["relu / sum"] = relu_shares

def train(rule, steps=150):
    data, c = sentences(n=6, count=400, seed=1), ta.tensor(0.3, requires_grad=True)
    for _ in range(steps):
        c.zero_grad()
        loss = ta.mean((outputs(c, rule, data) - data[3]) ** 2)
        loss.backward()
        c.assign(c.data - 1.0 * np.clip(c.grad, -0.5, 0.5))
    return c

learned = {name: train(rule) for name, rule in rules.items()}
print({name: round(c.item(), 2) for name, c in learned.items()})
assert learned["softmax"].item() > 1.5  # it has learned to speak up: close to a look-up
# %% [markdown] lang="en" role="predict"
# **Predict.** All four were trained on 6 words. Which gets worse on 24, and which becomes useless?
# (Guessing 0 has error 1.)
# %%
def error(name, n):
    data = sentences(n, count=2000, seed=2)
    return np.mean((outputs(learned[name], rules[name], data).data - data[3]) ** 2)

errors = {name: [error(name, n) for n in (6, 24)] for name in rules}
for name, (short, long) in errors.items():
    print(f"{name:10} error on 6 words {short:.2f}   on 24 words {long:.2f}")

assert errors["softmax"][0] < 0.05 and errors["softmax"][1] < 0.15
assert errors["relu"][1] > 0.9  # as bad as guessing: many small scores add up
assert errors["relu / n"][1] > 0.5  # made for n = 6: now far too quiet
assert errors["relu / sum"][1] > 0.5  # a mean again, but not sharp enough
# %% [markdown] lang="en"
# Softmax wins here, and one sees why: exp makes a clear winner out of a lead in score, relu only passes
# the lead on. Dividing by n keeps the size, yet a look-up does not want its winner divided by n. This is
# *one* task, made for looking up. Where a mean of many words is wanted, relu / n does well in large
# models, and it is cheaper to spread over machines.
#
# ## Exercises
#
# **1** (5 minutes). Relu attention that does not grow with the length.
# %% exercise="13.relu_attention"
from tinyattn.learn import grade, hint, reveal


def relu_attention(Q, K, V):
    """As 11.attention, with relu(scores) / number of keys in place of softmax."""
    ...

grade("13.relu_attention", relu_attention)
# %% [markdown] lang="en"
# **2** (10 minutes). Which rows are dead?
# %% exercise="13.dead_rows"
def dead_rows(Q, K):
    """How many queries (rows of Q) does relu attention leave at 0, with no gradient?"""
    ...

grade("13.dead_rows", dead_rows)
# %% [markdown] lang="en"
# ## Summary
#
# - Softmax gives shares: positive, summing to 1. Relu gives neither; its size grows with the length
#   unless divided by n.
# - A relu row without a positive score is dead: output 0, gradient exactly 0.
# - Measured on looking up: softmax best, and best on longer sentences. Another task may say otherwise:
#   try it.
