"""What a program that is recorded once cannot say is refused, with the line and what to write; the rest is recorded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn

X = np.array([[1.0, -2.0], [3.0, 4.0]])
w = ta.tensor([1.0, 2.0], requires_grad=True)
chance = np.random.default_rng(0)
calls = [0]
hidden = SimpleNamespace(part=SimpleNamespace(w=ta.tensor([1.0, 2.0])))


def counted(x):
    calls[0] += 1
    return x * calls[0]


def assigned(x):
    w.assign([1.0, 2.0])
    return x * w


READS = {
    "a branch": (lambda x: x if x.sum() > 0 else -x, "if t"),
    "a loop": (lambda x: x * max(0, x.sum()), "if t"),
    "float": (lambda x: x * float(x.sum()), "float(t)"),
    "item": (lambda x: x * x.sum().item(), "t.item()"),
    "tolist": (lambda x: ta.tensor(x.tolist()), "t.tolist()"),
    "numpy": (lambda x: ta.tensor(x.numpy()) * x, "t.numpy()"),
    "data": (lambda x: x * x.data.max(), "t.data"),
    "asarray": (lambda x: ta.tensor(np.asarray(x)) * x, "np.asarray(t)"),
    "argmax": (lambda x: x[np.argmax(x)], "np.argmax(t)"),
    "any": (lambda x: x if np.any(x > 0) else -x, "np.any(t)"),
    "text": (lambda x: (f"{x.sum():.2f}", x)[1], "f'{t:...}'"),
}


@pytest.mark.parametrize("name", READS)
def test_reading_numbers_is_refused_and_the_line_is_named(name):
    f, spelled = READS[name]
    with pytest.raises(ta.GraphError) as caught:
        ta.compile(f)(X)
    text = str(caught.value)
    assert text.startswith(f"compile: {spelled}") and "test_compiled_refusals.py:" in text and "ta.where" in text


REFUSED = {
    "chance": (lambda x: ta.dropout(x, 0.5, rng=chance), "by chance"),
    "a counter": (counted, "what changed between two calls"),
    "assign": (assigned, "changes"),
    "assign an argument": (lambda x: x.assign(X), "changes something outside"),
    "backward": (lambda x: ((x * w).sum().backward(), x)[1], "changes something outside"),
    "detach of what is hidden": (lambda x: x * hidden.part.w.detach(), "without the tensor"),
    "a comparison outside": (lambda x: ta.where(w > 1.5, x, 0.0), "of a tensor from outside"),
    "a function that compares": (lambda x: ta.leaky_relu(w) * x, "of a tensor from outside"),
    "a mask as index": (lambda x: x[x > 0].sum(), "ta.where(mask, x, 0)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_happen_once_is_refused(name):
    f, words = REFUSED[name]
    with pytest.raises(ta.GraphError, match="compile: ") as caught:
        ta.compile(f)(X)
    assert words in str(caught.value)


def test_what_a_function_keeps_on_the_side_is_not_taken_for_numbers_of_a_call():
    kept = []

    def keeping(x):
        kept.append(x * 2)
        return kept[-1] + 1

    assert ta.compile(keeping)(X).tolist() == (X * 2 + 1).tolist()
    with pytest.raises(ta.GraphError, match="Let the function return it"):
        _ = kept[0].data


def test_an_index_that_is_one_number_of_an_array_is_refused_as_a_number_it_is_a_setting():
    with pytest.raises(ta.GraphError, match="numbers of an argument"):
        ta.compile(lambda x, i: x[i])(X, np.array(1))
    compiled = ta.compile(lambda x, i: x[i])
    assert compiled(X, 1).tolist() == [3.0, 4.0] and compiled(X, 0).tolist() == [1.0, -2.0]
    assert len(compiled.programs) == 2


def test_whole_numbers_that_become_something_else_are_refused():
    with pytest.raises(ta.GraphError, match="one-hot"):
        ta.compile(lambda ids: ta.one_hot(ids, 4) * 2.0)(np.array([1, 0]))


def test_a_function_of_something_else_is_no_function():
    with pytest.raises(ta.ArgumentTypeError, match="a function is needed, not a int"):
        ta.compile(3)
    with pytest.raises(ta.ArgumentTypeError, match="type set"):
        ta.compile(lambda x, s: x)(X, {1})


def test_a_backward_pass_starts_from_one_tensor():
    with pytest.raises(ta.GraphError, match="does not return one tensor"):
        ta.compile(lambda: (w * w, w)).backward()
    with pytest.raises(ta.GraphError):
        ta.compile(lambda: w * w).backward()


def test_a_program_is_looked_at_after_the_first_call():
    with pytest.raises(ta.GraphError, match="has no program yet"):
        _ = ta.compile(counted).source


def test_an_operation_of_ones_own_has_no_line():
    from tinyattn.ops import Op

    own = Op("cube", lambda x: x * x * x, (lambda g, y, x: g * 3 * x * x,), "y[...] = x[...]^3", sample=lambda rng: [])
    for x in (X, np.float64(2.0)):
        with pytest.raises(ta.GraphError, match="no line for the operation 'cube'"):
            ta.compile(lambda x: ta.apply(own, (x,)))(x)


# -- what is recorded all the same -------------------------------------------------------------------------------------

ALLOWED = {
    "a choice": lambda x: ta.where(x > 0, x, 0.1 * x),
    "tests joined": lambda x: ta.where((x > 0) & ~(x >= 3.5) | (x == 4.0), x, 0.1 * x),
    "NumPy's choice": lambda x: np.where(np.logical_and(x > 0, np.isfinite(x)), x, -x),
    "a constant": lambda x: x * x.detach(),
    "shapes": lambda x: x * len(x) * x.shape[1] * x.ndim,
    "rows": lambda x: sum([row * n for n, row in enumerate(x)], start=0.0),
    "no_grad": lambda x: nothing_recorded(x),
    "a constant from outside": lambda x: x * w.detach() + w,
    "a seed": lambda x: ta.dropout(x, 0.5, rng=3),
    "outside": lambda x: ta.relu(x * w) * ta.abs(w),
    "in place": lambda x: in_place(x),
    "a gradient inside": lambda x: ta.grad(lambda z: (ta.relu(z) ** 2).sum())(x) * x,
    "second order": lambda x: ta.hessian(lambda z: (ta.tanh(z) ** 3).sum(), x),
}


def nothing_recorded(x):
    with ta.no_grad():
        y = x * 2
    return y + x


def in_place(x):
    x += 1.0
    x *= w
    return x


@pytest.mark.parametrize("name", ALLOWED)
def test_what_does_not_depend_on_the_numbers_at_hand_is_recorded(name):
    f, compiled = ALLOWED[name], ta.compile(ALLOWED[name])
    for x in (X, -X, X * 0.5):
        np.testing.assert_allclose(compiled(x).data, f(ta.tensor(x)).data, rtol=1e-14, atol=1e-14)
    assert len(compiled.programs) == 1


def test_the_rule_of_a_tensor_from_outside_follows_its_numbers():
    v = ta.tensor([1.0, -2.0], requires_grad=True)
    step = ta.compile(lambda: ta.relu(v).sum() + ta.abs(v).sum() * 2 + ta.max(v))
    for numbers in ([1.0, -2.0], [-1.0, 3.0]):
        v.assign(numbers)
        v.zero_grad()
        step.backward()
        ours = v.grad
        v.zero_grad()
        (ta.relu(v).sum() + ta.abs(v).sum() * 2 + ta.max(v)).backward()
        np.testing.assert_array_equal(ours, v.grad)


def test_detach_of_a_tensor_from_outside_follows_its_numbers():
    v = ta.tensor([1.0, -2.0], requires_grad=True)
    step = ta.compile(lambda x: (x * v * v.detach()).sum())
    for numbers in ([1.0, -2.0], [3.0, 4.0]):
        v.assign(numbers)
        v.zero_grad()
        assert step.backward(np.ones(2)).item() == sum(n * n for n in numbers)
        assert v.grad.tolist() == numbers


def test_dropout_in_a_module_is_refused_while_learning_and_recorded_otherwise():
    model = nn.GPT(words=10, d=8, heads=2, layers=1, length=8, dropout=0.5, rng=0)
    loss = ta.compile(lambda ids, right: ta.cross_entropy(model(ids), right))
    ids = np.array([3, 1, 4])
    with pytest.raises(ta.GraphError, match="by chance"):
        loss(ids, ids)
    model.train(False)
    value = loss(ids, ids)
    assert float(value) == pytest.approx(float(ta.cross_entropy(model(ids), ids)), rel=1e-14)
    model.train()
    with pytest.raises(ta.GraphError, match="by chance"):
        loss(ids, ids)


def test_what_is_read_outside_the_arguments_stays_as_it_was():
    """As in JAX: a Python number, a NumPy array and t.data from outside are constants of the program."""
    factor, array, v = [2.0], np.array([1.0, 1.0]), ta.tensor([1.0, 1.0])
    compiled = ta.compile(lambda x: x * factor[0] + array + v.data + v)
    assert compiled(X)[0].tolist() == [5.0, -1.0]
    factor[0], array[0] = 3.0, 9.0
    v.assign([2.0, 2.0])
    assert compiled(X)[0].tolist() == [6.0, 0.0]  # only v itself is read anew
