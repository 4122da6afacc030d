"""The exercises of lesson 05: both gradients of a matrix product."""

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong, differences

X = np.array([[1.0, 2.0], [3.0, 4.0]])
W = np.array([[5.0, 6.0], [7.0, 8.0]])
G = np.array([[10.0, 0.0], [1.0, 0.0]])


def solve_left(G, X, W):
    return G @ W.T


def last_sentence(G, X, W):
    for x, g in zip(X, G):
        gradient = x.T @ g
    return gradient


def solve_shared(G, X, W):
    each = np.swapaxes(X, 1, 2) @ G
    return each.sum(axis=0)


def left_agrees(f, rng):
    x, w, g = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    return np.allclose(f(g, x, w), differences(lambda x: x @ w, x, g), atol=1e-6)


def shared_agrees(f, rng):
    x, w, g = rng.normal(size=(4, 2, 3)), rng.normal(size=(3, 2)), rng.normal(size=(4, 2, 2))
    return np.allclose(f(g, x, w), differences(lambda w: x @ w, w, g), atol=1e-6)


LEFT = Exercise(
    name="05.grad_left",
    minutes=5,
    task=(
        "Y = X W, and G arrives at Y. The gradient of X, in the shape of X.",
        "Y = X W，传到Y的斜率是G。求X的梯度，形状与X相同。",
    ),
    solution=solve_left,
    cases=(
        Case((G, X, W), [[50, 70], [5, 7]]),
        Case((np.array([[1.0, 0.0]]), np.array([[9.0, 9.0, 9.0]]), np.arange(6.0).reshape(3, 2)), [[0, 2, 4]]),
    ),
    sample=lambda rng: (rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))),
    properties=(Property(("it agrees with differences", "与差分一致"), left_agrees),),
    wrong=(
        Wrong(
            lambda G, X, W: G @ W,
            (
                "G W: it fits only because W is square. The summed index is the second of W: transpose it.",
                "写成了G W：只因W是方阵，形状才凑上。求和的下标是W的第二个：要转置。",
            ),
        ),
        Wrong(
            lambda G, X, W: X.T @ G,
            ("this is the gradient of W; the one of X was asked for.", "这是W的梯度；要的是X的。"),
        ),
        Wrong(
            lambda G, X, W: W @ G.T,
            ("W Gᵀ: this is the answer transposed.", "写成了W Gᵀ：是答案的转置。"),
        ),
        Wrong(
            lambda G, X, W: np.ones(G.shape) @ W.T,
            (
                "G is not used: this would be the gradient of the plain sum of Y.",
                "没有用到G：这是把Y直接求和时的梯度。",
            ),
        ),
        Wrong(
            lambda G, X, W: G @ np.linalg.inv(W),
            (
                "W was inverted; going back needs the transpose, not the inverse.",
                "用了W的逆；往回走要的是转置，不是逆。",
            ),
        ),
        Wrong(
            lambda G, X, W: W.T @ G,
            (
                "Wᵀ G: the right factor, transposed, but on the wrong side; it stays at the right.",
                "写成了Wᵀ G：W转置对了，但放错了边；它应当留在右边。",
            ),
        ),
        Wrong(
            lambda G, X, W: W @ G,
            (
                "W G: neither side nor index fits. Write one entry: dX[i, k] = Σⱼ G[i, j] · W[k, j].",
                "写成了W G：左右和下标都不对。先写一个元素：dX[i, k] = Σⱼ G[i, j] · W[k, j]。",
            ),
        ),
        Wrong(
            lambda G, X, W: G * W,
            (
                "G * W multiplies entry by entry; it takes a matrix product, @.",
                "G * W是逐元素相乘；这里要用矩阵乘法@。",
            ),
        ),
        Wrong(
            lambda G, X, W: W.T,
            ("only the local slopes Wᵀ; multiply with what arrives, G.", "只有局部的斜率Wᵀ；还要乘上传来的G。"),
        ),
    ),
    hints=(
        (
            "Which entries of Y does X[i, k] reach? Those of row i; by which factors?",
            "X[i, k]影响Y的哪些元素？第i行；系数各是什么？",
        ),
        (
            "dX[i, k] = sum over j of G[i, j] * W[k, j]. Bring j to the inside of a product.",
            "dX[i, k] = 对j求和 G[i, j] * W[k, j]。把j放到乘积的内侧。",
        ),
        ("G @ W.T", "答案：G @ W.T"),
    ),
)

SHARED = Exercise(
    name="05.grad_shared",
    minutes=10,
    task=(
        "Y = X W with a batch X (b, n, d) and one W (d, m) for all; G (b, n, m) arrives. The gradient of W, (d, m).",
        "Y = X W，X是一批（b, n, d），W（d, m）由整批共用；传来的是G（b, n, m）。求W的梯度，形状(d, m)。",
    ),
    solution=solve_shared,
    cases=(
        Case((np.ones((2, 3, 1)), np.ones((2, 3, 4)), np.zeros((4, 1))), np.full((4, 1), 6)),
        Case((np.stack([G, 100 * G]), np.stack([X, X]), W), [[1313, 0], [2424, 0]]),
    ),
    sample=lambda rng: (rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4, 5)), rng.normal(size=(5, 2))),
    properties=(Property(("it agrees with differences", "与差分一致"), shared_agrees),),
    wrong=(
        Wrong(
            lambda G, X, W: np.swapaxes(X, 1, 2) @ G,
            (
                "one matrix for each sentence; W is shared, so add them up over the batch.",
                "每句话一个矩阵；W是共用的，要沿批次加起来。",
            ),
        ),
        Wrong(
            lambda G, X, W: (np.swapaxes(X, 1, 2) @ G).mean(axis=0),
            (
                "the mean over the batch; the pieces are added (a mean belongs into the loss).",
                "对批次求了平均；应当相加（求平均是损失函数的事）。",
            ),
        ),
        Wrong(
            lambda G, X, W: X[0].T @ G[0],
            ("only the first sentence of the batch.", "只算了批次里的第一句。"),
        ),
        Wrong(
            lambda G, X, W: solve_shared(G, X, W).T,
            ("Gᵀ X: this is the answer transposed.", "写成了Gᵀ X：是答案的转置。"),
        ),
        Wrong(
            lambda G, X, W: X.sum(axis=0).T @ G.sum(axis=0),
            (
                "X and G were added over the batch first; the product must be taken within each sentence, then added.",
                "先分别对X和G求和了；要在每句话之内先相乘，再相加。",
            ),
        ),
        Wrong(
            lambda G, X, W: X.T @ G,
            (
                "X.T turns round all three axes, the batch too; np.swapaxes(X, 1, 2) transposes each matrix.",
                "X.T把三个轴全翻了，连批次那个轴也翻了；np.swapaxes(X, 1, 2)才是把每个矩阵转置。",
            ),
        ),
        Wrong(
            last_sentence,
            (
                "only the last sentence is left: each one replaced the one before. Add them (+=).",
                "只剩下最后一句：每一句都覆盖了前一句。要相加（+=）。",
            ),
        ),
        Wrong(
            lambda G, X, W: (np.swapaxes(X, 1, 2) @ G).sum(axis=1),
            ("summed over the wrong axis: the batch is axis 0.", "求和的轴不对：批次是第0个轴。"),
        ),
        Wrong(
            lambda G, X, W: X.reshape(X.shape[2], -1) @ G.reshape(-1, G.shape[2]),
            (
                "reshape is no transpose: first X.reshape(-1, d), forty rows, then .T.",
                "reshape不是转置：先X.reshape(-1, d)排成一行行，再取.T。",
            ),
        ),
        Wrong(
            lambda G, X, W: G @ W.T,
            ("this is the gradient of X; the one of W was asked for.", "这是X的梯度；要的是W的。"),
        ),
    ),
    hints=(
        ("For one sentence it is Xᵀ G.", "对一句话，就是Xᵀ G。"),
        (
            "np.swapaxes(X, 1, 2) transposes each matrix of the batch; @ multiplies them pair by pair.",
            "np.swapaxes(X, 1, 2)把批次里每个矩阵转置；@会成对相乘。",
        ),
        ("Then add over the batch: .sum(axis=0).", "最后沿批次相加：.sum(axis=0)。"),
    ),
)

EXERCISES = (LEFT, SHARED)
