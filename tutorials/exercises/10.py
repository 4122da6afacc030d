"""The exercises of lesson 10: the scores of one query, and the whole step for one query."""

from math import exp

import numpy as np

import tinyattn as ta
from tinyattn.learn.exercises import Case, Exercise, Property, Wrong

# The numbers of the lesson: saw asks.
Q = np.array([2.0, 1.0])
K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
V = np.array([[3.0, 1.0], [2.0, 3.0], [1.0, 1.0], [2.0, 3.0]])
TOTAL = exp(3) + 2 * exp(2) + exp(1)


def solve_scores(q, K):
    return K @ q


def solve_attend(q, K, V):
    weights = ta.softmax(K @ q)
    return weights @ V


def hard_look_up(q, K, V):
    best = int(np.argmax((K @ q).data))
    return V[best]


SCORES = Exercise(
    name="10.scores",
    minutes=5,
    task=(
        "The scores that one query gives to n keys: entry j is the dot product of q, shape (d_k,),"
        " with row j of K, shape (n, d_k).",
        "一个查询对n个键的分数：第j个数是q（形状(d_k,)）与K（形状(n, d_k)）第j行的点积。",
    ),
    solution=solve_scores,
    cases=(
        Case((Q, K), [3, 2, 1, 2]),
        Case((np.array([1.0, -1.0, 2.0]), np.array([[0.0, 0.0, 0.5], [4.0, 1.0, 0.0]])), [1, 3]),
    ),
    sample=lambda rng: (rng.normal(size=3), rng.normal(size=(5, 3))),
    properties=(
        Property(
            ("a query of twice the length gives scores of twice the size", "查询变成两倍长，分数也变成两倍"),
            lambda f, rng: np.allclose(f(2 * Q, K), 2 * f(Q, K)),
        ),
    ),
    tensors=True,
    wrong=(
        Wrong(
            lambda q, K: K * q,
            (
                "the products are there, but they have not been added up along each key.",
                "乘积有了，但还没有沿着每个键加起来。",
            ),
        ),
        Wrong(
            lambda q, K: ta.mean(K * q, axis=-1),
            ("the mean of the products; a dot product is their sum.", "这是乘积的平均值；点积是乘积之和。"),
        ),
        Wrong(
            lambda q, K: ta.sum(K * q, axis=0),
            (
                "the sum runs over the words, not along each key: one number is wanted for each word.",
                "求和的方向是各个词，而不是每个键的内部：应当每个词得到一个数。",
            ),
        ),
        Wrong(
            lambda q, K: (K @ q) / ta.sqrt(ta.size_of(q)),
            (
                "divided by √d_k. That comes in lesson 12; here the score is the dot product itself.",
                "除以了√d_k。那是第12课的内容；这里的分数就是点积本身。",
            ),
        ),
        Wrong(
            lambda q, K: ta.softmax(K @ q),
            ("these are the weights: softmax has been applied already.", "这已经是权重了：softmax做早了。"),
        ),
        Wrong(
            lambda q, K: (K @ q) / (ta.norm(K, axis=-1) * ta.norm(q)),
            (
                "the cosine of the angle; the dot product keeps the lengths.",
                "这是夹角的余弦；点积要保留长度。",
            ),
        ),
        Wrong(
            lambda q, K: K.mT @ q,
            (
                "K is turned round: keys are its rows, so K @ q, without a transpose.",
                "把K转置了：键是它的行，所以直接K @ q，不用转置。",
            ),
        ),
        Wrong(
            lambda q, K: q @ K,
            (
                "q @ K adds down the columns; a score belongs to a row of K: K @ q.",
                "q @ K是沿着列加的；一个分数属于K的一行：K @ q。",
            ),
        ),
        Wrong(
            lambda q, K: K[0] @ q,
            ("only the first key's score; every key has one.", "只有第一个键的分数；每个键都有一个。"),
        ),
        Wrong(
            lambda q, K: ta.sum(K * q),
            (
                "all products were added to one number; one is wanted for each key.",
                "把所有乘积加成了一个数；应当每个键一个。",
            ),
        ),
    ),
    hints=(
        (
            "Begin with one key: multiply it with q entry by entry, and add up.",
            "先做一个键：与q逐项相乘，再加起来。",
        ),
        (
            "A matrix times a vector does this for all rows at once. Which of the two is the matrix?",
            "矩阵乘向量，一次就对所有的行做这件事。两者中哪个是矩阵？",
        ),
        (
            "K has one key in each row, so K @ q has one score for each word.",
            "K的每一行是一个键，所以K @ q给每个词一个分数。",
        ),
    ),
)

ATTEND = Exercise(
    name="10.attend",
    minutes=10,
    task=(
        "The output for one query: scores of q (d_k,) with the keys K (n, d_k), softmax, weighted sum of"
        " the values V (n, d_v). The result has shape (d_v,).",
        "一个查询的输出：q（d_k,）与各个键K（n, d_k）的分数，经softmax，再对值V（n, d_v）加权求和。"
        "结果的形状是(d_v,)。",
    ),
    solution=solve_attend,
    cases=(
        Case(
            (Q, K, V),
            [
                (3 * exp(3) + 2 * 2 * exp(2) + exp(1)) / TOTAL,
                (exp(3) + 2 * 3 * exp(2) + exp(1)) / TOTAL,
            ],
        ),
        # A query that asks nothing likes all alike: the plain mean.
        Case((np.zeros(2), np.ones((3, 2)), np.array([[1.0], [2.0], [6.0]])), [3]),
    ),
    sample=lambda rng: (rng.normal(size=3), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))),
    properties=(
        Property(
            ("adding 10 to every value adds 10 to the output", "每个值都加10，输出也加10"),
            lambda f, rng: np.allclose(f(Q, K, V + 10), f(Q, K, V) + 10),
        ),
        Property(
            ("the order of the words does not matter", "词的先后顺序不影响结果"),
            lambda f, rng: np.allclose(f(Q, K[[2, 0, 3, 1]], V[[2, 0, 3, 1]]), f(Q, K, V)),
        ),
        Property(
            (
                "scores of several hundred give no nan (ta.softmax takes the largest off first)",
                "分数有几百那么大时，也不出现nan（ta.softmax会先减去最大的分数）",
            ),
            lambda f, rng: np.allclose(f(500 * Q, K, V), V[0]),
        ),
    ),
    tensors=True,
    wrong=(
        Wrong(
            lambda q, K, V: (K @ q) @ V,
            (
                "the scores themselves are the weights; softmax is missing, so they do not sum to 1.",
                "直接把分数当作权重；少了softmax，所以加起来不是1。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.exp(K @ q) @ V,
            ("exp is there, the division by the sum is missing.", "有exp，但没有除以总和。"),
        ),
        Wrong(
            lambda q, K, V: ta.softmax(K @ q),
            (
                "these are the weights; the weighted sum of the values is still to come.",
                "这是权重；还要对各个值加权求和。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.softmax(K @ q) @ K,
            ("the keys were mixed; the content is in the values V.", "混合的是键；内容在值V里。"),
        ),
        Wrong(
            lambda q, K, V: ta.expand_dims(ta.softmax(K @ q), 1) * V,
            (
                "weight times value for each word: now add the rows up.",
                "每个词的权重乘值都有了：还要把各行加起来。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.mean(ta.expand_dims(ta.softmax(K @ q), 1) * V, axis=0),
            (
                "the weighted values were averaged; the weights sum to 1 already, so just add up.",
                "对加权后的值求了平均；权重加起来已经是1，所以直接相加，不要再除以n。",
            ),
        ),
        Wrong(
            hard_look_up,
            (
                "only the best word counts. Attention is a soft look-up: the others count, too.",
                "只取了最好的那个词。注意力是软的查表：其他词也按权重算进去。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.softmax((K @ q) / ta.sqrt(ta.size_of(q))) @ V,
            (
                "the scores were divided by √d_k. That comes in lesson 12; here they are taken as they are.",
                "分数除以了√d_k。那是第12课的内容；这里直接用分数。",
            ),
        ),
        Wrong(
            lambda q, K, V: ((K @ q) / ta.sum(K @ q)) @ V,
            (
                "the scores are divided by their sum; take exp of them first (softmax), or negative scores give"
                " negative shares.",
                "直接用分数除以总和；要先取exp（softmax），否则负的分数会得到负的份额。",
            ),
        ),
        Wrong(
            lambda q, K, V: (K @ q) @ ta.softmax(V),
            (
                "softmax was taken of the values; it makes shares of the scores.",
                "对值做了softmax；它应当把分数变成份额。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.softmax(K @ q)[-1] * V[-1],
            (
                "only the last word's part is left; add the parts of all words.",
                "只剩下最后一个词的那一份；要把所有词的份加起来。",
            ),
        ),
        Wrong(
            lambda q, K, V: V @ ta.softmax(K @ q),
            (
                "V @ weights runs along the columns of V; the words are its rows: weights @ V.",
                "V @ 权重是沿V的列算的；词是V的行：应当是权重 @ V。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.softmax(K @ q) * V,
            (
                "weights (n,) times V (n, d_v) does not pair them by rows; weights @ V multiplies and adds up at once.",
                "权重(n,)乘V(n, d_v)不会按行配对；权重 @ V一次就把乘和加都做了。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.sigmoid(K @ q) @ V,
            (
                "each score was squeezed by itself; shares must sum to 1: softmax.",
                "每个分数是各自压缩的；份额加起来必须是1：要用softmax。",
            ),
        ),
        Wrong(
            lambda q, K, V: ta.relu(K @ q) @ V,
            (
                "relu in place of softmax: the weights do not sum to 1. Lesson 13 tries it.",
                "用relu代替了softmax：权重加起来不是1。第13课会试这个。",
            ),
        ),
    ),
    hints=(
        (
            "Three lines: scores, weights, sum. The scores you have: K @ q.",
            "三行：分数、权重、求和。分数你已经会了：K @ q。",
        ),
        (
            "ta.softmax(scores) gives one weight for each word; they sum to 1.",
            "ta.softmax(scores)给每个词一个权重，加起来是1。",
        ),
        (
            "A row of weights times a matrix of values is the weighted sum of its rows: weights @ V.",
            "一行权重乘以值的矩阵，就是各行的加权和：weights @ V。",
        ),
    ),
)

EXERCISES = (SCORES, ATTEND)
