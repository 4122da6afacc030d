# %% [markdown] lang="en"
# # 01 Slopes and finite differences
#
# **Needs** — · **Minutes** 30
#
# **Question.** Training a model means turning many knobs a little, each in the direction that makes the
# loss smaller. So we must know, for each knob: *how fast does the result change when I turn it?* That
# number is the **slope** (derivative). Can we find it with nothing but the function itself? And how far
# can we trust what we find?
#
# Everything in the later lessons is checked against this one, so it is worth knowing its weak spots.
# %% [markdown] lang="en"
# ## Turn the knob a little, look what happens
#
# For f(x) = x³ school says: the slope is 3x², so 12 at x = 2. Without the formula: go a step h, and
# divide the change by the step. This is the **forward difference**.
# %% [markdown] lang="en" role="predict"
# **Predict.** With h = 0.1: is (f(2.1) − f(2)) / 0.1 exactly 12, below it, or above it?
# %%
import numpy as np

import tinyattn as ta


def f(x):
    return x**3

def forward(f, x, h):
    return (f(x + h) - f(x)) / h

for h in (1.0, 0.1, 0.01):
    slope, by_hand = forward(f, 2.0, h), 12 + 6 * h + h**2
    print(f"h = {h:<5}  slope {slope:8.4f}   12 + 6h + h² = {by_hand:8.4f}")
    assert abs(slope - by_hand) < 1e-9
# %% [markdown] lang="en"
# Above: the curve bends upwards while we walk. Multiply (2 + h)³ out, and the error is 6h + h²: to first
# order it is *proportional to h*.
#
# ## Look to both sides
#
# Walk half the way back and half the way on, and the bend cancels: (f(x + h) − f(x − h)) / 2h, the
# **central difference**.
# %% [markdown] lang="en" role="predict"
# **Predict.** Make h ten times smaller. How many times smaller is the error of the central difference?
# %%
def central(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)

errors = [abs(central(f, 2.0, h) - 12) for h in (0.1, 0.01, 0.001)]
for h, error in zip((0.1, 0.01, 0.001), errors):
    print(f"h = {h:<6} error {error:.2e}")
    assert abs(error - h**2) < 1e-9  # (2 + h)³ and (2 - h)³: the terms with h cancel

assert abs(errors[0] / errors[1] - 100) < 0.1 and abs(errors[1] / errors[2] - 100) < 0.1
# %% [markdown] lang="en"
# ## How small may h be?
#
# A hundred times better for a ten times smaller step: then why not h = 0.000000000000001? Because a
# computer keeps about 16 digits. f(x + h) and f(x − h) agree in more and more of them, the subtraction
# throws these away, and what is left is rounding noise, divided by a tiny number.
# %% [markdown] lang="en" role="predict"
# **Predict.** Which h is best for the slope of eˣ: 0.1, 0.00001, or 0.000000000000001?
# %%
points = np.linspace(0.5, 1.5, 50)  # the mean over many points, so that luck plays no part

def mean_error(h, kind=np.float64):
    x, h = points.astype(kind), kind(h)
    return np.mean(abs(central(np.exp, x, h) - np.exp(points)) / np.exp(points))

steps = [10.0**-k for k in range(1, 18)]
errors = [mean_error(h) for h in steps]
for h, error in zip(steps, errors):
    print(f"h = {h:.0e}   relative error {error:.1e}  {'#' * round(17 + np.log10(error))}")

assert 1e-6 <= steps[int(np.argmin(errors))] <= 1e-4 and min(errors) < 1e-9
assert central(np.exp, 1.0, 1e-17) == 0.0  # 1 + h is 1 for the computer: no change at all
# %% [markdown] lang="en"
# The valley lies near 1e-5: there the error of the formula (h²) and that of rounding (1e-16 / h) are
# alike.
#
# ## "My gradient check fails, so my derivation is wrong"
#
# Perhaps. First look at the number type. With 32-bit numbers, the usual kind in large models, only 7
# digits are kept.
# %% [markdown] lang="en" role="predict"
# **Predict.** The slope of eˣ is eˣ, no doubt. How large is the relative error of the check with 32 bits
# and h = 1e-5?
# %%
for h in (1e-1, 1e-2, 1e-3, 1e-5, 1e-7):
    short, long = mean_error(h, np.float32), mean_error(h)
    print(f"h = {h:.0e}   32 bits {short:.1e}   64 bits {long:.1e}")

assert mean_error(1e-5, np.float32) > 1e-3  # a right slope, and the check says no
assert mean_error(1e-7, np.float32) > 0.1
assert min(mean_error(10.0**-k, np.float32) for k in range(1, 8)) > 1e-5  # no h saves it
# %% [markdown] lang="en"
# So: check in 64 bits, with h about 1e-5. All checks of tinyattn do.
#
# ## Many knobs: the gradient
#
# A function of many numbers has one slope for each of them, all others held still. Together they are the
# **gradient**, an array of the same shape. Predict before you run: f(w) = w₀² + 10 w₁ at w = (3, 5).
# %% [markdown] lang="en" role="predict"
# **Predict.** The two slopes of w₀² + 10 w₁ at (3, 5).
# %%
def numeric_gradient(f, w, h=1e-5):
    slopes = np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        step = np.zeros(w.shape)
        step[i] = h
        slopes[i] = (f(w + step) - f(w - step)) / (2 * h)
    return slopes

w = np.array([3.0, 5.0])
slopes = numeric_gradient(lambda w: w[0] ** 2 + 10 * w[1], w)
print(slopes)
assert np.allclose(slopes, [6, 10], rtol=0, atol=1e-8)
# %% [markdown] lang="en"
# ## What the engine does instead
#
# A million knobs would need two million runs. The engine finds all slopes with *one* walk backwards
# through the calculation (lessons 02 and 03), from exact rules, without h. Differences stay as the
# judge.
#
# "Equal" needs a measure. Divide the length of the difference by the lengths of both: a **relative
# difference**, 0 for equal, 1 for unrelated, whatever the units.
# %%
def relative_difference(a, b):
    return np.linalg.norm(a - b) / (np.linalg.norm(a) + np.linalg.norm(b))

def loss(w):
    return ta.sum(ta.tanh(w) * w)  # some bent function of five numbers

w = np.linspace(-1, 1, 5)
exact = ta.grad(loss)(w).data
measured = numeric_gradient(lambda w: loss(w).item(), w)
print("exact   ", exact)
print("measured", measured)
print(f"relative difference {relative_difference(exact, measured):.1e}")
assert relative_difference(exact, measured) < 1e-9
assert relative_difference(2 * exact, measured) > 0.3  # a wrong gradient is seen at once
# %% [markdown] lang="en"
# ## A judge that needs no good h
#
# Walk a little way h in any direction v. If g is the gradient, f(w + hv) − f(w) − h g·v is only the
# bend: a hundred times smaller for a ten times smaller h. If g is wrong, a part proportional to h is
# left: only ten times.
# %% [markdown] lang="en" role="predict"
# **Predict.** By which factor does the rest shrink, in the end, for a gradient that is one per cent off?
# %%
v = np.array([1.0, -2.0, 0.5, 1.0, 1.0])

def rest(g, h):
    return abs(loss(w + h * v).item() - loss(w).item() - h * (g @ v))

for name, g in (("right", exact), ("1 % off", 1.01 * exact)):
    factors = [rest(g, h) / rest(g, h / 10) for h in (1e-2, 1e-3)]
    print(f"{name:8} 0.01 -> 0.001 -> 0.0001: the rest shrinks by", np.round(factors))
    assert (abs(factors[1] - 100) < 5) == (name == "right")
assert rest(1.01 * exact, 1e-3) / rest(1.01 * exact, 1e-4) < 20
# %% [markdown] lang="en"
# ## Exercises
#
# Fill in, run, read what `grade` says. `hint("01.central")` helps.
#
# **1** (5 minutes). The central difference.
# %% exercise="01.central"
from tinyattn.learn import grade, hint, reveal


def central(f, x, h):
    """The slope of f at the number x, from a step of h to each side."""
    ...

grade("01.central", central)
# %% [markdown] lang="en"
# **2** (10 minutes). The gradient of a function of many numbers.
# %% exercise="01.gradient"
def gradient(f, w, h):
    """One slope for each entry of the array w, by central differences: the shape of w."""
    ...

grade("01.gradient", gradient)
# %% [markdown] lang="en"
# ## Summary
#
# - A slope is change divided by step; the central difference is wrong by about h², the forward one by
#   about h.
# - Too small a step drowns in rounding: 64 bits and h near 1e-5. With 32 bits a right gradient fails the
#   check.
# - A gradient has one slope for each number, and its shape. The rest test (100 or 10) judges it without
#   a good h.
