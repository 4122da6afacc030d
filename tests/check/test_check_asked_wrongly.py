"""A check that is asked for wrongly says so in words, before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.check import check_gradients, check_rule, exact_check, numeric_gradient

X = np.array([1.0, 2.0])


def square(x):
    return x**2


def slope(g, x):
    return 2 * g * x


ASKED_WRONGLY = {
    "modes in a text": (lambda: check_gradients(square, X, modes="reverse"), "modes='reverse' is not known"),
    "a mode": (lambda: check_gradients(square, X, modes=("backward",)), r"modes=\('backward',\) is not known"),
    "modes of arrays": (lambda: check_gradients(square, X, modes=[X]), "modes=.* is not known"),
    "modes of nothing": (lambda: check_gradients(square, X, modes=3), "modes=3 is not known"),
    "oracles in a text": (lambda: check_gradients(square, X, oracles="sympy"), "oracles='sympy' is not known"),
    "oracles of nothing": (lambda: check_gradients(square, X, oracles=0), "oracles=0 is not known"),
    "a tolerance in text": (lambda: check_gradients(square, X, rtol="1e-3"), "rtol='1e-3' must be one number"),
    "tolerances": (lambda: check_gradients(square, X, atol=X), "atol must be one number"),
    "a tolerance below 0": (lambda: check_gradients(square, X, rtol=-1.0), "rtol=-1.0 must be a number from 0 on"),
    "a seed in text": (lambda: check_gradients(square, X, seed="a"), "seed='a' must be a whole number from 0 on"),
    "a seed below 0": (lambda: check_gradients(square, X, seed=-1), "seed=-1"),
    "a keyword of PyTorch": (lambda: check_gradients(square, X, eps=1e-6), "no argument 'eps'"),
    "no forward": (lambda: check_rule(X, slope, X), "forward is a ndarray; a function of arrays"),
    "no backward": (lambda: check_rule(square, "2x", X), "backward is a str; a function of arrays"),
    "a backward that is none": (lambda: check_rule(square, [3], X), "backward is a int"),
    "a rule's seed": (lambda: check_rule(square, slope, X, seed=None), "check_rule: seed=None"),
    "a rule's keyword": (lambda: check_rule(square, slope, X, tolerance=1), "no argument 'tolerance'"),
    "a tensor to check exactly": (lambda: exact_check(ta.tensor(X)), r"Write exact_check\(ta.Graph.of\(y\)\)"),
    "differences of nothing": (lambda: numeric_gradient(3, X), "f is a int; a function is needed"),
    "differences of text": (lambda: numeric_gradient(square, "x"), "numeric_gradient: .*numbers are expected"),
    "differences of no step": (lambda: numeric_gradient(square, X, 0), "step=0 must be a number other than 0"),
}


@pytest.mark.parametrize("name", ASKED_WRONGLY)
def test_a_check_asked_for_wrongly_is_refused_in_words(name: str) -> None:
    ask, words = ASKED_WRONGLY[name]
    with pytest.raises(ta.TinyattnError, match=words):
        ask()


def test_what_is_right_is_still_checked() -> None:
    """A list of modes, NumPy's whole numbers and a rule for none of the inputs are no mistakes."""
    assert check_gradients(square, X, modes=["reverse"], oracles=[], seed=np.int64(3), rtol=0.1)
    assert check_rule(square, [slope], X)
    assert numeric_gradient(lambda x: (x**2).sum(), [1, 2]).round(6).tolist() == [2.0, 4.0]
