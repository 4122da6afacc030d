"""Every public function meets every kind of wrong argument: what leaves the package is ours and names the function.

The table is made from the signatures: for each parameter, by its name, the values that it must refuse.
"""

import inspect
import re

import numpy as np
import pytest

import tinyattn as ta

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

T = ta.Tensor
ROWS = ta.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
MASK = np.array([[True, False, True], [True, True, False]])
SQUARE = ta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
VECTOR = ta.tensor([1.0, 2.0, 3.0], requires_grad=True)


class Anything:
    """An object without numbers."""

    def __repr__(self):
        return "Anything()"


NOT_NUMBERS = {
    "text": "text",
    "none": None,
    "object": Anything(),
    "ragged": [[1.0], [1.0, 2.0]],
    "complex": np.array([1j, 2.0]),
    "dict": {"a": 1.0},
    "function": max,
    "texts": ["a", "b"],
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "set": {1.0},
    "objects": np.array([None, 1.0], object),
}
NOT_AN_AXIS = {
    "beyond": 9,
    "below": -9,
    "fraction": 1.5,
    "text": "0",
    "truth": True,
    "dict": {},
    "object": Anything(),
    "twice": (0, 0),
    "one-beyond": (0, 9),
    "array": np.array([0.5]),
}
NOT_ONE_AXIS = {**NOT_AN_AXIS, "none": None, "tuple": (0,)}
NOT_A_FLAG = {"text": "yes", "two": 2, "none": None, "array": np.array([True, False])}
NOT_A_MASK = {
    "numbers": np.array([1, 0, 1]),
    "floats": [1.0, 0.0, 1.0],
    "text": "mask",
    "object": Anything(),
    "shape": np.ones((5, 7), bool),
    "ragged": [[True], [True, False]],
    "tensor": VECTOR,
}
NOT_WHOLE = {
    "floats": [0.5, 1.0],
    "text": "ids",
    "none": None,
    "object": Anything(),
    "beyond": [[99]],
    "texts": ["a"],
    "ragged": [[1], [1, 0]],
}
NOT_A_NUMBER = {"text": "much", "object": Anything(), "array": np.ones(3), "complex": 1j, "list": [1.0]}
NOT_A_COUNT = {
    "text": "many",
    "fraction": 1.5,
    "object": Anything(),
    "array": np.ones(3),
    "list": [1.0],
    "truth": True,
}
NOT_A_SHAPE = {
    "text": "ab",
    "fraction": (1.5, 2),
    "wrong": (5, 7),
    "negative": (-3, 2),
    "object": Anything(),
    "nested": ((1,), (2,)),
}
NOT_A_LIST = {
    "number": 1.0,
    "none": None,
    "empty": [],
    "text": "ab",
    "object": Anything(),
    "bad": [Anything()],
    "texts": ["a", "b"],
    "unequal": [np.ones((2, 3)), np.ones((3, 2, 2))],
    "0-d": ta.tensor(1.0),
}
NOT_A_KEY = {
    "fraction": 1.5,
    "text": "a",
    "beyond": 9,
    "dict": {},
    "object": Anything(),
    "many": (0, 0, 0),
    "floats": [0.5],
    "slice": slice("a"),
    "mask": np.ones(7, bool),
    "two-dots": (..., ...),
    "none-text": (None, "a"),
}
NOT_A_DTYPE = {
    "text": "nonsense",
    "complex": complex,
    "object": object,
    "int": int,
    "number": 3.7,
    "none": None,
}

# parameter name: what it must refuse
REFUSED = {
    **dict.fromkeys(("x", "a", "b", "q", "k", "v", "gain", "bias", "table", "prediction", "data"), NOT_NUMBERS),
    "target": NOT_NUMBERS,
    "axis": NOT_AN_AXIS,
    "keepdims": NOT_A_FLAG,
    "causal": NOT_A_FLAG,
    "training": NOT_A_FLAG,
    **dict.fromkeys(("condition", "mask", "keep"), NOT_A_MASK),
    **dict.fromkeys(("ids", "indices", "targets"), NOT_WHOLE),
    **dict.fromkeys(("eps", "scale", "slope", "value", "low", "high", "label_smoothing", "p"), NOT_A_NUMBER),
    **dict.fromkeys(("ddof", "classes", "ignore_index"), NOT_A_COUNT),
    "shape": NOT_A_SHAPE,
    "tensors": NOT_A_LIST,
    "key": NOT_A_KEY,
    "dtype": NOT_A_DTYPE,
    "axes": {"twice": (0, 0), "short": (0,), "beyond": (0, 9), "text": "ab", "fraction": (0, 1.5)},
    "source": NOT_AN_AXIS,
    "destination": NOT_AN_AXIS,
    "axis1": NOT_ONE_AXIS,
    "axis2": NOT_ONE_AXIS,
    "sections": {
        "zero": 0,
        "unequal": 2,
        "fraction": 1.5,
        "text": "a",
        "none": None,
        "object": Anything(),
        "fractions": [0.5],
    },
    "pad_width": {
        "text": "a",
        "negative": -1,
        "fraction": 0.5,
        "many": ((1, 1),) * 5,
        "none": None,
        "object": Anything(),
        "ragged": ((1,), (1, 2)),
    },
    "reduction": {"unknown": "average", "none": None, "number": 1, "object": Anything()},
    "approximate": {"unknown": "sigmoid", "none": None, "number": 1, "object": Anything()},
    "rng": {"text": "seed", "none": None, "object": Anything(), "fraction": 0.5, "negative": -1},
    "subscripts": {
        "number": 3,
        "few": "ij",
        "many": "ij,jk,kl->il",
        "ranks": "ijk,jk->i",
        "letters": "i1,jk->ik",
        "unknown": "ij,jk->iz",
        "arrows": "ij->jk->ik",
        "repeat": "ij,jk->ii",
        "sizes": "ij,kj->ik",
        "none": None,
        "object": Anything(),
        "sign": "i?,jk->ik",
        "dots": "....ij,jk->ik",
    },
    "operands": NOT_NUMBERS,
    "name": {},
    "requires_grad": {"text": "yes"},
    "function": {},
}

# parameters of some functions that take more than their name says
ALSO_ALLOWED = {
    ("softmax", "axis", "twice"),
    ("reshape", "shape", "wrong"),
}

VALID = {
    "softmax": {"x": ROWS, "axis": -1, "keep": MASK},
    "where": {"condition": MASK, "a": ROWS, "b": 0.0},
    "matmul": {"a": ROWS, "b": VECTOR},
    "dot": {"a": ROWS, "b": VECTOR},
    "outer": {"a": VECTOR, "b": VECTOR},
    "trace": {"x": SQUARE},
    "one_hot": {"ids": [0, 1], "classes": 3},
    "embedding": {"table": ROWS, "ids": [0, 1]},
    "einsum": {"subscripts": "ij,jk->ik", "operands": (ROWS, ROWS.mT)},
    "reshape": {"x": ROWS, "shape": (3, 2)},
    "transpose": {"x": ROWS, "axes": (1, 0)},
    "expand_dims": {"x": ROWS, "axis": 0},
    "squeeze": {"x": ta.tensor([[1.0, 2.0]]), "axis": 0},
    "broadcast_to": {"x": ROWS, "shape": (2, 2, 3)},
    "concatenate": {"tensors": [ROWS, ROWS], "axis": 0},
    "stack": {"tensors": [ROWS, ROWS], "axis": 0},
    "pad": {"x": ROWS, "pad_width": 1, "value": 0.0},
    "index": {"x": ROWS, "key": 0},
    "take_along_axis": {"x": ROWS, "indices": [[0], [1]], "axis": 1},
    "layer_norm": {"x": ROWS, "gain": VECTOR, "bias": VECTOR, "eps": 1e-5},
    "cross_entropy": {"x": ROWS, "targets": [0, 1], "ignore_index": -1, "label_smoothing": 0.1, "reduction": "mean"},
    "scaled_dot_product_attention": {
        "q": ROWS,
        "k": ROWS,
        "v": ROWS,
        "keep": np.ones((2, 2), bool),
        "causal": True,
        "scale": 0.5,
    },
    "rms_norm": {"x": ROWS, "gain": VECTOR, "eps": 1e-5},
    "masked_fill": {"x": ROWS, "mask": MASK, "value": 0.0},
    "mse": {"prediction": ROWS, "target": ROWS},
    "binary_cross_entropy_with_logits": {"x": ROWS, "target": ROWS},
    "dropout": {"x": ROWS, "p": 0.5, "rng": 0, "training": True},
    "swapaxes": {"x": ROWS, "axis1": 0, "axis2": 1},
    "moveaxis": {"x": ROWS, "source": 0, "destination": 1},
    "flip": {"x": ROWS, "axis": 0},
    "split": {"x": ROWS, "sections": 3, "axis": 1},
    "cosine_similarity": {"a": ROWS, "b": VECTOR, "axis": -1, "eps": 1e-8},
    "clip": {"x": ROWS, "low": 0.0, "high": 1.0},
    "astype": {"x": ROWS, "dtype": "float32"},
    "gelu": {"x": ROWS, "approximate": "none"},
    "leaky_relu": {"x": ROWS, "slope": 0.1},
    "tensor": {"data": [1.0], "requires_grad": True, "dtype": float, "name": "w"},
    "var": {"x": ROWS, "axis": 0, "ddof": 0, "keepdims": False},
    "std": {"x": ROWS, "axis": 0, "ddof": 0, "keepdims": False},
    "log": {"x": ROWS},
    "sqrt": {"x": ROWS},
}

NOT_HERE = {
    "grad",
    "value_and_grad",
    "vjp",
    "jvp",
    "jacobian",
    "hessian",
    "hvp",
    "elementwise_grad",
    "no_grad",
    "no_names",
    "scope",
    "set_threads",
    "backward_in_parts",
    "compile",
    "sweep",
    "detect_nan",
    "show_versions",
    "apply",
}


def public_functions():
    return {n: getattr(ta, n) for n in sorted(ta.__all__) if inspect.isfunction(getattr(ta, n)) and n not in NOT_HERE}


FUNCTIONS = public_functions()


def parameters(name):
    return list(inspect.signature(FUNCTIONS[name]).parameters.values())


def valid(name):
    """A call that works: the table's, or rows for every operand."""
    if name in VALID:
        return dict(VALID[name])
    return {p.name: ROWS for p in parameters(name) if p.default is p.empty}


def call(name, arguments):
    """Apply a function to arguments by parameter name, spreading the variadic one."""
    args, kwargs = [], {}
    for p in parameters(name):
        if p.name not in arguments:
            continue
        value = arguments[p.name]
        if p.kind is p.VAR_POSITIONAL:
            args.extend(value if isinstance(value, tuple) and p.name == "operands" else [value])
        elif p.name == parameters(name)[0].name:
            args.append(value)
        else:
            kwargs[p.name] = value
    return FUNCTIONS[name](*args, **kwargs)


def cases():
    for name in FUNCTIONS:
        for p in parameters(name):
            for label, bad in REFUSED.get(p.name, {}).items():
                if (name, p.name, label) not in ALSO_ALLOWED and allowed(name, p, label) is False:
                    yield pytest.param(name, p.name, bad, id=f"{name}-{p.name}-{label}")


def allowed(name, p, label):
    """None and several axes are right where the signature says so."""
    annotation, several = (
        str(p.annotation),
        name
        in {
            "softmax",
            "log_softmax",
            "cosine_similarity",
            "take_along_axis",
            "concatenate",
            "stack",
            "split",
        },
    )
    if label == "none":
        return "None" in annotation or p.default is None
    if p.name == "axis" and several and label in ("twice", "one-beyond"):
        return False
    if (
        p.name in ("ids", "indices", "targets")
        and label == "beyond"
        and name in ("one_hot", "embedding", "take_along_axis", "cross_entropy")
    ):
        return False
    return False


def named(name, error):
    return re.search(rf"(?<![a-z_]){name}(?![a-z_])", str(error)) is not None


def assert_ours(name, error):
    plain = type(error) is TypeError and f"{name}(" in str(error)
    assert plain or isinstance(error, ta.TinyattnError), f"{type(error).__name__}: {error}"
    assert named(name, error), f"does not name {name}: {type(error).__name__}: {error}"


def test_every_parameter_is_in_the_table():
    assert {p.name for name in FUNCTIONS for p in parameters(name)} <= set(REFUSED)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_the_valid_call_works(name):
    call(name, valid(name))


@pytest.mark.parametrize(("name", "parameter", "bad"), list(cases()))
def test_a_wrong_argument_is_refused_in_the_function_s_name(name, parameter, bad):
    arguments = {**valid(name), parameter: bad}
    if name == "einsum" and parameter == "operands":
        arguments[parameter] = (bad, ROWS.mT)
    with pytest.raises(Exception) as caught:
        call(name, arguments)
    assert_ours(name, caught.value)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_missing_arguments_name_the_function(name):
    required = [p for p in parameters(name) if p.default is p.empty]
    for count in range(len(required)):
        arguments = {p.name: valid(name)[p.name] for p in required[:count]}
        if name in ("reshape", "transpose") and "x" in arguments:
            continue
        with pytest.raises(Exception) as caught:
            call(name, arguments)
        assert_ours(name, caught.value)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_too_many_arguments_name_the_function(name):
    if any(p.kind is p.VAR_POSITIONAL for p in parameters(name)):
        return
    with pytest.raises(TypeError) as caught:
        FUNCTIONS[name](*[ROWS] * 12)
    assert_ours(name, caught.value)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_misspelt_keyword_names_the_function_and_the_keyword(name):
    with pytest.raises(TypeError, match="axes_") as caught:
        FUNCTIONS[name](
            **{
                p.name: v
                for p, v in zip(parameters(name), valid(name).values(), strict=False)
                if p.kind is not p.VAR_POSITIONAL
            },
            axes_=1,
        )
    assert_ours(name, caught.value)


SHAPES = [(), (0,), (1,), (2,), (5,), (0, 3), (2, 0), (5, 7), (1, 1), (3, 2), (2, 3, 4), (2, 2, 2, 2)]
OPERANDS = {"x", "a", "b", "q", "k", "v", "gain", "bias", "table", "prediction", "target"}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_any_shape_of_any_operand_works_or_is_refused_in_the_function_s_name(name):
    refused = 0
    for p in parameters(name):
        for shape in SHAPES if p.name in OPERANDS else ():
            odd = ta.tensor(np.full(shape, 0.5), requires_grad=True)
            try:
                result = call(name, {**valid(name), p.name: odd})
            except Exception as error:
                assert_ours(name, error)
                assert re.search(r"was made at test_misuse\.py:\d+", str(error)), f"no place in: {error}"
                refused += 1
            else:
                for y in result if isinstance(result, list) else [result]:
                    assert isinstance(y, T)
                    if y.requires_grad:
                        y.backward(np.ones(y.shape))
    if name in ("matmul", "add", "layer_norm", "mse", "scaled_dot_product_attention", "max", "mean"):
        assert refused


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "int8", "float16", "float32"])
def test_any_number_dtype_works_or_is_refused_in_the_function_s_name(name, dtype):
    for p in parameters(name):
        if p.name in OPERANDS:
            values = valid(name)[p.name]
            odd = (values.data if isinstance(values, T) else np.asarray(values)).astype(dtype)
            try:
                call(name, {**valid(name), p.name: odd})
            except Exception as error:
                assert_ours(name, error)


# -- operators and items ---------------------------------------------------------------------------------------------

OPERATORS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "matmul": lambda x, y: x @ y,
    "power": lambda x, y: x**y,
    "add-left": lambda x, y: y + x,
    "subtract-left": lambda x, y: y - x,
    "multiply-left": lambda x, y: y * x,
    "divide-left": lambda x, y: y / x,
    "matmul-left": lambda x, y: y @ x,
    "power-left": lambda x, y: y**x,
}


@pytest.mark.parametrize("operator", list(OPERATORS))
@pytest.mark.parametrize("bad", [v for k, v in NOT_NUMBERS.items()], ids=list(NOT_NUMBERS))
def test_operators_refuse_what_is_not_numbers(operator, bad):
    name = operator.removesuffix("-left")
    with pytest.raises(Exception) as caught:
        OPERATORS[operator](ROWS, bad)
    assert_ours(name, caught.value)


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_operators_refuse_shapes_that_do_not_fit(operator):
    with pytest.raises(ta.ShapeError, match=operator.removesuffix("-left")):
        OPERATORS[operator](ROWS, np.ones((5, 7)))


@pytest.mark.parametrize("bad", list(NOT_A_KEY.values()), ids=list(NOT_A_KEY))
def test_items_refuse_what_is_no_key(bad):
    with pytest.raises(ta.TinyattnError, match="index"):
        ROWS[bad]


@pytest.mark.parametrize("method", ["sum", "mean", "softmax", "reshape", "squeeze", "max", "std"])
def test_methods_refuse_in_the_same_words(method):
    with pytest.raises(ta.TinyattnError, match=method):
        getattr(ROWS, method)("wrong")


def test_comparisons_with_nonsense_do_not_raise_strange_things():
    assert (ROWS == "text") is False or not np.any(ROWS == "text")
    column = ta.tensor(np.ones((2,)))
    for ask, kind, words in (
        (lambda: ROWS < "text", TypeError, r"ROWS < ...: a str cannot be compared with numbers.\n  .* shape \(2, 3\)"),
        (lambda: ROWS >= None, TypeError, "ROWS >= ...: a NoneType cannot be compared"),
        (lambda: Anything() > ROWS, TypeError, "ROWS < ...: a Anything cannot be compared"),
        (lambda: ROWS > column, ValueError, r"ROWS > column does not fit: \(2, 3\) and \(2,\).(.|\n)*column\[:"),
        (lambda: ROWS == [1.0, 2.0], ValueError, r"ROWS == this list does not fit: \(2, 3\) and \(2,\)"),
    ):
        with pytest.raises(ta.TinyattnError, match=words) as caught:
            ask()
        assert isinstance(caught.value, kind)


def test_the_table_would_notice_a_foreign_error():
    for error in (
        ValueError("operands could not be broadcast"),
        KeyError("add"),
        AttributeError("'NoneType' object has no attribute 'shape'"),
    ):
        with pytest.raises(AssertionError):
            assert_ours("add", error)
    with pytest.raises(AssertionError, match="does not name"):
        assert_ours("add", ta.ShapeError("shapes do not fit"))
    assert_ours("add", TypeError("add() missing 1 required positional argument: 'b'"))


@pytest.mark.parametrize(("call", "instead"), [
    (lambda x: ta.scaled_dot_product_attention(x, x, x, mask=np.ones((2, 2), bool)), "Write keep=..., True where"),
    (lambda x: ta.scaled_dot_product_attention(x, x, x, is_causal=True), "Write causal=... here."),
    (lambda x: ta.layer_norm(x, weight=x), "Write gain=... here."),
    (lambda x: ta.clip(x, min=0), "Write low=... here."),
    (lambda x: ta.sum(x, dim=0), "Write axis=..., as in NumPy."),
    (lambda x: ta.tensor([1.0], required_grad=True), "Write requires_grad=... here."),
])
def test_an_argument_of_another_library_or_a_slip_is_answered_with_ours(call, instead):
    with pytest.raises(ta.ArgumentTypeError, match="there is no argument") as caught:
        call(ta.tensor(np.ones((2, 2))))
    assert instead in str(caught.value)


@pytest.mark.parametrize(("x", "number", "said"), [
    (ta.tensor(1.0), 10**400, "multiply: this whole number does not fit into float64"),
    (ta.tensor([1], dtype=np.int8), 1000, "multiply: 1000 does not fit into int8"),
])
def test_a_number_too_large_for_the_dtype_beside_it_is_refused_in_words(x, number, said):
    with pytest.raises(ta.ArgumentError, match=said):
        x * number


# -- keywords ----------------------------------------------------------------------------------------------------------

COMPOSED = [name for name, function in FUNCTIONS.items() if function.__module__ == "tinyattn.composed"]


@pytest.mark.parametrize("name", COMPOSED)
def test_a_keyword_that_a_composed_function_has_not_is_answered_in_our_words(name):
    """Whoever writes ``inplace=True`` or a slip learns which arguments there are."""
    with pytest.raises(ta.ArgumentTypeError, match=f"{name}: there is no argument 'inplace'.*\n.*\n.*new tensor"):
        FUNCTIONS[name](ROWS, inplace=True)


INSIDE = {
    "norm": lambda rows: ta.norm(rows, axis=3),
    "norm twice": lambda rows: ta.norm(rows, axis=(0, 0)),
    "cosine_similarity": lambda rows: ta.cosine_similarity(rows, rows, axis=3),
    "rms_norm": lambda rows: ta.rms_norm(ta.sum(rows), [1.0]),
    "std": lambda rows: ta.std(rows, axis=3),
    "logsumexp": lambda rows: ta.logsumexp(rows, axis=3),
    "trace": lambda rows: ta.trace(rows),
}


@pytest.mark.parametrize("name", list(INSIDE))
def test_a_composed_function_tells_of_the_tensor_that_it_was_given_and_not_of_its_own(name):
    rows = ta.tensor(np.ones((2, 3)), requires_grad=True)
    with pytest.raises((ta.AxisError, ta.ShapeError)) as refused:
        INSIDE[name](rows)
    text = str(refused.value)
    assert text.startswith(name.split()[0]) and not re.search("squares|multiply|power", text), text
    assert name == "rms_norm" or "(rows: (2, 3)" in text, text


@pytest.mark.parametrize("classes", [0, -1])
def test_a_row_without_places_has_none_for_the_one(classes):
    with pytest.raises(ta.ArgumentError, match=f"one_hot: classes={classes} leaves no place"):
        ta.one_hot([0], classes)
    assert ta.one_hot(np.zeros(0, int), 0).shape == (0, 0)


# -- derivatives -------------------------------------------------------------------------------------------------------


def total(x):
    """A function with a gradient."""
    return (x**2).sum()


DERIVATIVES = {
    "grad": lambda f, x: ta.grad(f)(x),
    "value_and_grad": lambda f, x: ta.value_and_grad(f)(x),
    "vjp": lambda f, x: ta.vjp(f, x),
    "jvp": lambda f, x: ta.jvp(f, [x], [x]),
    "jacobian": lambda f, x: ta.jacobian(f, x),
    "hessian": lambda f, x: ta.hessian(f, x),
    "hvp": lambda f, x: ta.hvp(f, x, x),
    "elementwise_grad": lambda f, x: ta.elementwise_grad(ta.square if f is total else f)(x),
}
NOT_A_FUNCTION = {"number": 3, "text": "f", "none": None, "list": [total], "array": np.ones(3)}


def with_our_words(name, error, words=""):
    assert isinstance(error, ta.TinyattnError), f"{type(error).__name__}: {error}"
    assert named(name, error) and re.search(words, str(error)), str(error)


@pytest.mark.parametrize("name", list(DERIVATIVES))
@pytest.mark.parametrize("wrong", list(NOT_A_FUNCTION))
def test_what_is_no_function_is_not_differentiated(name, wrong):
    with pytest.raises(Exception) as caught:
        DERIVATIVES[name](NOT_A_FUNCTION[wrong], VECTOR)
    with_our_words(name, caught.value, "function")


@pytest.mark.parametrize("name", [name for name in DERIVATIVES if name not in ("grad", "elementwise_grad")])
def test_a_result_in_the_place_of_the_function_is_noticed(name):
    """``ta.jacobian(y, x)`` is the commonest slip: y is already computed."""
    with pytest.raises(Exception) as caught:
        DERIVATIVES[name](total(VECTOR), VECTOR)
    with_our_words(name, caught.value, "a function is needed, not a Tensor")


@pytest.mark.parametrize("name", list(DERIVATIVES))
@pytest.mark.parametrize("wrong", list(NOT_NUMBERS))
def test_a_function_is_not_called_with_what_is_no_numbers(name, wrong):
    DERIVATIVES[name](total, VECTOR)
    with pytest.raises(Exception) as caught:
        DERIVATIVES[name](total, NOT_NUMBERS[wrong])
    assert isinstance(caught.value, ta.TinyattnError), f"{type(caught.value).__name__}: {caught.value}"


ASKED_WRONGLY = {
    "grad of text": (lambda: ta.grad(total, "x"), "grad: wrt holds 'x'"),
    "grad of a tensor": (lambda: ta.grad(total, VECTOR), r"grad: wrt is a tensor.\n.*\n  Write ta.grad\(f\)\(x\)"),
    "grad of truth": (lambda: ta.grad(total, True), "grad: wrt holds a bool"),
    "grad of nothing": (lambda: ta.grad(total, ()), "names no argument"),
    "grad of an array": (lambda: ta.grad(total, np.ones(2)), "grad: wrt holds a ndarray"),
    "grad of a third": (lambda: ta.grad(total, 2)(VECTOR), "argument 2 is to be differentiated, but only 1 was given"),
    "grad by name": (lambda: ta.grad(total)(x=VECTOR), "but only 0 were given"),
    "grad with a seed": (lambda: ta.grad(total, seed=1.0), "a seed belongs to a result"),
    "grad with a flag": (lambda: ta.grad(total(VECTOR), VECTOR, create_graph="yes"), "create_graph='yes'"),
    "argnums of JAX": (lambda: ta.grad(total, argnums=0), "Write wrt="),
    "has_aux of JAX": (lambda: ta.value_and_grad(total, has_aux=True), "Return one tensor"),
    "a graph of text": (lambda: ta.value_and_grad(total, create_graph="yes"), "create_graph='yes' must be True or"),
    "argnums in text": (lambda: ta.value_and_grad(total, "x"), "value_and_grad: argnums holds 'x'"),
    "argnum in text": (lambda: ta.elementwise_grad(total, "x"), "elementwise_grad: argnum holds 'x'"),
    "primals alone": (lambda: ta.jvp(total, VECTOR, VECTOR), r"primals is a Tensor.\n.*\n  Write ta.jvp\(f, \[x\]"),
    "tangents by name": (lambda: ta.jvp(total, [VECTOR], {"x": VECTOR}), "tangents is a dict"),
    "tangent of text": (lambda: ta.jvp(total, [VECTOR], ["x"]), "jvp: a tangent: .*numbers are expected"),
    "a keyword": (lambda: ta.jacobian(total, VECTOR, strict=True), "jacobian: there is no argument 'strict'"),
}


@pytest.mark.parametrize("name", list(ASKED_WRONGLY))
def test_a_derivative_asked_for_wrongly_is_refused_in_words(name):
    ask, words = ASKED_WRONGLY[name]
    with pytest.raises(ta.TinyattnError, match=words):
        ask()


def test_several_arguments_may_be_named_in_a_list_and_by_numpy_s_numbers():
    pair = ta.grad(lambda a, b: (a * b).sum(), [0, 1])(VECTOR, 2 * VECTOR)
    assert isinstance(pair, tuple) and pair[0].tolist() == [2.0, 4.0, 6.0] and pair[1].tolist() == [1.0, 2.0, 3.0]
    one = ta.grad(lambda a, b: (a * b).sum(), np.int64(1))(VECTOR, 2 * VECTOR)
    assert one.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("function", [ta.sum, ta.exp, ta.relu], ids=lambda function: function.__name__)
def test_a_number_beyond_all_dtypes_is_refused_in_words(function):
    with pytest.raises(ta.DTypeError, match=f"{function.__name__}: an array of object"):
        function(10**30)


@pytest.mark.parametrize("bad", ["a", object(), [1.0, "b"]], ids=["text", "object", "list"])
def test_a_gradient_that_is_no_numbers_is_refused_in_words(bad):
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ta.DTypeError, match="grad: an array of"):
        x.grad = bad
    assert x.grad is None
