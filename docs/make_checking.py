"""Write ``checking.md``: real mistakes, and what the check says of each, word for word.

Run it from anywhere: ``python docs/make_checking.py``.  A test keeps the page current.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

START = """# Is my gradient right?

`ta.check_gradients` answers for functions of tensors, layers and operations, `ta.check_rule` for plain NumPy with a
gradient written by hand. Both return a report that is true when the gradient is right and that says, when it is not,
which rule is wrong, at which entry, what should have held, and which known mistake gives exactly these numbers.

```python
import numpy as np
import tinyattn as ta

report = ta.check_gradients(lambda q, k, v: ta.softmax(q @ k.mT) @ v, q, k, v)
assert report, report
```

## What is asked, in this order

| oracle | what it knows | what it can tell |
|---|---|---|
| central differences, many steps | values of the function | every fault larger than its own error, which it states |
| Taylor remainder | the same values | falls with slope 2 where the gradient is right, 1 where it is wrong; no step to choose |
| complex step | the forwards, on complex numbers | faults down to rounding |
| formulas | the definitions, by the one rule of the derivations | rules that do not fit the textbook; a forward that does not |
| SymPy | the definitions | the same, with nothing of ours; about the entry to blame, or with `oracles=("sympy",)` about every input |
| forward mode against reverse mode | the engine, both ways | rules that lose their recording |
| exact check | forwards and rules, over a finite field | equal or not equal: a fault of one part in a million millions is one |
| composed forms | what a fused operation is made of, with bounds | fast code that serves floats only, such as tiles and work in place |
| fifty digits | forwards and rules, on mpmath's numbers | asked when only the exact check disagrees: a right rule agrees to thirty digits, one that rounds a constant to sixteen, a wrong one to fewer |

A random direction comes first. Only when something disagrees are single entries and single nodes looked at: each rule
is held against differences of its own forward, at the numbers that were recorded, until the first wrong one is found.
What rounding allows is not guessed: the same rules are run on numbers that carry a bound of their own error.

Below are real mistakes, and what the tool prints of each.
"""

FAILURES = [
    (
        "The softmax that forgets its row",
        "The commonest wrong gradient of softmax uses the slope of each output by its own input only.",
        """
from tinyattn.ops import Op

def forward(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

my_softmax = Op(
    "my_softmax",
    forward,
    (lambda g, y, x: g * y * (1 - y),),
    "y[..., i] = exp(x[..., i]) / sum_j exp(x[..., j])",
    sample=lambda rng: [((rng.normal(size=(2, 3)),), ())],
)

def attend(q, k, v):
    scores = q @ k.mT
    weights = my_softmax(scores)
    return weights @ v

rng = np.random.default_rng(0)
print(ta.check_gradients(attend, rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))))
""",
    ),
    (
        "The bias that was not summed",
        "A bias is copied to every row going forward. Going backward, the copies' gradients are added.",
        """
def linear(x, w, b):
    return x @ w + b

def backward(g, x, w, b):
    return g @ w.T, x.T @ g, g

rng = np.random.default_rng(0)
point = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)
print(ta.check_rule(linear, backward, point))
""",
    ),
    (
        "The word that occurs twice",
        "`out[ids] = g` keeps one gradient of a word that was looked up several times.",
        """
ids = np.array([0, 2, 2, 1])

def lookup(table):
    return table[ids]

def backward(g, table):
    out = np.zeros_like(table)
    out[ids] = g
    return out

print(ta.check_rule(lookup, backward, np.random.default_rng(0).normal(size=(3, 2))))
""",
    ),
    (
        "The loss that lost its 1/n",
        "Probability minus target is the gradient of the sum of the losses, not of their mean.",
        """
targets = np.eye(3)[[2, 0, 1, 1]]

def probabilities(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def cross_entropy(x):
    return -(targets * np.log(probabilities(x))).sum() / 4

def backward(g, x):
    return g * (probabilities(x) - targets)

print(ta.check_rule(cross_entropy, backward, np.random.default_rng(0).normal(size=(4, 3))))
""",
    ),
    (
        "The value that left the graph",
        "`float(...)`, `.data`, `np.asarray` and `detach` hide a part of the computation from the engine.",
        """
def scaled(x):
    largest = x.data.max()
    return ta.sum(ta.tanh(x / largest))

print(ta.check_gradients(scaled, np.array([0.5, 2.0, -1.0])))
""",
    ),
    (
        "One part in a million millions",
        "No difference can see it, the exact check does: one entry of one gradient is off by 1e-12 of itself.",
        """
from tinyattn.ops import REGISTRY, Op

right = REGISTRY["matmul"]
spot = np.zeros((4, 2))
spot[1, 0] = 1e-12
slightly = Op(
    "slightly_off",
    right.forward,
    (right.vjps[0], lambda g, y, a, b: right.vjps[1](g, y, a, b) * (1 + spot)),
    right.definition,
    inputs=("a", "b"),
    sample=right.sample,
)

rng = np.random.default_rng(0)
print(ta.check_gradients(lambda x, w: ta.tanh(slightly(x, w)), rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), order=1))
""",
    ),
]

NO_FAULTS = [
    (
        "A kink",
        "At 0 the relu has no slope. A difference gives a half there, the engine 0; neither is wrong.",
        "print(ta.check_gradients(ta.relu, np.array([0.0, 1.0, -1.0])))",
    ),
    (
        "A rule that is right but not decidable exactly",
        "The textbook's gradient of log-softmax takes the exponential of the result. That is right for numbers, but\n"
        "it is no identity of arithmetic: exp(log(z)) is z only for the real exponential, not for the one that stands\n"
        "for it in a finite field. So it is run with fifty digits, where a wrong rule shows.",
        """
def log_softmax(x):
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))

def backward(g, y, x):
    return g - np.exp(y) * g.sum(axis=-1, keepdims=True)

print(ta.check_rule(log_softmax, backward, np.array([[0.5, -1.0, 2.0]])))
""",
    ),
]

END = """## In your own tests

```python
from tinyattn.testing import assert_gradients, assert_rule

def test_my_layer():
    assert_gradients(my_layer, np.ones((3, 4)))
```

With the plugin, which pytest finds by itself, there is also a fixture; a marker carries its options. A failure has a
section with every comparison.

```python
@pytest.mark.gradients(order=1)
def test_my_layer(gradients):
    gradients(my_layer, np.ones((3, 4)))
```

Functions and modules of PyTorch and JAX, with `autograd.Function` and `custom_vjp` rules of your own, are checked the
same way: `assert_gradients_torch(f, *inputs)`, `assert_gradients_jax(f, *inputs)`. These libraries do not show the
forwards of their operations, so there is no exact check, and no graph to walk node by node. But rules of your own are
listened to while the function runs, checked by themselves at the numbers they were called with, and blamed by name and
line; of anything else the report names input, entry and likely mistake, and says that it can point no further.

## A rule in plain NumPy

`ta.check_rule(forward, backward, sample)` takes the pair as you have it:

| forward | backward |
|---|---|
| `y = forward(*inputs)` | `backward(g, *inputs)` or `backward(g, y, *inputs)`: one gradient, or a tuple with one for each input |
| the same | a tuple of such rules, one for each input |
| a method that keeps what it needs on its object | `backward(g)` |
| `y, cache = forward(*inputs)`, with `saves=True` | `backward(g, cache)` |
| `y1, y2 = forward(*inputs)` | the same as above, with a tuple for `g` and for `y` |

With `definition="y[..., i] = ..."` formulas and SymPy are asked as well. What writes into an array that others still
need is noted; the check itself works on copies.

## From the command line

    tinyattn check lesson.py:my_layer --shape 3,4
    tinyattn check lesson.py:forward --backward backward --inputs point --html report.html

The exit code is 0 when the gradient is right, 1 when it is wrong, 2 when it could not be checked: the file or the
function raises, gives no tensor, or gives nan. `--json` prints the
report as data, `--html` writes a page with the graph, in which the faulty node is marked.

## What the exact check asks of a rule

Forward and rule are run on numbers of a finite field. exp, log, sqrt, tanh, sin and cos are random functions there, of
which only the derivative is known. So a rule is decided exactly when it is written

- with operators, NumPy functions and array methods, without `float()` and `np.asarray`; `out=`, `+=` and assignment are
  understood where they write into an array that the rule has made itself;
- through the result `y`, or through the same exp, log and sqrt values that the forward made;
- with one written constant at a time (`3 * (c * x)`), and divided by whole numbers (`g / n`, not `g * (1 / n)`).

A rule that is written otherwise is not called wrong for it: fifty digits, differences and complex step decide, and the
report says so. The chance that a wrong rule passes the exact check is estimated at a few in eight million.
"""


def printed(code: str) -> str:
    """What a piece of code prints."""
    import numpy as np

    import tinyattn as ta

    heard = io.StringIO()
    with contextlib.redirect_stdout(heard):
        exec(compile(code.strip() + "\n", "lesson.py", "exec"), {"np": np, "ta": ta, "__name__": "lesson"})
    return heard.getvalue().rstrip()


def section(title: str, words: str, code: str) -> str:
    """One example with its output."""
    return f"### {title}\n\n{words}\n\n```python\n{code.strip()}\n```\n\n```text\n{printed(code)}\n```\n"


def page() -> str:
    """The whole page."""
    parts = [START, "## Failures\n", *(section(*each) for each in FAILURES)]
    parts += ["## What is not a fault\n", *(section(*each) for each in NO_FAULTS), END]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("checking.md").write_text(page(), encoding="utf-8")
