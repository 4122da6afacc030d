"""The exercises of lesson 15: cutting heads apart, and multi-head attention."""

import numpy as np

import tinyattn as ta
from tinyattn.learn.exercises import Case, Exercise, Property, Wrong


def solve_split(Y, h):
    n, d = Y.shape
    return ta.transpose(ta.reshape(Y, (n, h, d // h)), (1, 0, 2))


def solve_multi(X, W_q, W_k, W_v, W_o, h):
    n, d = X.shape
    Q, K, V = (ta.transpose(ta.reshape(X @ W, (n, h, d // h)), (1, 0, 2)) for W in (W_q, W_k, W_v))
    weights = ta.softmax(Q @ K.mT / np.sqrt(d // h))
    joined = ta.reshape(ta.transpose(weights @ V, (1, 0, 2)), (n, d))
    return joined @ W_o


def spoiled(*, cut="right", root="head", join="right", last=True, heads=True, axis=-1):
    """The solution with one of its parts wrong."""

    def answer(X, W_q, W_k, W_v, W_o, h):
        n, d = X.shape
        h = h if heads else 1
        sizes = (h, n, d // h)

        def apart(Y):
            return ta.reshape(Y, sizes) if cut == "reshape" else solve_split(Y, h)

        Q, K, V = (apart(X @ W) for W in (W_q, W_k, W_v))
        scale = {"head": np.sqrt(d // h), "whole": np.sqrt(d), "count": np.sqrt(h), "none": 1.0}[root]
        out = ta.softmax(Q @ K.mT / scale, axis=axis) @ V
        joined = ta.reshape(out if join == "reshape" else ta.transpose(out, (1, 0, 2)), (n, d))
        return joined @ W_o if last else joined

    return answer


def words_cut_too(X, W_q, W_k, W_v, W_o, h):
    width, heads = X.shape[1] // h, []
    for i in range(h):
        own = slice(i * width, (i + 1) * width)
        Q, K, V = (X[:, own] @ W[own, own] for W in (W_q, W_k, W_v))
        heads.append(ta.softmax(Q @ K.mT / np.sqrt(width)) @ V)
    return ta.concatenate(heads, axis=-1) @ W_o


def every_axis_turned(X, W_q, W_k, W_v, W_o, h):
    Q, K, V = (solve_split(X @ W, h) for W in (W_q, W_k, W_v))
    out = ta.softmax(Q @ K.T / np.sqrt(K.shape[-1])) @ V
    return ta.reshape(ta.transpose(out, (1, 0, 2)), X.shape) @ W_o


def under_each_other(X, W_q, W_k, W_v, W_o, h):
    Q, K, V = (solve_split(X @ W, h) for W in (W_q, W_k, W_v))
    out = ta.softmax(Q @ K.mT / np.sqrt(K.shape[-1])) @ V
    return ta.concatenate([out[i] for i in range(h)], axis=0) @ W_o


def drawn(rng):
    """Three heads of width 2: so √h, √(d/h) and √d differ."""
    return tuple(rng.normal(size=size) for size in ((2, 6), (6, 6), (6, 6), (6, 6), (6, 6))) + (3,)


def order_is_free(f, rng):
    X, W_q, W_k, W_v, W_o, h = drawn(rng)
    other = [2, 3, 0, 1, 4, 5]
    exchanged = f(X, W_q[:, other], W_k[:, other], W_v[:, other], W_o[other], h)
    return np.allclose(exchanged, f(X, W_q, W_k, W_v, W_o, h))


Y = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]])
EYE = np.eye(2)

SPLIT = Exercise(
    name="15.split_heads",
    minutes=10,
    task=(
        "Y (n, d) holds h heads side by side, each d/h wide. Give them an axis of their own in front: (h, n, d/h).",
        "Y（n, d）里并排放着h个头，每个宽d/h。让头成为最前面的轴：(h, n, d/h)。",
    ),
    solution=solve_split,
    cases=(
        Case((Y, 2), [[[1, 2], [5, 6], [9, 10]], [[3, 4], [7, 8], [11, 12]]]),
        Case((Y, 1), [Y.tolist()]),
    ),
    sample=lambda rng: (rng.normal(size=(4, 6)), 3),
    tensors=True,
    wrong=(
        Wrong(
            lambda Y, h: ta.reshape(Y, (h, Y.shape[0], Y.shape[1] // h)),
            (
                "reshaped directly: it reads row by row, so words are cut apart and mixed. First (n, h, d/h).",
                "直接reshape了：它按行读取，会把词切开、混在一起。应当先变成(n, h, d/h)。",
            ),
        ),
        Wrong(
            lambda Y, h: ta.reshape(Y, (Y.shape[0], h, Y.shape[1] // h)),
            (
                "the heads are in the middle still: transpose to bring them to the front.",
                "头还在中间的轴：要转置到最前面。",
            ),
        ),
        Wrong(
            lambda Y, h: ta.transpose(ta.reshape(Y, (Y.shape[0], Y.shape[1] // h, h)), (2, 0, 1)),
            (
                "every h-th column goes to one head; a head's columns lie side by side: (n, h, d/h).",
                "把每隔h列的分给了同一个头；一个头的列是相邻的：(n, h, d/h)。",
            ),
        ),
        Wrong(
            lambda Y, h: ta.transpose(ta.reshape(Y, (Y.shape[0], h, Y.shape[1] // h)), (1, 2, 0)),
            ("the last two axes are exchanged: (h, d/h, n).", "最后两个轴颠倒了：成了(h, d/h, n)。"),
        ),
        Wrong(
            lambda Y, h: ta.reshape(Y, (h, Y.shape[0] // h, Y.shape[1])),
            (
                "the words were parted; every head sees all words, and a part of the *width*.",
                "切开的是词；每个头都看到所有的词，只分到一部分*宽度*。",
            ),
        ),
    ),
    hints=(
        ("One row (d numbers) becomes h rows of d/h numbers: reshape.", "一行（d个数）变成h行、每行d/h个数：reshape。"),
        ("That gives (n, h, d/h). Which axes change places?", "这样得到(n, h, d/h)。哪两个轴要对调？"),
        ("ta.transpose(..., (1, 0, 2))", "用ta.transpose(..., (1, 0, 2))"),
    ),
)

MULTI = Exercise(
    name="15.multi_head",
    minutes=15,
    task=(
        "Multi-head attention: X (n, d), W_q, W_k, W_v, W_o all (d, d), h heads, each scaled with its own √(d/h).",
        "多头注意力：X（n, d），W_q、W_k、W_v、W_o都是(d, d)，h个头，每个头按自己的√(d/h)缩放。",
    ),
    solution=solve_multi,
    cases=(
        # Equal words: every share is 1/n, so each word gets the mean, which is the word itself.
        Case((np.ones((3, 2)), EYE, EYE, EYE, 2 * EYE, 2), np.full((3, 2), 2)),
        # No questions: plain means of the values.
        Case((np.array([[1.0, 0.0], [3.0, 4.0]]), 0 * EYE, EYE, EYE, EYE, 2), [[2, 2], [2, 2]]),
    ),
    sample=drawn,
    properties=(
        Property(
            ("exchanging the heads with their rows of W_o changes nothing", "把头连同它在W_o中的行一起对调，结果不变"),
            order_is_free,
        ),
    ),
    tensors=True,
    tolerance=1e-9,
    wrong=(
        Wrong(
            spoiled(heads=False),
            ("one large head: the numbers were not cut into h heads.", "只有一个大头：没有切成h个头。"),
        ),
        Wrong(
            spoiled(root="whole"),
            ("scaled with √d; a head's vectors have d/h entries.", "按√d缩放了；一个头的向量只有d/h个数。"),
        ),
        Wrong(spoiled(root="none"), ("the scores have not been scaled.", "分数没有缩放。")),
        Wrong(
            spoiled(cut="reshape", join="reshape"),
            (
                "reshaped to (h, n, d/h) and back directly: words are mixed. Transpose as well.",
                "直接reshape成(h, n, d/h)再变回来：词混在一起了。还要转置。",
            ),
        ),
        Wrong(
            spoiled(join="reshape"),
            (
                "the heads were not brought back beside each other: transpose before the last reshape.",
                "头没有放回并排：最后reshape之前要转置。",
            ),
        ),
        Wrong(spoiled(last=False), ("W_o is missing.", "少了W_o。")),
        Wrong(
            spoiled(axis=-2),
            ("softmax runs over the queries; it must run over the keys.", "softmax沿查询做了；应当沿键。"),
        ),
        Wrong(
            spoiled(root="count"),
            (
                "scaled with √h, the number of heads; it is the width of one head, √(d/h).",
                "按√h缩放了，那是头的个数；应当是一个头的宽度√(d/h)。",
            ),
        ),
        Wrong(
            words_cut_too,
            (
                "X was cut as well; each head sees whole words, only its *columns* of W_q, W_k, W_v are its own.",
                "把X也切开了；每个头看到的是完整的词，属于它自己的只是W_q、W_k、W_v的那几*列*。",
            ),
        ),
        Wrong(
            every_axis_turned,
            (
                "K.T turns round all three axes; K.mT turns each head's matrix.",
                "K.T把三个轴全翻了；K.mT才是把每个头的矩阵转置。",
            ),
        ),
        Wrong(
            under_each_other,
            (
                "the heads stand under each other; they belong side by side, axis=-1.",
                "头是上下叠放的；应当左右并排，axis=-1。",
            ),
        ),
    ),
    hints=(
        (
            "Q, K, V = X @ W..., each cut with 15.split_heads to (h, n, d/h).",
            "Q、K、V = X @ W...，各用15.split_heads切成(h, n, d/h)。",
        ),
        (
            "Then lesson 11 word for word: @ and softmax treat the first axis as a batch. Divide by √(d/h).",
            "然后照搬第11课：@和softmax把第一个轴当作批次。除以√(d/h)。",
        ),
        (
            "Back: ta.transpose(out, (1, 0, 2)), reshape to (n, d), and @ W_o.",
            "变回去：ta.transpose(out, (1, 0, 2))，reshape成(n, d)，再@ W_o。",
        ),
    ),
)

EXERCISES = (SPLIT, MULTI)
