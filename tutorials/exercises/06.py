"""The exercises of lesson 06: two rules that SymPy can confirm."""

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong, differences


def solve_tanh(g, y):
    return g * (1 - y**2)


def solve_divisor(g, a, b):
    return -g * a / b**2


def tanh_agrees(f, rng):
    x, g = rng.normal(size=4), rng.normal(size=4)
    return np.allclose(f(g, np.tanh(x)), differences(np.tanh, x, g), atol=1e-8)


def divisor_agrees(f, rng):
    a, b, g = rng.normal(size=4), rng.uniform(1, 2, size=4), rng.normal(size=4)
    return np.allclose(f(g, a, b), differences(lambda b: a / b, b, g), atol=1e-7)


TANH = Exercise(
    name="06.tanh_rule",
    minutes=5,
    task=(
        "g arrives at y = tanh(x). The gradient of x, from g and y alone.",
        "传到y = tanh(x)的是g。只用g和y求x的梯度。",
    ),
    solution=solve_tanh,
    cases=(
        Case((np.array([1.0, 1.0, 2.0]), np.array([0.0, 0.5, -0.5])), [1, 0.75, 1.5]),
        Case((np.array([5.0]), np.array([1.0])), [0]),
    ),
    sample=lambda rng: (rng.normal(size=3), np.tanh(rng.normal(size=3))),
    properties=(Property(("it agrees with differences", "与差分一致"), tanh_agrees),),
    wrong=(
        Wrong(
            lambda g, y: g * (1 - np.tanh(y) ** 2),
            ("tanh was taken once more: y is tanh(x) already.", "又取了一次tanh：y已经是tanh(x)了。"),
        ),
        Wrong(lambda g, y: 1 - y**2, ("what arrives, g, is missing.", "少了传来的g。")),
        Wrong(lambda g, y: g * y * (1 - y), ("this is the rule of the sigmoid.", "这是sigmoid的规则。")),
        Wrong(lambda g, y: g * (1 - y), ("the square is missing: 1 - y².", "少了平方：1 - y²。")),
        Wrong(lambda g, y: g * y, ("this is the rule of exp.", "这是exp的规则。")),
        Wrong(lambda g, y: g * (1 + y**2), ("the sign is wrong: 1 - y².", "符号错了：1 - y²。")),
        Wrong(
            lambda g, y: 1 - g * y**2,
            (
                "g stands inside; it multiplies the whole slope: g * (1 - y**2).",
                "g放到里面去了；它要乘整个斜率：g * (1 - y**2)。",
            ),
        ),
        Wrong(
            lambda g, y: g * (1 - y) ** 2,
            ("(1 - y)² is not 1 - y²: only y is squared.", "(1 - y)²不是1 - y²：只有y要平方。"),
        ),
        Wrong(lambda g, y: g * (1 - y ^ 2), ("^ is no power in Python: write y**2.", "Python里^不是乘方：要写y**2。")),
        Wrong(
            lambda g, y: y * (1 - y**2),
            (
                "y stands where g should: what arrives is multiplied with the slope.",
                "该写g的地方写了y：要用传来的g乘斜率。",
            ),
        ),
        Wrong(
            lambda g, y: g / (1 - y**2),
            ("divided by the slope; what arrives is multiplied with it.", "除以了斜率；传来的g要乘斜率。"),
        ),
    ),
    hints=(
        ("Let SymPy differentiate tanh(x).", "让SymPy对tanh(x)求导。"),
        ("It says 1 - tanh(x)². Which of these do you have?", "它给出1 - tanh(x)²。其中哪个你已经有了？"),
        ("g * (1 - y**2)", "答案：g * (1 - y**2)"),
    ),
)

DIVISOR = Exercise(
    name="06.divisor_rule",
    minutes=10,
    task=(
        "g arrives at y = a / b, entry by entry. The gradient of b.",
        "y = a / b逐元素相除，传来的是g。求b的梯度。",
    ),
    solution=solve_divisor,
    cases=(
        Case((np.array([1.0, 10.0]), np.array([4.0, 3.0]), np.array([2.0, -1.0])), [-1, -30]),
        Case((np.array([2.0]), np.array([0.0]), np.array([7.0])), [0]),
    ),
    sample=lambda rng: (rng.normal(size=3), rng.normal(size=3), rng.uniform(1, 3, size=3)),
    properties=(Property(("it agrees with differences", "与差分一致"), divisor_agrees),),
    wrong=(
        Wrong(
            lambda g, a, b: g * a / b**2,
            ("the minus is missing: a larger b makes y smaller.", "少了负号：b变大，y变小。"),
        ),
        Wrong(lambda g, a, b: g / b, ("this is the gradient of a.", "这是a的梯度。")),
        Wrong(lambda g, a, b: -g / b**2, ("the factor a is missing.", "少了因子a。")),
        Wrong(lambda g, a, b: -g * a / b, ("b must be squared.", "b要平方。")),
        Wrong(lambda g, a, b: -a / b**2, ("what arrives, g, is missing.", "少了传来的g。")),
        Wrong(
            lambda g, a, b: g * np.log(np.abs(b)) * a,
            ("this is an integral, not a derivative.", "这是积分，不是导数。"),
        ),
        Wrong(
            lambda g, a, b: -g * (a / b) ** 2,
            ("a is squared, too; only b is: -g * a / b**2.", "a也平方了；只有b要平方：-g * a / b**2。"),
        ),
        Wrong(
            lambda g, a, b: -g * a / b * b,
            (
                "/ b * b divides and multiplies again: / b**2, or / (b * b).",
                "/ b * b是先除再乘回来：应当是/ b**2，或/ (b * b)。",
            ),
        ),
        Wrong(lambda g, a, b: -g / b, ("a is missing, and b must be squared.", "少了a，b也没有平方。")),
        Wrong(
            lambda g, a, b: -g * b / a**2, ("a and b are exchanged: b stands below the bar.", "a和b弄反了：b在分母上。")
        ),
        Wrong(
            lambda g, a, b: -g * a * b**2,
            ("multiplied with b²; it stands below the bar: / b**2.", "乘了b²；它应当在分母上：/ b**2。"),
        ),
    ),
    hints=(
        ("Write y as a · b⁻¹.", "把y写成a · b⁻¹。"),
        ("The slope of b⁻¹ is -b⁻².", "b⁻¹的斜率是-b⁻²。"),
        ("-g * a / b**2", "答案：-g * a / b**2"),
    ),
)

EXERCISES = (TANH, DIVISOR)
