# %% [markdown] lang="en"
# # 10 One query: q, k, v
#
# **Needs** — · **Minutes** 40
#
# **Question.** In *I saw a saw* the second word is an action and the fourth is a tool, yet both are
# spelled *saw*. Looked at alone, the word cannot tell which it is; it has to look at the others. At how
# many of them, and how much at each?
#
# Self-attention lets the word find out by itself. It **asks** (a *query* q), every word holds up a **sign**
# (a *key* k), and where question and sign fit, it takes over that word's **content** (a *value* v). Here
# you compute this for one word, with numbers so small that you can check each of them on paper.
# %% [markdown] lang="zh" of="128cb9"
# # 10 一个查询：q、k、v
#
# **需要** — · **分钟** 40
#
# **问题。** 在*I saw a saw*（我看见一把锯子）这句话里，第二个词是动作“看见”，第四个词是工具“锯子”，拼写却
# 都是*saw*。只看这个词本身，分不清是哪一个意思，必须看看别的词。那么要看多少个词？每个词又该看多少？
#
# 自注意力（self-attention）让这个词自己去弄清楚：它先**提问**，这就是查询（query）q；每个词都举起一块**牌
# 子**，这就是键（key）k；问题和牌子对得上的地方，就把那个词的**内容**取过来，这就是值（value）v。这一课只为
# 一个词做这件事，用的数都很小，每一个都可以在纸上验算。
# %% [markdown] lang="en"
# ## The words as vectors
#
# Each word (*token*) is a row of three numbers: is it a thing, is it an action, is it a small grammar
# word? *saw* gets both of the first two, because from the word alone both are possible.
# %% [markdown] lang="zh" of="6adf60"
# ## 把词写成向量
#
# 每个词元（token）是一行三个数：它是不是事物？是不是动作？是不是语法小词？*saw*的前两个数都是1，因为只看
# 这个词，两种意思都有可能。
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=4, suppress=True)
words = ["I", "saw", "a", "saw"]
#               thing action small
X = ta.tensor([[1.0,  0.0,   1.0],   # I
               [1.0,  1.0,   0.0],   # saw
               [0.0,  0.0,   1.0],   # a
               [1.0,  1.0,   0.0]])  # saw

assert (X.data[1] == X.data[3]).all(), "the two saw must be the same vector"
# %% [markdown] lang="en"
# ## The query: what does the word look for?
#
# A matrix `W_q` turns a word into its question: `q = x @ W_q`. (The lecture notes write `q = W a` with
# columns; here words are rows. Lesson 11 shows that both are the same.) We choose it by hand; a real
# model learns it.
#
# Read its rows: a thing looks a little for a small word (its *a*), an action looks hard for things (who?
# what?), and a small word looks for the thing that it belongs to.
#
# **Predict.** *saw* is `(1, 1, 0)`: a thing and an action. What is its query?
# %% [markdown] lang="zh" of="5f2952"
# ## 查询：这个词在找什么？
#
# 矩阵`W_q`把一个词变成它的问题：`q = x @ W_q`。（课堂笔记用列向量，写作`q = W a`；这里每个词是一行。第11
# 课会说明两种写法是一回事。）这里的矩阵是我们手工选的，真正的模型会自己学出来。
#
# 按行来读它：事物稍微找一下小词（它的冠词*a*）；动作使劲找事物（谁做的？做了什么？）；小词找它所属的事
# 物。
#
# **预测。** *saw*是`(1, 1, 0)`：既是事物又是动作。它的查询是什么？
# %% [markdown] lang="en" role="predict"
# Write two numbers: how much it looks for a thing, how much for a small word.
# %% [markdown] lang="zh" of="eee694"
# 写出两个数：它找事物的程度，找小词的程度。
# %%
#               looks for: thing  small
W_q = ta.tensor([[0.0, 1.0],   # what a thing looks for
                 [2.0, 0.0],   # what an action looks for
                 [1.0, 0.0]])  # what a small word looks for
q = X[1] @ W_q
print("q of saw:", q.data)

by_hand = 1 * np.array([0, 1]) + 1 * np.array([2, 0]) + 0 * np.array([1, 0])
assert (q.data == by_hand).all() and q.data.tolist() == [2, 1]
# %% [markdown] lang="en"
# ## The keys: what does each word have on its sign?
#
# `W_k` turns every word into its sign: "I am a thing", "I am a small word". Query and key have the same
# two columns (their number is called d_k), so that they can be compared: the **score** of a word is the
# dot product q · k, the sum of products.
#
# **Predict.** q is (2, 1). The key of *I* is (1, 1), of *saw* (1, 0), of *a* (0, 1).
# %% [markdown] lang="zh" of="df6cc4"
# ## 键：每个词的牌子上写着什么？
#
# `W_k`把每个词变成它的牌子：“我是事物”“我是小词”。查询和键的两列含义相同（列数记作d_k），所以可以比较：一个词的**分数**
# （score）就是点积q · k，也就是对应位置相乘再相加。
#
# **预测。** q是(2, 1)。*I*的键是(1, 1)，*saw*的键是(1, 0)，*a*的键是(0, 1)。
# %% [markdown] lang="en" role="predict"
# Which word gets the highest score from *saw*, and how high is it?
# %% [markdown] lang="zh" of="ccc844"
# *saw*给哪个词的分数最高？是多少？
# %%
#               says: thing  small
W_k = ta.tensor([[1.0, 0.0],   # a thing says so
                 [0.0, 0.0],   # an action says nothing here
                 [0.0, 1.0]])  # a small word says so
K = X @ W_k
scores = K @ q
for word, k, score in zip(words, K.data, scores.data):
    print(f"{word:4} k = {k}   q · k = {score:g}")

one_by_one = [sum(q_i * k_i for q_i, k_i in zip(q.data, k)) for k in K.data]
assert scores.data.tolist() == one_by_one == [3, 2, 1, 2]
# %% [markdown] lang="en"
# ## From scores to shares: softmax
#
# Scores can be any numbers; shares must be positive and sum to 1. **Softmax** does it: take `exp` of each
# score, divide by the sum.
#
# **Predict.** The score of *I* is 3, that of *saw* is 2. By how much is the share of *I* larger?
# %% [markdown] lang="zh" of="366d0a"
# ## 从分数到份额：softmax
#
# 分数可以是任意的数；份额却必须是正数，并且加起来等于1。**softmax**就做这件事：每个分数取`exp`，再除以总
# 和。
#
# **预测。** *I*的分数是3，*saw*的分数是2。*I*的份额比*saw*的份额大多少？
# %% [markdown] lang="en" role="predict"
# 1 more, 1.5 times, or another factor?
# %% [markdown] lang="zh" of="321aa0"
# 多1？1.5倍？还是别的倍数？
# %%
weights = ta.softmax(scores)
for word, score, weight in zip(words, scores.data, weights.data):
    print(f"{word:4} score {score:g}  weight {weight:.4f}  {'#' * round(40 * weight)}")

by_hand = np.exp([3, 2, 1, 2]) / np.exp([3, 2, 1, 2]).sum()
assert np.allclose(weights.data, by_hand, rtol=0, atol=1e-15)
assert np.allclose(weights.data, [0.5344, 0.1966, 0.0723, 0.1966], rtol=0, atol=5e-5)
assert abs(weights.data.sum() - 1) < 1e-15
ratio = weights.data[0] / weights.data[1]
assert abs(ratio - np.e) < 1e-12  # one more in the score is e = 2.718... times the share
# %% [markdown] lang="en"
# ## The values: what is taken over?
#
# Query and key only decide *how much*. What flows is a third view of each word, its value `v = x @ W_v`.
# The output b is the **weighted sum** of the values: 0.53 of what *I* has to give, 0.20 of each *saw*,
# 0.07 of *a*.
# %% [markdown] lang="zh" of="9fa12c"
# ## 值：取过来的是什么？
#
# 查询和键只决定*取多少*。真正取过来的，是每个词的第三种表示，它的值`v = x @ W_v`。输出b是各个值的**加权和**：
# 取*I*的0.53，两个*saw*各取0.20，*a*取0.07。
# %%
W_v = ta.tensor([[2.0, 0.0],
                 [0.0, 3.0],
                 [1.0, 1.0]])
V = X @ W_v
b = weights @ V
parts = weights.data[:, None] * V.data  # one row for each word: weight times value
for word, v, part in zip(words, V.data, parts):
    print(f"{word:4} v = {v}   weight * v = {part}")
print("b of saw:", b.data)

assert np.allclose(b.data, parts.sum(axis=0), rtol=0, atol=1e-15)
assert np.allclose(b.data, [2.4621, 1.7864], rtol=0, atol=5e-5)
low, high = V.data.min(axis=0), V.data.max(axis=0)
assert (low <= b.data).all() and (b.data <= high).all()  # a weighted mean stays between
# %% [markdown] lang="en"
# ## Who dominates?
#
# The notes say: where weight *and* value are largest, that word dominates b. Both count. Below, *I*
# keeps its weight of 0.53, but its value is made tiny.
# %% [markdown] lang="zh" of="ee07d0"
# ## 谁占主导？
#
# 笔记里说：注意力分数和值都最大的那个词，会主导b的产生。两者缺一不可。下面让*I*保持0.53的权重，但把它的
# 值变得很小。
# %% [markdown] lang="en" role="predict"
# **Predict.** Does the word with the largest weight still dominate? (yes / no)
# %% [markdown] lang="zh" of="f65c61"
# **预测。** 权重最大的词还会占主导吗？（会／不会）
# %%
def lengths(values):
    """How long each word's part of b is."""
    return np.linalg.norm(weights.data[:, None] * values, axis=1)

tiny = V.data.copy()
tiny[0] = [0.1, 0.0]
print("             ", *words, sep="     ")
print("as it was:   ", lengths(V.data))
print("v of I tiny: ", lengths(tiny))

assert weights.data.argmax() == 0 and lengths(V.data).argmax() == 0
assert lengths(tiny)[0] < lengths(tiny)[2] < lengths(tiny)[1]  # even *a* gives more
# %% [markdown] lang="en"
# ## Look: every word asks
#
# Repeat it for each word, and put the weights under each other. **Read the map by rows**: a row is a word
# that *asks*, a column a word that *answers*. A row sums to 1. A column does not: some words are simply
# asked more.
#
# **Predict.** How much does *saw* (2nd) take from *I*: the number in row 2, column 1, or in row 1, column
# 2?
# %% [markdown] lang="zh" of="efdf97"
# ## 看一看：每个词都提问
#
# 对每个词重复一遍，把得到的权重一行行排好。**这张图要按行来读**：一行是一个*提问*的词，一列是一个*回答*的
# 词。每一行加起来等于1，列则不然：有的词就是被问得多。
#
# **预测。** 第2个词*saw*从*I*那里取多少：是第2行第1列的数，还是第1行第2列的数？
# %% [markdown] lang="en" role="predict"
# Write row, column.
# %% [markdown] lang="zh" of="b026ed"
# 写出行和列。
# %% picture="weights"
import viz

rows = [ta.softmax(K @ (x @ W_q)) for x in X]
table = ta.stack(rows)

print("sums of the rows:   ", table.data.sum(axis=1))
print("sums of the columns:", table.data.sum(axis=0))

assert np.allclose(table.data.sum(axis=1), 1)
assert np.allclose(table.data.sum(axis=0), [1.8412, 0.8650, 0.4288, 0.8650], atol=5e-5)
assert np.array_equal(table.data[1], weights.data)  # row 2 is what we computed: saw asks
assert table.data[1, 0].round(2) == 0.53 and table.data[0, 1].round(2) == 0.17
viz.attention(table, words)
# %% [markdown] lang="en"
# ## Are the two *saw* told apart now?
#
# This was the reason for all the work: the first is an action, the second a tool. Each now has an output
# that has seen the whole sentence.
# %% [markdown] lang="zh" of="c237ef"
# ## 两个*saw*分得清了吗？
#
# 这正是我们花这番功夫的原因：第一个是动作，第二个是工具。现在两个词的输出都看过了整句话。
# %% [markdown] lang="en" role="predict"
# **Predict.** Do the two outputs differ? (much / little / not at all)
# %% [markdown] lang="zh" of="0756b6"
# **预测。** 两个输出有差别吗？（很大／很小／完全没有）
# %%
B = table @ V
for word, row in zip(words, B.data):
    print(f"{word:4} b = {row}")
print("largest difference of the two saw:", np.abs(B.data[1] - B.data[3]).max())

assert np.abs(B.data[1] - B.data[3]).max() == 0.0  # exactly: same vector, same question
# %% [markdown] lang="en"
# Not at all, and not by bad luck: equal vectors ask equal questions, and the sum over the words does not
# know their order. *Where* a word stands must be told to it. That is lesson 16; what you built here
# stays as it is.
#
# ## Is v just the key? And why call it a look-up?
#
# A table look-up is the extreme case: if one weight is 1 and the others are 0, b *is* that word's value.
# Make the question louder (multiply q), and softmax comes close to it. And v is no key: it may have any
# width d_v, and another `W_v` changes no weight.
# %% [markdown] lang="zh" of="fea78b"
# 完全没有，而且不是碰巧：相同的向量提出相同的问题，而对各个词求和并不知道它们的顺序。一个词*在什么位
# 置*，必须另外告诉它，这是第16课的内容；这里搭好的东西不用改。
#
# ## 值就是键吗？为什么说这是“查表”？
#
# 查表是极端情形：如果一个权重是1，其余都是0，b就*是*那个词的值。把问题问得更响（把q乘大），softmax就接近
# 查表。而值不是键：它的宽度d_v可以任意，换一个`W_v`，权重一个也不变。
# %%
for loud in (1, 4, 40):
    sharp = ta.softmax(K @ (loud * q))
    print(f"q * {loud:2}: weights {sharp.data}  b = {(sharp @ V).data}")
assert np.allclose((sharp @ V).data, V.data[0], rtol=0, atol=1e-12)  # a look-up of I

def one_word(x, W_q, W_k, W_v):
    shares = ta.softmax((X @ W_k) @ (x @ W_q))
    return shares, shares @ (X @ W_v)

shares, out = one_word(X[1], W_q, W_k, W_v=ta.tensor(np.arange(15.0).reshape(3, 5)))
assert np.array_equal(shares.data, weights.data) and out.shape == (5,)  # only b is wider
shares, _ = one_word(X[1], W_q, W_k=2 * W_k, W_v=W_v)
assert np.abs(shares.data - weights.data).max() > 0.2  # another W_k does change them
# %% [markdown] lang="en"
# ## Why not one matrix for query and key?
#
# Then "*saw* looks for *I*" and "*I* looks for *saw*" would be one and the same number: the scores would
# be symmetric. And the largest score of all would always be some word's score with itself: x W · x W is
# a squared length, and no product of two different words can beat both of their lengths.
# %% [markdown] lang="zh" of="0f369e"
# ## 查询和键为什么不用同一个矩阵？
#
# 那样的话，“*saw*找*I*”和“*I*找*saw*”就成了同一个数：分数是对称的。而且全部分数里最大的那个，总会是某个
# 词与它自己的分数：x W · x W是长度的平方，两个不同的词的乘积，不可能比两个词各自的长度平方都大。
# %%
S = (X @ W_q) @ (X @ W_k).mT  # .mT: transposed; S[i, j]: word i asks, word j answers
print("saw asks I:", S.data[1, 0], "   I asks saw:", S.data[0, 1])
assert S.data[1, 0] == 3 and S.data[0, 1] == 1

rng = np.random.default_rng(10)
for _ in range(200):
    words_of_a_model = rng.normal(size=(6, 8))
    shared = words_of_a_model @ rng.normal(size=(8, 4))
    one = shared @ shared.T             # one matrix for both
    assert np.allclose(one, one.T, rtol=0, atol=1e-12)
    assert one.max() == one.diagonal().max()
# %% [markdown] lang="en"
# ## Then why two, if only their product counts?
#
# The scores are `X W_q (X W_k)ᵀ = X (W_q W_kᵀ) Xᵀ`: one matrix `M = W_q W_kᵀ` would do. It is often said
# that two are needed so that scores can be asymmetric. No: `M` alone can be that. Two *narrow* matrices
# are **fewer numbers** and a **simpler question**: only d_k independent things are compared, so the
# *rank* of `M` is at most d_k.
# %% [markdown] lang="zh" of="3d34c9"
# ## 既然只有乘积起作用，为什么还要两个矩阵？
#
# 分数是`X W_q (X W_k)ᵀ = X (W_q W_kᵀ) Xᵀ`：只用一个矩阵`M = W_q W_kᵀ`也行。常有人说，要两个矩阵是为了让
# 分数可以不对称。不对：单独一个`M`也可以不对称。两个*窄*矩阵的好处是**参数更少**、**问题更简单**：拿来比较
# 的只有d_k件互相独立的事，所以`M`的*秩*（rank）最多是d_k。
# %%
M = W_q @ W_k.mT
print("M =", M.data.tolist(), " rank", np.linalg.matrix_rank(M.data))
assert np.array_equal((X @ M @ X.mT).data, S.data)  # the same scores
assert not np.array_equal(M.data, M.data.T)         # one matrix, and asymmetric
assert np.linalg.matrix_rank(M.data) == 2 < 3       # rank d_k = 2, though M is 3 by 3

d, d_k = 512, 64  # the sizes of the first Transformer
two, single = 2 * d * d_k, d * d
print(f"d = {d}, d_k = {d_k}: two narrow matrices {two:,} numbers, a full one {single:,}")
assert (two, single) == (65_536, 262_144)
# %% [markdown] lang="en"
# ## Exercises
#
# Write the function, run the cell, read what `grade` says; it knows the usual mistakes.
# `hint("10.scores")` gives a hint, after three of them `reveal("10.scores")` shows the solution.
#
# **1** (5 minutes). The scores of one query with all keys.
# %% [markdown] lang="zh" of="ed428f"
# ## 练习
#
# 写好函数，运行这一格，看`grade`怎么说；常见的错误它都认得。`hint("10.scores")`给一个提示，三个提示之
# 后，`reveal("10.scores")`显示答案。
#
# **1**（5分钟）。一个查询对所有键的分数。
# %% exercise="10.scores"
from tinyattn.learn import grade, hint, reveal


def scores(q, K):
    """Dot products of q, shape (d_k,), with the rows of K, shape (n, d_k): shape (n,)."""
    ...

grade("10.scores", scores)
# %% [markdown] lang="en"
# **2** (10 minutes). The whole step for one query.
# %% [markdown] lang="zh" of="69f9f4"
# **2**（10分钟）。一个查询的完整一步。
# %% exercise="10.attend"
def attend(q, K, V):
    """The output for one query q (d_k,) with keys K (n, d_k), values V (n, d_v): (d_v,)."""
    ...

grade("10.attend", attend)
# %% [markdown] lang="en"
# ## Summary
#
# - One word asks: q = x W_q. Every word answers with its key; the score is q · k; softmax makes shares
#   of the scores.
# - The output is the shares' weighted sum of the values. Weight *and* value decide who dominates; one
#   weight of 1 is a look-up.
# - In the map a row asks and a column answers. Equal words get equal outputs: without position the two
#   *saw* stay one.
# %% [markdown] lang="zh" of="74594b"
# ## 小结
#
# - 一个词提问：q = x W_q。每个词用自己的键回答；分数是q · k；softmax把分数变成份额。
# - 输出是各个值按份额的加权和。谁占主导由权重*和*值共同决定；某个权重为1就是查表。
# - 图中行是提问者，列是回答者。相同的词得到相同的输出：没有位置信息，两个*saw*就分不开。
