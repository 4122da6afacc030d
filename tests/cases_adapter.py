"""The names that the worked cases use, each in terms of what a learner would write.

The cases are not part of the repository: ``test_cases.py`` finds them through TINYATTN_SHARED, and their own
runner takes this file too.  A name that the package cannot offer yet is not defined; its cases are skipped.
"""

from __future__ import annotations

import importlib.util as _importlib_util
import re as _re

import numpy as _np

import tinyattn as _ta
from tinyattn import (  # noqa: F401 - the cases use them by these names
    abs,
    broadcast_to,
    clip,
    cross_entropy,
    einsum,
    embedding,
    exp,
    layer_norm,
    log,
    log_softmax,
    logsumexp,
    masked_fill,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    no_grad,
    norm,
    one_hot,
    relu,
    reshape,
    sigmoid,
    softmax,
    sqrt,
    stack,
    std,
    sum,
    swapaxes,
    tanh,
    transpose,
    var,
    where,
)
from tinyattn import concatenate as concat  # noqa: F401

# -- tensors ----------------------------------------------------------------------------------------------


def tensor(a, grad=False):
    return _ta.tensor(a, requires_grad=grad)


def is_tensor(x):
    return isinstance(x, _ta.Tensor)


def value(t):
    return t.numpy()


def backward(t, seed=None):
    t.backward(seed)


def grad(t):
    return None if t.grad is None else t.grad.copy()


def grad_itself(t):
    return t.grad


def zero_grad(*tensors):
    for t in tensors:
        t.zero_grad()


def set_data(t, a):
    t.assign(a)


def dtype_of(x):
    return str(x.dtype)


def requires_grad(t):
    return t.requires_grad


def detach(t):
    return t.detach()


# -- layers -----------------------------------------------------------------------------------------------


def dropout(x, p, training):
    return _ta.dropout(x, p, rng=0, training=training)


def binary_cross_entropy(p, y):
    return _ta.mean(-(y * _ta.log(p) + (1 - y) * _ta.log(1 - p)))


# -- attention, words in rows -------------------------------------------------------------------------------


def attention(q, k, v, keep=None, bias=None, causal=False, scale=None):
    return _ta.nn.attention(q, k, v, keep=keep, bias=bias, causal=causal, scale=scale)


def attention_weights(q, k, keep=None, bias=None, causal=False, scale=None):
    values = _np.zeros((*k.shape[:-1], 1))
    return _ta.nn.attention(q, k, values, keep=keep, bias=bias, causal=causal, scale=scale, return_steps=True).weights


def additive_scores(q, k, wq, wk, v):
    return _ta.nn.scores.additive(q, k, wq, wk, v)


def split_heads(x, heads):
    return _ta.nn.split_heads(x, heads)


def merge_heads(x):
    return _ta.nn.merge_heads(x)


def multi_head_attention(x, wq, wk, wv, wo, heads, keep=None, causal=False):
    layer = _ta.nn.MultiHeadAttention(x.shape[-1], heads, rng=0)
    layer.W_q, layer.W_k, layer.W_v, layer.W_o = wq, wk, wv, wo
    return layer(x, keep=keep, causal=causal)


# -- checking ---------------------------------------------------------------------------------------------


def numeric_gradient(f, t, h):
    """Central differences with one step, from values alone."""
    slopes = _np.zeros(t.shape)
    for place in _np.ndindex(t.shape):
        moved = []
        for by in (h, -h):
            x = t.numpy()
            x[place] += by
            moved.append(float(f(_ta.tensor(x))))
        slopes[place] = (moved[0] - moved[1]) / (2 * h)
    return slopes


if _importlib_util.find_spec("tinyattn.check.gradients") is not None:

    def gradcheck(f, tensors):
        from tinyattn.check import check_gradients

        return bool(check_gradients(f, *tensors))


if _importlib_util.find_spec("tinyattn.symbolic") is not None:

    def symbolic_gradient(f, tensors, which, names=None):
        from tinyattn.symbolic import sympy_gradients

        leaves = [_ta.tensor(t, requires_grad=True) for t in tensors]
        given = dict(zip(names, leaves, strict=True)) if names else None
        variables = {f"input{i}": t for i, t in enumerate(leaves)}
        graph = _ta.Graph.of(f(*leaves), names=given, variables=variables)
        wanted = names[which] if names else f"input{which}"
        index = graph.find(wanted).index
        return sympy_gradients(graph, [index])[index]


# -- drawing ----------------------------------------------------------------------------------------------

if _importlib_util.find_spec("viz") is not None:

    def _named(labels):
        """Labels by name; the second tensor of a label gets a number: a name belongs to one tensor."""
        names = {}
        for t, label in labels:
            names[label if label not in names else f"{label}·{len(names) + 1}"] = t
        return names

    def draw(t, labels):
        import viz

        # Nodes carry their kind as a second class; the runner counts those whose class is "node" and no more.
        return _re.sub(r" class=\w+", "", viz.draw(t, names=_named(labels)).dot)

    def save_drawing(t, labels, path):
        import viz

        viz.draw(t, names=_named(labels)).save(path)


# -- reading ----------------------------------------------------------------------------------------------

if _importlib_util.find_spec("tinyattn.data") is not None:
    from tinyattn.data import frames, pad_batch, read_wav, tagging_accuracy  # noqa: F401
    from tinyattn.data import parse_glove as read_glove  # noqa: F401 - the cases give the text itself

    def read_conllu(text):
        return [[list(pair) for pair in sentence] for sentence in _ta.data.parse_conllu(text)]
