"""The exercises of lesson 01: the central difference, and a gradient from it."""

import math

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong


def cube(x):
    """x³"""
    return x**3


def sine(x):
    """sin x"""
    return math.sin(x)


def bent(x):
    """x³ - 2x² + x"""
    return x**3 - 2 * x**2 + x


def first_square(w):
    """w[0]² + 10 w[1]"""
    return w[0] ** 2 + 10 * w[1]


def total(w):
    """the sum of all entries of w"""
    return np.sum(w)


def mixed(w):
    """the sum of w³, plus the square of the sum of w"""
    return np.sum(w**3) + np.sum(w) ** 2


def solve_central(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


def solve_gradient(f, w, h):
    slopes = np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        step = np.zeros(w.shape)
        step[i] = h
        slopes[i] = (f(w + step) - f(w - step)) / (2 * h)
    return slopes


def one_sided_gradient(f, w, h):
    slopes = np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        step = np.zeros(w.shape)
        step[i] = h
        slopes[i] = (f(w + step) - f(w)) / h
    return slopes


def walking_gradient(f, w, h):
    slopes, w = np.zeros(w.shape), w.copy()
    for i in np.ndindex(w.shape):
        before = f(w)
        w[i] += h
        slopes[i] = (f(w) - before) / h
    return slopes


def whole_rows(f, w, h):
    slopes = np.zeros(w.shape)
    for i in range(len(w)):
        step = np.zeros(w.shape)
        step[i] = h
        slopes[i] = (f(w + step) - f(w - step)) / (2 * h)
    return slopes


def one_axis_only(f, w, h):
    slopes = np.zeros(w.shape)
    for i in range(len(w)):
        step = np.zeros(len(w))
        step[i] = h
        slopes[i] = (f(w + step) - f(w - step)) / (2 * h)
    return slopes


def one_for_each_row(f, w, h):
    slopes = []
    for i in range(len(w)):
        up, down = w.copy(), w.copy()
        up[i] += h
        down[i] -= h
        slopes.append((f(up) - f(down)) / (2 * h))
    return np.array(slopes)


def all_at_once(f, w, h):
    return np.full(w.shape, (f(w + h) - f(w - h)) / (2 * h))


CENTRAL = Exercise(
    name="01.central",
    minutes=5,
    task=(
        "The slope of f at the number x by the central difference: a step of h to each side.",
        "用中心差分求f在x处的斜率：向两边各走一步h。",
    ),
    solution=solve_central,
    cases=(
        Case((cube, 2.0, 0.1), 12.01),  # 3x² + h²
        Case((cube, -1.0, 0.5), 3.25),
        Case((sine, 0.0, 0.5), math.sin(0.5) / 0.5),
        Case((sine, math.pi, 0.5), -math.sin(0.5) / 0.5),  # falling
    ),
    sample=lambda rng: (bent, rng.normal(), rng.uniform(0.1, 0.5)),
    properties=(
        Property(
            ("for x² the central difference is exact for every h", "对x²，无论h多大，中心差分都是精确的"),
            lambda f, rng: np.allclose([f(lambda x: x * x, 3.0, h) for h in (0.01, 0.5, 2.0)], 6),
        ),
    ),
    wrong=(
        Wrong(
            lambda f, x, h: (f(x + h) - f(x)) / h,
            ("the forward difference: it looks to one side only.", "这是前向差分：只看了一边。"),
        ),
        Wrong(
            lambda f, x, h: (f(x) - f(x - h)) / h,
            ("the backward difference: it looks to one side only.", "这是后向差分：只看了一边。"),
        ),
        Wrong(
            lambda f, x, h: (f(x + h) - f(x - h)) / h,
            (
                "the two points are 2h apart, and you divide by h: twice the slope.",
                "两点相距2h，你却除以h：得到两倍的斜率。",
            ),
        ),
        Wrong(
            lambda f, x, h: (f(x + h) - f(x - h)) / 2 * h,
            (
                "/ 2 * h divides by 2 and then multiplies by h; put brackets: / (2 * h).",
                "/ 2 * h是先除以2再乘h；要加括号：/ (2 * h)。",
            ),
        ),
        Wrong(
            lambda f, x, h: f(x + h) - f(x - h),
            ("the rise; a slope is the rise divided by the step.", "这是变化量；斜率要再除以步长。"),
        ),
        Wrong(
            lambda f, x, h: (f(x - h) - f(x + h)) / (2 * h),
            ("the two points are exchanged, so the sign is wrong.", "两个点写反了，所以符号不对。"),
        ),
        Wrong(
            lambda f, x, h: (f(x + h / 2) - f(x - h / 2)) / h,
            (
                "a step of h/2 to each side; here it is h to each side, so the two points are 2h apart.",
                "向两边各走了h/2；这里是向两边各走h，所以两点相距2h。",
            ),
        ),
        Wrong(
            lambda f, x, h: (f(x + h) + f(x - h)) / (2 * h),
            ("the two values are added; the rise is their difference.", "把两个值相加了；变化量是它们的差。"),
        ),
        Wrong(
            lambda f, x, h: (f(x + h) - f(x - h)) / 2,
            ("divided by 2 only; the two points are 2h apart: / (2 * h).", "只除以了2；两点相距2h：/ (2 * h)。"),
        ),
        Wrong(
            lambda f, x, h: solve_central(f, x, 1e-5),
            (
                "this is the slope for a tiny step of your own, or from a formula; walk the h that is given.",
                "这是自己另取的极小步长（或公式）给出的斜率；要用给定的h。",
            ),
        ),
        Wrong(
            lambda f, x, h: abs(f(x + h) - f(x - h)) / (2 * h),
            ("without its sign: where f falls, the slope is negative.", "丢了符号：f下降的地方，斜率是负的。"),
        ),
    ),
    hints=(
        ("You need the function at two places: x + h and x - h.", "需要函数在两处的值：x + h和x - h。"),
        ("Slope is rise divided by run. How far apart are the two places?", "斜率是高差除以距离。两处相距多远？"),
        ("In one line: (f(x + h) - f(x - h)) / (2 * h)", "一行写完：(f(x + h) - f(x - h)) / (2 * h)"),
    ),
    tolerance=1e-8,
)

GRADIENT = Exercise(
    name="01.gradient",
    minutes=10,
    task=(
        "The gradient of f, a function of the array w, by central differences: one slope for each entry, the"
        " others held still.",
        "f是数组w的函数。用中心差分求它的梯度：每个元素一个斜率，其余元素保持不动。",
    ),
    solution=solve_gradient,
    cases=(
        Case((first_square, np.array([3.0, 5.0]), 0.01), [6, 10]),
        Case((total, np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 0.5), np.ones((2, 3))),
    ),
    sample=lambda rng: (mixed, rng.normal(size=(2, 3)), rng.uniform(0.1, 0.3)),
    wrong=(
        Wrong(
            one_sided_gradient,
            ("forward differences: each slope looks to one side only.", "这是前向差分：每个斜率都只看了一边。"),
        ),
        Wrong(
            all_at_once,
            (
                "all entries are moved at the same time; move one and hold the others still.",
                "所有元素一起动了；每次只动一个，其余不动。",
            ),
        ),
        Wrong(
            walking_gradient,
            (
                "the steps are never taken back: each slope starts where the last one ended.",
                "走出去的步没有收回：每个斜率都从上一个停下的地方开始。",
            ),
        ),
        Wrong(
            lambda f, w, h: 2 * solve_gradient(f, w, h),
            (
                "the two points are 2h apart, and you divide by h: twice the slope.",
                "两点相距2h，你却除以h：得到两倍的斜率。",
            ),
        ),
        Wrong(
            lambda f, w, h: solve_gradient(f, w, h).reshape(-1),
            (
                "the slopes are right but in one row: a gradient has the shape of w.",
                "斜率对了，但排成了一行：梯度的形状要和w一样。",
            ),
        ),
        Wrong(
            lambda f, w, h: np.sum(solve_gradient(f, w, h)),
            (
                "one number: either all entries were moved at once, or the slopes were added up. Move one entry at a"
                " time, and keep one slope for each.",
                "只有一个数：要么所有元素一起动了，要么把斜率加起来了。每次只动一个元素，每个元素各留一个斜率。",
            ),
        ),
        Wrong(
            whole_rows,
            (
                "a whole row of w is moved at once: with two axes w[i] is a row. np.ndindex(w.shape) gives single"
                " places.",
                "w的一整行一起动了：有两个轴时，w[i]是一行。np.ndindex(w.shape)给出单个的位置。",
            ),
        ),
        Wrong(
            one_axis_only,
            (
                "made for arrays with one axis; w may have more. Make the step with np.zeros(w.shape).",
                "只适用于一个轴的数组；w可以有更多的轴。用np.zeros(w.shape)来建步长数组。",
            ),
        ),
        Wrong(
            one_for_each_row,
            (
                "one slope for each row of w; every entry needs one of its own.",
                "w的每一行一个斜率；每个元素都要有自己的。",
            ),
        ),
    ),
    hints=(
        (
            "Make an array of zeros of the shape of w for the slopes, and go through its places.",
            "先建一个形状与w相同的零数组放斜率，再逐个位置走一遍。",
        ),
        (
            "For one place: an array step of zeros with h at that place; then w + step and w - step.",
            "对一个位置：建一个零数组step，只在该位置放h；然后用w + step和w - step。",
        ),
        (
            "for i in np.ndindex(w.shape): gives each place i of an array of any shape.",
            "for i in np.ndindex(w.shape): 能依次给出任何形状的数组的每个位置i。",
        ),
    ),
    tolerance=1e-8,
)

EXERCISES = (CENTRAL, GRADIENT)
