"""Small recorded computations that the symbolic side must be able to derive: every kind that the lessons use."""

import numpy as np

import tinyattn as ta


class Maker:
    """Tensors with names, all from one seed."""

    def __init__(self, seed=0, spread=1.0):
        self.rng, self.spread = np.random.default_rng(seed), spread

    def leaf(self, name, *shape):
        return ta.tensor(self.rng.normal(size=shape) * self.spread, requires_grad=True, name=name)

    def fixed(self, name, *shape):
        return ta.tensor(self.rng.normal(size=shape), name=name)


def attention(seed=0, spread=1.0, n=3, m=4, d=2, k=5):
    make = Maker(seed, spread)
    Q, K, V, C = make.leaf("Q", n, d), make.leaf("K", m, d), make.leaf("V", m, k), make.fixed("C", n, k)
    S = (Q @ K.mT) / ta.sqrt(ta.size_of(K, -1))
    P = ta.softmax(S)
    O = P @ V  # noqa: E741
    L = (O * C).sum()
    return L, [Q, K, V]


def composed_softmax(seed=0):
    make = Maker(seed)
    Q, K, V, C = make.leaf("Q", 3, 2), make.leaf("K", 4, 2), make.leaf("V", 4, 5), make.fixed("C", 3, 5)
    S = Q @ K.mT / ta.sqrt(ta.size_of(K, -1))
    E = ta.exp(S)
    Z = E.sum(axis=-1, keepdims=True)
    P = E / Z
    L = ((P @ V) * C).sum()
    return L, [Q, K, V]


def affine_relu_mse(seed=0):
    make = Maker(seed)
    X, W, b, T = make.fixed("X", 5, 3), make.leaf("W", 3, 4), make.leaf("b", 4), make.fixed("T", 5, 4)
    H = ta.relu(X @ W + b)
    L = ((H - T) ** 2).mean()
    return L, [W, b]


def additive_score(seed=0):
    make = Maker(seed)
    Q, K, V, C = make.leaf("Q", 2, 2), make.leaf("K", 3, 2), make.leaf("V", 3, 2), make.fixed("C", 2, 2)
    A, B, w = make.leaf("A", 2, 3), make.leaf("B", 2, 3), make.leaf("w", 3)
    U = ta.tanh((Q @ A)[:, None, :] + (K @ B)[None, :, :])
    S = U @ w
    P = ta.softmax(S)
    L = ((P @ V) * C).sum()
    return L, [Q, K, V, A, B, w]


def relu_attention(seed=0):
    make = Maker(seed)
    Q, K, V, C = make.leaf("Q", 3, 2), make.leaf("K", 4, 2), make.leaf("V", 4, 5), make.fixed("C", 3, 5)
    S = Q @ K.mT
    R = ta.relu(S)
    L = ((R @ V) * C).sum()
    return L, [Q, K, V]


def self_attention(seed=0, n=4, d=3, k=2, keep=None):
    make = Maker(seed)
    X, W_q, W_k, W_v = make.leaf("X", n, d), make.leaf("W_q", d, k), make.leaf("W_k", d, k), make.leaf("W_v", d, k)
    C = make.fixed("C", n, k)
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    S = Q @ K.mT / ta.sqrt(ta.size_of(K, -1))
    A = ta.softmax(S, keep=keep)
    L = ((A @ V) * C).sum()
    return L, [X, W_q, W_k, W_v]


def causal(seed=0):
    return self_attention(seed, keep=np.tril(np.ones((4, 4), bool)))


def padding_by_fill(seed=0):
    make = Maker(seed)
    X, W, C = make.leaf("X", 4, 3), make.leaf("W", 3, 3), make.fixed("C", 4, 3)
    hidden = np.array([[False, False, False, True]] * 4)
    S = ta.masked_fill(X @ W @ X.mT, hidden, -1e9)
    L = ((ta.softmax(S) @ X) * C).sum()
    return L, [X, W]


def _heads(Y, h):
    n, width = Y.shape
    return Y.reshape(n, h, width // h).transpose(1, 0, 2)


def multi_head(seed=0, n=3, d=4, h=2):
    make = Maker(seed)
    X, C = make.leaf("X", n, d), make.fixed("C", n, 5)
    W_q, W_k, W_v = (make.leaf(f"W_{c}", d, d) for c in "qkv")
    W_o = make.leaf("W_o", d, 5)
    Q, K, V = _heads(X @ W_q, h), _heads(X @ W_k, h), _heads(X @ W_v, h)
    A = ta.softmax(Q @ K.mT / ta.sqrt(ta.size_of(K, -1)))
    O = (A @ V).transpose(1, 0, 2).reshape(n, d)  # noqa: E741
    L = ((O @ W_o) * C).sum()
    return L, [X, W_q, W_k, W_v, W_o]


def layer_norm_fused(seed=0):
    make = Maker(seed)
    X, g, b, C = make.leaf("X", 3, 4), make.leaf("g", 4), make.leaf("b", 4), make.fixed("C", 3, 4)
    Y = ta.layer_norm(X, g, b)
    L = (Y * C).sum()
    return L, [X, g, b]


def layer_norm_composed(seed=0):
    make = Maker(seed)
    X, g, b, C = make.leaf("X", 3, 4), make.leaf("g", 4), make.leaf("b", 4), make.fixed("C", 3, 4)
    m = X.mean(axis=-1, keepdims=True)
    U = X - m
    v = (U * U).mean(axis=-1, keepdims=True)
    Z = U / ta.sqrt(v + 1e-5)
    L = ((Z * g + b) * C).sum()
    return L, [X, g, b]


def cross_entropy(seed=0):
    make = Maker(seed)
    X, W = make.fixed("X", 5, 3), make.leaf("W", 3, 4)
    Z = X @ W
    L = ta.cross_entropy(Z, np.array([0, 3, 1, 1, 2]))
    return L, [W]


def cross_entropy_with_ignored(seed=0):
    make = Maker(seed)
    X, W = make.fixed("X", 5, 3), make.leaf("W", 3, 4)
    Z = X @ W
    L = ta.cross_entropy(Z, np.array([0, 3, -1, 1, 2]), ignore_index=-1, label_smoothing=0.1)
    return L, [W]


def log_likelihood(seed=0):
    make = Maker(seed)
    Z = make.leaf("Z", 5, 4)
    Y = ta.log_softmax(Z)
    L = -Y[np.arange(5), np.array([0, 3, 1, 1, 2])].mean()
    return L, [Z]


def embedding(seed=0):
    make = Maker(seed)
    E, W = make.leaf("E", 6, 3), make.leaf("W", 3, 2)
    X = ta.embedding(E, np.array([1, 4, 1]))
    L = ta.tanh(X @ W).sum()
    return L, [E, W]


def fused_attention(seed=0):
    make = Maker(seed)
    Q, K, V, C = make.leaf("Q", 3, 2), make.leaf("K", 4, 2), make.leaf("V", 4, 5), make.fixed("C", 3, 5)
    O = ta.scaled_dot_product_attention(Q, K, V, causal=True)  # noqa: E741
    L = (O * C).sum()
    return L, [Q, K, V]


def transformer_block(seed=0, n=3, d=4, h=2, wide=6):
    make = Maker(seed)
    X, C = make.leaf("X", n, d), make.fixed("C", n, d)
    W_q, W_k, W_v, W_o = (make.leaf(f"W_{c}", d, d) for c in "qkvo")
    g1, b1, g2, b2 = (make.leaf(name, d) for name in ("g1", "b1", "g2", "b2"))
    W1, c1, W2, c2 = make.leaf("W1", d, wide), make.leaf("c1", wide), make.leaf("W2", wide, d), make.leaf("c2", d)
    N = ta.layer_norm(X, g1, b1)
    Q, K, V = _heads(N @ W_q, h), _heads(N @ W_k, h), _heads(N @ W_v, h)
    A = ta.softmax(Q @ K.mT / ta.sqrt(ta.size_of(K, -1)))
    R = X + (A @ V).transpose(1, 0, 2).reshape(n, d) @ W_o
    M = ta.gelu(ta.layer_norm(R, g2, b2) @ W1 + c1) @ W2 + c2
    L = ((R + M) * C).sum()
    return L, [X, W_q, W_k, W_v, W_o, g1, b1, g2, b2, W1, c1, W2, c2]


def joined(seed=0):
    make = Maker(seed)
    A, B, W = make.leaf("A", 2, 3), make.leaf("B", 3, 3), make.leaf("W", 3, 2)
    L = ta.tanh(ta.concatenate([A, B], axis=0) @ W).sum()
    return L, [A, B, W]


def sliced(seed=0):
    A = Maker(seed).leaf("A", 4, 6)
    L = ta.exp(A[:, 1:4] * A[:, 3:6]).sum()
    return L, [A]


def largest(seed=0):
    A = Maker(seed).leaf("A", 4, 6)
    m = A.max(axis=1)
    L = (m * m).sum()
    return L, [A]


def reused(seed=0):
    make = Maker(seed)
    x = ta.tensor(make.rng.uniform(0.5, 2, 3), requires_grad=True, name="x")
    y = x * x
    L = (y * x + y / x).sum()
    return L, [x]


def one_query(seed=0):
    make = Maker(seed)
    q, K, V = make.leaf("q", 2), make.leaf("K", 4, 2), make.leaf("V", 4, 3)
    s = K @ q
    p = ta.softmax(s)
    o = p @ V
    L = (o * o).sum()
    return L, [q, K, V]


def batched(seed=0):
    make = Maker(seed)
    X, W, C = make.leaf("X", 2, 3, 4), make.leaf("W", 4, 5), make.fixed("C", 2, 3, 5)
    L = (ta.sigmoid(X @ W) * C).sum()
    return L, [X, W]


def hessian_vector(seed=0):
    """The gradient of (gradient of the loss by Q, times a vector): second order."""
    make = Maker(seed)
    Q, K, V, C, U = (
        make.leaf("Q", 2, 2),
        make.leaf("K", 3, 2),
        make.leaf("V", 3, 2),
        make.fixed("C", 2, 2),
        make.fixed("U", 2, 2),
    )
    P = ta.softmax(Q @ K.mT / ta.sqrt(ta.size_of(K, -1)))
    g = ta.grad(((P @ V) * C).sum(), Q, create_graph=True)
    L = (g * U).sum()
    return L, [Q, K, V]


MODELS = (
    attention, composed_softmax, affine_relu_mse, additive_score, relu_attention, self_attention, causal,
    padding_by_fill, multi_head, layer_norm_fused, layer_norm_composed, cross_entropy, cross_entropy_with_ignored,
    log_likelihood, embedding, fused_attention, transformer_block, joined, sliced, largest, reused, one_query,
    batched, hessian_vector,
)  # fmt: skip


def run_program(derivation, source):
    """Run the text that `code` gives on the recorded leaves; gives the loss and the gradients by name."""
    from tinyattn.symbolic.emitting import Program

    space = {}
    exec(source, space)
    arguments = []
    for quantity in Program(derivation.lines, "einsum").inputs:
        node = derivation.graph.nodes[quantity.node]
        arrays = derivation.lines.axes.arrays
        arguments.append(arrays[quantity.node][quantity.name] if quantity.kind == "parameter" else node.value)
    return space["gradients"](*arguments)
