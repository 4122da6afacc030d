"""The exercises of lesson 14: attention backwards, to the scores and to the words."""

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong, differences


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def solve_grad_scores(G, A, V):
    dA = G @ V.T
    return A * (dA - (dA * A).sum(axis=-1, keepdims=True))


def forward(X, W_q, W_k, W_v):
    scores = (X @ W_q) @ (X @ W_k).T / np.sqrt(W_k.shape[1])
    return softmax(scores) @ (X @ W_v)


def solve_grad_x(G, X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    root = np.sqrt(K.shape[1])
    A = softmax(Q @ K.T / root)
    dV, dA = A.T @ G, G @ V.T
    dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True))
    dQ, dK = dS @ K / root, dS.T @ Q / root
    return dQ @ W_q.T + dK @ W_k.T + dV @ W_v.T


def with_mean(mean):
    """The gradient of the scores, with another mean taken off."""
    return lambda G, A, V: A * (G @ V.T - mean(G @ V.T, A))


def spoiled(
    *,
    scale=True,
    mean=True,
    transposed_keys=True,
    transposed_values=True,
    parts="qkv",
    softmaxed=True,
    only_queries=False,
    forward_root=True,
    width="d_k",
    keys_for_keys=False,
):
    """The solution with one of its parts wrong."""

    def answer(G, X, W_q, W_k, W_v):
        Q, K, V = X @ W_q, X @ W_k, X @ W_v
        root = np.sqrt(K.shape[1] if width == "d_k" else X.shape[1])
        A = softmax(Q @ K.T / (root if forward_root else 1.0))
        dV, dA = (A.T if transposed_values else A) @ G, G @ V.T
        dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True)) if mean else A * (1 - A) * dA
        dS = dS if softmaxed else dA
        back = root if scale else 1.0
        dQ, dK = dS @ K / back, (dS.T if transposed_keys else dS) @ (K if keys_for_keys else Q) / back
        dK = dK * root if only_queries else dK
        pieces = {"q": dQ @ W_q.T, "k": dK @ W_k.T, "v": dV @ W_v.T}
        return sum(pieces[part] for part in parts)

    return answer


def without_transposes(G, X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    root = np.sqrt(K.shape[1])
    A = softmax(Q @ K.T / root)
    dS = solve_grad_scores(G, A, V)
    return dS @ K / root @ W_q + dS.T @ Q / root @ W_k + A.T @ G @ W_v


def gradient_of_w_q(G, X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    root = np.sqrt(K.shape[1])
    return X.T @ (solve_grad_scores(G, softmax(Q @ K.T / root), V) @ K / root)


def scores_agree(f, rng):
    S, V, G = rng.normal(size=(3, 3)), rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    return np.allclose(f(G, softmax(S), V), differences(lambda S: softmax(S) @ V, S, G), atol=1e-7)


def drawn(rng):
    return rng.normal(size=(4, 2)), rng.normal(size=(4, 3)), *(rng.normal(size=(3, 2)) for _ in range(3))


def x_agrees(f, rng):
    G, X, *W = drawn(rng)
    return np.allclose(f(G, X, *W), differences(lambda X: forward(X, *W), X, G), atol=1e-7)


HALF = np.full((2, 2), 0.5)

SCORES = Exercise(
    name="14.grad_scores",
    minutes=10,
    task=(
        "G arrives at B = A V, where A = softmax(scores) row by row. The gradient of the scores.",
        "传到B = A V的是G，其中A是对分数逐行做softmax得到的。求分数的梯度。",
    ),
    solution=solve_grad_scores,
    cases=(
        Case((np.array([[1.0], [2.0]]), HALF, np.array([[3.0], [1.0]])), [[0.5, -0.5], [1, -1]]),
        Case((np.array([[4.0]]), np.array([[1.0]]), np.array([[7.0]])), [[0]]),
    ),
    sample=lambda rng: (rng.normal(size=(3, 2)), softmax(rng.normal(size=(3, 3))), rng.normal(size=(3, 2))),
    properties=(
        Property(("it agrees with differences", "与差分一致"), scores_agree),
        Property(
            ("adding the same vector to every value changes nothing", "所有的值加上同一个向量，结果不变"),
            lambda f, rng: (lambda G, A, V: np.allclose(f(G, A, V), f(G, A, V + 5)))(
                rng.normal(size=(3, 2)), softmax(rng.normal(size=(3, 3))), rng.normal(size=(3, 2))
            ),
        ),
    ),
    wrong=(
        Wrong(
            lambda G, A, V: G @ V.T,
            (
                "this is what reaches the weights; it still has to go through softmax.",
                "这是传到权重的；还要穿过softmax。",
            ),
        ),
        Wrong(
            lambda G, A, V: A * (1 - A) * (G @ V.T),
            (
                "this is the diagonal of softmax's Jacobian only; the entries -s_i s_j are missing.",
                "这只是softmax雅可比矩阵的对角线；缺了-s_i s_j那些元素。",
            ),
        ),
        Wrong(
            lambda G, A, V: A * ((G @ V.T) - ((G @ V.T) * A).sum(axis=0, keepdims=True)),
            ("the mean runs over the queries; each row has its own.", "平均沿查询的方向做了；每一行有自己的平均。"),
        ),
        Wrong(
            lambda G, A, V: A * ((G @ V.T) - ((G @ V.T) * A).sum()),
            ("the sum runs over the whole table; each row has its own.", "求和跨了整张表；每一行有自己的和。"),
        ),
        Wrong(
            lambda G, A, V: A * (G @ V.T),
            ("the mean has not been subtracted.", "没有减去平均。"),
        ),
        Wrong(
            with_mean(lambda dA, A: dA.mean(axis=-1, keepdims=True)),
            (
                "the plain mean of each row is subtracted; it must be weighted with A: the sum of dA * A.",
                "减去的是每一行的普通平均；应当按A加权：dA * A之和。",
            ),
        ),
        Wrong(
            with_mean(lambda dA, A: (dA * A).sum(axis=-1)),
            (
                "the sums have lost their axis, so they meet the columns: keepdims=True.",
                "求和之后轴没有了，于是对到列上去了：要用keepdims=True。",
            ),
        ),
        Wrong(
            lambda G, A, V: A.T @ G,
            ("this is the gradient of V; the scores were asked for.", "这是V的梯度；要的是分数的梯度。"),
        ),
        Wrong(
            lambda G, A, V: solve_grad_scores(G, softmax(A), V),
            ("softmax was taken once more: A are the weights already.", "又做了一次softmax：A已经是权重了。"),
        ),
        Wrong(
            lambda G, A, V: solve_grad_scores(G, A, V) / np.sqrt(V.shape[1]),
            (
                "divided by a root; the √d_k belongs to the step before, from Q and K to the scores.",
                "除以了一个根号；√d_k属于前一步，即从Q和K到分数的那一步。",
            ),
        ),
        Wrong(
            lambda G, A, V: A * (V.T @ G - (V.T @ G * A).sum(axis=-1, keepdims=True)),
            (
                "Vᵀ G: what reaches A is G Vᵀ, a row for each query and a column for each key.",
                "写成了Vᵀ G：传到A的是G Vᵀ，每个查询一行，每个键一列。",
            ),
        ),
        Wrong(
            lambda G, A, V: G @ V.T - ((G @ V.T) * A).sum(axis=-1, keepdims=True),
            ("the factor A in front is missing.", "前面少了因子A。"),
        ),
    ),
    hints=(
        ("First what reaches A: a matrix product, G Vᵀ.", "先求传到A的：是矩阵乘积，G Vᵀ。"),
        (
            "Then 07.softmax_vjp for each row: s * (g - the sum of g s).",
            "再对每一行用07.softmax_vjp：s * (g - g s之和)。",
        ),
        ("The sum runs over the keys: axis=-1, keepdims=True.", "求和沿键的方向：axis=-1, keepdims=True。"),
    ),
)

WORDS = Exercise(
    name="14.grad_x",
    minutes=20,
    task=(
        "G arrives at softmax(Q Kᵀ / √d_k) V with Q = X W_q, K = X W_k, V = X W_v. The gradient of X, with NumPy.",
        "传到softmax(Q Kᵀ / √d_k) V的是G，其中Q = X W_q，K = X W_k，V = X W_v。用NumPy求X的梯度。",
    ),
    solution=solve_grad_x,
    cases=(
        # One word looks at itself with weight 1, whatever q and k are: only V counts.
        Case((np.array([[2.0]]), np.array([[3.0]]), np.array([[9.0]]), np.array([[9.0]]), np.array([[5.0]])), [[10]]),
        # Zero values: nothing depends on the weights, so only the third piece is left, half from each word.
        Case(
            (np.array([[2.0], [4.0]]), np.zeros((2, 1)), *(np.array([[1.0]]),) * 3),
            [[3], [3]],
        ),
    ),
    sample=drawn,
    properties=(Property(("it agrees with differences", "与差分一致"), x_agrees),),
    wrong=(
        Wrong(
            spoiled(scale=False),
            ("the factor 1/√d_k is missing on the way back.", "往回走时少了因子1/√d_k。"),
        ),
        Wrong(
            spoiled(mean=False),
            (
                "softmax goes back by its diagonal only; the mean must be subtracted.",
                "穿过softmax时只用了对角线；还要减去平均。",
            ),
        ),
        Wrong(
            spoiled(transposed_keys=False),
            ("dK needs the transpose of dS: it collects over the queries.", "dK要用dS的转置：它要沿查询收集。"),
        ),
        Wrong(
            spoiled(transposed_values=False),
            (
                "dV needs the transpose of the weights: it collects over the queries.",
                "dV要用权重的转置：它要沿查询收集。",
            ),
        ),
        Wrong(
            spoiled(parts="v"),
            ("only the piece by way of the values; two are missing.", "只有经过值的那一份；还缺两份。"),
        ),
        Wrong(spoiled(parts="qk"), ("the piece by way of the values is missing.", "缺了经过值的那一份。")),
        Wrong(spoiled(parts="qv"), ("the piece by way of the keys is missing.", "缺了经过键的那一份。")),
        Wrong(spoiled(parts="kv"), ("the piece by way of the queries is missing.", "缺了经过查询的那一份。")),
        Wrong(
            spoiled(only_queries=True),
            ("the factor 1/√d_k is in dQ only; dK needs it as well.", "只有dQ里有因子1/√d_k；dK也要有。"),
        ),
        Wrong(
            spoiled(forward_root=False),
            (
                "going forwards the scores were not divided by √d_k, so the weights are others.",
                "正向时分数没有除以√d_k，所以权重就不对了。",
            ),
        ),
        Wrong(
            spoiled(width="d"),
            ("divided by √d, the width of X; d_k is the width of Q and K.", "除以了√d，即X的宽度；d_k是Q和K的宽度。"),
        ),
        Wrong(
            spoiled(keys_for_keys=True),
            (
                "dK = dSᵀ K: in a product each factor gets the *other* one, dSᵀ Q.",
                "写成了dK = dSᵀ K：乘积里每个因子得到的是*另一个*因子，dSᵀ Q。",
            ),
        ),
        Wrong(
            without_transposes,
            (
                "dQ W_q, dK W_k, dV W_v: going back through X W takes Wᵀ (lesson 05).",
                "写成了dQ W_q、dK W_k、dV W_v：往回穿过X W要用Wᵀ（第05课）。",
            ),
        ),
        Wrong(
            gradient_of_w_q, ("this is the gradient of W_q; the one of X was asked for.", "这是W_q的梯度；要的是X的。")
        ),
    ),
    hints=(
        (
            "First forwards, keeping Q, K, V and the weights A. Then the four steps of the lesson.",
            "先正向算一遍，留住Q、K、V和权重A。然后是课里的四步。",
        ),
        (
            "dV = Aᵀ G; dA = G Vᵀ; dS by softmax; dQ = dS K / √d_k; dK = dSᵀ Q / √d_k.",
            "dV = Aᵀ G；dA = G Vᵀ；dS穿过softmax；dQ = dS K / √d_k；dK = dSᵀ Q / √d_k。",
        ),
        ("X gets three pieces: dQ W_qᵀ + dK W_kᵀ + dV W_vᵀ.", "X得到三份：dQ W_qᵀ + dK W_kᵀ + dV W_vᵀ。"),
    ),
)

EXERCISES = (SCORES, WORDS)
