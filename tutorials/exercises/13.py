"""The exercises of lesson 13: attention with relu, and its dead rows."""

import numpy as np

import tinyattn as ta
from tinyattn.learn.exercises import Case, Exercise, Property, Wrong

Q = np.array([[1.0, 0.0], [-1.0, -1.0]])
K = np.array([[1.0, 0.0], [3.0, 1.0]])
V = np.array([[10.0], [100.0]])


def solve_relu(Q, K, V):
    scores = Q @ K.mT
    return ta.relu(scores) @ V / K.shape[0]


def solve_dead(Q, K):
    scores = Q @ K.T
    return np.sum((scores <= 0).all(axis=1))


RELU = Exercise(
    name="13.relu_attention",
    minutes=5,
    task=(
        "Attention with relu(scores) / m as weights, m the number of keys: Q (n, d_k), K (m, d_k), V (m, d_v).",
        "用relu(分数) / m作权重的注意力，m是键的个数：Q（n, d_k）、K（m, d_k）、V（m, d_v）。",
    ),
    solution=solve_relu,
    cases=(
        Case((Q, K, V), [[155], [0]]),
        Case((np.ones((1, 2)), np.ones((4, 2)), np.array([[1.0], [2.0], [3.0], [4.0]])), [[5]]),
    ),
    sample=lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))),
    properties=(
        Property(
            ("every word twice changes nothing", "每个词都写两遍，结果不变"),
            lambda f, rng: np.allclose(f(Q, np.tile(K, (2, 1)), np.tile(V, (2, 1))), f(Q, K, V)),
        ),
    ),
    tensors=True,
    wrong=(
        Wrong(
            lambda Q, K, V: ta.relu(Q @ K.mT) @ V,
            ("not divided by the number of keys: it grows with the length.", "没有除以键的个数：会随长度增大。"),
        ),
        Wrong(
            lambda Q, K, V: ta.relu(Q @ K.mT) @ V / Q.shape[0],
            ("divided by the number of queries; it is the keys that are summed.", "除以了查询的个数；被求和的是键。"),
        ),
        Wrong(
            lambda Q, K, V: ta.relu(Q @ K.mT) @ V / K.shape[1],
            ("divided by the width d_k; it is the number of keys that counts.", "除以了宽度d_k；应当是键的个数。"),
        ),
        Wrong(
            lambda Q, K, V: ta.softmax(ta.relu(Q @ K.mT)) @ V,
            ("softmax of the relu; the relu replaces softmax.", "在relu之后又做了softmax；relu是用来代替softmax的。"),
        ),
        Wrong(
            lambda Q, K, V: ta.relu(Q @ K.mT @ V) / K.shape[0],
            ("relu came after the values; it belongs on the scores.", "relu放到乘值之后了；它应当作用在分数上。"),
        ),
        Wrong(
            lambda Q, K, V: ta.relu(Q @ K.mT) @ V / K.shape[0] / np.sqrt(K.shape[1]),
            ("scaled with √d_k as well; here only the number of keys divides.", "还除以了√d_k；这里只除以键的个数。"),
        ),
        Wrong(
            lambda Q, K, V: ta.relu(Q @ K.mT) / ta.sum(ta.relu(Q @ K.mT), axis=-1, keepdims=True) @ V,
            (
                "each row is divided by its own sum; here by the number of keys (and a dead row would be 0 / 0).",
                "每一行除以了自己的和；这里要除以键的个数（而且死的行会变成0 / 0）。",
            ),
        ),
        Wrong(
            lambda Q, K, V: Q @ K.mT @ V / K.shape[0],
            ("relu is missing: negative scores count as well.", "少了relu：负的分数也算进去了。"),
        ),
        Wrong(
            lambda Q, K, V: ta.softmax(Q @ K.mT) @ V,
            ("softmax is still there; relu(scores) / m takes its place.", "用的还是softmax；应当换成relu(分数) / m。"),
        ),
        Wrong(
            lambda Q, K, V: ta.relu(Q @ K.mT) @ V / ta.sqrt(ta.size_of(K, 0)),
            (
                "divided by the root of the number of keys; here by the number itself.",
                "除以了键的个数的平方根；这里要除以个数本身。",
            ),
        ),
    ),
    hints=(
        ("As attention in lesson 11, with another line in the middle.", "同第11课的注意力，只是中间一行不同。"),
        ("ta.relu(scores); the number of keys is K.shape[0].", "ta.relu(scores)；键的个数是K.shape[0]。"),
        ("ta.relu(Q @ K.mT) / K.shape[0] @ V", "答案：ta.relu(Q @ K.mT) / K.shape[0] @ V"),
    ),
)

DEAD = Exercise(
    name="13.dead_rows",
    minutes=10,
    task=(
        "The number of queries without any positive score: relu attention gives them 0, and no gradient. Arrays, not"
        " tensors.",
        "没有任何正分数的查询有多少个：relu注意力给它们0，也没有梯度。这里是数组，不是张量。",
    ),
    solution=solve_dead,
    cases=(
        Case((Q, K), 1),
        Case((np.array([[1.0], [-1.0], [-2.0], [3.0]]), np.array([[1.0], [2.0]])), 2),
        Case((np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])), 1),
        Case((np.array([[-1.0, 0.5]]), np.array([[1.0, 0.0], [0.0, 1.0]])), 0),
    ),
    sample=lambda rng: (rng.normal(size=(40, 2)), rng.normal(size=(3, 2))),
    wrong=(
        Wrong(
            lambda Q, K: np.sum((Q @ K.T <= 0).any(axis=1)),
            (
                "rows with *some* score that is not positive; a dead row has none that is positive.",
                "数的是*有*非正分数的行；死的行是一个正分数都没有。",
            ),
        ),
        Wrong(
            lambda Q, K: np.sum((Q @ K.T <= 0).all(axis=0)),
            (
                "columns were counted: keys that nobody asks. Wanted are queries, rows.",
                "数的是列：没人问的键。要的是查询，即行。",
            ),
        ),
        Wrong(
            lambda Q, K: np.sum(Q @ K.T <= 0),
            ("single scores were counted; wanted are whole rows.", "数的是单个分数；要的是整行。"),
        ),
        Wrong(
            lambda Q, K: np.sum((Q @ K.T < 0).all(axis=1)),
            ("a score of exactly 0 lets nothing through either: <= 0.", "恰好为0的分数同样不通：应当是<= 0。"),
        ),
        Wrong(
            lambda Q, K: np.sum((Q @ K.T > 0).any(axis=1)),
            ("these are the rows that live.", "这是活着的行。"),
        ),
        Wrong(
            lambda Q, K: np.sum((Q @ K.T).sum(axis=1) <= 0),
            (
                "rows whose scores *sum* to no more than 0; one positive score is enough to live.",
                "看的是分数*之和*不大于0；有一个正分数就是活的。",
            ),
        ),
        Wrong(
            lambda Q, K: (Q @ K.T <= 0).all(axis=1),
            (
                "True or False for each row; count the True with np.sum.",
                "每一行一个True或False；要用np.sum数出True的个数。",
            ),
        ),
        Wrong(
            lambda Q, K: np.where((Q @ K.T <= 0).all(axis=1))[0],
            (
                "these are the numbers of the dead rows; how many there are was asked.",
                "这是死的行的编号；要的是一共有几行。",
            ),
        ),
        Wrong(
            lambda Q, K: np.mean((Q @ K.T <= 0).all(axis=1)),
            ("the part of the rows that is dead; their number was asked.", "这是死的行所占的比例；要的是行数。"),
        ),
        Wrong(
            lambda Q, K: np.sum((Q <= 0).all(axis=1)),
            (
                "only the queries were looked at; a row is dead by its *scores*, Q Kᵀ.",
                "只看了查询本身；一行死不死要看它的*分数*Q Kᵀ。",
            ),
        ),
    ),
    hints=(
        ("scores = Q @ K.T has one row for each query.", "scores = Q @ K.T，每个查询一行。"),
        (
            "A row is dead when all of its scores are <= 0: (...).all(axis=1).",
            "一行的分数全部<= 0就是死的：(...).all(axis=1)。",
        ),
        ("np.sum counts the True of an array.", "np.sum数出数组里有几个True。"),
    ),
)

EXERCISES = (RELU, DEAD)
