"""Random computations: the formulas are proved, they compute what autograd computes, and every view can be written."""

import numpy as np
import pytest
from symbolic.models import run_program

import tinyattn as ta

STEPS = (
    lambda a, b, rng: a + b,
    lambda a, b, rng: a * b,
    lambda a, b, rng: a - b,
    lambda a, b, rng: a / (b * b + 1),
    lambda a, b, rng: a @ b,
    lambda a, b, rng: a @ b.mT,
    lambda a, b, rng: a.mT,
    lambda a, b, rng: ta.softmax(a, axis=int(rng.integers(0, a.ndim))),
    lambda a, b, rng: ta.exp(a * 0.3),
    lambda a, b, rng: ta.tanh(a),
    lambda a, b, rng: ta.log(a * a + 1),
    lambda a, b, rng: a.sum(axis=int(rng.integers(0, a.ndim)), keepdims=bool(rng.integers(2))),
    lambda a, b, rng: a.mean(axis=int(rng.integers(0, a.ndim)), keepdims=bool(rng.integers(2))),
    lambda a, b, rng: ta.relu(a - 0.6),
    lambda a, b, rng: a.max(axis=int(rng.integers(0, a.ndim)), keepdims=bool(rng.integers(2))),
    lambda a, b, rng: ta.log_softmax(a, axis=-1),
    lambda a, b, rng: ta.sqrt(a * a + 0.5),
    lambda a, b, rng: a[rng.integers(0, a.shape[0], 3)],
    lambda a, b, rng: a[:, None],
    lambda a, b, rng: ta.concatenate([a, b], axis=0),
    lambda a, b, rng: ta.sigmoid(a) ** 2,
)
# Once wrong: a maximum of maxima, a value that nothing comes back to, a sum over a stretched axis, a steep third
# derivative.
ONCE_WRONG = (12, 53, 108, 146, 393, 403, 474, 801, 1016)


def computation(seed):
    """A few random steps from five leaves; gives the loss and the leaves that it depends on."""
    rng = np.random.default_rng(seed)
    n, m, d = map(int, rng.integers(1, 4, 3) if seed % 3 else (2, 2, 2))
    leaves = [
        ta.tensor(rng.uniform(0.3, 1.2, shape), requires_grad=True, name=f"x{at}")
        for at, shape in enumerate(((n, d), (m, d), (d, d), (d,), (n, 1)))
    ]
    pool = list(leaves)
    for _ in range(int(rng.integers(3, 9))):
        step = STEPS[int(rng.integers(0, len(STEPS)))]
        a, b = (pool[int(rng.integers(len(pool)))] for _ in range(2))
        try:
            c = step(a, b, rng)
        except (ValueError, IndexError, TypeError):
            continue  # these do not fit each other
        if 0 < c.ndim <= 4 and c.size <= 200:
            pool.append(c)
    loss = ta.tensor(0.0)
    for c in pool[-2:]:
        loss = loss + (c * c).sum()
    inside = {node.name for node in ta.Graph.of(loss).nodes}
    return loss, [leaf for leaf in leaves if leaf.name in inside]


@pytest.mark.parametrize("seed", sorted({*range(50), *ONCE_WRONG}))
def test_random_computation(seed):
    loss, leaves = computation(seed)
    derivation = ta.derive(loss, wrt=leaves)
    certificate = derivation.prove()
    assert certificate, str(certificate)
    loss.backward()
    for style in ("einsum", "matrix"):
        _, gradients = run_program(derivation, derivation.code(style))
        for leaf in leaves:
            np.testing.assert_allclose(gradients[leaf.name], leaf.grad, rtol=1e-7, atol=1e-9)
    report = ta.compare(loss, wrt=leaves, methods=("autograd", "formula", "difference"))
    assert report, str(report)
    assert derivation.text("matrix") and derivation.latex("index") and derivation.html() and derivation.ascii()
