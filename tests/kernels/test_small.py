"""The calls for small arrays give on single numbers what they give on arrays."""

import numpy as np
import pytest

from tinyattn.kernels.small import by_sign, positive_part

NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 5e-324]


@pytest.mark.parametrize("x", NUMBERS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@np.errstate(invalid="ignore")
def test_single_numbers_are_rectified_as_arrays_are(x, kind):
    assert repr(positive_part(kind(x)) + kind(0)) == repr(positive_part(np.array([x], kind))[0] + kind(0))
    for g in NUMBERS:
        assert repr(by_sign(kind(g), kind(x))) == repr(by_sign(np.array([g], kind), np.array([x], kind))[0])
