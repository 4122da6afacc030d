"""Every kind of attention a second time, as the lecture draws it: a loop over single vectors, one query at a time.

Vectors in, vectors out: `a` is a list of tensors of shape (d,), and only products of single vectors are used.  Nothing
here is shared with `tinyattn.nn`; written on tensors, so that gradients can be compared, too.
"""

from __future__ import annotations

import math

import numpy as np

import tinyattn as ta


def vectors(x: ta.Tensor) -> list[ta.Tensor]:
    """The rows of a matrix."""
    return [x[i] for i in range(x.shape[0])]


def product(a: ta.Tensor, b: ta.Tensor) -> ta.Tensor:
    return ta.sum(a * b)


# -- score: how well does key k answer query q? -----------------------------------------------------------------


def dot(q, k):
    return product(q, k)


def scaled_dot(q, k):
    return product(q, k) / math.sqrt(k.shape[0])


def additive(q, k, W_q, W_k, v):
    return product(v, ta.tanh(q @ W_q + k @ W_k))


def general(q, k, W):
    return product(q @ W, k)


def positive(x):
    """The feature map: every entry x + 1, or exp(x) where x is negative."""
    return ta.stack([x[i] + 1 if x.data[i] > 0 else ta.exp(x[i]) for i in range(x.shape[0])])


def kernel(q, k):
    return product(positive(q), positive(k))


# -- from the scores of one query to its weights -----------------------------------------------------------------


def softmax(alphas):
    powers = [ta.exp(alpha) for alpha in alphas]
    return [power / sum(powers) for power in powers]


def relu(alphas):
    return [ta.relu(alpha) / len(alphas) for alpha in alphas]


def relu_raw(alphas):
    return [ta.relu(alpha) for alpha in alphas]


def linear(alphas):
    return [alpha / sum(alphas) for alpha in alphas]


# -- attention ------------------------------------------------------------------------------------------------------


def attention(q, k, v, score=scaled_dot, weigh=softmax, keep=None, bias=None):
    """For each query: score the keys it may see, turn the scores into weights, add up the weighted values."""
    outputs = []
    for i, asking in enumerate(q):
        seen = [j for j in range(len(k)) if keep is None or keep[i][j]]
        alphas = [score(asking, k[j]) + (0.0 if bias is None else bias[i][j]) for j in seen]
        weights = weigh(alphas) if seen else []
        terms = [weight * v[j] for weight, j in zip(weights, seen, strict=True)]
        outputs.append(sum(terms[1:], terms[0]) if terms else v[0] * 0.0)
    return ta.stack(outputs)


def self_attention(a, W_q, W_k, W_v, **parts):
    """The lecture's seven steps: q, k and v of every vector, then attention."""
    return attention([b @ W_q for b in a], [b @ W_k for b in a], [b @ W_v for b in a], **parts)


def multi_head(a, keys, values, W_q, W_k, W_v, W_o, heads, **parts):
    """One attention after the other, each on its own columns; then the matrix that joins them."""
    found = []
    for head in range(heads):
        Q, K, V = (columns(W, head, heads) for W in (W_q, W_k, W_v))
        found.append(attention([b @ Q for b in a], [b @ K for b in keys], [b @ V for b in values], **parts))
    return ta.concatenate(found, axis=-1) @ W_o


def columns(W, head, heads):
    width = W.shape[1] // heads
    return W[:, head * width : (head + 1) * width]


def fastformer(a, W_q, W_k, W_v, w_alpha, w_beta, W_u):
    """Wu et al. 2021, section 3.2: one global query, one global key."""
    q, k, v = ([b @ W for b in a] for W in (W_q, W_k, W_v))
    root = math.sqrt(W_q.shape[1])
    alphas = softmax([product(query, w_alpha) / root for query in q])
    global_query = sum(alpha * query for alpha, query in zip(alphas, q, strict=True))
    p = [key * global_query for key in k]
    betas = softmax([product(each, w_beta) / root for each in p])
    global_key = sum(beta * each for beta, each in zip(betas, p, strict=True))
    return ta.stack([(value * global_key) @ W_u + query for value, query in zip(v, q, strict=True)])


def fastformer_in_heads(a, W_q, W_k, W_v, w_alpha, w_beta, W_u):
    """Section 3.1 of the same, heads beside each other: each works on its own columns, and W_u sees them all."""
    heads, _, d_k = w_alpha.shape
    found = []
    for head in range(heads):
        mine = slice(head * d_k, (head + 1) * d_k)
        q, k, v = ([b @ W[:, mine] for b in a] for W in (W_q, W_k, W_v))
        alphas = softmax([product(query, w_alpha[head, 0]) / math.sqrt(d_k) for query in q])
        global_query = sum(alpha * query for alpha, query in zip(alphas, q, strict=True))
        p = [key * global_query for key in k]
        betas = softmax([product(each, w_beta[head, 0]) / math.sqrt(d_k) for each in p])
        global_key = sum(beta * each for beta, each in zip(betas, p, strict=True))
        found.append([value * global_key for value in v])
    beside = [ta.concatenate(list(pieces)) for pieces in zip(*found, strict=True)]
    return ta.stack([piece @ W_u + b @ W_q for piece, b in zip(beside, a, strict=True)])


def rotated(x, position, base=10000.0):
    """Su et al. 2021, equation 15: each pair turned like a complex number."""
    d, parts = x.shape[0], []
    for pair in range(d // 2):
        angle = position * base ** (-2 * pair / d)
        one, other = x[2 * pair], x[2 * pair + 1]
        parts += [one * math.cos(angle) - other * math.sin(angle), one * math.sin(angle) + other * math.cos(angle)]
    return ta.stack(parts)


def in_columns(A, W_q, W_k, W_v):
    """The lecture's matrices: vectors stand in columns, A' = softmax of KᵀQ down each column, O = V A'."""
    Q, K, V = W_q @ A, W_k @ A, W_v @ A
    scores = K.mT @ Q / math.sqrt(K.shape[0])
    return V @ ta.softmax(scores, axis=0)


def see_up_to(n: int, m: int) -> list[list[bool]]:
    """Causal, aligned at the end."""
    return [[j <= i + m - n for j in range(m)] for i in range(n)]


def within(n: int, reach: int) -> list[list[bool]]:
    return [[abs(i - j) <= reach for j in range(n)] for i in range(n)]


def random_mask(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Some pairs hidden, and one query that sees nothing."""
    keep = rng.random((n, m)) < 0.6
    keep[rng.integers(n)] = False
    return keep
