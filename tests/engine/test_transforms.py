"""Gradients as functions: any order, mixed, nested, through closures; no perturbation meets another."""

import math

import numpy as np
import pytest
from support import close, differences

import tinyattn as ta

X = np.array([0.3, -1.2, 2.0])
A = np.array([[2.0, -1.0, 0.5], [0.0, 1.5, 1.0], [3.0, 0.2, -0.7]])


def quadratic(x):
    return x @ A @ x


# -- what each one gives -----------------------------------------------------------------------------------


def test_grad_of_a_function():
    close(ta.grad(quadratic)(X), (A + A.T) @ X)


def test_grad_takes_numbers_lists_arrays_and_tensors():
    cube = lambda x: x**3
    assert float(ta.grad(cube)(2)) == float(ta.grad(cube)(2.0)) == float(ta.grad(cube)(ta.tensor(2.0))) == 12.0
    close(ta.grad(lambda x: ta.sum(x * x))([1.0, 2.0]), [2.0, 4.0])


def test_grad_with_respect_to_chosen_arguments():
    f = lambda a, b, c: ta.sum(a * b * c)
    a, b, c = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0])
    close(ta.grad(f, 1)(a, b, c), a * c)
    first, last = ta.grad(f, (0, -1))(a, b, c)
    close(first, b * c)
    close(last, a * b)
    close(ta.grad(lambda x, factor=1.0: ta.sum(x * factor))(a, factor=3.0), [3.0, 3.0])


def test_value_and_grad_gives_both_and_records_neither():
    value, slope = ta.value_and_grad(quadratic)(X)
    close(value, X @ A @ X)
    close(slope, (A + A.T) @ X)
    assert not value.requires_grad and not slope.requires_grad


def test_vjp_pulls_any_cotangent_back_more_than_once():
    y, pull = ta.vjp(lambda x, w: ta.tanh(x) * w, X, A)
    close(y, np.tanh(X) * A)
    g = np.ones((3, 3))
    close(pull(g)[0], (A * (1 - np.tanh(X) ** 2)).sum(0))
    close(pull(2 * g)[1], np.broadcast_to(2 * np.tanh(X), (3, 3)))


def test_jvp_is_the_jacobian_times_the_direction():
    direction = np.array([1.0, -2.0, 0.5])
    f = lambda x: ta.softmax(x * x)
    _, dy = ta.jvp(f, [X], [direction])
    close(dy, ta.jacobian(f, X).data @ direction)


def test_jvp_of_several_inputs_adds_their_changes():
    _, dy = ta.jvp(lambda a, b: a * b, [X, X + 1], [np.ones(3), 2 * np.ones(3)])
    close(dy, (X + 1) + 2 * X)


def test_jacobian_has_the_shape_of_result_then_input():
    x = np.arange(6.0).reshape(2, 3) + 1
    j = ta.jacobian(lambda x: ta.sum(x * x, axis=1), x)
    want = np.zeros((2, 2, 3))
    want[0, 0], want[1, 1] = 2 * x[0], 2 * x[1]
    close(j, want)
    assert ta.jacobian(lambda x: x[2:2], x).shape == (0, 3, 2, 3)


def test_hessian_of_a_quadratic_is_its_symmetric_matrix():
    close(ta.hessian(quadratic, X), A + A.T)


def test_hvp_is_the_hessian_times_the_vector():
    v = np.array([1.0, 0.0, -3.0])
    f = lambda x: ta.sum(ta.exp(x) * ta.sin(x)) + ta.prod(x)
    close(ta.hvp(f, X, v), ta.hessian(f, X).data @ v, rtol=1e-10)


def test_elementwise_grad_is_the_slope_at_every_entry():
    close(ta.elementwise_grad(ta.tanh)(X), 1 - np.tanh(X) ** 2)
    close(ta.elementwise_grad(lambda a, b: a * b, 1)(X, X + 1), X)


def test_gradient_of_what_does_not_depend_on_the_input_is_zero():
    constant = lambda x: ta.tensor([1.0, 2.0])
    close(ta.jacobian(constant, X), np.zeros((2, 3)))
    close(ta.jvp(constant, [X], [X])[1], np.zeros(2))
    close(ta.vjp(constant, X)[1]([1.0, 1.0])[0], np.zeros(3))
    close(ta.grad(lambda x: ta.tensor(1.0))(X), np.zeros(3))
    close(ta.hessian(lambda x: ta.sum(x), X), np.zeros((3, 3)))
    close(ta.grad(lambda x, y: ta.sum(x), (0, 1))(X, X)[1], np.zeros(3))


# -- any order, mixed ----------------------------------------------------------------------------------------


def test_derivatives_of_a_power_down_to_zero():
    f, x = lambda x: x**4, 1.5
    for want in (4 * x**3, 12 * x**2, 24 * x, 24.0, 0.0, 0.0):
        f = ta.grad(f)
        close(f(x), want)


@pytest.mark.parametrize("order", range(1, 7))
def test_derivatives_of_sine_come_round(order):
    f = ta.sin
    for _ in range(order):
        f = ta.grad(f)
    close(f(0.7), math.sin(0.7 + order * math.pi / 2))


def test_mixed_partial_derivatives_commute():
    f = lambda x, y: ta.exp(x * y) * ta.sin(y)
    xy = ta.grad(lambda x, y: ta.grad(f, 0)(x, y), 1)(0.4, 1.1)
    yx = ta.grad(lambda x, y: ta.grad(f, 1)(x, y), 0)(0.4, 1.1)
    close(xy, yx, rtol=1e-13)
    want = differences(lambda y: float(ta.grad(f, 0)(0.4, float(y)).data), [np.array(1.1)])[0]
    close(xy, want, rtol=1e-8)


@pytest.mark.parametrize("outer", ["grad", "jvp", "vjp", "jacobian"])
@pytest.mark.parametrize("inner", ["grad", "jvp", "vjp", "jacobian"])
def test_any_transform_of_any_transform(outer, inner):
    """All are the derivative of one number by one number; two of them in a row give the second derivative."""

    def derivative(kind, f):
        return {
            "grad": lambda x: ta.grad(f)(x),
            "jvp": lambda x: ta.jvp(f, [x], [1.0])[1],
            "vjp": lambda x: ta.vjp(f, x)[1](1.0)[0],
            "jacobian": lambda x: ta.jacobian(f, x),
        }[kind]

    close(
        derivative(outer, derivative(inner, lambda x: x * ta.sin(x)))(0.8),
        2 * math.cos(0.8) - 0.8 * math.sin(0.8),
    )


def test_third_derivative_through_hessian_and_hvp():
    f = lambda x: ta.sum(x**4)
    close(ta.jacobian(lambda x: ta.hessian(f, x), X).data.diagonal().diagonal(), 24 * X)
    close(ta.jacobian(lambda x: ta.hvp(f, x, np.ones(3)), X), np.diag(24 * X))


def test_derivative_by_the_direction_and_by_the_cotangent():
    """A Jacobian is linear in its vector, so differentiating by the vector gives it back."""
    close(ta.grad(lambda v: ta.jvp(lambda y: y**3, [2.0], [v])[1])(5.0), 12.0)
    close(ta.grad(lambda u: ta.vjp(lambda y: y**3, 2.0)[1](u)[0])(5.0), 12.0)
    close(ta.grad(lambda v: ta.sum(ta.hvp(lambda y: ta.sum(y**3), [2.0], v)))([1.0]), [12.0])
    u = ta.tensor([5.0, 1.0], requires_grad=True)
    x = ta.tensor([2.0, 3.0], requires_grad=True)
    pulled = ta.grad(x**3, x, seed=u, create_graph=True)
    close(ta.grad(ta.sum(pulled), u), 3 * x.data**2)


# -- nesting: nothing is confused ----------------------------------------------------------------------------------


def test_perturbations_are_not_confused():
    """D_x [x * D_y (x + y)] at 1 is 1; an engine that mixes the two perturbations gives 2 (Siskind, Pearlmutter)."""
    assert float(ta.grad(lambda x: x * ta.grad(lambda y: x + y)(1.0))(1.0)) == 1.0
    assert float(ta.jvp(lambda x: x * ta.jvp(lambda y: x + y, [1.0], [1.0])[1], [1.0], [1.0])[1]) == 1.0


def test_inner_gradient_that_depends_on_the_outer_variable_through_a_closure():
    """D_x [x * D_y (x y)] at 3 is D_x x^2 = 6; taking the inner gradient for a constant gives 3."""
    assert float(ta.grad(lambda x: x * ta.grad(lambda y: x * y)(2.0))(3.0)) == 6.0


@pytest.mark.parametrize(
    "inner",
    [
        lambda x: ta.jvp(lambda y: x * y * y, [2.0], [1.0])[1],
        lambda x: ta.vjp(lambda y: x * y * y, 2.0)[1](1.0)[0],
        lambda x: ta.sum(ta.jacobian(lambda y: x * y * y, [2.0])),
        lambda x: ta.sum(ta.hvp(lambda y: ta.sum(x * y * y), [2.0], [2.0])),
        lambda x: ta.sum(ta.hessian(lambda y: ta.sum(x * y * y), [2.0])) * 2,
        lambda x: ta.value_and_grad(lambda y: x * y * y)(2.0)[1],
        lambda x: ta.value_and_grad(lambda y: x * y * y)(2.0)[0],
    ],
    ids=["jvp", "vjp", "jacobian", "hvp", "hessian", "grad", "value"],
)
def test_every_transform_follows_a_closed_over_variable(inner):
    close(ta.grad(inner)(3.0), 4.0)


def test_same_variable_inside_and_outside():
    f = lambda x: ta.grad(lambda y: y * y * x)(x) * x  # 2 x^3
    close(ta.grad(f)(1.5), 6 * 1.5**2)


def test_three_levels_deep():
    f = lambda x: ta.grad(lambda y: ta.grad(lambda z: x * y * y * z**3)(x))(x)  # 2 x y 3 x^2 -> at y = x: 6 x^4
    close(ta.grad(f)(1.2), 24 * 1.2**3)


def test_recorded_gradient_of_weights_that_are_closed_over():
    """A gradient penalty: the slope with respect to the input is itself differentiated by the weights."""
    w = ta.tensor([2.0, -1.0], requires_grad=True)
    slope = ta.grad(lambda x: ta.sum(w * w * x * x))([3.0, 1.0])
    ta.sum(slope).backward()
    close(w.grad, 4 * w.data * np.array([3.0, 1.0]))


def test_result_is_plain_when_nothing_outside_differentiates():
    for result in (
        ta.grad(quadratic)(X),
        ta.jacobian(ta.tanh, X),
        ta.hessian(quadratic, X),
        ta.hvp(quadratic, X, X),
        *ta.jvp(ta.tanh, [X], [X]),
        *ta.value_and_grad(quadratic)(X),
        ta.vjp(ta.tanh, X)[1](X)[0],
    ):
        assert not result.requires_grad


def test_transforms_differentiate_inside_no_grad_and_give_constants():
    w = ta.tensor(5.0, requires_grad=True)
    with ta.no_grad():
        results = [
            ta.grad(lambda x: w * x * x)(3.0),
            ta.jvp(lambda x: w * x * x, [3.0], [1.0])[1],
            ta.vjp(lambda x: w * x * x, 3.0)[1](1.0)[0],
            ta.jacobian(lambda x: w * x * x, 3.0),
            ta.grad(ta.grad(lambda x: w * x**3))(1.0),
        ]
    for result in results:
        close(result, 30.0)
        assert not result.requires_grad


# -- gradients of recorded results ---------------------------------------------------------------------------------


def test_gradient_with_respect_to_a_result_in_the_middle():
    x = ta.tensor(X, requires_grad=True)
    middle = ta.exp(x)
    loss = ta.sum(middle * middle + middle)
    close(ta.grad(loss, middle), 2 * np.exp(X) + 1)
    by_both = ta.grad(loss, [x, middle])
    close(by_both[0], np.exp(X) * (2 * np.exp(X) + 1))
    close(by_both[1], 2 * np.exp(X) + 1)


def test_gradient_of_a_result_with_respect_to_itself_is_one():
    x = ta.tensor(2.0, requires_grad=True)
    y = x * x
    close(ta.grad(y, y), 1.0)
    close(ta.grad(y, [y, x])[1], 4.0)


def test_gradient_touches_no_grad_of_a_tensor():
    x = ta.tensor(X, requires_grad=True)
    x.grad = np.ones(3)
    ta.grad(ta.sum(x * x), x)
    close(x.grad, np.ones(3))


def test_gradient_of_an_unrelated_tensor_is_zeros():
    x, other = ta.tensor(X, requires_grad=True), ta.tensor([1.0, 2.0], requires_grad=True)
    close(ta.grad(ta.sum(x), other), np.zeros(2))


def test_one_tensor_gives_one_gradient_and_a_list_gives_a_list():
    x = ta.tensor(X, requires_grad=True)
    y = ta.sum(x * x)
    assert isinstance(ta.grad(y, x), ta.Tensor)
    assert isinstance(ta.grad(y, [x]), list) and isinstance(ta.grad(y, (x, x)), list)
    close(ta.grad(y, (x, x))[1], 2 * X)


def test_create_graph_decides_whether_the_gradient_is_recorded():
    x = ta.tensor(X, requires_grad=True)
    y = ta.sum(x**3)
    assert not ta.grad(y, x).requires_grad
    slope = ta.grad(y, x, create_graph=True)
    assert slope.requires_grad
    close(ta.grad(ta.sum(slope), x), 6 * X)


def test_backward_through_a_recorded_gradient_fills_grad():
    x = ta.tensor(X, requires_grad=True)
    slope = ta.grad(ta.sum(x**3), x, create_graph=True)
    ta.sum(slope * slope).backward()
    close(x.grad, 2 * 3 * X**2 * 6 * X)


# -- refusals ------------------------------------------------------------------------------------------------------


def test_wrong_seed_is_refused_with_create_graph_too():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    for create_graph in (False, True):
        with pytest.raises(ta.ShapeError, match=r"grad: the seed has shape \(1,\)"):
            ta.grad(x * x, x, seed=ta.tensor([1.0]), create_graph=create_graph)


def test_seed_tensor_of_another_dtype_is_converted_and_recorded():
    x = ta.tensor(np.ones(2, "float32"), requires_grad=True)
    u = ta.tensor([1.0, 2.0], requires_grad=True)
    g = ta.grad(x * x, x, seed=u, create_graph=True)
    assert g.dtype == np.float32
    assert ta.grad(ta.sum(g), u).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ta.grad(3.0), ta.ArgumentTypeError, "grad: a tensor or a function"),
        (lambda: ta.grad(quadratic)(), ta.ArgumentError, "grad: argument 0"),
        (lambda: ta.grad(quadratic, 2)(X), ta.ArgumentError, "argument 2"),
        (lambda: ta.grad(ta.tanh)(X), ta.GraphError, "grad: .* has 3 numbers"),
        (lambda: ta.grad(lambda x: 3.0)(X), ta.ArgumentTypeError, "grad: .* returned a float"),
        (lambda: ta.grad(quadratic)("text"), ta.DTypeError, "grad: "),
        (lambda: ta.grad(ta.tensor(1.0), ta.tensor(1.0)), ta.GraphError, "grad: .*requires_grad"),
        (lambda: ta.grad(ta.tensor(1.0, requires_grad=True), "x"), ta.ArgumentTypeError, "grad"),
        (lambda: ta.jvp(ta.tanh, [X], [X[:2]]), ta.ShapeError, "jvp"),
        (lambda: ta.jvp(ta.tanh, [X], []), ta.ArgumentError, "jvp"),
        (lambda: ta.vjp(ta.tanh, X)[1](X[:2]), ta.ShapeError, r"vjp: the cotangent has shape \(2,\)"),
        (lambda: ta.vjp(lambda x: ta.tensor(1.0), X)[1](X), ta.ShapeError, "vjp: the cotangent"),
        (lambda: ta.vjp(ta.tanh, X)[1]([[1.0], [1.0, 2.0]]), ta.ArgumentTypeError, "vjp: the cotangent"),
        (lambda: ta.vjp(ta.tanh, X)[1]("text"), ta.DTypeError, "vjp: the cotangent"),
        (lambda: ta.elementwise_grad(quadratic)(X), ta.ShapeError, r"elementwise_grad: f gave shape \(\)"),
        (lambda: ta.elementwise_grad(ta.add)(1.0, X), ta.ShapeError, r"elementwise_grad: f gave shape \(3,\)"),
        (lambda: ta.elementwise_grad(lambda x: 3.0)(X), ta.ArgumentTypeError, "elementwise_grad: .* a float"),
        (lambda: ta.jacobian(lambda x: x.data, X), ta.ArgumentTypeError, "jacobian: .* returned a ndarray"),
        (lambda: ta.hessian(ta.tanh, X), ta.GraphError, "3 numbers"),
        (lambda: ta.hvp(quadratic, X, X[:2]), ta.ShapeError, "hvp"),
    ],
)
def test_refusals_name_the_transform(call, error, words):
    with pytest.raises(error, match=words):
        call()


LOOPED = {  # fused operations of which one input is made of another
    "attention": lambda x: ta.scaled_dot_product_attention(x, x, ta.relu(x)),
    "a chain": lambda x: ta.scaled_dot_product_attention(x, ta.tanh(x), ta.tanh(ta.tanh(x) * x), causal=True),
    "layer norm": lambda x: ta.layer_norm(x, x[0] * x[0], x[1]),
}


@pytest.mark.parametrize("kind", LOOPED)
def test_an_input_that_is_made_of_another_counts_once_in_gradients_of_any_order(kind: str) -> None:
    numbers, direction = np.random.default_rng(0).normal(size=(2, 2, 3)) + 0.1

    def loss(x):
        return ta.sum(LOOPED[kind](x) ** 2)

    def slope(at):
        x = ta.tensor(at, requires_grad=True)
        return ta.grad(loss(x), x).data

    x = ta.tensor(numbers, requires_grad=True)
    recorded = ta.grad(loss(x), x, create_graph=True)
    np.testing.assert_allclose(recorded.data, slope(numbers), rtol=1e-12, atol=1e-13)
    second = ta.grad(ta.sum(recorded * direction), x).data
    differences = (slope(numbers + 1e-5 * direction) - slope(numbers - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(second, differences, rtol=1e-6, atol=1e-7)
