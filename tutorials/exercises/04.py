"""The exercises of lesson 04: the gradient of a bias, and undoing any broadcasting."""

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong

G = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])


def solve_bias(G):
    return G.sum(axis=0)


def three_wide(G):
    b = np.zeros(3)
    for row in G:
        b += row
    return b


def solve_sum_to(g, shape):
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return g.sum(axis=stretched, keepdims=True)


def mean_to(g, shape):
    copies = g.size / max(1, int(np.prod(shape)))
    return solve_sum_to(g, shape) / copies


def only_missing(g, shape):
    return g.sum(axis=tuple(range(g.ndim - len(shape))))


def only_ones(g, shape):
    stretched = tuple(axis for axis, size in enumerate(shape, g.ndim - len(shape)) if size == 1)
    return g.sum(axis=stretched, keepdims=True)


def dropping_ones(g, shape):
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1))


def missing_the_other_way(g, shape):
    g = g.sum(axis=tuple(range(len(shape) - g.ndim)))
    return g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)


def missing_kept(g, shape):
    g = g.sum(axis=tuple(range(g.ndim - len(shape))), keepdims=True)
    return g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)


def first_copy(g, shape):
    g = g[(0,) * (g.ndim - len(shape))]
    return g[tuple(slice(0, 1) if size == 1 else slice(None) for size in shape)]


def cut(g, shape):
    return g.reshape(-1)[: int(np.prod(shape))].reshape(shape)


SHAPES = [((4, 2, 3), (3,)), ((4, 2, 3), (2, 1)), ((4, 2, 3), (4, 1, 3)), ((4, 2, 3), ()), ((2, 3), (1, 3))]


BIAS = Exercise(
    name="04.bias_gradient",
    minutes=5,
    task=(
        "G, shape (n, d), holds the slopes that arrive at Y = X W + b. The gradient of b, shape (d,).",
        "传到Y = X W + b的斜率是G，形状(n, d)。求b的梯度，形状(d,)。",
    ),
    solution=solve_bias,
    cases=(Case((G,), [11, 22, 33]), Case((np.array([[7.0], [1.0], [2.0]]),), [10])),
    sample=lambda rng: (rng.normal(size=(5, 3)),),
    properties=(
        Property(
            ("a thousand equal rows give a thousand times the row", "一千行相同的数，得到一行的一千倍"),
            lambda f, rng: np.allclose(f(np.tile([1.0, -2.0], (1000, 1))), [1000, -2000]),
        ),
    ),
    wrong=(
        Wrong(
            lambda G: G.sum(axis=1),
            (
                "the sum runs along each row; b is copied to the rows, so add the rows up, axis 0.",
                "是沿每一行求和；b被复制到各行，所以要把各行加起来，即axis 0。",
            ),
        ),
        Wrong(
            lambda G: G.mean(axis=0),
            (
                "the mean of the rows; each copy counts fully, so they are added, not averaged.",
                "取了各行的平均；每个副本都要全额计入，所以是相加，不是平均。",
            ),
        ),
        Wrong(
            lambda G: G,
            (
                "G as it came: one row of slopes for each copy of b. Add the copies up.",
                "原样返回了G：b的每个副本一行。要把各副本加起来。",
            ),
        ),
        Wrong(
            lambda G: G.sum(), ("everything was added to one number; b has d of them.", "全加成了一个数；b有d个数。")
        ),
        Wrong(lambda G: G[0], ("only the first row; all copies count.", "只取了第一行；所有副本都要算。")),
        Wrong(
            lambda G: G.sum(axis=0, keepdims=True),
            (
                "right numbers, shape (1, d); a gradient has the shape of b, (d,).",
                "数是对的，但形状是(1, d)；梯度要与b形状相同，(d,)。",
            ),
        ),
        Wrong(
            lambda G: G[-1],
            (
                "only the last row is left: each row replaced the one before. Add them (+=).",
                "只剩下最后一行：每一行都覆盖了前一行。要相加（+=）。",
            ),
        ),
        Wrong(
            lambda G: np.full(G.shape[1], float(len(G))),
            ("this counts the copies; G is not used.", "这是在数副本的个数；没有用到G。"),
        ),
        Wrong(three_wide, ("made for d = 3; the width stands in G.shape[1].", "只适用于d = 3；宽度是G.shape[1]。")),
    ),
    hints=(
        ("How often is b used? Once in each row.", "b用了多少次？每一行用一次。"),
        ("Several paths: their slopes are added (lesson 03).", "多条路径：斜率相加（第03课）。"),
        ("Add the rows of G up: one axis of .sum().", "把G的各行加起来：.sum()的一个axis。"),
    ),
)

SUM_TO = Exercise(
    name="04.sum_to",
    minutes=15,
    task=(
        "Undo a broadcasting: g has the large shape; add it up to the small shape (a tuple), which broadcasts to it.",
        "撤销广播：g是大的形状，把它加总成小的形状shape（元组），后者能广播成前者。",
    ),
    solution=solve_sum_to,
    cases=(
        Case((np.ones((4, 3)), (3,)), [4, 4, 4]),
        Case((np.ones((4, 3)), (4, 1)), np.full((4, 1), 3)),
        Case((np.array([[1.0, 2.0], [30.0, 40.0]]), ()), 73),
        Case((np.array([[1.0, 2.0], [30.0, 40.0]]), (1, 2)), [[31, 42]]),
        Case((np.array([1.0, 2.0]), (2,)), [1, 2]),
        Case((np.arange(12.0).reshape(2, 3, 2), (3, 1)), [[14], [22], [30]]),
    ),
    sample=lambda rng: (lambda pair: (rng.normal(size=pair[0]), pair[1]))(SHAPES[int(rng.integers(len(SHAPES)))]),
    properties=(
        Property(
            (
                "weighing the repeated array with g equals weighing the array with the answer",
                "用g给重复后的数组加权，等于用答案给原数组加权",
            ),
            lambda f, rng: all(_adjoint(f, big, small, rng) for big, small in SHAPES),
        ),
    ),
    wrong=(
        Wrong(
            only_missing,
            ("axes of size 1 are not added up; they were stretched, too.", "大小为1的轴没有加总；它们也被拉伸过。"),
        ),
        Wrong(only_ones, ("the axes that were missing on the left are not added up.", "左边缺少的轴没有加总。")),
        Wrong(
            dropping_ones,
            (
                "right numbers, but the axes of size 1 are gone: keepdims=True keeps them.",
                "数是对的，但大小为1的轴不见了：keepdims=True可以保留。",
            ),
        ),
        Wrong(mean_to, ("copies were averaged; their slopes are added.", "对副本求了平均；斜率应当相加。")),
        Wrong(first_copy, ("only the first copy; all of them count.", "只取了第一个副本；全部都要算。")),
        Wrong(
            cut,
            (
                "g was cut to the right size; nothing may be thrown away, it must be added up.",
                "把g截成了合适的大小；什么都不能丢，要加总。",
            ),
        ),
        Wrong(
            lambda g, shape: g.sum() * np.ones(shape),
            ("everything was added up, and put everywhere.", "全部加成一个数，再放到每个位置。"),
        ),
        Wrong(
            lambda g, shape: g.reshape(shape),
            (
                "reshape only puts the numbers in another order; they must be added up.",
                "reshape只是重新排列；这里要把数加起来。",
            ),
        ),
        Wrong(
            lambda g, shape: g.sum(axis=0),
            (
                "always the first axis; look which axes were missing or 1.",
                "总是加第一个轴；要看哪些轴原来没有，哪些原来是1。",
            ),
        ),
        Wrong(
            lambda g, shape: g.sum(axis=g.ndim - len(shape)),
            (
                "this adds up one axis, numbered by how many were missing; tuple(range(missing)) names all that were.",
                "这只加了一个轴，轴号用的是缺少的个数；tuple(range(missing))才是所有缺少的轴。",
            ),
        ),
        Wrong(
            missing_the_other_way,
            (
                "len(shape) - g.ndim is negative, so no missing axis is added up: g.ndim - len(shape).",
                "len(shape) - g.ndim是负数，所以缺少的轴一个也没加：应当是g.ndim - len(shape)。",
            ),
        ),
        Wrong(
            missing_kept,
            (
                "the axes that were missing must go; keepdims=True is only for those of size 1.",
                "原来没有的轴要消去；keepdims=True只用于大小为1的轴。",
            ),
        ),
        Wrong(
            lambda g, shape: np.broadcast_to(g, shape),
            (
                "broadcast_to goes the other way, from small to large; here it must be undone.",
                "broadcast_to的方向相反，是从小到大；这里要把它撤销。",
            ),
        ),
    ),
    hints=(
        (
            "Shapes line up at the right. g.ndim - len(shape) axes were missing on the left.",
            "形状从右边对齐。左边缺了g.ndim - len(shape)个轴。",
        ),
        ("First add those: g.sum(axis=tuple(range(how many))).", "先把它们加总：g.sum(axis=tuple(range(个数)))。"),
        ("Then the axes where shape has a 1, with keepdims=True.", "再加总shape里为1的轴，用keepdims=True。"),
    ),
)


def _adjoint(f, big, small, rng):
    g, x = rng.normal(size=big), rng.normal(size=small)
    answer = f(g, small)
    return np.shape(answer) == small and np.isclose(np.sum(g * np.broadcast_to(x, big)), np.sum(answer * x))


EXERCISES = (BIAS, SUM_TO)
