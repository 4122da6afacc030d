# %% [markdown] lang="en"
# # 15 Multi-head: several kinds of relevance
#
# **Needs** 11, 12 · **Minutes** 40
#
# **Question.** One attention measures relevance in *one* way. But a verb may need its subject, its object
# and its tense, all at once, from different words. The notes say: then measure in several ways. What
# exactly is different from one large attention, and what does it cost?
# %% [markdown] lang="zh" of="d12810"
# # 15 多头：几种不同的相关性
#
# **需要** 11, 12 · **分钟** 40
#
# **问题。** 一个注意力（attention）只用*一种*方式来衡量相关性。可是一个动词也许同时需要它的主语、
# 宾语和时态，而这些分别在不同的词里。课堂笔记说：那就用多种方式来衡量，
# 这就是多头注意力（multi-head attention）。它与一个大的注意力究竟有什么不同？代价又是什么？
# %% [markdown] lang="en"
# ## One head must compromise
#
# Each word gets *one* list of shares that sum to 1. Suppose word 3 must know both the content of word 1
# and that of word 2. One head can only give a mixture.
# %% [markdown] lang="zh" of="7729ca"
# ## 只有一个头，就只能折中
#
# 每个词只有*一组*份额，加起来等于1。假设第3个词既要知道第1个词的内容，又要知道第2个词的内容，
# 一个头（head）只能给出两者的混合。
# %% [markdown] lang="en" role="predict"
# **Predict.** Word 1 says 0 and word 2 says 8. A head that looks at both equally gives 4. Which other
# pairs give 4 as well?
# %% [markdown] lang="zh" of="1f5028"
# **预测。** 第1个词说0，第2个词说8。一个头若对两个词看得一样多，就得到4。还有哪些数对也会得到4？
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
# %% [markdown] lang="zh" of="766c4d"
# 凡是和为8的数对都行：混合之后，谁说了什么就忘掉了。两个头则能分别记住。
#
# ## 头就是并排放着的小注意力
#
# 一共h个头，每个头都有自己的窄矩阵W_q、W_k、W_v，宽度为d/h。每个头做的都是第11课的事；
# 各个头的输出并排拼接（concatenate）起来，最后由一个矩阵W_o把它们混合。
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
# %% [markdown] lang="zh" of="fc619a"
# ## 一次算完：给头加一个轴
#
# 程序里只用*一个*大的W_q，再把结果切开：(n, d)变成(n, h, d_h)，然后把头移到最前面，成为(h, n, d_h)。
# 这样`@`和softmax就把头当作一批（batch）来处理。
# %% [markdown] lang="en" role="predict"
# **Predict.** Why not reshape (n, d) to (h, n, d_h) directly? The sizes would fit.
# %% [markdown] lang="zh" of="f7dbe4"
# **预测。** 为什么不直接把(n, d)变形（reshape）成(h, n, d_h)？元素个数是对得上的。
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
print("head 2, row 1:", directly.data[1, 0], " rightly:", Q.data[1, 0])
assert not np.allclose(directly.data, Q.data)  # it cuts words apart and mixes them
first_half = (X @ W_q).data.reshape(-1)[: n * d_h]
assert np.array_equal(directly.data[0].reshape(-1), first_half)
assert first_half.size == 2.5 * d  # two words and a half
# %% [markdown] lang="en"
# Reshape reads row by row: it would give words 1, 2 and half of 3 to the first head. First (n, h, d_h),
# then transpose.
#
# ## More heads, more parameters?
# %% [markdown] lang="zh" of="dc01fe"
# 变形是一行一行往下读的：直接变形的话，第1、2个词和第3个词的一半，都会归到第一个头里去。
# 所以要先变成(n, h, d_h)，再转置。
#
# ## 头多了，参数也多吗？
# %% [markdown] lang="en" role="predict"
# **Predict.** d = 8. How many numbers have W_q, W_k, W_v and W_o together, for h = 1, 2, 8?
# %% [markdown] lang="zh" of="e86eac"
# **预测。** d = 8。h = 1、2、8时，W_q、W_k、W_v和W_o一共有多少个数？
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
# %% [markdown] lang="zh" of="e4d011"
# 一样多：各个头把总宽度分着用。每个头*失去*的是丰富程度：它的相关性是x_i M x_jᵀ，
# 其中M = W_q W_kᵀ取自这一个头，M的秩（rank）最多是d/h（第10课）。
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
# %% [markdown] lang="zh" of="b762d6"
# ## 头没有次序
#
# 让第1个头和第2个头交换编号，W_o里属于它们的行也跟着交换。
# %% [markdown] lang="en" role="predict"
# **Predict.** Does the output change? And if W_o is left as it was?
# %% [markdown] lang="zh" of="a792cc"
# **预测。** 输出会变吗？如果W_o保持原样呢？
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
# %% [markdown] lang="zh" of="e88b92"
# 只要带着自己的那几行一起换，就不会变：“第3个头管语法”这样的说法，是人事后起的名字。这也说明，
# 拼接加上W_o，其实就是*求和*：每个头的输出乘以W_o里属于自己的那几行，再加起来。
# %%
parts = [heads[i] @ W_o[i * d_h : (i + 1) * d_h] for i in range(h)]
assert np.allclose((parts[0] + parts[1]).data, output.data, rtol=0, atol=1e-12)
# %% [markdown] lang="en"
# ## Two designed heads
#
# *the dog saw the cat*. Head 1 shall find an equal word (both *the*), head 2 the word before. Words are
# one-hot, positions as well; a head uses the part that it needs.
# %% [markdown] lang="zh" of="41fae7"
# ## 两个设计出来的头
#
# *the dog saw the cat*（狗看见了猫）。第1个头要找相同的词（两个*the*），第2个头要找前一个词。
# 词用独热编码（one-hot），位置也用独热编码；每个头只用自己需要的那一部分。
# %% picture="same_word"
import viz

words = ["the", "dog", "saw", "the", "cat"]
word = np.eye(4)[[0, 1, 2, 0, 3]]
place = np.eye(5)
loud = 6.0
same = ta.softmax(ta.tensor(loud * word @ word.T)).data
asked = np.eye(5, k=-1)  # ones below the diagonal: place i asks for place i - 1
before = ta.softmax(ta.tensor(loud * asked @ place)).data

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
# %% [markdown] lang="zh" of="cb7259"
# 每个头的每一行，各自加起来都等于1。对第4个词来说，*一个*头能不能两件事都做？
# 那它只好给三个词各三分之一，而后面再没有什么能分辨哪个三分之一来自哪里。第1个词前面没有词，
# 所以它在第2个头里的那一行是平均分配的。
# %%
assert np.allclose(same.sum(axis=1), 1) and np.allclose(before.sum(axis=1), 1)
assert np.allclose(before[0], 1 / 5)
both = ta.softmax(ta.tensor(loud * (word @ word.T + asked @ place))).data
print("one head for both, word 4:", both[3])
assert np.allclose(both[3], [1 / 3, 0, 1 / 3, 1 / 3, 0], atol=0.002)
# %% [markdown] lang="en"
# ## Exercises
#
# **1** (10 minutes). Cut the heads apart, for any sizes.
# %% [markdown] lang="zh" of="2953c3"
# ## 练习
#
# **1**（10分钟）。把各个头切开，大小任意。
# %% exercise="15.split_heads"
from tinyattn.learn import grade, hint, reveal


def split_heads(Y, h):
    """Y (n, d): the heads side by side become (h, n, d / h)."""
    ...

grade("15.split_heads", split_heads)
# %% [markdown] lang="en"
# **2** (15 minutes). All of it.
# %% [markdown] lang="zh" of="bd031c"
# **2**（15分钟）。完整的多头注意力。
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
# %% [markdown] lang="zh" of="c8b308"
# ## 小结
#
# - 一个头就是一个小注意力；h个头给每个词h组份额，于是各个头找到的东西不会混在一起。
# - 参数的个数与h无关；每个头的相关性的秩降到d/h，份额的个数随h增长。
# - 切开时先变形为(n, h, d/h)，再转置。头没有次序：带上各自在W_o里的那几行，它们只是相加。
