# %% [markdown] lang="en"
# # 08 Sequences of vectors: words, sound, and what comes out
#
# **Needs** 04, 05 · **Minutes** 35
#
# **Question.** Attention takes a sequence of vectors. But a sentence is letters, and sound is a wavy line.
# How do vectors come of them? And what may come out at the other end: one label, one for each vector, or
# as many as it likes?
# %% [markdown] lang="zh" of="ee5589"
# # 08 向量的序列：词、声音，以及输出什么
#
# **需要** 04, 05 · **分钟** 35
#
# **问题。** 注意力（attention）接收的是一串向量。可是句子由字母组成，声音是一条起伏的波。
# 它们怎样变成向量？另一头又能输出什么：一个标签，每个向量一个标签，还是想要多少就有多少？
# %% [markdown] lang="en"
# ## One-hot: a vector that is only a name
#
# Number the words of a vocabulary. Word 3 is the vector with a 1 at place 3 and 0 elsewhere.
# %% [markdown] lang="zh" of="726745"
# ## 独热编码：只当名字用的向量
#
# 给词汇表里的词编上号。编号为3的词，就是第3个位置为1、其余位置全为0的向量。
# 这叫**独热编码**（one-hot）。
# %% [markdown] lang="en" role="predict"
# **Predict.** Which two of *cat*, *dog*, *of* are closest to each other, as one-hot vectors?
# %% [markdown] lang="zh" of="41904d"
# **预测。** 写成独热编码，*cat*、*dog*、*of*三个词里，哪两个离得最近？
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
# %% [markdown] lang="zh" of="2c0d86"
# 哪两个都一样：彼此都相隔√2。独热编码只说*是哪个词*，一点也不说它像什么；而且词汇表有5万个词，
# 它就有5万个元素。
#
# ## 词向量：一张用来查的表
#
# 在一张表E里给每个词一行，每行d个数，这就是**词嵌入**（word embedding）。独热向量乘以E，
# 取出的正是它那一行。所以没有人真的去乘，直接查表就行。
# %% [markdown] lang="en" role="predict"
# **Predict.** The sentence uses rows 1, 0, 1. Each output sends back a slope of 1. What is the gradient of
# row 0, 1, 2?
# %% [markdown] lang="zh" of="c3240f"
# **预测。** 句子用到第1、0、1行，每个输出都传回斜率1。第0、1、2行的梯度（gradient）各是多少？
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
# %% [markdown] lang="zh" of="92165b"
# 用了两次的行，两份都收到（第03课）；没用到的行，什么也收不到。罕见的词，学习的机会也少。
#
# ## 好的词向量从哪里来？
#
# “欲知一个词，看它与谁为伴”（Firth 1957）。对示例语料库里的每个词，数一数它前面和后面都出现过什么词。
# 用法相似的词，计数的行也相似；再用*奇异值分解*（singular value decomposition）把这些计数压缩成寥寥几个
# 数。
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
print(len(corpus), "sentences;", counts.shape, "counts became", vectors.shape)
assert len(corpus) == 72 and vectors.shape == (len(words), 5)
# %% [markdown] lang="en" role="predict"
# **Predict.** The nearest neighbour of a word: in how many of 100 cases has it the same part of speech? By
# chance it is 17.
# %% [markdown] lang="zh" of="92a824"
# **预测。** 看每个词最近的邻居：100次里有多少次，它们的词性相同？纯靠运气是17次。
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
# Far more often than by chance, from 72 short sentences. Drawn in the plane in which the words differ most
# (the first two numbers of another singular value decomposition), with a sign for each part of speech, words
# of a kind gather in one place:
# %% [markdown] lang="zh" of="414f7f"
# 远远多于靠运气，而这只用了72个短句。把这些词画在它们差别最大的平面上（再做一次奇异值分解，取头两个数），
# 每种词性用一种记号，就会看到同一类的词聚在一处：
# %% picture="words"
import viz

chosen = "a the they you old small new dog table needs has in on".split()
rows = [number[word] for word in chosen]
likeness = unit[rows] @ unit[rows].T
assert likeness[chosen.index("needs"), chosen.index("has")] > 0.5  # both are verbs
assert likeness[chosen.index("needs"), chosen.index("dog")] < 0.1
viz.embedding(unit[rows], chosen, groups=tag[rows])
# %% [markdown] lang="en"
# Vectors made from billions of words show more. If you have a file of them in GloVe's text form, give it:
# `tinyattn learn 8 --vectors FILE`. Which pairs of words lie in the same direction from each other?
# %% [markdown] lang="zh" of="b7b9fb"
# 用几十亿个词训练出来的词向量，能看出更多东西。如果你手头有GloVe文本格式的词向量文件，可以这样交给它：
# `tinyattn learn 8 --vectors FILE`。看一看：哪几对词，从一个指向另一个的方向是相同的？
# %% picture="real_words"
from tinyattn.learn import vectors_file


def drawn(path, wanted="king queen man woman cat dog paris france berlin germany"):
    known, table = ta.data.read_glove(path, limit=100_000)
    place = {word: i for i, word in enumerate(known)}
    found = [word for word in wanted.split() if word in place]
    found = found if len(found) > 2 else list(known[:12])
    return viz.embedding(table[[place[word] for word in found]], found)

path = vectors_file()
drawn(path) if path else print("no file of vectors was given: the picture above is all")
# %% [markdown] lang="en"
# ## Sound: a frame is a vector
#
# Sound is 16 000 numbers a second, or 8000 here. Take a short piece, 25 ms, as one vector (a *frame*);
# move on by 10 ms, and take the next. So neighbouring frames overlap.
# %% [markdown] lang="zh" of="590e29"
# ## 声音：一帧就是一个向量
#
# 声音每秒有16000个数，这里是8000个。取一小段，25毫秒，作为一个向量，这就是一*帧*（frame）；
# 往后移10毫秒，再取下一帧。所以相邻的帧是重叠的。
# %% [markdown] lang="en" role="predict"
# **Predict.** One second at 8000 numbers a second, frames of 200, steps of 80. How many frames?
# %% [markdown] lang="zh" of="6fc4c0"
# **预测。** 每秒8000个数，一共一秒；每帧200个数，每步移80个。一共多少帧？
# %%
from tinyattn.data import frames, made_up_wave

wave = made_up_wave(rate=8000)[:8000]
second = np.resize(wave, 8000)
F = frames(second, length=200, hop=80)
print(second.shape, "became", F.shape)
assert F.shape == ((8000 - 200) // 80 + 1, 200) == (98, 200)
assert (200 / 8000, 80 / 8000) == (0.025, 0.010)  # 25 ms long, 10 ms apart
assert np.array_equal(F[0, 80:], F[1, :120])  # 120 of 200 numbers are shared
# %% picture="frames"
viz.waveform(second[:800], 8000, frame=200, hop=80)
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
# %% [markdown] lang="zh" of="589be4"
# 每秒大约一百个向量：声音产生的是*很长*的序列。所以处理声音的注意力往往只看附近。
#
# ## 输出什么
#
# | 输入 | 输出 | 例子 |
# |---|---|---|
# | n个向量 | n个标签 | 每个词的词性 |
# | n个向量 | 一个标签 | 这条评论是好评吗？ |
# | n个向量 | m个向量，m未知 | 翻译 |
# | 一个向量 | 一个标签 | 这张图片里是什么？ |
#
# 这套课程做的是第一种。第二种可以由它求平均得到；第三种需要另一个网络，由它决定什么时候停下来。
# %% [markdown] lang="en" role="predict"
# **Predict.** The same 2 × 3 matrix labels each of 5 words. What are the shapes for n labels, and for one?
# %% [markdown] lang="zh" of="951b01"
# **预测。** 用同一个2 × 3的矩阵，给5个词逐个打标签。输出n个标签时是什么形状？输出一个标签时呢？
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
# %% [markdown] lang="zh" of="366c25"
# ## 练习
#
# **1**（10分钟）。一张表的梯度。
# %% exercise="08.table_gradient"
from tinyattn.learn import grade, hint, reveal


def table_gradient(G, ids, rows):
    """G (n, d) arrives at E[ids]; E has `rows` rows: the gradient of E, (rows, d)."""
    ...

grade("08.table_gradient", table_gradient)
# %% [markdown] lang="en"
# **2** (5 minutes). How many whole frames fit?
# %% [markdown] lang="zh" of="90e369"
# **2**（5分钟）。放得下多少个完整的帧？
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
# %% [markdown] lang="zh" of="2f7973"
# ## 小结
#
# - 独热编码只给词起名字，任意两个词都一样远。表E给词一个位置；独热编码乘以E就是查表。
# - 用了两次的行收到两份斜率，没用到的行没有。与相似的词为伴的词，会得到相似的向量，不必有人告诉它。
# - 声音切成互相重叠的帧。输出可以是每个向量一个标签，整体一个标签，或者一个新的序列。
