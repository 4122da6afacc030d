"""The exercises of lesson 11: attention for all queries, in rows and in columns."""

from math import exp

import numpy as np

import tinyattn as ta
from tinyattn.learn.exercises import Case, Exercise, Property, Wrong

Q = np.array([[0.0, 0.0], [2.0, 0.0]])
K = np.array([[1.0, 0.0], [0.0, 1.0]])
V = np.array([[8.0, 0.0], [0.0, 4.0]])
E = exp(2) + 1
EXPECTED = [[4, 2], [8 * exp(2) / E, 4 / E]]


def solve_attention(Q, K, V):
    weights = ta.softmax(Q @ K.mT, axis=-1)
    return weights @ V


def solve_lecture(Q, K, V):
    scores = K.mT @ Q
    return V @ ta.softmax(scores, axis=0)


def in_columns(answer):
    """A wrong answer in rows, made one in columns."""
    return lambda Q, K, V: answer(Q.mT, K.mT, V.mT).mT


def over_queries(Q, K, V):
    return ta.softmax(Q @ K.mT, axis=0) @ V


def scaled(Q, K, V):
    return ta.softmax(Q @ K.mT / ta.sqrt(ta.size_of(K, -1)), axis=-1) @ V


def without_softmax(Q, K, V):
    return (Q @ K.mT) @ V


def keys_mixed(Q, K, V):
    return ta.softmax(Q @ K.mT, axis=-1) @ K


def the_weights(Q, K, V):
    return ta.softmax(Q @ K.mT, axis=-1)


def exchanged(Q, K, V):
    return ta.softmax(K @ Q.mT, axis=-1) @ V if Q.shape[0] == K.shape[0] else ta.softmax(K @ Q.mT, axis=-1)


def sums_without_axis(Q, K, V):
    e = ta.exp(Q @ K.mT)
    return (e / ta.sum(e, axis=1)) @ V


def weights_turned(Q, K, V):
    return ta.softmax(Q @ K.mT, axis=-1).mT @ V


def entry_by_entry(Q, K, V):
    return ta.softmax(Q * K, axis=-1) @ V


def values_shared(Q, K, V):
    return (Q @ K.mT) @ ta.softmax(V, axis=-1)


def whole_table(Q, K, V):
    scores = Q @ K.mT
    return ta.reshape(ta.softmax(ta.reshape(scores, -1)), scores.shape) @ V


def private(axis):
    """Whether another query of one word leaves the other outputs as they are."""

    def holds(f, rng):
        q, k, v = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
        other = q.copy()
        other[2] += 1
        if axis == 0:
            before, after = f(q, k, v), f(other, k, v)
        else:
            before, after = f(q.T, k.T, v.T).T, f(other.T, k.T, v.T).T
        return np.allclose(np.delete(before, 2, 0), np.delete(after, 2, 0)) and not np.allclose(before[2], after[2])

    return holds


ROWS = Exercise(
    name="11.attention",
    minutes=10,
    task=(
        "Attention for all queries at once, words as rows: Q (n, d_k), K (m, d_k), V (m, d_v) give (n, d_v). Plain"
        " dot products, no scaling.",
        "一次算出所有查询的注意力，每个词是一行：Q（n, d_k）、K（m, d_k）、V（m, d_v），结果（n, d_v）。"
        "直接用点积，不缩放。",
    ),
    solution=solve_attention,
    cases=(
        Case((Q, K, V), EXPECTED),
        Case((np.zeros((1, 2)), np.ones((3, 2)), np.array([[1.0], [2.0], [6.0]])), [[3]]),
    ),
    sample=lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
    properties=(
        Property(
            (
                "another query of one word leaves the outputs of the others as they are",
                "改一个词的查询，其他词的输出不变",
            ),
            private(0),
        ),
        Property(
            ("3 queries and 7 keys give 3 outputs", "3个查询、7个键，得到3个输出"),
            lambda f, rng: f(rng.normal(size=(3, 2)), rng.normal(size=(7, 2)), rng.normal(size=(7, 5))).shape == (3, 5),
        ),
    ),
    tensors=True,
    wrong=(
        Wrong(
            over_queries,
            (
                "softmax runs over the queries (axis 0); it must run over the keys, the last axis, for each query.",
                "softmax沿查询的方向（axis 0）做了；应当对每个查询、沿键的方向，即最后一个轴。",
            ),
        ),
        Wrong(
            whole_table,
            ("the whole table of weights sums to 1; each row should.", "整张权重表加起来是1；应当每一行加起来是1。"),
        ),
        Wrong(without_softmax, ("softmax is missing: scores are no shares.", "少了softmax：分数不是份额。")),
        Wrong(scaled, ("divided by √d_k. That comes in lesson 12.", "除以了√d_k。那是第12课的内容。")),
        Wrong(keys_mixed, ("the keys were mixed; the content is in V.", "混合的是键；内容在V里。")),
        Wrong(
            the_weights, ("these are the weights; they have yet to mix the values.", "这是权重；还要用它混合各个值。")
        ),
        Wrong(
            exchanged,
            (
                "K Qᵀ: rows belong to keys now. Queries ask, so they must be the rows: Q Kᵀ.",
                "写成了K Qᵀ：行变成了键。提问的是查询，行应当是查询：Q Kᵀ。",
            ),
        ),
        Wrong(
            weights_turned,
            (
                "the weights were transposed: rows must belong to queries when they meet V.",
                "把权重转置了：与V相乘时，行应当是查询。",
            ),
        ),
        Wrong(
            lambda Q, K, V: ta.softmax(Q @ K, axis=-1) @ V,
            (
                "Q K without the transpose: it fits only when K is square. Rows of Q meet *rows* of K: Q Kᵀ.",
                "写成了Q K，没有转置：只有K是方阵时才凑得上。Q的行要与K的*行*相乘：Q Kᵀ。",
            ),
        ),
        Wrong(
            entry_by_entry,
            (
                "Q * K pairs word i with word i only; every query meets every key: Q @ K.mT.",
                "Q * K只让第i个词与自己配对；每个查询要与每个键相遇：Q @ K.mT。",
            ),
        ),
        Wrong(
            values_shared,
            (
                "softmax was taken of the values; it makes shares of the scores.",
                "对值做了softmax；它应当把分数变成份额。",
            ),
        ),
        Wrong(
            sums_without_axis,
            (
                "the row sums have lost their axis, so they meet the columns: keepdims=True, or ta.softmax.",
                "行的和丢了轴，于是对到列上去了：要用keepdims=True，或直接用ta.softmax。",
            ),
        ),
        Wrong(
            lambda Q, K, V: ta.softmax(Q @ V.mT, axis=-1) @ V,
            ("the queries were compared with the values; it is the keys that answer.", "查询与值比较了；回答的是键。"),
        ),
    ),
    hints=(
        ("Three lines, as for one query: scores, weights, sum.", "和一个查询时一样，三行：分数、权重、求和。"),
        (
            "scores = Q @ K.mT has a row for each query and a column for each key.",
            "scores = Q @ K.mT：每个查询一行，每个键一列。",
        ),
        ("ta.softmax(scores, axis=-1) @ V", "答案：ta.softmax(scores, axis=-1) @ V"),
    ),
)

COLUMNS = Exercise(
    name="11.lecture",
    minutes=10,
    task=(
        "The same in the lecture's form, words as columns: Q (d_k, n), K (d_k, m), V (d_v, m) give O (d_v, n).",
        "同样的计算，用课上的写法，每个词是一列：Q（d_k, n）、K（d_k, m）、V（d_v, m），结果O（d_v, n）。",
    ),
    solution=solve_lecture,
    cases=(
        Case((Q.T, K.T, V.T), np.transpose(EXPECTED)),
        Case((np.zeros((2, 1)), np.ones((2, 3)), np.array([[1.0, 2.0, 6.0]])), [[3]]),
    ),
    sample=lambda rng: (rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))),
    properties=(
        Property(
            (
                "another query of one word leaves the outputs of the others as they are",
                "改一个词的查询，其他词的输出不变",
            ),
            private(1),
        ),
    ),
    tensors=True,
    wrong=(
        Wrong(
            in_columns(over_queries),
            (
                "softmax runs along the rows of A = Kᵀ Q; in columns a query is a column, so it runs down (axis 0).",
                "softmax沿A = Kᵀ Q的行做了；列写法中一个查询是一列，应当向下（axis 0）。",
            ),
        ),
        Wrong(
            lambda Q, K, V: solve_attention(Q.mT, K.mT, V.mT),
            ("right numbers, words as rows: transpose the result.", "数是对的，但每个词是一行：结果要转置。"),
        ),
        Wrong(in_columns(without_softmax), ("softmax is missing: A is no A′.", "少了softmax：A还不是A′。")),
        Wrong(in_columns(scaled), ("divided by √d_k. That comes in lesson 12.", "除以了√d_k。那是第12课的内容。")),
        Wrong(in_columns(keys_mixed), ("the keys were mixed; the content is in V.", "混合的是键；内容在V里。")),
        Wrong(
            lambda Q, K, V: ta.softmax(K.mT @ Q, axis=0),
            ("this is A′; it has yet to mix the values: O = V A′.", "这是A′；还要混合各个值：O = V A′。"),
        ),
        Wrong(
            lambda Q, K, V: V @ ta.softmax(Q.mT @ K, axis=0),
            (
                "Qᵀ K has a row for each query; in the lecture's form a query is a column: Kᵀ Q.",
                "Qᵀ K里一个查询是一行；课上的写法中一个查询是一列：Kᵀ Q。",
            ),
        ),
        Wrong(
            lambda Q, K, V: ta.softmax(K.mT @ Q, axis=0) @ V,
            (
                "A′ V: the values stand at the left in the lecture's form, O = V A′.",
                "写成了A′ V：课上的写法里值在左边，O = V A′。",
            ),
        ),
        Wrong(
            lambda Q, K, V: ta.softmax(Q @ K.mT, axis=-1) @ V,
            (
                "this is the form for rows; here the words are columns: A = Kᵀ Q, O = V A′.",
                "这是行的写法；这里每个词是一列：A = Kᵀ Q，O = V A′。",
            ),
        ),
    ),
    hints=(
        ("A = Kᵀ Q: entry [j, i] is key j times query i.", "A = Kᵀ Q：元素[j, i]是键j乘查询i。"),
        (
            "One query is one column of A. Along which axis must it sum to 1?",
            "一个查询是A的一列。沿哪个轴加起来应当是1？",
        ),
        ("V @ ta.softmax(K.mT @ Q, axis=0)", "答案：V @ ta.softmax(K.mT @ Q, axis=0)"),
    ),
)

EXERCISES = (ROWS, COLUMNS)
