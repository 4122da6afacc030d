"""The texts of the commonest errors, word for word: what happened, why, what to write instead."""

import textwrap

import numpy as np
import pytest

import tinyattn as ta

GOLDEN = {
    "a product without the transpose": (
        """
        Q = ta.tensor(np.ones((2, 3)))
        K = ta.tensor(np.ones((4, 3)))
        scores = Q @ K
        """,
        ta.ShapeError,
        """
        matmul(Q: (2, 3), K: (4, 3)) does not fit.
          The last axis of Q (3) must equal the second-to-last axis of K (4).
          Did you mean Q @ K.mT? That gives shape (2, 4). K was made at lesson.py:3.
        """,
    ),
    "a number for each row added to rows": (
        """
        X = ta.tensor(np.ones((2, 3)), requires_grad=True)
        b = ta.tensor([1.0, 2.0])
        H = X + b
        """,
        ta.ShapeError,
        """
        add(X: (2, 3), b: (2,)) does not fit.
          Axis -1 has the sizes 3 and 2; they must be equal, or one of them 1.
          Did you mean b[:, None], shape (2, 1), one number for each row? b was made at lesson.py:3.
        """,
    ),
    "backward of several numbers": (
        """
        x = ta.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        y.backward()
        """,
        ta.GraphError,
        """
        backward: y: (2,) has 2 numbers; a gradient belongs to one number.
          Which one is meant?
          For a loss write y.sum() or y.mean(); for weights of your own backward(seed) with shape (2,); for all derivatives ta.jacobian(f, x).
        """,  # noqa: E501
    ),
    "backward of a constant": (
        """
        x = ta.tensor([1.0, 2.0])
        loss = ta.sum(x * x)
        loss.backward()
        """,
        ta.GraphError,
        """
        backward: loss: () does not depend on anything that requires a gradient.
          No leaf was made with requires_grad=True, or the result was detached or made inside no_grad.
          Write ta.tensor(..., requires_grad=True) for what you want the gradient of.
        """,
    ),
    "an update in place": (
        """
        W = ta.tensor([1.0, 2.0], requires_grad=True)
        W -= 0.1
        """,
        ta.GraphError,
        """
        W: (2,) is a leaf with a gradient; updating it in place would corrupt recorded graphs.
          An update is not part of the computation that is differentiated.
          Write W.assign(W.data - lr * W.grad), or use an optimiser: opt.step().
        """,
    ),
    "an item assignment": (
        """
        X = ta.tensor(np.ones((2, 3)), requires_grad=True)
        X[0] = 0.0
        """,
        ta.GraphError,
        """
        X: (2, 3)[...] = ... would change an array that a graph may have recorded.
          Tensors are immutable, so that no gradient can be computed from numbers that changed.
          Write t = ta.where(mask, new, t), or for a leaf: a = t.numpy(); a[...] = new; t.assign(a).
        """,
    ),
    "whole numbers with a gradient": (
        """
        x = ta.tensor([1, 2, 3], requires_grad=True)
        """,
        ta.DTypeError,
        """
        tensor of int64 with requires_grad=True: a whole number cannot move a little, so it has no slope.
          Write floating-point numbers: 1.0 instead of 1, or dtype=float.
        """,
    ),
    "an axis too many": (
        """
        X = ta.tensor(np.ones((2, 3)))
        total = ta.sum(X, axis=2)
        """,
        ta.AxisError,
        """
        sum(X: (2, 3)): axis 2 does not exist.
          There are 2 axes, so axis goes from -2 to 1.
          X was made at lesson.py:2.
        """,
    ),
    "an index outside": (
        """
        X = ta.tensor(np.ones((2, 3)))
        row = X[5]
        """,
        ta.IndexRangeError,
        """
        index(X: (2, 3)): index 5 is out of bounds for axis 0 with size 2.
          X has shape (2, 3); indices run from 0, or from -size, to size - 1.
          Check the index against that shape. X was made at lesson.py:2.
        """,
    ),
    "a reshape to another size": (
        """
        X = ta.tensor(np.ones((2, 3)))
        Y = X.reshape(4, 2)
        """,
        ta.ShapeError,
        """
        reshape(X: (2, 3), shape=(4, 2)) does not fit.
          X has 6 numbers, the new shape (4, 2) has room for 8.
          One size may be -1. X was made at lesson.py:2.
        """,
    ),
    "a class that does not exist": (
        """
        logits = ta.tensor(np.ones((2, 3)))
        loss = ta.cross_entropy(logits, [0, 3])
        """,
        ta.IndexRangeError,
        """
        cross_entropy(logits: (2, 3)): target 3 at position 1 is outside 0 to 2.
          There are 3, counted from 0.
          logits was made at lesson.py:2.
        """,
    ),
    "a mask of numbers": (
        """
        scores = ta.tensor(np.ones((2, 3)))
        weights = ta.softmax(scores, keep=np.tri(2, 3))
        """,
        ta.ArgumentTypeError,
        """
        softmax: keep has dtype float64.
          It must be boolean; True means yes.
          Write keep != 0, or x > 0 for the test you mean.
        """,
    ),
    "a value short in attention": (
        """
        Q = ta.tensor(np.ones((2, 4)))
        K = ta.tensor(np.ones((3, 4)))
        V = ta.tensor(np.ones((2, 4)))
        out = ta.scaled_dot_product_attention(Q, K, V)
        """,
        ta.ShapeError,
        """
        scaled_dot_product_attention(Q: (2, 4), K: (3, 4), V: (2, 4), causal=False) does not fit.
          There are 3 keys and 2 values; each key needs its value.
          V was made at lesson.py:4.
        """,
    ),
    "numbers assigned between forward and backward": (
        """
        W = ta.tensor([1.0, 2.0], requires_grad=True)
        loss = ta.sum(W * W)
        W.assign([0.0, 0.0])
        loss.backward()
        """,
        ta.GraphError,
        """
        W: (2,) was assigned new numbers after multiply had used the old ones.
          The gradient would belong to neither; nothing has been changed.
          Run the forward pass again, then backward.
        """,
    ),
    "a NumPy function that would lose the gradient": (
        """
        x = ta.tensor([1.0, 2.0], requires_grad=True)
        y = np.cumsum(x)
        """,
        ta.ArgumentTypeError,
        """
        np.cumsum is not supported on a tensor.
          Converting the tensor to an array would lose its gradient silently, so it is refused.
          Write a matrix product with a triangle of ones. Where no gradient is wanted, write np.cumsum(t.data).
        """,
    ),
    "whole division": (
        """
        x = ta.tensor([1.5, 2.5])
        y = x // 2
        """,
        ta.ArgumentTypeError,
        """
        // is not supported on a tensor; it was asked for x: (2,).
          It jumps between whole values, so its slope is 0 wherever it has one.
          Write t / x, or t.data // x for the numbers.
        """,
    ),
    "PyTorch's name of an axis": (
        """
        x = ta.tensor([[1.0, 2.0]])
        y = ta.sum(x, dim=0)
        """,
        ta.ArgumentTypeError,
        """
        sum: there is no argument 'dim'.
          Its arguments are x, axis, keepdims.
          Write axis=..., as in NumPy.
        """,
    ),
    "a masked array": (
        """
        x = ta.tensor(np.ma.array([1.0, 2.0], mask=[False, True]))
        """,
        ta.ArgumentTypeError,
        """
        tensor: a masked array with hidden entries was given where numbers are expected.
          A tensor has no mask, so what is hidden there would become ordinary numbers.
          Write array.filled(0), and hand the mask to ta.where or keep=.
        """,
    ),
    "a condition of another shape": (
        """
        x = ta.tensor([1.0, 2.0])
        y = ta.where(np.ones(4, bool), x, 0.0)
        """,
        ta.ShapeError,
        """
        where(x: (2,), 0: ()) does not fit.
          The condition has shape (4,). Axis -1 has the sizes 2 and 4; they must be equal, or one of them 1.
          It needs one True or False for each entry of the result. x was made at lesson.py:2.
        """,
    ),
    "a gain that is too long": (
        """
        x = ta.tensor([[1.0, 2.0]])
        y = ta.rms_norm(x, ta.tensor([1.0, 1.0, 1.0]))
        """,
        ta.ShapeError,
        """
        rms_norm(x: (1, 2)): gain (3,) does not fit.
          It needs one number for each entry of a row.
          Give it the shape (2,). x was made at lesson.py:2.
        """,
    ),
    "whole numbers to a negative power": (
        """
        n = ta.tensor([1, 2])
        y = n ** -1
        """,
        ta.DTypeError,
        """
        integer_power(n: (2,), exponent=-1): the base is of int64.
          Whole numbers to a negative power are no whole numbers.
          Write ta.tensor(..., dtype=float). n was made at lesson.py:2.
        """,
    ),
    "an operation of one's own with shapes that do not broadcast": (
        """
        rule = lambda g, y, a, b: g
        both = ta.Op("both", lambda a, b: a + b, (rule, rule), "y[...] = a[...] + b[...]", inputs=("a", "b"),
                     sample=lambda rng: [])
        x = ta.tensor([[1.0, 2.0], [3.0, 4.0]])
        y = both(x, ta.tensor([1.0, 2.0, 3.0]))
        """,
        ta.ShapeError,
        """
        both(x: (2, 2), tensor: (3,)) does not fit.
          Axis -1 has the sizes 2 and 3; they must be equal, or one of them 1.
          Insert an axis of size 1 with expand_dims, or reshape one of them. tensor was made at lesson.py:6.
        """,
    ),
    "whole numbers that were cast, which nobody wrote": (
        """
        X = ta.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        X @ [1, 2, 3]
        """,
        ta.ShapeError,
        """
        matmul(X: (3, 2), array: (3,)) does not fit.
          The last axis of X (2) must equal the only axis of array (3).
          Did you mean X.mT @ array? That gives shape (2,). X was made at lesson.py:2.
        """,
    ),
    "what Python itself has made": (
        """
        made = {}
        exec(compile("x = ta.tensor([1.0, 2.0])", "<frozen runpy>", "exec"), {"ta": ta}, made)
        ta.sum(made["x"], axis=1)
        """,
        ta.AxisError,
        """
        sum(x: (2,)): axis 1 does not exist.
          There is 1 axis, so axis goes from -1 to 0.
        """,
    ),
    "tensors that are not in a list": (
        """
        A = ta.tensor([1.0, 2.0])
        ta.concatenate(A, A)
        """,
        ta.ArgumentTypeError,
        """
        concatenate: axis is a Tensor.
          It counts axes or sizes, so it must be a whole number.
          Several tensors go into a list: concatenate([a, b]).
        """,
    ),
    "no dtype": (
        """
        ta.tensor(1.0, dtype=2.0)
        """,
        ta.ArgumentTypeError,
        """
        tensor: cannot make an array of this float: Cannot interpret '2.0' as a data type.
        """,
    ),
}


def expected(text):
    return textwrap.dedent(text).strip("\n")


@pytest.mark.parametrize("title", list(GOLDEN), ids=lambda title: title.replace(" ", "-"))
def test_the_text_of_an_error(title):
    source, kind, text = GOLDEN[title]
    with pytest.raises(kind) as caught:
        exec(compile(textwrap.dedent(source), "lesson.py", "exec"), {"ta": ta, "np": np})
    assert str(caught.value) == expected(text)


def test_the_class_is_also_the_usual_one_of_python():
    usual = {
        ta.ShapeError: ValueError,
        ta.AxisError: (ValueError, IndexError),
        ta.DTypeError: TypeError,
        ta.ArgumentError: ValueError,
        ta.ArgumentTypeError: TypeError,
        ta.IndexRangeError: IndexError,
        ta.GraphError: RuntimeError,
        ta.NanError: FloatingPointError,
    }
    for ours, pythons in usual.items():
        assert issubclass(ours, ta.TinyattnError)
        assert all(issubclass(ours, p) for p in (pythons if isinstance(pythons, tuple) else (pythons,)))


@pytest.mark.parametrize("use", [
    lambda t: t // 2, lambda t: 2 // t, lambda t: t % 2, lambda t: 2 % t, lambda t: divmod(t, 2), lambda t: round(t),
    lambda t: round(t, 1), lambda t: ~t, lambda t: t & t, lambda t: True | t, lambda t: t ^ 1, lambda t: t.__rand__(1),
], ids="// r// % r% divmod round round1 ~ & r| ^ r&".split())
def test_python_operators_without_a_gradient_say_what_to_write(use):
    with pytest.raises(ta.ArgumentTypeError, match=r"not supported on a tensor; it was asked for t: \(2,\)"):
        t = ta.tensor([1.0, 2.0])
        use(t)


@pytest.mark.parametrize(("use", "names"), [
    (lambda x: x.sum(dim=0), "sum: .* 'dim'"), (lambda x: ta.softmax(x, dim=-1), "softmax: .* 'dim'"),
    (lambda x: ta.mean(x, axis=0, keepdim=True), "mean: .* 'keepdim'"),
    (lambda x: ta.stack([x], dim=0), "stack: .* 'dim'"),
    (lambda x: x.max(dims=0), "max: .* 'dims'"), (lambda x: ta.flip(x, dims=0), "flip: .* 'dims'"),
], ids="sum softmax mean stack max flip".split())
def test_a_keyword_of_another_library_is_answered_with_ours(use, names):
    with pytest.raises(ta.ArgumentTypeError, match=r"(?s)there is no argument.*Write (axis|keepdims)=") as caught:
        use(ta.tensor([[1.0, 2.0]]))
    assert caught.match(names.replace(": .*", ": there is no argument"))


def test_a_masked_array_that_hides_nothing_is_taken():
    assert ta.tensor(np.ma.array([1.0, 2.0])).tolist() == [1.0, 2.0]
