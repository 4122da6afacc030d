"""Any shapes, axes, subscripts and keys: what NumPy computes, and the gradient that differences give.

Shapes may be 0-d, of size 1, or empty.  The derivative is compared along one random direction, so a case costs
four evaluations whatever its size.
"""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed (extra: verify)")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support import along, altered, close, differences, gradients, leaves_of

import tinyattn as ta
from tinyattn.ops import REGISTRY

settings.register_profile(
    "engine",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
    database=None,
)
settings.load_profile("engine")

SIDE = st.integers(0, 3)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
SEEDS = st.integers(0, 2**32 - 1)


def numbers(seed, shape):
    """Entries between 0.5 and 2 that differ by enough for comparisons to be decided."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    return (0.5 + 1.5 * (rng.permutation(size) + rng.uniform(0, 0.5, size)) / max(size, 1)).reshape(shape)


def agrees(f, plain, *inputs, atol=1e-8):
    """The value is NumPy's, a gradient has its input's shape, and the slope along a direction is right."""
    y = f(*leaves_of(inputs))
    want = plain(*inputs)
    close(y, want, rtol=1e-12)
    rng = np.random.default_rng(1)
    g, directions = rng.normal(size=np.shape(want)), [rng.normal(size=x.shape) for x in inputs]
    found = gradients(f, inputs, g)
    for got, x in zip(found, inputs, strict=True):
        assert got.shape == x.shape and got.dtype == x.dtype
    slope = sum((got * d).sum() for got, d in zip(found, directions, strict=True))
    change = (along(plain, inputs, directions, step=1e-4) * g).sum()
    np.testing.assert_allclose(slope, change, rtol=1e-7, atol=atol)


def test_the_property_notices_a_wrong_gradient():
    wrong = altered(REGISTRY["multiply"], vjps=(REGISTRY["multiply"].vjps[0], lambda g, y, a, b: g * b))
    with pytest.raises(AssertionError):
        agrees(wrong, np.multiply, numbers(1, (2, 3)), numbers(2, (2, 3)))


BINARY = ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum"]


@pytest.mark.parametrize("name", BINARY)
@given(shapes=arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3), seed=SEEDS)
def test_broadcasting_of_every_kind(name, shapes, seed):
    a, b = (numbers(seed + i, shape) for i, shape in enumerate(shapes.input_shapes))
    if name in ("maximum", "minimum"):
        apart = 5.0 * np.random.default_rng(seed).choice([-1, 1])
        b = b + apart
    agrees(getattr(ta, name), getattr(np, name), a, b)


@given(shapes=arrays.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3), seed=SEEDS)
def test_where_broadcasts_all_three(shapes, seed):
    mask, a, b = shapes.input_shapes
    condition = np.random.default_rng(seed).random(mask) < 0.5
    agrees(
        lambda x, y: ta.where(condition, x, y),
        lambda x, y: np.where(condition, x, y),
        numbers(seed, a),
        numbers(seed + 1, b),
    )


@given(data=st.data(), shape=SHAPES, keepdims=st.booleans(), seed=SEEDS)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std"])
def test_reductions_over_any_axes(name, data, shape, keepdims, seed):
    axes = data.draw(
        st.none()
        | (st.integers(-len(shape), len(shape) - 1) if shape else st.just(()))
        | (arrays.valid_tuple_axes(len(shape)) if shape else st.just(()))
    )
    along_axes = range(len(shape)) if axes is None else np.atleast_1d(axes).astype(int)
    count = int(np.prod([shape[a] for a in along_axes]))
    ours, plain = getattr(ta, name), getattr(np, name)
    if count == 0 and name not in ("sum", "prod"):
        with pytest.raises(ta.ShapeError, match=name):
            ours(ta.tensor(np.zeros(shape)), axes, keepdims=keepdims)
        return
    if name == "std" and count == 1:
        return  # the spread of one number is 0, where the root has no slope
    agrees(
        lambda x: ours(x, axis=axes, keepdims=keepdims),
        lambda x: plain(x, axis=axes, keepdims=keepdims),
        numbers(seed, shape),
    )


@given(
    shapes=arrays.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=4, min_side=0, max_side=3),
    seed=SEEDS,
)
@settings(max_examples=150)
def test_matmul_in_all_its_cases(shapes, seed):
    a, b = (numbers(seed + i, shape) for i, shape in enumerate(shapes.input_shapes))
    agrees(ta.matmul, np.matmul, a, b)


@st.composite
def subscripts(draw):
    """An einsum text with repeated letters, size-1 labels and a permuted result, and shapes that fit it."""
    letters = "ijkl"
    sizes = {letter: draw(st.integers(1, 3)) for letter in letters}
    operands = draw(st.lists(st.text(letters, min_size=0, max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(operands)))
    result = "".join(draw(st.permutations([letter for letter in used if draw(st.booleans())])))
    small = draw(st.lists(st.booleans(), min_size=9, max_size=9))
    flags = iter(small)
    shapes = []
    for labels in operands:
        shape = [sizes[letter] for letter in labels]
        if len(set(labels)) == len(labels) and len(operands) > 1 and next(flags):
            shape = [1 if next(flags, False) else size for size in shape]
        shapes.append(tuple(shape))
    return ",".join(operands) + "->" + result, shapes


def textbook_einsum(text, *operands):
    """The sum of products by broadcasting all labels: another way than np.einsum's."""
    left, _, result = text.partition("->")
    labels = sorted(set(left.replace(",", "")))
    total = 1.0
    for own, x in zip(left.split(","), operands, strict=True):
        for repeated in [c for c in dict.fromkeys(own) if own.count(c) > 1]:
            while own.count(repeated) > 1:
                first, second = [i for i, c in enumerate(own) if c == repeated][:2]
                x = np.moveaxis(np.diagonal(x, axis1=first, axis2=second), -1, 0)
                own = repeated + "".join(c for i, c in enumerate(own) if i not in (first, second))
        x = np.transpose(x, sorted(range(len(own)), key=lambda i: own[i]))
        total = total * x.reshape([x.shape[sorted(own).index(c)] if c in own else 1 for c in labels])
    full = np.broadcast_to(total, [max_size(c, left, operands) for c in labels])
    summed = full.sum(axis=tuple(i for i, c in enumerate(labels) if c not in result))
    kept = [c for c in labels if c in result]
    return np.transpose(summed, [kept.index(c) for c in result])


def max_size(label, left, operands):
    return max(x.shape[own.index(label)] for own, x in zip(left.split(","), operands, strict=True) if label in own)


@given(case=subscripts(), seed=SEEDS)
@settings(max_examples=200)
def test_einsum_of_any_subscripts(case, seed):
    text, shapes = case
    inputs = [numbers(seed + i, shape) for i, shape in enumerate(shapes)]
    agrees(lambda *xs: ta.einsum(text, *xs), lambda *xs: textbook_einsum(text, *xs), *inputs)


@given(data=st.data(), shape=SHAPES, seed=SEEDS)
def test_transpose_and_its_kin(data, shape, seed):
    order = data.draw(st.permutations(range(len(shape))))
    agrees(lambda x: ta.transpose(x, tuple(order)), lambda x: np.transpose(x, order), numbers(seed, shape))
    if shape:
        a, b = (data.draw(st.integers(-len(shape), len(shape) - 1)) for _ in "ab")
        agrees(lambda x: ta.swapaxes(x, a, b), lambda x: np.swapaxes(x, a, b), numbers(seed, shape))
        agrees(lambda x: ta.moveaxis(x, a, b), lambda x: np.moveaxis(x, a, b), numbers(seed, shape))
        agrees(lambda x: ta.flip(x, a), lambda x: np.flip(x, a), numbers(seed, shape))


@given(data=st.data(), shape=SHAPES, seed=SEEDS)
def test_reshape_to_any_shape_of_the_same_size(data, shape, seed):
    size = int(np.prod(shape))
    divisors = [d for d in range(1, size + 1) if size % d == 0] or [1]
    first = data.draw(st.sampled_from(divisors))
    wanted = data.draw(st.sampled_from([(-1,), (first, -1), (1, first, size // first), (first, size // first, 1)]))
    agrees(lambda x: ta.reshape(x, wanted), lambda x: np.reshape(x, wanted), numbers(seed, shape))


@given(data=st.data(), shape=arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), seed=SEEDS)
@settings(max_examples=150)
def test_basic_index_of_any_kind(data, shape, seed):
    key = data.draw(arrays.basic_indices(shape, allow_newaxis=True))
    agrees(lambda x: ta.index(x, key), lambda x: x[key], numbers(seed, shape))


@given(data=st.data(), shape=arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), seed=SEEDS)
@settings(max_examples=150)
def test_advanced_index_with_repeated_entries(data, shape, seed):
    key = data.draw(
        arrays.integer_array_indices(
            shape, result_shape=arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
        )
    )
    agrees(lambda x: ta.index(x, key), lambda x: x[key], numbers(seed, shape))


@given(data=st.data(), shape=arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3), seed=SEEDS)
def test_boolean_index(data, shape, seed):
    mask = data.draw(arrays.arrays(bool, shape[: data.draw(st.integers(1, len(shape)))]))
    agrees(lambda x: ta.index(x, mask), lambda x: x[mask], numbers(seed, shape))


@given(data=st.data(), shape=arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3), seed=SEEDS)
def test_joining_and_splitting(data, shape, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    others = [tuple(data.draw(SIDE) if a == axis % len(shape) else n for a, n in enumerate(shape)) for _ in range(2)]
    pieces = [numbers(seed + i, s) for i, s in enumerate([shape, *others])]
    agrees(lambda *xs: ta.concatenate(xs, axis), lambda *xs: np.concatenate(xs, axis), *pieces)
    new = data.draw(st.integers(-len(shape) - 1, len(shape)))
    twins = [numbers(seed + i, shape) for i in range(3)]
    agrees(lambda *xs: ta.stack(xs, new), lambda *xs: np.stack(xs, new), *twins)
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=3)))
    for i, part in enumerate(np.split(pieces[0], cuts, axis)):
        agrees(lambda x, i=i: ta.split(x, cuts, axis)[i], lambda x, i=i: np.split(x, cuts, axis)[i], pieces[0])
        assert part.shape == ta.split(pieces[0], cuts, axis)[i].shape


@given(shapes=arrays.mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 3), max_dims=2), seed=SEEDS)
def test_broadcast_to(shapes, seed):
    (shape,) = shapes.input_shapes
    agrees(lambda x: ta.broadcast_to(x, (2, 3)), lambda x: np.broadcast_to(x, (2, 3)), numbers(seed, shape))


@given(data=st.data(), shape=arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3), seed=SEEDS)
def test_take_along_axis(data, shape, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]
    count = data.draw(st.integers(0, 4)) if size else 0
    rows = tuple(count if a == axis % len(shape) else n for a, n in enumerate(shape))
    indices = np.random.default_rng(seed).integers(0, max(size, 1), rows)
    agrees(
        lambda x: ta.take_along_axis(x, indices, axis),
        lambda x: np.take_along_axis(x, indices, axis),
        numbers(seed, shape),
    )


@given(data=st.data(), shape=SHAPES, seed=SEEDS)
def test_pad_and_new_axes(data, shape, seed):
    widths = [(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in shape]
    if shape:
        agrees(
            lambda x: ta.pad(x, widths, 0.5),
            lambda x: np.pad(x, widths, constant_values=0.5),
            numbers(seed, shape),
        )
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    agrees(lambda x: ta.expand_dims(x, axis), lambda x: np.expand_dims(x, axis), numbers(seed, shape))
    agrees(lambda x: ta.squeeze(x), lambda x: np.squeeze(x), numbers(seed, shape))


@given(data=st.data(), shape=arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), seed=SEEDS)
def test_softmax_family_along_any_axis(data, shape, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = 3 * numbers(seed, shape)

    def plain(x):
        e = np.exp(x)
        return e / e.sum(axis, keepdims=True)

    agrees(lambda x: ta.softmax(x, axis), plain, x)
    agrees(lambda x: ta.log_softmax(x, axis), lambda x: np.log(plain(x)), x)
    agrees(lambda x: ta.logsumexp(x, axis), lambda x: np.log(np.exp(x).sum(axis)), x)


@given(data=st.data(), seed=SEEDS)
def test_softmax_with_any_mask_reads_only_what_is_kept(data, seed):
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    keep = data.draw(arrays.arrays(bool, shape))
    x = numbers(seed, shape)
    spoiled = np.where(keep, x, np.nan)

    def plain(x):
        e = np.where(keep, np.exp(np.where(keep, x, 0.0)), 0.0)
        total = e.sum(-1, keepdims=True)
        return e / np.where(total == 0, 1, total)

    agrees(lambda x: ta.softmax(x, keep=keep), plain, x)
    g = np.random.default_rng(0).normal(size=shape)
    clean = gradients(lambda x: ta.softmax(x, keep=keep), [x], g)[0]
    close(gradients(lambda x: ta.softmax(x, keep=keep), [spoiled], g)[0], clean, rtol=0, atol=0)
    assert not clean[~keep].any()


@given(
    batch=arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=2),
    n=st.integers(0, 3),
    m=st.integers(0, 4),
    d=st.integers(1, 3),
    causal=st.booleans(),
    masked=st.booleans(),
    seed=SEEDS,
)
def test_attention_of_any_size(batch, n, m, d, causal, masked, seed):
    rng = np.random.default_rng(seed)
    keep = rng.random((*batch, n, m)) < 0.6 if masked else None
    seen = (np.tri(n, m, m - n, dtype=bool) if causal else True) & (keep if masked else np.ones((n, m), bool))

    def plain(q, k, v):
        e = np.exp(q @ np.swapaxes(k, -1, -2) / np.sqrt(d)) * seen
        total = e.sum(-1, keepdims=True)
        return e / np.where(total == 0, 1, total) @ v

    inputs = [numbers(seed + i, (*batch, rows, wide)) for i, (rows, wide) in enumerate(((n, d), (m, d), (m, 2)))]
    agrees(lambda q, k, v: ta.scaled_dot_product_attention(q, k, v, keep=keep, causal=causal), plain, *inputs)


@given(shape=arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3), seed=SEEDS)
@settings(max_examples=20)
def test_directional_and_entrywise_differences_agree(shape, seed):
    """The cheap comparison above measures what the entry by entry one does."""
    x, direction = numbers(seed, shape), np.random.default_rng(seed).normal(size=shape)
    close(
        along(np.log, [x], [direction]).sum(),
        (differences(np.log, [x])[0] * direction).sum(),
        rtol=1e-7,
        atol=1e-9,
    )
