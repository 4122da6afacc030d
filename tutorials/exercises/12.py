"""The exercises of lesson 12: scaled and additive scores."""

from math import tanh

import numpy as np

import tinyattn as ta
from tinyattn.learn.exercises import Case, Exercise, Property, Wrong


def solve_scaled(Q, K):
    return Q @ K.mT / ta.sqrt(ta.size_of(K, -1))


def solve_additive(Q, K, W_q, W_k, w):
    queries = ta.expand_dims(Q @ W_q, 1)  # (n, 1, h)
    keys = ta.expand_dims(K @ W_k, 0)  # (1, m, h)
    return ta.tanh(queries + keys) @ w


def drawn(rng):
    sizes = ((3, 4), (5, 2), (4, 6), (2, 6), (6,))
    return tuple(rng.normal(size=size) for size in sizes)


ONE = np.array([[1.0]])

SCALED = Exercise(
    name="12.scaled_scores",
    minutes=5,
    task=(
        "The scores of Q (n, d_k) with K (m, d_k), divided by √d_k: shape (n, m).",
        "Q（n, d_k）与K（m, d_k）的分数，除以√d_k：形状(n, m)。",
    ),
    solution=solve_scaled,
    cases=(
        Case((np.full((1, 4), 2.0), np.ones((2, 4))), [[4, 4]]),
        Case((np.array([[3.0], [1.0]]), np.array([[2.0], [5.0]])), [[6, 15], [2, 5]]),
    ),
    sample=lambda rng: (rng.normal(size=(4, 6)), rng.normal(size=(3, 6))),
    properties=(
        Property(
            ("random scores have spread 1 at width 400", "宽度400时，随机分数的标准差是1"),
            lambda f, rng: abs(np.std(f(rng.normal(size=(60, 400)), rng.normal(size=(60, 400)))) - 1) < 0.1,
        ),
    ),
    tensors=True,
    wrong=(
        Wrong(lambda Q, K: Q @ K.mT, ("the scores have not been divided at all.", "分数完全没有除。")),
        Wrong(
            lambda Q, K: Q @ K.mT / ta.size_of(K, -1),
            ("divided by d_k; its square root is the spread.", "除以了d_k；标准差是它的平方根。"),
        ),
        Wrong(
            lambda Q, K: Q @ K.mT / ta.sqrt(ta.size_of(K, 0)),
            (
                "divided by the root of the number of keys; d_k is the width of one key, the last axis.",
                "除以了键的个数的平方根；d_k是一个键的宽度，即最后一个轴。",
            ),
        ),
        Wrong(
            lambda Q, K: Q @ K.mT / ta.sqrt(ta.size_of(K)),
            (
                "divided by the root of all entries of K; d_k is the width of one key.",
                "除以了K全部元素个数的平方根；d_k是一个键的宽度。",
            ),
        ),
        Wrong(
            lambda Q, K: Q @ K.mT * ta.sqrt(ta.size_of(K, -1)),
            ("multiplied by √d_k instead of divided.", "乘了√d_k，应当是除。"),
        ),
        Wrong(
            lambda Q, K: K @ Q.mT / ta.sqrt(ta.size_of(K, -1)),
            ("K Qᵀ: rows belong to keys; they should belong to queries.", "写成了K Qᵀ：行是键；应当是查询。"),
        ),
        Wrong(
            lambda Q, K: Q @ K.mT / ta.sqrt(ta.size_of(Q, 0)),
            (
                "divided by the root of the number of queries; d_k is the width of one key, the last axis.",
                "除以了查询个数的平方根；d_k是一个键的宽度，即最后一个轴。",
            ),
        ),
        Wrong(
            lambda Q, K: ta.softmax(Q @ K.mT / ta.sqrt(ta.size_of(K, -1))),
            (
                "these are the weights; the scores were asked for, before softmax.",
                "这已经是权重了；要的是softmax之前的分数。",
            ),
        ),
        Wrong(
            lambda Q, K: Q @ K.mT / ta.size_of(K, -1) ** 2,
            ("divided by the square of d_k; it is the root.", "除以了d_k的平方；应当是平方根。"),
        ),
    ),
    hints=(
        ("The scores of lesson 11, and one division.", "第11课的分数，再加一次除法。"),
        ("d_k is the length of the last axis of K: K.shape[-1].", "d_k是K最后一个轴的长度：K.shape[-1]。"),
        (
            "Q @ K.mT / np.sqrt(K.shape[-1]), or with ta.sqrt(ta.size_of(K, -1)).",
            "Q @ K.mT / np.sqrt(K.shape[-1])，或用ta.sqrt(ta.size_of(K, -1))。",
        ),
    ),
)

ADDITIVE = Exercise(
    name="12.additive",
    minutes=15,
    task=(
        "Additive scores: entry [i, j] is w · tanh(W_q applied to query i + W_k applied to key j). Shape (n, m).",
        "加性分数：元素[i, j]是w · tanh(查询i乘W_q + 键j乘W_k)。形状(n, m)。",
    ),
    solution=solve_additive,
    cases=(
        Case((ONE, np.array([[0.0], [2.0]]), ONE, ONE, np.array([3.0])), [[3 * tanh(1), 3 * tanh(3)]]),
        Case(
            (np.array([[0.0], [1.0]]), np.array([[0.5]]), ONE, 2 * ONE, np.array([1.0])),
            [[tanh(1)], [tanh(2)]],
        ),
    ),
    sample=drawn,
    properties=(
        Property(
            ("no score is larger than the sum of the |w|", "任何分数都不超过|w|之和"),
            lambda f, rng: (lambda a: np.abs(f(1000 * a[0], *a[1:])).max() <= np.abs(a[4]).sum() + 1e-9)(drawn(rng)),
        ),
    ),
    tensors=True,
    wrong=(
        Wrong(
            lambda Q, K, W_q, W_k, w: (ta.expand_dims(Q @ W_q, 1) + ta.expand_dims(K @ W_k, 0)) @ w,
            (
                "tanh is missing: without a bend softmax would ignore the query.",
                "少了tanh：没有弯曲，softmax就会忽略查询。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: (ta.tanh(ta.expand_dims(Q @ W_q, 1)) + ta.tanh(ta.expand_dims(K @ W_k, 0))) @ w,
            (
                "tanh of each, then added: query and key must be added before the tanh, or they never meet.",
                "先各自取tanh再相加：查询和键必须在tanh之前相加，否则两者碰不到一起。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.tanh(ta.expand_dims(Q @ W_q, 1) * ta.expand_dims(K @ W_k, 0)) @ w,
            ("query and key were multiplied; the additive score adds them.", "把查询和键相乘了；加性分数是相加。"),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.tanh((ta.expand_dims(Q @ W_q, 1) + ta.expand_dims(K @ W_k, 0)) @ w),
            (
                "w comes inside the tanh; it weighs the hidden units after it.",
                "把w放进tanh里面了；它是在tanh之后给隐藏单元加权的。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.tanh(ta.expand_dims(Q @ W_q, 1) + ta.expand_dims(K @ W_k, 0)) * w,
            (
                "weighted with w, but not added up: the hidden axis is still there.",
                "乘了w，但没有加起来：隐藏那个轴还在。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.tanh(ta.expand_dims(Q @ W_q, 0) + ta.expand_dims(K @ W_k, 1)) @ w,
            (
                "the new axes are exchanged: rows belong to keys instead of queries.",
                "新增的轴放反了：行成了键，而不是查询。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.tanh(Q @ W_q + K @ W_k) @ w,
            (
                "query i is paired with key i only; every pair is wanted: (n, 1, h) + (1, m, h).",
                "只把第i个查询与第i个键配对；每一对都要：(n, 1, h) + (1, m, h)。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.softmax(solve_additive(Q, K, W_q, W_k, w)),
            (
                "these are the weights; the scores were asked for, before softmax.",
                "这已经是权重了；要的是softmax之前的分数。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.mean(
                ta.tanh(ta.expand_dims(Q @ W_q, 1) + ta.expand_dims(K @ W_k, 0)) * w, axis=-1
            ),
            ("the mean over the hidden axis; w · tanh(...) is a sum.", "对隐藏的轴求了平均；w · tanh(...)是求和。"),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: w @ ta.tanh(ta.expand_dims(Q @ W_q, 1) + ta.expand_dims(K @ W_k, 0)),
            (
                "w @ ... adds along the last axis but one; the hidden axis is the last: ... @ w.",
                "w @ ...是沿倒数第二个轴加的；隐藏的轴是最后一个：... @ w。",
            ),
        ),
        Wrong(
            lambda Q, K, W_q, W_k, w: ta.tanh(ta.expand_dims(Q, 1) + ta.expand_dims(K, 0)) @ w,
            (
                "W_q and W_k are not used: each side goes through its own matrix first.",
                "没有用W_q和W_k：两边要先各自乘上自己的矩阵。",
            ),
        ),
    ),
    hints=(
        (
            "Q @ W_q has shape (n, h), K @ W_k has (m, h). Every pair is wanted: (n, m, h).",
            "Q @ W_q的形状是(n, h)，K @ W_k是(m, h)。每一对都要：(n, m, h)。",
        ),
        (
            "Broadcasting makes the pairs: (n, 1, h) + (1, m, h); x[:, None, :] inserts an axis.",
            "广播可以造出每一对：(n, 1, h) + (1, m, h)；x[:, None, :]插入一个轴。",
        ),
        ("tanh of the sum, then @ w takes the hidden axis away.", "对和取tanh，再@ w就消去隐藏的轴。"),
    ),
)

EXERCISES = (SCALED, ADDITIVE)
