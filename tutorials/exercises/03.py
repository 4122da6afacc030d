"""The exercises of lesson 03: the chain rule by hand, and the backward walk."""

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong


def drawn(rng):
    """Leaves and steps at random; the last step depends on much of what came before."""
    leaves = [float(x) for x in rng.uniform(0.5, 2, size=3)]
    steps = [("add", 0, 1), ("multiply", 3, 2), ("multiply", 4, 4), ("add", 5, 3), ("multiply", 6, 0)]
    order = [("add", "multiply")[int(rng.integers(2))] for _ in steps]
    return leaves, [(op, left, right) for op, (_, left, right) in zip(order, steps)]


def values_of(leaves, steps):
    values = list(leaves)
    for op, left, right in steps:
        values.append(values[left] + values[right] if op == "add" else values[left] * values[right])
    return values


def solve_backward(leaves, steps):
    values = list(leaves)
    for op, left, right in steps:
        values.append(values[left] + values[right] if op == "add" else values[left] * values[right])
    slopes = [0.0] * len(values)
    slopes[-1] = 1.0
    for place in reversed(range(len(leaves), len(values))):
        op, left, right = steps[place - len(leaves)]
        g = slopes[place]
        slopes[left] += g if op == "add" else g * values[right]
        slopes[right] += g if op == "add" else g * values[left]
    return slopes


def walked(
    leaves, steps, *, add=True, swap=True, upstream=True, forwards=False, product=True, start=(0.0, 1.0), late=0, own=0
):
    """The walk with one of its parts spoiled."""
    values = values_of(leaves, steps)
    slopes = [start[0]] * len(values)
    slopes[-1] = start[1]
    places = range(len(leaves) + late, len(values))
    for place in places if forwards else reversed(places):
        op, left, right = steps[place - len(leaves)]
        g = slopes[place] if upstream else 1.0
        a, b = (values[right], values[left]) if swap else (values[left], values[right])
        if own:
            a = b = values[place]
        if op == "add" or not product:
            a = b = 1.0
        for at, local in ((left, a), (right, b)):
            slopes[at] = g * local + (slopes[at] if add else 0.0)
    return slopes


def without_offset(leaves, steps):
    values = values_of(leaves, steps)
    slopes = [0.0] * len(values)
    slopes[-1] = 1.0
    for place, (op, left, right) in reversed(list(enumerate(steps))):
        slopes[left] += slopes[place] * (1.0 if op == "add" else values[right])
        slopes[right] += slopes[place] * (1.0 if op == "add" else values[left])
    return slopes


def solve_slope(s, t, x):
    u = s * x + t
    return 2 * u * s


SLOPE = Exercise(
    name="03.slope",
    minutes=5,
    task=(
        "The slope of (s x + t)² at x, worked out with the chain rule, without differences.",
        "用链式法则写出(s x + t)²在x处的斜率，不用差分。",
    ),
    solution=solve_slope,
    cases=(Case((3.0, 0.0, 2.0), 36), Case((2.0, 1.0, 3.0), 28), Case((-1.0, 4.0, 4.0), 0)),
    sample=lambda rng: tuple(float(x) for x in rng.normal(size=3)),
    properties=(
        Property(
            ("it agrees with a central difference", "与中心差分一致"),
            lambda f, rng: abs(f(1.5, 0.5, 2.0) - ((1.5 * 2.001 + 0.5) ** 2 - (1.5 * 1.999 + 0.5) ** 2) / 0.002) < 1e-6,
        ),
    ),
    wrong=(
        Wrong(
            lambda s, t, x: 2 * (s * x + t),
            (
                "the slope of the square is there; the inner part s x + t has a slope of its own, s.",
                "平方的斜率有了；里面的s x + t还有自己的斜率s。",
            ),
        ),
        Wrong(
            lambda s, t, x: 2 * s,
            (
                "2 s: the outer slope depends on where you are, 2 (s x + t).",
                "这里只有2 s：外层的斜率与所在位置有关，是2 (s x + t)。",
            ),
        ),
        Wrong(
            lambda s, t, x: 2 * (s * x + t) + s,
            (
                "outer and inner slope were added; along a path they are multiplied.",
                "把外层和内层的斜率相加了；沿一条路径应当相乘。",
            ),
        ),
        Wrong(
            lambda s, t, x: (s * x + t) * s,
            ("the 2 of the square is missing.", "少了平方带来的2。"),
        ),
        Wrong(
            lambda s, t, x: (s * x + t) ** 2,
            ("this is the value; its slope is wanted.", "这是函数值；要的是斜率。"),
        ),
        Wrong(
            lambda s, t, x: 2 * s * x,
            ("t is gone: it changes where on the square you are.", "把t丢了：它决定你在平方曲线的什么位置。"),
        ),
        Wrong(
            lambda s, t, x: 2 * s**2 * x,
            (
                "multiplied out without the middle term 2 s t x, whose slope is 2 s t.",
                "展开时漏了中间项2 s t x，它的斜率是2 s t。",
            ),
        ),
        Wrong(
            lambda s, t, x: 2 * s * x + 2 * s * t,
            ("multiplied out, x² carries s², so its slope is 2 s² x.", "展开后x²带着s²，所以它的斜率是2 s² x。"),
        ),
        Wrong(
            lambda s, t, x: s,
            (
                "this is the slope of the inside; the square has one, too: 2 (s x + t).",
                "这只是里面的斜率；平方也有斜率：2 (s x + t)。",
            ),
        ),
    ),
    hints=(
        ("Name the inside: u = s x + t, and the result is u².", "给里面起个名字：u = s x + t，结果是u²。"),
        ("The slope of u² for u is 2u; the slope of u for x is s.", "u²对u的斜率是2u；u对x的斜率是s。"),
        ("Multiply the two, and write u out again.", "两者相乘，再把u写回去。"),
    ),
)

BACKWARD = Exercise(
    name="03.backward",
    minutes=20,
    task=(
        'The backward walk: leaves and steps ("add" or "multiply", left, right) as in 02.run; return for each place'
        " how fast the last value changes when this one does.",
        '反向走一遍：leaves和steps（"add"或"multiply"，left，right）同02.run；对每个位置返回：它变化时，最后一个值变化多快。',
    ),
    solution=solve_backward,
    cases=(
        Case(([2.0, 3.0], [("add", 0, 1), ("multiply", 2, 1)]), [3, 8, 3, 1]),
        Case(([5.0], [("multiply", 0, 0)]), [10, 1]),
        Case(([1.0], [("add", 0, 0), ("add", 1, 1), ("add", 2, 2)]), [8, 4, 2, 1]),
        Case(([2.0, 7.0], [("multiply", 0, 0)]), [4, 0, 1]),
    ),
    sample=drawn,
    wrong=(
        Wrong(
            lambda leaves, steps: walked(leaves, steps, add=False),
            (
                "a piece replaces what had arrived before; pieces are added (+=), since every path counts.",
                "后来的一份覆盖了先前的；应当累加（+=），因为每条路径都算。",
            ),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, swap=False),
            (
                "in a product each factor gets itself as its slope; it must be the *other* factor.",
                "乘法中每个因子用了自己作斜率；应当用*另一个*因子。",
            ),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, upstream=False),
            (
                "only local slopes: multiply each with what has arrived at the step itself.",
                "只有局部斜率：还要乘上已经传到这一步的数。",
            ),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, forwards=True),
            (
                "the walk goes forwards, so a step passes on before anything has arrived at it.",
                "走的是正向，所以每一步在什么都没收到时就传下去了。",
            ),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, product=False),
            (
                "multiply is treated like add: its slopes are the factors, not 1.",
                "把乘法当成了加法：它的斜率是因子，不是1。",
            ),
        ),
        Wrong(
            lambda leaves, steps: solve_backward(leaves, steps)[: len(leaves)],
            ("only the leaves; every place is wanted.", "只给了叶子；每个位置都要。"),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, start=(0.0, 0.0)),
            (
                "nothing sets the walk off: the last value changes as fast as itself, so its slope is 1.",
                "没有东西让这一遍走起来：最后一个值随它自己变化，斜率是1。",
            ),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, start=(1.0, 1.0)),
            (
                "every place begins with 1; only the last one does, the others with 0.",
                "每个位置都从1开始了；只有最后一个是1，其余从0开始。",
            ),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, late=1),
            (
                "the walk stops before the first step: places len(leaves) to the last one all pass on.",
                "没走到第一步就停了：从最后一个位置到len(leaves)，每个位置都要往下传。",
            ),
        ),
        Wrong(
            lambda leaves, steps: walked(leaves, steps, own=1),
            (
                "in a product each factor gets the product itself; it must be the other factor.",
                "乘法中每个因子用了乘积本身作斜率；应当用另一个因子。",
            ),
        ),
        Wrong(
            without_offset,
            (
                "the step's own place is counted without the leaves: step number t made place len(leaves) + t.",
                "算这一步的位置时没算上叶子：第t步得到的是位置len(leaves) + t。",
            ),
        ),
    ),
    hints=(
        (
            "First run forwards (02.run): a product's slopes need the values. Then begin with"
            " slopes = [0.0] * len(values), and make the last one 1.",
            "先正向算一遍（02.run）：乘法的斜率要用到值。然后slopes = [0.0] * len(values)，最后一个是1。",
        ),
        (
            "Go through the steps from the last to the first. g is what has arrived at the step's place.",
            "从最后一步往回走。g是已经传到这一步所在位置的数。",
        ),
        (
            "add: both inputs get += g. multiply: the left gets += g * values[right], the right the"
            " same with values[left].",
            "add：两个输入各 += g。multiply：左边 += g * values[right]，右边 += g * values[left]。",
        ),
    ),
)

EXERCISES = (SLOPE, BACKWARD)
