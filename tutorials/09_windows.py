# %% [markdown] lang="en"
# # 09 "I saw a saw": one word, a window, and what windows cost
#
# **Needs** 07 · **Minutes** 30
#
# **Question.** A tagger shall say of each word whether it is a verb, a noun, ... In *I saw a saw* the same
# word must get two different tags. A layer that looks at one word at a time cannot do it. How far does
# it help to look at the neighbours as well, and at how many?
# %% [markdown] lang="zh" of="387052"
# # 09 “I saw a saw”：一个词、一个窗口，以及窗口的代价
#
# **需要** 07 · **分钟** 30
#
# **问题。** 词性标注器要说出每个词是动词、名词，还是别的什么。在*I saw a saw*（我看见一把锯子）里，
# 同一个词必须得到两个不同的标签。一次只看一个词的层做不到这一点。那么，连同左右的邻居一起看，
# 会有多大帮助？又该看多少个邻居？
# %% [markdown] lang="en"
# ## Sixty sentences with a trap
#
# The package brings a small corpus, written by hand: *saw*, *can*, *park*, *light*, ... stand in two
# roles. 60 sentences to learn from, 12 held out.
# %% [markdown] lang="zh" of="8f8a7d"
# ## 六十个带陷阱的句子
#
# 这个软件包带有一个手写的小语料库：*saw*、*can*、*park*、*light*等词，都以两种词性出现。60句用来学习，
# 12句留出来作测试。
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
assert (len(learn_from), len(held_out)) == (60, 12)
assert all(len(roles[word]) == 2 for word in ("saw", "can", "park", "light"))
assert list(held_out[0].words) == ["I", "saw", "a", "saw"]
# %% [markdown] lang="en"
# ## A linear tagger with a window
#
# For each word take the k words before and the k after. Each of these 2k + 1 places has a table of its
# own: one row for each word, one number in it for each tag. The scores are the sum of the rows. k = 0
# looks at the word alone. In the program all tables stand under each other in one array: word i at place
# j is row i + j · (number of words).
# %% [markdown] lang="zh" of="0582c1"
# ## 带窗口的线性标注器
#
# 对每个词，取它前面的k个词和后面的k个词。这2k + 1个位置各有一张自己的表：每个词一行，
# 行里每个标签一个数。把查到的各行加起来，就是分数。k = 0就是只看这个词本身。程序里，
# 所有的表上下叠成一个数组：位置j上的词i，就是第i + j · （词数）行。
# %%
def windows(sentences, k):
    rows, right = [], []
    for s in sentences:
        ids = [0] * k + [number.get(word.lower(), 1) for word in s.words] + [0] * k
        for at, tag in enumerate(s.tags):
            rows.append([ids[at + j] + j * len(words) for j in range(2 * k + 1)])  # table j
            right.append(tags.index(tag) if tag in tags else -1)
    return np.array(rows), np.array(right)

rows, right = windows(held_out[:1], k=1)
print([[words[i % len(words)] for i in row] for row in rows])
assert rows.shape == (4, 3)
# %% [markdown] lang="en"
# It learns by the rule of lesson 07: p − y goes to each row that was used.
# %% [markdown] lang="zh" of="ee9822"
# 它按第07课的规则学习：凡是用到的行，都得到p − y。
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

models = {k: train(k) for k in range(9)}
assert models[0].shape == (len(words), len(tags))
# %% [markdown] lang="en"
# ## One word at a time
# %% [markdown] lang="zh" of="32c9fc"
# ## 一次看一个词
# %% [markdown] lang="en" role="predict"
# **Predict.** k = 0. Which tags do the two *saw* get, and of the words with two roles, what share comes
# out right?
# %% [markdown] lang="zh" of="003a45"
# **预测。** k = 0。两个*saw*各得到什么标签？在有两种词性的词里，标对的比例是多少？
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
# %% [markdown] lang="zh" of="3e5026"
# 两个词得到同样的标签，所以不管学了什么，总有一个是错的。对有两种词性的词，它只能押更常见的那一种。
#
# ## 往两边各看一个词
# %% [markdown] lang="en" role="predict"
# **Predict.** k = 1. How much better on words with two roles?
# %% [markdown] lang="zh" of="a3c024"
# **预测。** k = 1。有两种词性的词，会标得好多少？
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
# %% [markdown] lang="zh" of="cf0e66"
# 第一个*saw*的两边是*I ‥ a*，第二个的前面是*a ‥*：邻居说了算。那么邻居再多一些，岂不是更好？
#
# ## 窗口越来越宽
# %% [markdown] lang="en" role="predict"
# **Predict.** From k = 1 to k = 8: what happens to the accuracy on the sentences learned from, and on
# those held out?
# %% [markdown] lang="zh" of="3e3fed"
# **预测。** 从k = 1到k = 8：在学过的句子上，准确率会怎样？在留出的句子上呢？
# %%
print(" k    numbers   learned from   held out")
for k, W in models.items():
    seen, new = accuracy(k, learn_from)[0], accuracy(k, held_out)[0]
    print(f"{k:2} {W.size:10} {seen:14.2f} {new:10.3f}")

assert accuracy(1, learn_from)[0] > 0.99 and accuracy(8, learn_from)[0] > 0.99
assert accuracy(8, held_out)[0] < accuracy(1, held_out)[0]  # overfitting
assert models[8].size == 17 * models[0].size
# %% picture="overfitting"
import viz

curves = {name: [accuracy(k, sentences)[0] for k in models]
          for name, sentences in (("learned from", learn_from), ("held out", held_out))}
assert np.argmax(curves["held out"]) == 1
viz.curve(curves, x_title="k: words to each side", title="Share of words tagged rightly")
# %% [markdown] lang="en"
# What it has seen it knows by heart, at every width. On new sentences the wide window is *worse*: it has
# seventeen times the numbers to learn from the same 60 sentences, and finds reasons in words that are
# none. This is **overfitting**.
#
# ## And it is still blind
#
# However wide the window, what stands one step further does not exist.
# %% [markdown] lang="zh" of="218ca6"
# 见过的句子，不管窗口多宽，它都背得下来。可是在新句子上，宽窗口反而*更差*：要用同样的60个句子，
# 学十七倍的参数，于是它从不相干的词里也找出了“理由”。这就是**过拟合**（overfitting）。
#
# ## 而且它仍有盲区
#
# 窗口不管多宽，再往外一步的东西，对它来说就不存在。
# %% [markdown] lang="en" role="predict"
# **Predict.** With k = 3, change the word that is four places away. By how much do the scores change?
# %% [markdown] lang="zh" of="f43982"
# **预测。** k = 3，把相隔四个位置的那个词换掉。分数会变多少？
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
# %% [markdown] lang="zh" of="618cd1"
# 一点也不变。所以，对有些句子来说窗口太窄，对现有的数据来说又太宽。而且每个位置各有一张表：
# 左边第一个位置上学到的*the*，到了左边第二个位置，又得从头学起。
#
# ## 我们真正想要的
#
# 我们想要这样一个层：它看*整个*句子，长短不限，参数的个数却不随长度增加；每个词该看哪里，由它自己决定。
# 设词是宽度为d的向量，比较一下：
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
# %% [markdown] lang="zh" of="0688b9"
# 这样的层就是自注意力（self-attention）。第10课为一个词把它搭出来。
#
# ## 练习
#
# **1**（10分钟）。从句子里切出一个窗口，句子的两端也要能切。
# %% exercise="09.window"
from tinyattn.learn import grade, hint, reveal


def window(ids, at, k, edge):
    """The numbers at places at - k to at + k of the list ids; edge where no word is."""
    ...

grade("09.window", window)
# %% [markdown] lang="en"
# **2** (5 minutes). What it costs.
# %% [markdown] lang="zh" of="16765a"
# **2**（5分钟）。它要花多少参数。
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
# %% [markdown] lang="zh" of="1cdc47"
# ## 小结
#
# - 只看一个词：两个*saw*得到的分数完全相同。往两边各看一个邻居，大部分问题就解决了。
# - 窗口更宽，就要用同样的数据学更多的参数：见过的全对，新的反而更差。
# - 窗口之外，它什么也看不见。我们想要的是：看整个句子，长短不限，参数不增加。这就是注意力。
