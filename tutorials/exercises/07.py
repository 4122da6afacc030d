"""The exercises of lesson 07: softmax, its backward rule, and the gradient of cross-entropy."""

from math import exp

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong, differences


def solve_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def plain_softmax(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def whole_softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def common_maximum(x):
    e = np.exp(x - x.max())
    return e / e.sum(axis=-1, keepdims=True)


def other_axis(x):
    return solve_softmax(x.T).T if x.ndim == 2 else solve_softmax(x)


def solve_vjp(g, s):
    return s * (g - (g * s).sum(axis=-1, keepdims=True))


def vjp_agrees(f, rng):
    x, g = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    return np.allclose(f(g, solve_softmax(x)), differences(solve_softmax, x, g), atol=1e-7)


def softmax_vjp_again(g, s):
    return solve_vjp(g, solve_softmax(s))


def vjp_by_a_table(g, s):
    return (np.diag(s) - np.outer(s, s)) @ g


def solve_cross_entropy_gradient(x, targets):
    p = solve_softmax(x)
    y = np.eye(x.shape[1])[targets]
    return (p - y) / len(targets)


def mean_loss(x, targets):
    return -np.log(solve_softmax(x)[np.arange(len(targets)), targets]).mean()


def cross_entropy_agrees(f, rng):
    x, targets = rng.normal(size=(3, 4)), np.array([0, 3, 3])
    return np.allclose(f(x, targets), differences(lambda x: mean_loss(x, targets), x, 1.0), atol=1e-7)


S = np.array([0.5, 0.25, 0.25])
E = exp(1) + exp(0)

SOFTMAX = Exercise(
    name="07.softmax",
    minutes=5,
    task=(
        "Softmax along the last axis of an array, for scores of any size.",
        "沿数组最后一个轴的softmax，分数再大也要算得出来。",
    ),
    solution=solve_softmax,
    cases=(
        Case((np.array([0.0, 0.0]),), [0.5, 0.5]),
        Case((np.array([[1.0, 0.0], [0.0, 1.0]]),), [[exp(1) / E, 1 / E], [1 / E, exp(1) / E]]),
        Case((np.log(np.array([1.0, 2.0, 5.0])),), [0.125, 0.25, 0.625]),
        Case((np.array([[1000.0, 1000.0], [-1000.0, -1000.0]]),), [[0.5, 0.5], [0.5, 0.5]]),
    ),
    sample=lambda rng: (rng.normal(size=(2, 3)),),
    properties=(
        Property(
            ("scores of a thousand give no nan", "分数是一千时不出现nan"),
            lambda f, rng: np.allclose(f(np.array([1000.0, 1000.0, -1000.0])), [0.5, 0.5, 0]),
        ),
        Property(
            ("adding the same number to every score changes nothing", "每个分数加上同一个数，结果不变"),
            lambda f, rng: np.allclose(f(np.array([[1.0, 2.0]]) + 7), f(np.array([[1.0, 2.0]]))),
        ),
    ),
    wrong=(
        Wrong(
            whole_softmax,
            (
                "the whole array sums to 1; each row should, so sum along the last axis only.",
                "整个数组加起来是1；应当每一行加起来是1，所以只沿最后一个轴求和。",
            ),
        ),
        Wrong(
            other_axis,
            ("the columns sum to 1 instead of the rows: wrong axis.", "是各列加起来为1，而不是各行：轴弄错了。"),
        ),
        Wrong(
            lambda x: np.exp(x - x.max(axis=-1, keepdims=True)),
            ("the division by the sum is missing.", "少了除以总和这一步。"),
        ),
        Wrong(
            lambda x: x / x.sum(axis=-1, keepdims=True),
            ("the scores are divided by their sum; take exp of them first.", "直接用分数除以总和；要先取exp。"),
        ),
        Wrong(
            lambda x: np.log(solve_softmax(x)),
            ("this is the logarithm of the shares.", "这是份额的对数。"),
        ),
        Wrong(
            plain_softmax,
            (
                "the plain formula: exp(1000) is infinite. Subtract the largest score of each row first.",
                "直接套了公式：exp(1000)是无穷大。要先减去每一行的最大分数。",
            ),
        ),
        Wrong(
            common_maximum,
            (
                "the largest of *all* scores is subtracted, so a row far below it becomes 0 / 0; take each row's own.",
                "减去的是*全部*分数的最大值，比它低很多的行就成了0 / 0；每一行要减自己的最大值。",
            ),
        ),
        Wrong(
            lambda x: np.exp(x) / np.exp(x).sum(axis=-1),
            (
                "the sums have lost their axis, so they meet the columns: keepdims=True.",
                "求和之后轴没有了，于是对到列上去了：要用keepdims=True。",
            ),
        ),
        Wrong(
            lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
            (
                "axis=1 is there only with two axes; the last one is axis=-1.",
                "只有两个轴时才有axis=1；最后一个轴写作axis=-1。",
            ),
        ),
    ),
    hints=(
        (
            "exp of each score, divided by the sum along the last axis, keepdims=True.",
            "每个分数取exp，除以沿最后一个轴的和，keepdims=True。",
        ),
        (
            "exp(1000) is infinite. Which number may be subtracted without changing anything?",
            "exp(1000)是无穷大。减去哪个数，结果不变？",
        ),
        ("First x = x - x.max(axis=-1, keepdims=True).", "先做x = x - x.max(axis=-1, keepdims=True)。"),
    ),
)

VJP = Exercise(
    name="07.softmax_vjp",
    minutes=10,
    task=(
        "g arrives at the shares s (both of one shape, shares along the last axis). The gradient of the scores.",
        "传到份额s的是g，形状与s相同，份额沿最后一个轴。求分数的梯度。",
    ),
    solution=solve_vjp,
    cases=(
        Case((np.array([1.0, 0.0, 0.0]), S), [0.25, -0.125, -0.125]),
        Case((np.array([4.0, 0.0, 8.0]), S), [0, -1, 1]),
        Case((np.array([3.0, 3.0, 3.0]), S), [0, 0, 0]),
        Case(
            (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.25, 0.75]])),
            [[0.25, -0.25], [-0.1875, 0.1875]],
        ),
    ),
    sample=lambda rng: (rng.normal(size=(3, 4)), solve_softmax(rng.normal(size=(3, 4)))),
    properties=(
        Property(("it agrees with differences", "与差分一致"), vjp_agrees),
        Property(
            ("each row of the gradient sums to 0", "梯度的每一行加起来是0"),
            lambda f, rng: np.allclose(f(rng.normal(size=(2, 3)), np.stack([S, S])).sum(axis=-1), 0),
        ),
    ),
    wrong=(
        Wrong(
            lambda g, s: g * s * (1 - s),
            (
                "this is the diagonal of the Jacobian only; the entries -s_i s_j are missing.",
                "这只是雅可比矩阵的对角线；缺了-s_i s_j那些元素。",
            ),
        ),
        Wrong(
            lambda g, s: g * s,
            (
                "only the first half, g s; every score also pulls the others down.",
                "只有前一半g s；每个分数还会把别人压下去。",
            ),
        ),
        Wrong(
            lambda g, s: s * (g - g.mean(axis=-1, keepdims=True)),
            (
                "the plain mean of g is subtracted; it must be weighted with the shares: the sum of g s.",
                "减去的是g的普通平均；应当按份额加权：g s之和。",
            ),
        ),
        Wrong(
            lambda g, s: s * (g - (g * s).sum()),
            (
                "the sum runs over all rows; each row has its own: axis=-1, keepdims=True.",
                "求和跨了所有行；每一行有自己的和：axis=-1, keepdims=True。",
            ),
        ),
        Wrong(
            lambda g, s: s * (g + (g * s).sum(axis=-1, keepdims=True)),
            ("the sign between the two parts is wrong: minus.", "两部分之间的符号错了：是减号。"),
        ),
        Wrong(
            lambda g, s: g - (g * s).sum(axis=-1, keepdims=True),
            ("the factor s in front is missing.", "前面少了因子s。"),
        ),
        Wrong(
            lambda g, s: s * (g - (g * s).sum(axis=-1)),
            (
                "the sums have lost their axis, so they do not stand beside their rows: keepdims=True.",
                "求和之后轴没有了，对不上各自的行：要用keepdims=True。",
            ),
        ),
        Wrong(
            lambda g, s: s * (g - (g * s).sum(axis=0, keepdims=True)),
            (
                "the sum runs down the columns; each row has its own: axis=-1.",
                "求和沿着列了；每一行有自己的和：axis=-1。",
            ),
        ),
        Wrong(
            vjp_by_a_table,
            (
                "the table diag(s) - s sᵀ, right for one row only; the short form works for all rows.",
                "写出了整张表diag(s) - s sᵀ，只对一行成立；短的公式对所有行都成立。",
            ),
        ),
        Wrong(
            lambda g, s: s * (g - g.sum(axis=-1, keepdims=True)),
            (
                "the plain sum of g is subtracted; it must be weighted with the shares: the sum of g * s.",
                "减去的是g的直接求和；应当按份额加权：g * s之和。",
            ),
        ),
        Wrong(
            lambda g, s: g * s - (g * s).sum(axis=-1, keepdims=True),
            ("the sum must be multiplied with s as well: s * (g - sum).", "那个和也要乘s：s * (g - 和)。"),
        ),
        Wrong(
            softmax_vjp_again,
            ("softmax was taken once more: s are the shares already.", "又做了一次softmax：s已经是份额了。"),
        ),
        Wrong(
            lambda g, s: s * (g - g @ s),
            (
                "g @ s is the weighted mean of one row; for many rows (g * s).sum(axis=-1, keepdims=True).",
                "g @ s只是一行的加权平均；多行时用(g * s).sum(axis=-1, keepdims=True)。",
            ),
        ),
        Wrong(
            lambda g, s: s * (g - s),
            ("s is subtracted; it is the mean of g, weighted with s.", "减去的是s；应当减去按s加权的g的平均。"),
        ),
    ),
    hints=(
        ("The Jacobian is diag(s) - s sᵀ. Multiply it with g.", "雅可比矩阵是diag(s) - s sᵀ。把它乘到g上。"),
        (
            "diag(s) g is s * g. And s sᵀ g is s times one number: which?",
            "diag(s) g就是s * g。s sᵀ g是s乘以一个数：哪个数？",
        ),
        (
            "s * (g - the sum of g * s along the last axis), with keepdims=True.",
            "s * (g - g * s沿最后一个轴的和)，用keepdims=True。",
        ),
    ),
)

CROSS = Exercise(
    name="07.cross_entropy_gradient",
    minutes=10,
    task=(
        "x (n, c) holds scores, targets n class numbers. The gradient of the mean of -log p[target] for x.",
        "x（n, c）是分数，targets是n个类别编号。求-log p[target]的平均对x的梯度。",
    ),
    solution=solve_cross_entropy_gradient,
    cases=(
        Case((np.log([[0.7, 0.2, 0.1]]), np.array([2])), [[0.7, 0.2, -0.9]]),
        Case((np.zeros((2, 2)), np.array([0, 1])), [[-0.25, 0.25], [0.25, -0.25]]),
    ),
    sample=lambda rng: (rng.normal(size=(4, 3)), rng.integers(0, 3, size=4)),
    properties=(
        Property(("it agrees with differences", "与差分一致"), cross_entropy_agrees),
        Property(
            ("scores of a thousand give no nan", "分数是一千时不出现nan"),
            lambda f, rng: np.allclose(f(np.array([[1000.0, 0.0]]), np.array([1])), [[1, -1]]),
        ),
    ),
    wrong=(
        Wrong(
            lambda x, targets: solve_cross_entropy_gradient(x, targets) * len(targets),
            (
                "p - y is right for the sum; the loss is the mean, so divide by n.",
                "p - y是对总和而言；损失取的是平均，要除以n。",
            ),
        ),
        Wrong(
            lambda x, targets: -solve_cross_entropy_gradient(x, targets),
            ("y - p: the sign is the other way round.", "写成了y - p：符号反了。"),
        ),
        Wrong(
            lambda x, targets: solve_softmax(x) / len(targets),
            ("the 1 at the right class has not been subtracted.", "没有在正确的类别处减去1。"),
        ),
        Wrong(
            lambda x, targets: (x - np.eye(x.shape[1])[targets]) / len(targets),
            ("the scores were taken for p; softmax them first.", "把分数当成了p；要先做softmax。"),
        ),
        Wrong(
            lambda x, targets: solve_cross_entropy_gradient(x, targets) * len(targets) / x.size,
            (
                "divided by the number of all scores; the mean is over the n rows.",
                "除以了全部分数的个数；平均是对n行而言。",
            ),
        ),
        Wrong(
            lambda x, targets: (solve_softmax(x) - targets) / len(targets),
            (
                "the class *numbers* are subtracted; y is a row with a 1 at that class: np.eye(c)[targets].",
                "减去的是类别的*编号*；y是在该类别处为1的一行：np.eye(c)[targets]。",
            ),
        ),
        Wrong(
            lambda x, targets: (solve_softmax(x) - np.eye(x.shape[1])[targets]) / x.shape[1],
            ("divided by the number of classes; the mean is over the n rows.", "除以了类别的个数；平均是对n行而言。"),
        ),
        Wrong(
            mean_loss,
            ("this is the loss itself; its gradient has the shape of x.", "这是损失本身；它的梯度与x形状相同。"),
        ),
        Wrong(
            lambda x, targets: -np.eye(x.shape[1])[targets] / solve_softmax(x) / len(targets),
            (
                "this is the gradient of p, -y / p; it still has to go back through softmax.",
                "这是对p的梯度-y / p；还要往回穿过softmax。",
            ),
        ),
        Wrong(
            lambda x, targets: (np.exp(x) / np.exp(x).sum() - np.eye(x.shape[1])[targets]) / len(targets),
            (
                "softmax over the whole table; each row is an example of its own.",
                "对整张表做了softmax；每一行是单独的一个样本。",
            ),
        ),
        Wrong(
            lambda x, targets: (solve_softmax(x) - np.eye(len(targets))[targets]) / len(targets),
            (
                "np.eye(n): y has a column for each class, so np.eye(c)[targets].",
                "用了np.eye(n)：y的每一列是一个类别，所以是np.eye(c)[targets]。",
            ),
        ),
        Wrong(
            lambda x, targets: -np.eye(x.shape[1])[targets] / len(targets),
            ("only -y; the shares p, softmax of the scores, are missing.", "只有-y；少了份额p，即分数的softmax。"),
        ),
        Wrong(
            lambda x, targets: solve_cross_entropy_gradient(x, targets).sum(axis=0),
            ("the rows were added up; x has a gradient for each row.", "把各行加起来了；x的每一行各有自己的梯度。"),
        ),
    ),
    hints=(
        (
            "p = softmax of each row. y has a 1 at the right class, else 0.",
            "p是每一行的softmax。y在正确的类别处是1，其余是0。",
        ),
        ("np.eye(c)[targets] makes y for all rows at once.", "np.eye(c)[targets]一次给出所有行的y。"),
        ("(p - y) / n", "答案：(p - y) / n"),
    ),
)

EXERCISES = (SOFTMAX, VJP, CROSS)
