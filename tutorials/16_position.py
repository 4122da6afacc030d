# %% [markdown] lang="en"
# # 16 Position: why "I saw a saw" needs it
#
# **Needs** 10, 11 · **Minutes** 40
#
# **Question.** Lesson 10 ended with a shock: after all the work, the two *saw* of "I saw a saw" came out
# the same, to the last bit. A matrix has rows in an order; how can attention not know it? And what is
# the least we must add?
# %% [markdown] lang="zh" of="d7a59a"
# # 16 位置：“I saw a saw”为什么少不了它
#
# **需要** 10, 11 · **分钟** 40
#
# **问题。** 第10课的结尾让人吃惊：费了那么大的功夫，“I saw a saw”里的两个*saw*，结果竟然一模一样，
# 一位都不差。矩阵的行明明有次序，注意力（attention）怎么会不知道？我们最少要加上什么，才能让它知道？
# %% [markdown] lang="en"
# ## Shuffle the words
# %% [markdown] lang="zh" of="952e80"
# ## 打乱词的次序
# %% [markdown] lang="en" role="predict"
# **Predict.** Put the words in another order before attention. Are the outputs the same, shuffled
# likewise, or new?
# %% [markdown] lang="zh" of="6ffe6c"
# **预测。** 在注意力之前，把词换一个次序。输出是保持不变，跟着同样打乱，还是变成全新的？
# %%
import numpy as np

import tinyattn as ta

np.set_printoptions(precision=3, suppress=True)
rng = np.random.default_rng(16)
d = 6
W_q, W_k, W_v = (rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(3))

def attend(X, keep=None):  # keep: which keys each query may see; here all
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
# %% [markdown] lang="zh" of="942337"
# 跟着同样打乱。不管P怎样重排各行，都有f(P X) = P f(X)：注意力是**等变**（equivariant）的。
# 它并不是*不变*（invariant）的，那要求f(P X) = f(X)；只有事后对输出求平均，才会变成不变的。
# %%
before, after = attend(X).mean(axis=0), attend(X[order]).mean(axis=0)
assert np.allclose(after, before, rtol=0, atol=1e-14)
assert not np.allclose(attend(X[order]), attend(X))  # not invariant by itself
# %% [markdown] lang="en"
# ## So two equal words must agree
#
# Exchange the two *saw*: the input is the same as before. So the outputs, exchanged, are the same as
# before. So they are equal. No training can change that.
# %% [markdown] lang="zh" of="d1e78c"
# ## 所以相同的词，输出必定相同
#
# 交换两个*saw*：输入和原来一样。于是输出交换之后，也和原来一样。所以这两个输出相等。再怎么训练，
# 也改变不了这一点。
# %% [markdown] lang="en" role="predict"
# **Predict.** Random matrices, a thousand times: how large does the difference of the two *saw* become at
# most?
# %% [markdown] lang="zh" of="73f36b"
# **预测。** 随机取矩阵，取一千次：两个*saw*的差最大会有多大？
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
# attention. This is a **positional encoding**. The oldest recipe uses waves: slow ones tell the region,
# fast ones the exact place.
# %% [markdown] lang="zh" of="e43f55"
# ## 给每个位置一个编码
#
# 办法很简单：给每个位置一个自己的向量，在注意力之前把它*加*到词的向量上，
# 这就是**位置编码**（positional encoding）。最早的做法用波：慢的波指出大致的区域，
# 快的波指出准确的位置。
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
# %% [markdown] lang="zh" of="4ebb5f"
# 僵局打破了：两个*saw*的行不同了。
#
# ## 为什么用加，而不是并排放？
#
# 相加看起来会把词和位置搅在一起。把编码放在词的*旁边*（拼接，concatenate），两者都能保留，
# 但每个矩阵都会变大。
# %% [markdown] lang="en" role="predict"
# **Predict.** A matrix W acts on e + p. Which matrix acting on (e, p) side by side gives the same?
# %% [markdown] lang="zh" of="50327a"
# **预测。** 矩阵W作用在e + p上。若把e和p并排放成(e, p)，用哪一个矩阵作用在它上面，结果相同？
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
# %% [markdown] lang="zh" of="e0a4f6"
# W上面再叠一个W：因为W (e + p) = W e + W p，相加就等于并排放，只是两半*绑定*成一样的。它不增加宽度，
# 而训练可以把一些方向留给词，另一些方向留给位置。两种做法都行得通。
#
# ## 波知道距离
#
# 两个编码的点积，只取决于两个位置相隔多远：sin a sin b + cos a cos b = cos(a − b)。
# %% [markdown] lang="en" role="predict"
# **Predict.** Is the product of codes 3 and 5 equal to that of 30 and 32? Of 3 and 6?
# %% [markdown] lang="zh" of="46d470"
# **预测。** 位置3和5的编码的点积，与30和32的相等吗？与3和6的呢？
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
# %% [markdown] lang="zh" of="4c686a"
# 所以，“往前数第二个词”这样的问题，在每个位置都可以用同样的方式来问。
#
# 编码也可以是一张学出来的*表*，效果一样好，不过只到训练时见过的最长句子为止：如果表只有40行，
# 第41个位置就没有编码可用。波则可以一直延续下去。
#
# ## 打破僵局的另一个办法：不往后看
#
# 语言模型不许看后面的词，这叫**因果掩码**（causal mask）。于是第2个位置能看到两个词，
# 第4个位置能看到四个。
# %% [markdown] lang="en" role="predict"
# **Predict.** Without any code, but with a causal mask: are the two *saw* told apart? And "saw saw saw"?
# %% [markdown] lang="zh" of="73f737"
# **预测。** 完全不用编码，只用因果掩码：两个*saw*分得清吗？“saw saw saw”呢？
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
# %% [markdown] lang="zh" of="ece974"
# 靠各自看到的东西，它们就分得清；但要是词全都相同，单凭掩码就数不出有几个。
#
# ## 学得会吗？
#
# 行不行，试了才知道：让模型学会第一个*saw*是动词（+1），第二个是名词（−1），分别用编码和不用编码。
# %% [markdown] lang="en" role="predict"
# **Predict.** Guessing 0 for both has loss 1. How low does the loss get without codes?
# %% [markdown] lang="zh" of="e5cc2f"
# **预测。** 两个都猜0，损失是1。不用编码，损失能降到多低？
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
# %% [markdown] lang="zh" of="10d4d7"
# ## 练习
#
# **1**（10分钟）。写出这些波。
# %% exercise="16.waves"
from tinyattn.learn import grade, hint, reveal


def waves(n, d, base):
    """(n, d), d even: columns 2i and 2i+1 are sin and cos of place / base ** (2i / d)."""
    ...

grade("16.waves", waves)
# %% [markdown] lang="en"
# **2** (10 minutes). A test that a function treats words like attention does.
# %% [markdown] lang="zh" of="1fd353"
# **2**（10分钟）。写一个检验：一个函数对待词的方式，是不是和注意力一样。
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
# %% [markdown] lang="zh" of="5a9f21"
# ## 小结
#
# - 注意力是等变的：词打乱了，输出也跟着同样打乱。所以相同的词永远得到相同的输出。
# - 加上位置编码，僵局就打破了。相加就是两半绑定在一起的拼接。
# - 波的编码的点积只取决于距离。因果掩码也能分清位置，除非所有的词都相同。
