"""The exercises of lesson 16: codes of places, and a test of equivariance."""

from math import cos, sin

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong


def solve_waves(n, d, base):
    place = np.arange(n)[:, None]
    angle = place / base ** (np.arange(0, d, 2) / d)
    code = np.empty((n, d))
    code[:, 0::2] = np.sin(angle)
    code[:, 1::2] = np.cos(angle)
    return code


def angles(n, d, base, start=0):
    return (np.arange(n)[:, None] + start) / base ** (np.arange(0, d, 2) / d)


def interleaved(first, second):
    return np.stack([first, second], axis=-1).reshape(len(first), -1)


def double(X):
    """2 X"""
    return 2 * X


def soft_mean(X):
    """one self-attention, with X for queries, keys and values"""
    e = np.exp(X @ X.T)
    return e / e.sum(axis=1, keepdims=True) @ X


def running_sum(X):
    """each row plus all rows before it"""
    return np.cumsum(X, axis=0)


def centred(X):
    """each row minus the mean of all"""
    return X - X.mean(axis=0)


def first_row(X):
    """the first row, in every row"""
    return np.tile(X[0], (len(X), 1))


def constant(X):
    """the mean of all rows, in every row"""
    return np.tile(X.mean(axis=0), (len(X), 1))


def centred_by_a_loop(X):
    """each row minus the mean, the rows added one after the other"""
    total = np.zeros(X.shape[1:])
    for row in X:
        total = total + row
    return X - total / len(X)


def upside_down(X):
    """the rows from the last to the first"""
    return X[::-1]


def with_column_numbers(n, d, base):
    angle = np.arange(n)[:, None] / base ** (2 * np.arange(d) / d)
    return np.where(np.arange(d) % 2 == 0, np.sin(angle), np.cos(angle))


def as_sets(f, X, order):
    return np.allclose(np.sort(f(X[order]), axis=0), np.sort(f(X), axis=0))


def by_columns(f, X, order):
    return np.allclose(f(X[:, order]), f(X)[:, order])


def solve_equivariant(f, X, order):
    return np.allclose(f(X[order]), f(X)[order])


X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
ORDER = np.array([2, 0, 1])

WAVES = Exercise(
    name="16.waves",
    minutes=10,
    task=(
        "Codes for n places: an array (n, d), d even; columns 2i and 2i + 1 are sin and cos of place / base^(2i / d).",
        "n个位置的编码：数组(n, d)，d为偶数；第2i和2i + 1列分别是 位置 / base^(2i / d) 的sin和cos。",
    ),
    solution=solve_waves,
    cases=(
        Case((2, 2, 100.0), [[0, 1], [sin(1), cos(1)]]),
        Case((3, 4, 100.0), [[0, 1, 0, 1], [sin(1), cos(1), sin(0.1), cos(0.1)], [sin(2), cos(2), sin(0.2), cos(0.2)]]),
    ),
    sample=lambda rng: (int(rng.integers(3, 6)), 6, float(rng.uniform(50, 500))),
    properties=(
        Property(
            ("products of codes depend on the distance only", "编码的乘积只取决于距离"),
            lambda f, rng: (lambda P: np.allclose(P[3] @ P[5], P[10] @ P[12]))(f(20, 8, 1000.0)),
        ),
    ),
    wrong=(
        Wrong(
            lambda n, d, base: np.concatenate([np.sin(angles(n, d, base)), np.cos(angles(n, d, base))], axis=1),
            (
                "all sines first, then all cosines; they take turns: columns 0, 2, ... and 1, 3, ...",
                "先排了所有sin再排所有cos；应当交替：第0、2…列和第1、3…列。",
            ),
        ),
        Wrong(
            lambda n, d, base: interleaved(np.cos(angles(n, d, base)), np.sin(angles(n, d, base))),
            ("sin and cos are exchanged.", "sin和cos弄反了。"),
        ),
        Wrong(
            lambda n, d, base: interleaved(np.sin(angles(n, d, base, 1)), np.cos(angles(n, d, base, 1))),
            ("places begin with 0 here, not with 1.", "这里位置从0开始，不是从1开始。"),
        ),
        Wrong(
            lambda n, d, base: interleaved(
                *(f(np.arange(n)[:, None] / base ** (np.arange(d // 2) / d)) for f in (np.sin, np.cos))
            ),
            ("the exponent is i / d; it should be 2i / d.", "指数用了i / d；应当是2i / d。"),
        ),
        Wrong(
            lambda n, d, base: interleaved(
                *(f(np.arange(n)[:, None] * base ** (np.arange(0, d, 2) / d)) for f in (np.sin, np.cos))
            ),
            (
                "multiplied by base^(2i / d) instead of divided: the waves get faster.",
                "乘了base^(2i / d)，应当是除：波变得越来越快。",
            ),
        ),
        Wrong(
            lambda n, d, base: np.where(
                np.arange(d) % 2 == 0,
                np.sin(np.arange(n)[:, None] / base ** (np.arange(d) / d)),
                np.cos(np.arange(n)[:, None] / base ** (np.arange(d) / d)),
            ),
            (
                "sin and cos of a pair have different speeds; both use the exponent 2i / d.",
                "一对sin和cos的速度不同；两者都应当用指数2i / d。",
            ),
        ),
        Wrong(
            with_column_numbers,
            (
                "the exponent uses the number of the column; columns 2i and 2i + 1 share one i.",
                "指数里用了列号；第2i列和第2i + 1列共用同一个i。",
            ),
        ),
        Wrong(
            lambda n, d, base: interleaved(
                *(f(np.arange(n)[:, None] / base ** (2 * np.arange(0, d, 2) / d)) for f in (np.sin, np.cos))
            ),
            (
                "the exponent is doubled: np.arange(0, d, 2) is 2i already.",
                "指数多乘了2：np.arange(0, d, 2)已经是2i了。",
            ),
        ),
        Wrong(
            lambda n, d, base: interleaved(
                *(f(np.arange(n)[:, None] / base * (np.arange(0, d, 2) / d)) for f in (np.sin, np.cos))
            ),
            (
                "multiplied by 2i / d; it is the exponent of base: base ** (2i / d).",
                "乘了2i / d；它是base的指数：base ** (2i / d)。",
            ),
        ),
        Wrong(
            lambda n, d, base: solve_waves(n, d, 10000.0),
            ("base is fixed at 10000; use the one that is given.", "把base固定成了10000；要用给定的base。"),
        ),
    ),
    hints=(
        (
            "place = np.arange(n)[:, None] is a column; the speeds are a row. Their quotient is (n, d/2).",
            "place = np.arange(n)[:, None]是一列；速度是一行。相除得(n, d/2)。",
        ),
        ("The exponents 2i / d are np.arange(0, d, 2) / d.", "指数2i / d就是np.arange(0, d, 2) / d。"),
        ("code[:, 0::2] = np.sin(...) fills every second column.", "code[:, 0::2] = np.sin(...)填满每隔一列。"),
    ),
)

EQUIVARIANT = Exercise(
    name="16.equivariant",
    minutes=10,
    task=(
        "Whether f treats rows alike: True if f of the shuffled rows X[order] is f(X) shuffled in the same way.",
        "f是否对各行一视同仁：若f(打乱的行X[order])等于同样打乱的f(X)，返回True。",
    ),
    solution=solve_equivariant,
    cases=(
        Case((double, X, ORDER), True),
        Case((soft_mean, X, ORDER), True),
        Case((running_sum, X, ORDER), False),
        Case((centred, X, ORDER), True),
        Case((first_row, X, ORDER), False),
        Case((constant, X, ORDER), True),
        Case((double, X, np.array([1, 0, 2])), True),
        # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit.
        Case((centred_by_a_loop, np.array([[0.1], [0.2], [0.3]]), np.array([2, 1, 0])), True),
        Case((upside_down, X, ORDER), False),
    ),
    sample=lambda rng: (
        (double, soft_mean, running_sum, centred, first_row)[int(rng.integers(5))],
        rng.normal(size=(4, 3)),
        np.array([1, 3, 0, 2]),
    ),
    wrong=(
        Wrong(
            lambda f, X, order: np.allclose(f(X[order]), f(X)),
            (
                "this tests *invariance*: f(P X) = f(X). Shuffle the other side, too.",
                "这是在检验*不变性*：f(P X) = f(X)。另一边也要打乱。",
            ),
        ),
        Wrong(
            lambda f, X, order: np.allclose(f(X)[order], f(X)),
            ("f is never given the shuffled rows.", "从来没有把打乱的行交给f。"),
        ),
        Wrong(
            lambda f, X, order: np.array_equal(f(X[order]), f(X)[order]),
            ("rounding: compare with np.allclose, not bit by bit.", "有舍入误差：用np.allclose比较，不要逐位比较。"),
        ),
        Wrong(
            lambda f, X, order: not np.allclose(f(X[order]), f(X)[order]),
            ("True and False are exchanged.", "True和False弄反了。"),
        ),
        Wrong(
            lambda f, X, order: np.allclose(f(X[order])[order], f(X)),
            (
                "shuffled once more instead of back; shuffle the other side instead.",
                "不是还原，而是又打乱了一次；应当打乱另一边。",
            ),
        ),
        Wrong(
            as_sets,
            (
                "sorted before comparing, so *where* a row stands no longer counts; but just that is the question.",
                "比较之前排了序，一行在*哪里*就不算数了；而问的正是这个。",
            ),
        ),
        Wrong(
            lambda f, X, order: f(X[order]) == f(X)[order],
            (
                "True or False for each entry; one answer is wanted: np.allclose(one, other).",
                "每个元素一个True或False；要的是一个回答：np.allclose(一个, 另一个)。",
            ),
        ),
        Wrong(
            by_columns,
            ("the columns were shuffled; a word is a row: X[order].", "打乱的是列；一个词是一行：X[order]。"),
        ),
    ),
    hints=(
        ("Two results are compared: shuffle then f, and f then shuffle.", "比较两个结果：先打乱再f，与先f再打乱。"),
        ("X[order] takes the rows in another order.", "X[order]按另一个顺序取各行。"),
        ("np.allclose(one, other) allows for rounding.", "np.allclose(一个, 另一个)允许舍入误差。"),
    ),
)

EXERCISES = (WAVES, EQUIVARIANT)
