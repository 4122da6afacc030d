"""The exercises of lesson 02: run a list of steps, and find what a value depends on."""

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Wrong

SMALL = ([2.0, 3.0], [("add", 0, 1), ("multiply", 2, 1)])  # (a + b) * b
SQUARE = ([5.0], [("multiply", 0, 0), ("add", 1, 1)])
TWO_BRANCHES = (
    [1.0, 2.0, 4.0],
    [("add", 0, 1), ("multiply", 2, 2), ("multiply", 3, 3), ("add", 3, 5)],
)  # place 4 belongs to another branch


def drawn(rng):
    """Some leaves and steps, at random."""
    leaves = [float(x) for x in rng.integers(-3, 4, size=3)]
    steps = []
    for place in range(3, 8):
        left, right = (int(i) for i in rng.integers(max(0, place - 3), place, size=2))
        steps.append((("add", "multiply")[int(rng.integers(2))], left, right))
    return leaves, steps


def solve_run(leaves, steps):
    values = list(leaves)
    for op, left, right in steps:
        if op == "add":
            values.append(values[left] + values[right])
        else:
            values.append(values[left] * values[right])
    return values


def leaves_only(leaves, steps):
    values = [leaves[i] if i < len(leaves) else 0.0 for i in range(len(leaves) + len(steps))]
    for at, (op, left, right) in enumerate(steps):
        a, b = (leaves[i] if i < len(leaves) else 0.0 for i in (left, right))
        values[len(leaves) + at] = a + b if op == "add" else a * b
    return values


def always(sign):
    def answer(leaves, steps):
        return solve_run(leaves, [(sign, left, right) for _, left, right in steps])

    return answer


def adding_places(leaves, steps):
    return list(leaves) + [left + right if op == "add" else left * right for op, left, right in steps]


def beginning_empty(leaves, steps):
    values = []
    for op, left, right in steps:
        values.append(values[left] + values[right] if op == "add" else values[left] * values[right])
    return leaves + values


def skipping_products(leaves, steps):
    values = list(leaves)
    for op, left, right in steps:
        if op == "add":
            values.append(values[left] + values[right])
    return values


def products_not_kept(leaves, steps):
    values = list(leaves)
    for op, left, right in steps:
        if op == "add":
            values.append(values[left] + values[right])
        else:
            _ = values[left] * values[right]
    return values


def solve_needed(leaves, steps, place):
    wanted, waiting = set(), [place]
    while waiting:
        at = waiting.pop()
        if at >= len(leaves):
            for source in steps[at - len(leaves)][1:]:
                if source not in wanted:
                    wanted.add(source)
                    waiting.append(source)
    return sorted(wanted)


def direct_only(leaves, steps, place):
    return sorted(set(steps[place - len(leaves)][1:])) if place >= len(leaves) else []


def with_doubles(leaves, steps, place):
    if place < len(leaves):
        return []
    _, left, right = steps[place - len(leaves)]
    return [left, right] + with_doubles(leaves, steps, left) + with_doubles(leaves, steps, right)


def left_only(leaves, steps, place):
    if place < len(leaves):
        return []
    _, left, right = steps[place - len(leaves)]
    return sorted({left, right, *left_only(leaves, steps, left)})


def leaves_themselves(leaves, steps, place):
    if place < len(leaves):
        return [place]
    _, left, right = steps[place - len(leaves)]
    return sorted({*leaves_themselves(leaves, steps, left), *leaves_themselves(leaves, steps, right)})


def without_offset(leaves, steps, place):
    _, left, right = steps[place]
    return sorted({left, right, *without_offset(leaves, steps, left), *without_offset(leaves, steps, right)})


def users(leaves, steps, place):
    found = set()
    for at, (_, left, right) in enumerate(steps, len(leaves)):
        if left == place or right == place or left in found or right in found:
            found.add(at)
    return sorted(found)


RUN = Exercise(
    name="02.run",
    minutes=10,
    task=(
        "Run a calculation: leaves are numbers, each step (op, left, right) adds or multiplies what stands at two"
        " places and appends the result. Return all values.",
        "运行一个计算：leaves是给定的数，每一步(op, left, right)把两个位置上的数相加或相乘，"
        "结果接在后面。返回所有的值。",
    ),
    solution=solve_run,
    cases=(
        Case(SMALL, [2, 3, 5, 15]),
        Case(SQUARE, [5, 25, 50]),
        Case(([7.0], []), [7]),
    ),
    sample=drawn,
    wrong=(
        Wrong(
            lambda leaves, steps: solve_run(leaves, steps)[-1],
            (
                "only the last value; all of them are wanted, leaves first.",
                "只返回了最后一个值；要的是全部，先是叶子。",
            ),
        ),
        Wrong(
            lambda leaves, steps: solve_run(leaves, steps)[len(leaves) :],
            ("the leaves are missing; values begin with them.", "缺了叶子；所有的值从叶子开始。"),
        ),
        Wrong(
            leaves_only,
            (
                "a step reads only leaves; it must also be able to read what earlier steps made.",
                "每一步只读到叶子；它还要能读前面各步得到的值。",
            ),
        ),
        Wrong(always("add"), ("every step adds; look at the step's op.", "每一步都在相加；要看这一步的op。")),
        Wrong(
            always("multiply"), ("every step multiplies; look at the step's op.", "每一步都在相乘；要看这一步的op。")
        ),
        Wrong(
            adding_places,
            (
                "the places themselves are added; take what stands there: values[left].",
                "加的是位置的编号；要取那个位置上的数：values[left]。",
            ),
        ),
        Wrong(
            beginning_empty,
            (
                "a place is read where nothing stands: begin with values = list(leaves), and read from values.",
                "读了一个还没有数的位置：要从values = list(leaves)开始，并从values里读。",
            ),
        ),
        Wrong(
            skipping_products,
            ('steps that multiply are left out: their op is "multiply".', '漏掉了相乘的步骤：它们的op是"multiply"。'),
        ),
        Wrong(
            products_not_kept,
            ("products are computed, but not appended to the values.", "乘积算了，却没有接到values后面。"),
        ),
    ),
    hints=(
        (
            "Begin with values = list(leaves), and let it grow by one for each step.",
            "从values = list(leaves)开始，每一步让它多一个数。",
        ),
        (
            "for op, left, right in steps: the two numbers are values[left] and values[right].",
            "for op, left, right in steps: 两个数就是values[left]和values[right]。",
        ),
        ("values.append(...) puts the result at the next free place.", "values.append(...)把结果放到下一个空位。"),
    ),
)

NEEDED = Exercise(
    name="02.needed",
    minutes=10,
    task=(
        "The places that the value at a place depends on, directly or through others, without itself, in rising"
        " order. A leaf depends on nothing.",
        "某个位置的值直接或间接依赖哪些位置？不含自己，从小到大排列。叶子不依赖任何位置。",
    ),
    solution=solve_needed,
    cases=(
        Case((*SMALL, 3), [0, 1, 2]),
        Case((*SMALL, 2), [0, 1]),
        Case((*SMALL, 1), []),
        Case((*TWO_BRANCHES, 6), [0, 1, 3, 5]),
    ),
    sample=lambda rng: (*drawn(rng), 7),
    wrong=(
        Wrong(
            direct_only,
            (
                "only the two direct inputs; their inputs count, too, and so on.",
                "只有两个直接输入；输入的输入也算，一直追下去。",
            ),
        ),
        Wrong(
            lambda leaves, steps, place: [*solve_needed(leaves, steps, place), place],
            ("the place itself is in the list.", "把这个位置自己也算进去了。"),
        ),
        Wrong(
            lambda leaves, steps, place: list(range(place)),
            (
                "all earlier places; some of them belong to another branch.",
                "把前面的位置全算上了；其中有的属于别的分支。",
            ),
        ),
        Wrong(
            lambda leaves, steps, place: [i for i in solve_needed(leaves, steps, place) if i < len(leaves)],
            ("only the leaves; the steps on the way count, too.", "只有叶子；中间的各步也算。"),
        ),
        Wrong(
            users,
            (
                "these are the places that use it; wanted are those that it is made of.",
                "这是用到它的位置；要的是构成它的位置。",
            ),
        ),
        Wrong(
            with_doubles,
            (
                "the right places, but some twice and out of order: sorted(set(...)).",
                "位置找对了，但有重复，次序也乱：用sorted(set(...))。",
            ),
        ),
        Wrong(
            leaves_themselves,
            (
                "only leaves are kept, and a leaf names itself: the steps on the way count, and a leaf depends on"
                " nothing.",
                "只留下了叶子，而且叶子把自己也算上了：中间的各步也算，叶子则不依赖任何位置。",
            ),
        ),
        Wrong(
            without_offset,
            (
                "a step is looked up that is not there: the leaves come first, so it is steps[place - len(leaves)].",
                "查找了一个不存在的步骤：叶子排在前面，所以应当是steps[place - len(leaves)]。",
            ),
        ),
        Wrong(
            left_only,
            (
                "only the left input is followed further; the right one has inputs, too.",
                "只沿左边的输入追下去了；右边的也有自己的输入。",
            ),
        ),
    ),
    hints=(
        (
            "Place p with p >= len(leaves) was made by steps[p - len(leaves)].",
            "位置p（p >= len(leaves)）是由steps[p - len(leaves)]得到的。",
        ),
        (
            "Keep a list of places still to look at. Take one, add its inputs to the result and to the list.",
            "维护一个待查位置的列表。取出一个，把它的输入加进结果，也加进列表。",
        ),
        ("A set forgets doubles; sorted(...) makes the list.", "集合（set）会去掉重复；sorted(...)变成列表。"),
    ),
)

EXERCISES = (RUN, NEEDED)
