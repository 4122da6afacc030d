# %% [markdown] lang="en"
# # 11 All queries at once: rows and columns
#
# **Needs** 05, 07, 10 · **Minutes** 35
#
# **Question.** Lesson 10 answered one query with K q, softmax, weights V. A sentence has n words, each
# with a query. Do we loop over them? And why does the lecture write A = Kᵀ Q and O = V A′, while every
# program writes Q Kᵀ and A V?
# %% [markdown] lang="zh" of="5528c3"
# # 11 所有查询一起算：行与列
#
# **需要** 05, 07, 10 · **分钟** 35
#
# **问题。** 第10课只为一个查询（query）q算注意力（attention）：K q，softmax，再用权重对V加权求和。
# 一句话有n个词，每个词都有自己的查询，难道要一个一个循环吗？还有，为什么课上写的是A = Kᵀ Q和O = V A′，
# 程序里却都写Q Kᵀ和A V？
# %% [markdown] lang="en"
# ## Stack the queries
#
# Put the queries as rows under each other: Q. Then entry [i, j] of Q Kᵀ is the product of query i with
# key j, which is all that lesson 10 did, for every i. (Kᵀ is `K.mT` in a program.) Here are its sentence
# and its matrices again.
# %% [markdown] lang="zh" of="cca251"
# ## 把查询叠起来
#
# 把各个查询一行一行叠起来，就是Q。于是Q Kᵀ的第[i, j]个元素，是第i个查询与第j个键（key）的点积：
# 第10课做的就是这件事，现在对每个i都做了。（Kᵀ在程序里写作`K.mT`。）
# 下面把那一课的句子和矩阵重新写出来。
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=4, suppress=True)
words = ["I", "saw", "a", "saw"]
X = ta.tensor([[1.0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]])
W_q = ta.tensor([[0.0, 1], [2, 0], [1, 0]])
W_k = ta.tensor([[1.0, 0], [0, 0], [0, 1]])
W_v = ta.tensor([[2.0, 0], [0, 3], [1, 1]])

Q, K, V = X @ W_q, X @ W_k, X @ W_v
scores = Q @ K.mT
weights = ta.softmax(scores, axis=-1)
B = weights @ V
print("scores\n", scores.data, "\noutputs\n", B.data)
# %% [markdown] lang="en" role="predict"
# **Predict.** Which row of `scores` is (3, 2, 1, 2), the scores that *saw* gave in lesson 10?
# %% [markdown] lang="zh" of="11a70b"
# **预测。** 第10课里*saw*给出的分数是(3, 2, 1, 2)。它是`scores`的哪一行？
# %%
assert scores.data[1].tolist() == [3, 2, 1, 2] == scores.data[3].tolist()

one_by_one = np.stack([(ta.softmax(K @ q) @ V).data for q in Q])
print("largest difference to the loop:", np.abs(B.data - one_by_one).max())
assert np.allclose(B.data, one_by_one, rtol=0, atol=1e-14)
assert np.allclose(B.data[1], [2.4621, 1.7864], atol=5e-5)  # the b of lesson 10
# %% [markdown] lang="en"
# Rows 2 and 4, of course: row i is asked by word i. Look at both tables, before and after softmax:
# %% [markdown] lang="zh" of="7e7563"
# 当然是第2行和第4行：第i行由第i个词来提问。看看softmax之前和之后的两张表：
# %% picture="stages"
import viz

assert np.allclose(weights.data.sum(axis=1), 1)  # each row of the second table
viz.attention(weights, words, scores=scores)
# %% [markdown] lang="en"
# ## Nobody listens in
#
# The loop shows something that the matrices hide: the queries do not know of each other. Change the
# query of one word, and only *its* output can change.
# %% [markdown] lang="zh" of="8bf7d7"
# ## 谁也听不见别人的问题
#
# 循环能让人看出一件藏在矩阵里的事：各个查询互不相干。改变一个词的查询，只有*它自己*的输出会变。
# %% [markdown] lang="en" role="predict"
# **Predict.** And if we change the *key* of one word, which outputs may change?
# %% [markdown] lang="zh" of="bc5b6a"
# **预测。** 如果改变的是一个词的*键*，哪些输出可能会变？
# %%
def attend(Q, K, V):
    return (ta.softmax(Q @ K.mT, axis=-1) @ V).data

other_q, other_k = Q.data.copy(), K.data.copy()
other_q[2] += 1
other_k[2] += 1
by_q = np.abs(attend(ta.tensor(other_q), K, V) - B.data).max(axis=1)
by_k = np.abs(attend(Q, ta.tensor(other_k), V) - B.data).max(axis=1)
print("another query of *a* changes", by_q, "\nanother key of *a* changes  ", by_k)
assert (by_q > 0).tolist() == [False, False, True, False]  # exactly nothing elsewhere
assert (by_k > 0.01).all()
# %% [markdown] lang="en"
# ## The lecture's columns
#
# The lecture writes the words as *columns* of a matrix I, so I = Xᵀ, and its matrices act from the left:
# Q = Wq I. Transpose a product and its factors change places, so everything comes out transposed:
#
# | lecture, columns | here, rows |
# |---|---|
# | Q = Wq I | Q = X W_q, W_q = Wqᵀ |
# | A = Kᵀ Q | scores = Q Kᵀ |
# | softmax down each column | softmax along each row |
# | O = V A′ | B = weights V |
# %% [markdown] lang="zh" of="725845"
# ## 课上的写法：一词一列
#
# 课上把词写成矩阵I的*列*，所以I = Xᵀ，参数矩阵从左边乘上去：Q = Wq I。乘积一转置，因子就交换次序，
# 于是样样东西都成了转置的：
#
# | 课上，列 | 这里，行 |
# |---|---|
# | Q = Wq I | Q = X W_q，W_q = Wqᵀ |
# | A = Kᵀ Q | scores = Q Kᵀ |
# | softmax沿着每一列往下 | softmax沿着每一行 |
# | O = V A′ | B = weights V |
# %% [markdown] lang="en" role="predict"
# **Predict.** In the lecture's A, does a row or a column belong to one query?
# %% [markdown] lang="zh" of="d2bbfb"
# **预测。** 在课上的A里，一个查询对应的是一行还是一列？
# %%
columns, Wq, Wk, Wv = X.mT, W_q.mT, W_k.mT, W_v.mT
Q_col, K_col, V_col = Wq @ columns, Wk @ columns, Wv @ columns
A = K_col.mT @ Q_col
A_prime = ta.softmax(A, axis=0)
O_col = V_col @ A_prime

assert np.array_equal(A.data, scores.data.T)
assert np.allclose(A_prime.data, weights.data.T, rtol=0, atol=1e-15)
assert np.allclose(O_col.data, B.data.T, rtol=0, atol=1e-14)
assert np.allclose(A_prime.data.sum(axis=0), 1)  # a column belongs to one query
# %% [markdown] lang="en"
# And backwards? If the values are transposed, so are the gradients; nothing is lost by choosing one way.
# Programs choose rows, because the last axis is the one that lies together in memory, and a batch then
# simply goes in front.
# %% [markdown] lang="zh" of="36eef3"
# 那么反过来呢？数值是转置的，梯度（gradient）也跟着转置；选哪一种写法都不会损失什么。程序选择行，
# 是因为最后一个轴上的数在内存里挨在一起，而且要处理一批（batch）句子时，只需在最前面再加一个轴。
# %%
def loss_rows(W):
    Q, K, V = X @ W, X @ W_k, X @ W_v
    return ta.sum((ta.softmax(Q @ K.mT, axis=-1) @ V) ** 2)

def loss_columns(W):
    Q, K, V = W @ columns, Wk @ columns, Wv @ columns
    return ta.sum((V @ ta.softmax(K.mT @ Q, axis=0)) ** 2)

by_rows, by_columns = ta.grad(loss_rows)(W_q).data, ta.grad(loss_columns)(Wq).data
print("gradient of W_q\n", by_rows, "\nof the lecture's Wq\n", by_columns)
assert np.allclose(by_rows, by_columns.T, rtol=0, atol=1e-12)
assert np.abs(by_rows).max() > 0.1
# %% [markdown] lang="en"
# ## Which axis does softmax run over?
#
# Over the keys, for each query: the last axis of Q Kᵀ. The other axis gives no error, and even trains.
# But it is another model: there each word *answers* with a total of 1, and what reaches a query may sum
# to anything.
# %% [markdown] lang="zh" of="9a9edd"
# ## softmax沿哪个轴？
#
# 对每个查询，沿着所有的键，也就是Q Kᵀ的最后一个轴。选错了轴不会报错，甚至照样能训练。但那是另一个模型：
# 每个词*回答*出去的份额加起来是1，而一个查询收到的份额，总和可以是任意的数。
# %% [markdown] lang="en" role="predict"
# **Predict.** With softmax over axis 0: does changing the query of *a* still leave the outputs of the
# others alone?
# %% [markdown] lang="zh" of="f3ae0c"
# **预测。** 如果softmax沿第0个轴：改变*a*的查询，别的词的输出还会保持不变吗？
# %%
wrong = ta.softmax(scores, axis=0)
print("sums over the keys:", wrong.data.sum(axis=1))
assert np.allclose(wrong.data.sum(axis=0), 1)
assert abs(wrong.data.sum(axis=1) - 1).max() > 0.3

def attend_wrongly(Q):
    return (ta.softmax(Q @ K.mT, axis=0) @ V).data

listening = np.abs(attend_wrongly(ta.tensor(other_q)) - attend_wrongly(Q)).max(axis=1)
print("another query of *a* changes", listening)
assert (listening > 0.01).all()  # all of them: queries now compete
# %% [markdown] lang="en"
# That is how such a mistake is found: in a language model it lets later words leak into earlier ones,
# and the accuracy is too good to be true.
#
# ## Asking others, and the price
#
# Nothing requires that queries and keys come from the same sentence. n queries and m keys give n × m
# scores. And each score costs d_k products: twice the length, four times the scores.
# %% [markdown] lang="zh" of="10afd8"
# 这种错误往往是这样暴露的：在语言模型里，它会让后面的词泄漏到前面，于是准确率好得不像真的。
#
# ## 问别的句子，以及代价
#
# 没有谁规定查询和键必须来自同一句话。n个查询和m个键给出n × m个分数，每个分数要做d_k次乘法：句子长一倍，
# 分数就多到四倍。
# %%
rng = np.random.default_rng(11)
asked, answers = rng.normal(size=(3, 2)), rng.normal(size=(7, 2))
out = attend(ta.tensor(asked), ta.tensor(answers), ta.tensor(rng.normal(size=(7, 5))))
print("3 queries, 7 keys, values of width 5:", out.shape)
assert out.shape == (3, 5)

def products(n, d_k, d_v):
    return n * n * d_k + n * n * d_v  # scores, then the weighted sums

assert products(200, 64, 64) / products(100, 64, 64) == 4
ready = ta.scaled_dot_product_attention(Q, K, V, scale=1.0)  # the engine's own
assert np.allclose(ready.data, B.data, rtol=0, atol=1e-14)
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (10 minutes). Attention for all queries, in rows.
# %% [markdown] lang="zh" of="885917"
# ## 练习
#
# **1**（10分钟）。为所有查询计算注意力，词按行排。
# %% exercise="11.attention"
from tinyattn.learn import grade, hint, reveal


def attention(Q, K, V):
    """Q (n, d_k), K (m, d_k), V (m, d_v), words as rows: the outputs (n, d_v), unscaled."""
    ...

grade("11.attention", attention)
# %% [markdown] lang="en"
# **2** (10 minutes). The same as in the lecture, in columns.
# %% [markdown] lang="zh" of="82bd93"
# **2**（10分钟）。同样的事，按课上的写法，词按列排。
# %% exercise="11.lecture"
def lecture(Q, K, V):
    """Q (d_k, n), K (d_k, m), V (d_v, m), columns are words: the outputs (d_v, n)."""
    ...

grade("11.lecture", lecture)
# %% [markdown] lang="en"
# ## Summary
#
# - All at once: scores = Q Kᵀ, weights = softmax along the last axis, B = weights V. It equals the loop
#   over queries.
# - The lecture's columns are the transpose of it, forwards and backwards: A = Kᵀ Q, softmax down, O = V
#   A′.
# - Softmax over the wrong axis gives no error: then queries compete, and what one asks changes what
#   another gets.
# %% [markdown] lang="zh" of="aeeef8"
# ## 小结
#
# - 一次全算：scores = Q Kᵀ，weights = 沿最后一个轴的softmax，B = weights V。结果与逐个查询循环相同。
# - 课上的列写法就是它的转置，前向、反向都是：A = Kᵀ Q，softmax沿列往下，O = V A′。
# - softmax选错了轴不会报错：那时各个查询互相竞争，一个词问了什么，会改变别的词得到什么。
