# %% [markdown] lang="en"
# # 13 Normalising: softmax or relu?
#
# **Needs** 11, 12 · **Minutes** 35
#
# **Question.** The lecture notes say: softmax may be replaced by relu, "try it". So let us: what does
# softmax actually do for attention, what changes without it, and can the difference be measured?
# %% [markdown] lang="zh" of="d1fd45"
# # 13 归一化：softmax还是relu？
#
# **需要** 11, 12 · **分钟** 35
#
# **问题。** 课堂笔记说：softmax也可以换成relu，“实验一下”。那就来实验：在注意力（attention）里，
# 归一化（normalise）用的softmax到底做了什么？没有它会有什么变化？这种差别能不能量出来？
# %% [markdown] lang="en"
# ## Relu keeps what is positive
#
# relu(scores) throws away negative scores and leaves the others as they are. No exponentials, no
# division.
# %% [markdown] lang="zh" of="281921"
# ## relu只留下正的
#
# relu(scores)把负的分数扔掉，其余的原样保留。没有指数，也没有除法。
# %% [markdown] lang="en" role="predict"
# **Predict.** A random 4 × 4 table of scores. To what do its rows sum after softmax, and after relu?
# %% [markdown] lang="zh" of="8cba86"
# **预测。** 一张随机的4 × 4分数表。经过softmax之后，每一行加起来是多少？经过relu之后呢？
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
# %% [markdown] lang="zh" of="9dc8e3"
# 所以用relu时，输出仍是加权和，却不再是加权*平均*：它可能比每一个值（value）都长。另外，
# relu会对某些词完全不看，而softmax从不这样。
#
# ## 句子越长，输出越大
# %% [markdown] lang="en" role="predict"
# **Predict.** All values are 1. What does one word get from a sentence of 10, and of 1000 words: with
# softmax, with relu?
# %% [markdown] lang="zh" of="6bdd23"
# **预测。** 所有的值都是1。一个词从10个词的句子里能得到多少？从1000个词的句子里呢？
# 分别用softmax和relu。
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
# %% [markdown] lang="zh" of="679e66"
# 用短句子训练出来的层，遇到长句子就会大喊大叫。除以n可以把大小修正过来，
# 真正使用relu注意力的人就是这样做的。
#
# ## 死掉的行
#
# 设一个查询（query）的分数全是负的。
# %% [markdown] lang="en" role="predict"
# **Predict.** What does the word get from relu attention, and what gradient goes back to its query?
# %% [markdown] lang="zh" of="81ebb3"
# **预测。** 用relu注意力，这个词得到什么？传回它的查询的梯度（gradient）又是多少？
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
# %% [markdown] lang="zh" of="4202cd"
# 什么也得不到，梯度也*恰好*是零：它没法靠学习走出困境。用softmax的话，总还会有一点梯度。
#
# ## 实验
#
# 设计一个只有注意力才能解决的任务：n个词，每个词有一个键（key），由8个随机的正负号组成；
# 还有一个数作为值。查询等于其中一个键，答案就是那个键的值。所以正确的做法是查表。要学的只有一个数：
# 分数的响度c。
# %%
def sentences(n, count, seed):
    rng = np.random.default_rng(seed)
    keys = rng.choice([-1.0, 1.0], size=(count, n, 8))
    values, wanted = rng.normal(size=(count, n)), rng.integers(0, n, size=count)
    rows = np.arange(count)
    return keys, keys[rows, wanted], values, values[rows, wanted]

def outputs(c, rule, data):
    keys, query, values, _ = data
    scores = ta.einsum("bnd,bd->bn", keys, query) * c / np.sqrt(8)  # K q for each b
    return ta.sum(rule(scores) * values, axis=-1)

keys, query, values, answer = sentences(n=6, count=3, seed=0)
print("keys", keys.shape, "query", query.shape, "values", values.shape, "answers", answer)
assert np.array_equal(answer[0], values[0][(keys[0] == query[0]).all(axis=1)][0])
# %% [markdown] lang="en"
# One more candidate: relu with its row divided by its own sum, so that it is a mean again.
# %% [markdown] lang="zh" of="8b9f98"
# 再加一个候选者：relu之后，每一行除以自己的和，这样它又成了平均。
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
# %% [markdown] lang="zh" of="f9ab58"
# **预测。** 四种都用6个词的句子训练。换成24个词，哪一种会变差，哪一种会变得毫无用处？
# （全猜0的误差是1。）
# %%
def error(name, n):
    data = sentences(n, count=2000, seed=2)
    return np.mean((outputs(learned[name], rules[name], data).data - data[3]) ** 2)

errors = {name: [error(name, n) for n in (6, 24)] for name in rules}
for name, (short, long) in errors.items():
    print(f"{name:10} error on 6 words {short:.2f}   on 24 words {long:.2f}")

guessing = np.mean(sentences(n=24, count=2000, seed=2)[3] ** 2)
assert abs(guessing - 1) < 0.1
assert errors["softmax"][0] < 0.05 and errors["softmax"][1] < 0.15
assert errors["relu"][1] > 0.9  # as bad as guessing: many small scores add up
assert errors["relu / n"][1] > 0.5  # made for n = 6: now far too quiet
assert errors["relu / sum"][1] > 0.5  # a mean again, but not sharp enough
# %% [markdown] lang="en"
# Look at the weights in one sentence of 24 words: a row for each rule, a column for each of the first
# eight words; the wanted one is among them.
# %% [markdown] lang="zh" of="8c46eb"
# 看看一个24词句子里的权重：每种做法一行，前八个词各一列，要找的词就在其中。
# %% picture="rules"
import viz

keys, query, _, _ = sentences(n=24, count=2000, seed=2)
same = (keys[:, :8] == query[:, None]).all(axis=2)  # which equals the query
at = int(np.argmax(same.any(axis=1)))
each = [rule(ta.tensor(keys[at] @ query[at]) * learned[name] / np.sqrt(8)).data[:8]
        for name, rule in rules.items()]
assert [int(np.argmax(row)) for row in each] == [int(np.argmax(same[at]))] * 4
viz.attention(np.array(each), list(rules), [f"k{i + 1}" for i in range(8)])
# %% [markdown] lang="en"
# Softmax wins here, and one sees why: exp makes a clear winner out of a lead in score, relu only passes
# the lead on. Dividing by n keeps the size, yet a look-up does not want its winner divided by n. This is
# *one* task, made for looking up. Where a mean of many words is wanted, relu / n does well in large
# models, and it is cheaper to spread over machines.
#
# ## Exercises
#
# **1** (5 minutes). Relu attention that does not grow with the length.
# %% [markdown] lang="zh" of="417534"
# 这里softmax赢了，原因也看得出来：exp能把分数上的领先变成明显的胜出，relu只是把领先照样传下去。
# 除以n能保持大小，可是查表并不希望胜出者也被除以n。不过这只是*一个*任务，而且是专为查表设计的。
# 需要对许多词求平均的时候，relu / n在大模型里表现不错，也更容易分摊到许多台机器上去算。
#
# ## 练习
#
# **1**（5分钟）。不随句子长度变大的relu注意力。
# %% exercise="13.relu_attention"
from tinyattn.learn import grade, hint, reveal


def relu_attention(Q, K, V):
    """As 11.attention, with relu(scores) / number of keys in place of softmax."""
    ...

grade("13.relu_attention", relu_attention)
# %% [markdown] lang="en"
# **2** (10 minutes). Which rows are dead?
# %% [markdown] lang="zh" of="b49910"
# **2**（10分钟）。哪些行是死的？
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
# %% [markdown] lang="zh" of="caeb7e"
# ## 小结
#
# - softmax给出份额：都是正数，加起来等于1。relu两样都没有；不除以n的话，输出还会随长度变大。
# - relu的一行里如果没有正的分数，这一行就死了：输出是0，梯度恰好是0。
# - 在查表任务上量出来：softmax最好，句子变长时也最好。换一个任务，结论也许不同：试一试。
