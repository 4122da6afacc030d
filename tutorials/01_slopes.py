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
# %% [markdown] lang="zh" of="72abee"
# # 01 斜率与有限差分
#
# **需要** — · **分钟** 30
#
# **问题。** 训练模型，就是把许多旋钮各拧一点点，每个都朝让损失变小的方向拧。所以对每个旋钮都要知道：**我拧
# 它的时候，结果变化有多快？** 这个数就是**斜率**（slope），也叫导数。只用函数本身，能不能求出它？求出来的数
# 又能信到什么程度？
#
# 后面各课的结果都拿这一课的方法来检验，所以值得弄清它的弱点。
# %% [markdown] lang="en"
# ## Turn the knob a little, look what happens
#
# For f(x) = x³ school says: the slope is 3x², so 12 at x = 2. Without the formula: go a step h, and
# divide the change by the step. This is the **forward difference**.
# %% [markdown] lang="zh" of="b9122b"
# ## 拧一点旋钮，看看结果
#
# 对f(x) = x³，学校里教过：斜率是3x²，在x = 2处是12。不用公式的话：走一小步h，用变化量除以步长。这叫**前向差
# 分**（forward difference）。
# %% [markdown] lang="en" role="predict"
# **Predict.** With h = 0.1: is (f(2.1) − f(2)) / 0.1 exactly 12, below it, or above it?
# %% [markdown] lang="zh" of="9bf21c"
# **预测。** 取h = 0.1，(f(2.1) − f(2)) / 0.1正好是12，偏小，还是偏大？
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
# Take a step back as well as a step on, and the bend cancels. The two places are two steps apart, so
# divide by 2h: (f(x + h) − f(x − h)) / 2h, the **central difference**.
# %% [markdown] lang="zh" of="5dcbf1"
# 偏大：我们往前走的时候，曲线一直在往上弯。把(2 + h)³展开，误差是6h + h²：主要的部分**与h成正比**。
#
# ## 两边都看
#
# 往前走一步，也往回走一步，弯曲的影响就抵消了。两处相距两步，所以除以2h：(f(x + h) − f(x − h)) / 2h，
# 这叫**中心差分**（central difference）。
# %% [markdown] lang="en" role="predict"
# **Predict.** Make h ten times smaller. How many times smaller is the error of the central difference?
# %% [markdown] lang="zh" of="8387d3"
# **预测。** 把h缩小到十分之一，中心差分的误差会缩小到几分之一？
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
# %% [markdown] lang="zh" of="475ec3"
# ## h能有多小？
#
# 步长缩到十分之一，误差就缩到百分之一：那为什么不取h = 0.000000000000001？因为计算机只保留大约16位数字。
# f(x + h)和f(x − h)相同的位数越来越多，一相减就全丢掉了，剩下的是舍入噪声，还要再除以一个极小的数。
# %% [markdown] lang="en" role="predict"
# **Predict.** Which h is best for the slope of eˣ: 0.1, 0.00001, or 0.000000000000001?
# %% [markdown] lang="zh" of="252b70"
# **预测。** 求eˣ的斜率，哪个h最好：0.1、0.00001，还是0.000000000000001？
# %%
points = np.linspace(0.5, 1.5, 50)  # the mean over many points, so that luck plays no part

def mean_error(h, kind=np.float64):
    x, h = points.astype(kind), kind(h)
    return np.mean(abs(central(np.exp, x, h) - np.exp(points)) / np.exp(points))

digits = {kind.__name__: -np.log10(np.finfo(kind).eps) for kind in (np.float64, np.float32)}
print("digits kept:", digits)
assert [round(number) for number in digits.values()] == [16, 7]

steps = [10.0**-k for k in range(18)]
errors = [mean_error(h) for h in steps]
for h, error in zip(steps, errors):
    print(f"h = {h:.0e}   relative error {error:.1e}")

assert 1e-6 <= steps[int(np.argmin(errors))] <= 1e-4 and min(errors) < 1e-9
assert central(np.exp, 1.0, 1e-17) == 0.0  # 1 + h is 1 for the computer: no change at all
# %% [markdown] lang="en"
# The valley lies near 1e-5: there the error of the formula (about h² / 6) and that of rounding (about
# 2e-16 / h) are alike.
#
# ## "My gradient check fails, so my derivation is wrong"
#
# Perhaps. First look at the number type. With 32-bit numbers (`float32`), the usual kind in large models,
# only 7 digits are kept, as the first line above says.
# %% [markdown] lang="zh" of="39148c"
# 谷底在1e-5附近：在那里，公式的误差（约h² / 6）和舍入的误差（约2e-16 / h）差不多大。
#
# ## “梯度（gradient）检验没通过，所以我推导错了”
#
# 也许吧。先看看数的类型。大模型里常用的32位数（`float32`），只保留大约7位数字，上面输出的第一行就说明了这
# 一点。
# %% [markdown] lang="en" role="predict"
# **Predict.** The slope of eˣ is eˣ, no doubt. How large is the relative error of the check with 32 bits
# and h = 1e-5?
# %% [markdown] lang="zh" of="3fde1c"
# **预测。** eˣ的斜率就是eˣ，这毫无疑问。用32位数、h = 1e-5来检验，相对误差有多大？
# %%
for h in (1e-1, 1e-2, 1e-3, 1e-5, 1e-7):
    short, long = mean_error(h, np.float32), mean_error(h)
    print(f"h = {h:.0e}   32 bits {short:.1e}   64 bits {long:.1e}")

assert mean_error(1e-5, np.float32) > 1e-3  # a right slope, and the check says no
assert mean_error(1e-7, np.float32) > 0.1
assert min(mean_error(10.0**-k, np.float32) for k in range(1, 8)) > 1e-5  # no h saves it
# %% picture="valleys"
import viz

short = [mean_error(h, np.float32) for h in steps[:8]]
assert np.argmin(short) < np.argmin(errors)  # 32 bits: the valley comes earlier
assert abs(errors[2] / (1e-2**2 / 6) - 1) < 0.01       # left of it: h² / 6
assert 0.3 < (1e-5**2 / 6) / (2.2e-16 / 1e-5) < 3      # in it: both alike
viz.curve({"float64": errors, "float32": short}, log=True,
          x_title="k, for h = 10⁻ᵏ", title="Relative error of the slope of eˣ")
# %% [markdown] lang="en"
# The picture shows both valleys: to the left of each the formula is too coarse, to the right rounding
# wins. So: check in 64 bits, with h about 1e-5. All checks of tinyattn do.
#
# ## Many knobs: the gradient
#
# A function of many numbers has one slope for each of them, all others held still. Together they are the
# **gradient**, an array of the same shape. Predict before you run: f(w) = w₀² + 10 w₁ at w = (3, 5).
# %% [markdown] lang="zh" of="f47ed0"
# 图里能看到两个谷：谷的左边，公式太粗；谷的右边，舍入占了上风。所以：用64位数检验，h取1e-5左右。
# tinyattn的所有检验都是这样做的。
#
# ## 许多旋钮：梯度
#
# 多个数的函数，对每个数都有一个斜率（其他的数保持不动）。合在一起就是**梯度**，它是形状相同的数组。运行之
# 前先猜一猜：f(w) = w₀² + 10 w₁，在w = (3, 5)处。
# %% [markdown] lang="en" role="predict"
# **Predict.** The two slopes of w₀² + 10 w₁ at (3, 5).
# %% [markdown] lang="zh" of="0fc23d"
# **预测。** w₀² + 10 w₁在(3, 5)处的两个斜率。
# %%
def numeric_gradient(f, w, h=1e-5):
    slopes = np.zeros(w.shape)
    for i in np.ndindex(w.shape):  # every place of w, however many axes it has
        step = np.zeros(w.shape)
        step[i] = h
        slopes[i] = (f(w + step) - f(w - step)) / (2 * h)
    return slopes
# %%
runs = []

def two_knobs(w):
    runs.append(w)
    return w[0] ** 2 + 10 * w[1]

w = np.array([3.0, 5.0])
slopes = numeric_gradient(two_knobs, w)
print("gradient", slopes, "  runs of the function:", len(runs))
assert np.allclose(slopes, [6, 10], rtol=0, atol=1e-8)
assert len(runs) == 2 * w.size  # two for each knob
# %% [markdown] lang="en"
# ## What the engine does instead
#
# A million knobs would need two million runs. The engine finds all slopes with *one* walk backwards
# through the calculation (lessons 02 and 03), from exact rules, without h. Differences stay as the
# judge.
#
# "Equal" needs a measure. Divide the length of the difference by the sum of both lengths: a **relative
# difference**, 0 for equal gradients, 1 for opposite ones, whatever the units.
#
# `ta.grad(loss)` makes the function that gives all slopes of `loss`. It and `loss` give *tensors*, the
# engine's arrays (lesson 02): `.data` is the plain array in one, `.item()` the plain number.
# %% [markdown] lang="zh" of="b944bc"
# ## 引擎是怎么做的
#
# 一百万个旋钮，就要算两百万遍。引擎只需沿着计算倒着走*一遍*（第02、03课），用精确的规则，不需要h，就能得
# 到全部斜率。差分留作裁判。
#
# “相等”需要一个尺度。用差的长度除以两者的长度之和，就是**相对差**（relative difference）：两个梯度相等时是
# 0，方向相反时是1，与单位无关。
#
# `ta.grad(loss)`造出一个函数，它给出`loss`的全部斜率。它和`loss`返回的都是*张量*（tensor），也就是引擎自己的
# 数组（第02课）：`.data`是里面的普通数组，`.item()`是里面的普通的数。
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
assert relative_difference(exact, exact) == 0 and relative_difference(exact, -exact) == 1
# %% [markdown] lang="en"
# ## A judge that needs no good h
#
# Walk a little way h in any direction v. If g is the gradient, f(w + hv) − f(w) − h g·v is only the
# bend: a hundred times smaller for a ten times smaller h. If g is wrong, a part proportional to h is
# left: only ten times.
# %% [markdown] lang="zh" of="83f37c"
# ## 不必挑选h的裁判
#
# 沿任意方向v走一小段h。如果g是梯度，f(w + hv) − f(w) − h g·v就只剩弯曲的部分：h缩到十分之一，它缩到百分
# 之一。如果g错了，就会留下与h成正比的一份：只缩到十分之一。
# %% [markdown] lang="en" role="predict"
# **Predict.** By which factor does the rest shrink, in the end, for a gradient that is one per cent off?
# %% [markdown] lang="zh" of="75d639"
# **预测。** 如果梯度差了百分之一，h每缩到十分之一，剩余的部分最终缩到几分之一？
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
# %% [markdown] lang="zh" of="0eaaad"
# ## 练习
#
# 写好，运行，看`grade`怎么说。`hint("01.central")`有提示。
#
# **1**（5分钟）。中心差分。
# %% exercise="01.central"
from tinyattn.learn import grade, hint, reveal


def central(f, x, h):
    """The slope of f at the number x, from a step of h to each side."""
    ...

grade("01.central", central)
# %% [markdown] lang="en"
# **2** (10 minutes). The gradient of a function of many numbers.
# %% [markdown] lang="zh" of="3a8c83"
# **2**（10分钟）。多个数的函数的梯度。
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
# %% [markdown] lang="zh" of="11f05a"
# ## 小结
#
# - 斜率是变化量除以步长；中心差分的误差约为h²，前向差分约为h。
# - 步长太小，斜率就淹没在舍入误差里：用64位数，h在1e-5附近。用32位数，正确的梯度也通不过检验。
# - 梯度对每个数各有一个斜率，形状与它相同。看剩余部分缩小多少（100还是10），不必挑选h也能判断。
