"""The exercises of lesson 08: the gradient of an embedding table, and the number of frames."""

import numpy as np

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong


def solve_table(G, ids, rows):
    gradient = np.zeros((rows, G.shape[1]))
    for g, i in zip(G, ids):
        gradient[i] += g
    return gradient


def overwritten(G, ids, rows):
    gradient = np.zeros((rows, G.shape[1]))
    gradient[ids] = G
    return gradient


def averaged(G, ids, rows):
    counts = np.bincount(ids, minlength=rows)[:, None]
    return solve_table(G, ids, rows) / np.maximum(counts, 1)


def only_used(G, ids, rows):
    return solve_table(G, ids, rows)[np.unique(ids)]


def in_order(G, ids, rows):
    gradient = np.zeros((rows, G.shape[1]))
    gradient[: min(rows, len(G))] = G[:rows]
    return gradient


def by_word_number(G, ids, rows):
    gradient = np.zeros((rows, G.shape[1]))
    for i in ids:
        gradient[i] += G[i]
    return gradient


def counted(G, ids, rows):
    return np.tile(np.bincount(ids, minlength=rows)[:, None], (1, G.shape[1])).astype(float)


G = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])

TABLE = Exercise(
    name="08.table_gradient",
    minutes=10,
    task=(
        "G, shape (n, d), arrives at E[ids]. The gradient of the table E, which has the given number of rows.",
        "传到E[ids]的是G，形状(n, d)。求表E的梯度，E有rows行。",
    ),
    solution=solve_table,
    cases=(
        Case((G, np.array([1, 0, 1]), 3), [[10, 20], [101, 202], [0, 0]]),
        Case((G, np.array([2, 2, 2]), 4), [[0, 0], [0, 0], [111, 222], [0, 0]]),
    ),
    sample=lambda rng: (rng.normal(size=(6, 2)), np.array([3, 0, 3, 1, 0, 3])[rng.permutation(6)], 5),
    properties=(
        Property(
            ("nothing is lost: the rows sum to the sum of G", "什么都没丢：各行之和等于G之和"),
            lambda f, rng: np.allclose(f(G, np.array([0, 4, 0]), 5).sum(axis=0), G.sum(axis=0)),
        ),
    ),
    wrong=(
        Wrong(
            overwritten,
            (
                "a word that occurs twice keeps only its last piece: gradient[ids] = G overwrites; add.",
                "出现两次的词只留下最后一份：gradient[ids] = G是覆盖。要相加（np.add.at或循环）。",
            ),
        ),
        Wrong(averaged, ("pieces of one word were averaged; they are added.", "对同一个词的各份求了平均；应当相加。")),
        Wrong(
            only_used,
            (
                "only the rows that were used; the gradient has the shape of the whole table.",
                "只有用到的行；梯度的形状要与整张表相同。",
            ),
        ),
        Wrong(
            in_order,
            ("G was put in from the top; row ids[t] gets G[t].", "把G从第一行起依次放了；应当是第ids[t]行得到G[t]。"),
        ),
        Wrong(counted, ("these are the numbers of uses; G is not used.", "这是使用的次数；没有用到G。")),
        Wrong(
            lambda G, ids, rows: G,
            ("G as it came; bring each piece to its word's row.", "原样返回了G；要把每一份送到它那个词的行。"),
        ),
        Wrong(
            by_word_number,
            (
                "G[i] is taken for word i; G has a row for each place t of the sentence: row ids[t] gets G[t].",
                "按词的编号取了G[i]；G的每一行对应句子里的位置t：第ids[t]行得到G[t]。",
            ),
        ),
        Wrong(
            lambda G, ids, rows: np.eye(rows)[ids] @ G,
            (
                "the one-hot rows go back transposed: np.eye(rows)[ids].T @ G.",
                "独热编码的表回来时要转置：np.eye(rows)[ids].T @ G。",
            ),
        ),
    ),
    hints=(
        ("Begin with zeros of shape (rows, d).", "从形状(rows, d)的零数组开始。"),
        (
            "Word t used row ids[t], so that row gets G[t], added to what it has.",
            "第t个词用了第ids[t]行，所以那一行加上G[t]。",
        ),
        ("for g, i in zip(G, ids): gradient[i] += g", "写成for g, i in zip(G, ids): gradient[i] += g"),
    ),
)


def solve_frames(samples, length, hop):
    return max(0, (samples - length) // hop + 1)


def one_short(samples, length, hop):
    count = at = 0
    while at + length < samples:
        count, at = count + 1, at + hop
    return count


FRAMES = Exercise(
    name="08.frame_count",
    minutes=5,
    task=(
        "How many frames of a length fit whole into so many samples, when each begins a hop after the last?",
        "每一帧长length，相邻两帧的起点相距hop，samples个采样里能完整放下多少帧？",
    ),
    solution=solve_frames,
    cases=(
        Case((8000, 200, 80), 98),
        Case((10, 4, 2), 4),
        Case((10, 10, 3), 1),
        Case((9, 10, 3), 0),
        Case((2, 10, 3), 0),
        Case((11, 4, 2), 4),
    ),
    sample=lambda rng: (int(rng.integers(50, 99)), int(rng.integers(5, 20)), int(rng.integers(2, 5))),
    wrong=(
        Wrong(
            lambda samples, length, hop: (samples - length) // hop,
            ("one too few: the first frame needs no hop.", "少了一帧：第一帧不需要移动。"),
        ),
        Wrong(
            lambda samples, length, hop: samples // hop,
            (
                "that counts the beginnings; the last frames would run over the end.",
                "数的是起点个数；最后几帧会超出末尾。",
            ),
        ),
        Wrong(
            lambda samples, length, hop: samples // length,
            ("that is without overlap: hop is not used.", "这是不重叠的情形：没有用到hop。"),
        ),
        Wrong(
            lambda samples, length, hop: (samples - length) / hop + 1,
            ("a part of a frame is no frame: use //.", "不完整的帧不算：用//。"),
        ),
        Wrong(
            lambda samples, length, hop: (samples - length) // hop + 1 if samples >= length else 1,
            ("a signal shorter than a frame holds none.", "信号比一帧还短时，一帧也没有。"),
        ),
        Wrong(
            lambda samples, length, hop: max(0, -(-(samples - length) // hop) + 1),
            ("rounded up: the last frame would not be whole.", "向上取整了：最后一帧不完整。"),
        ),
        Wrong(
            lambda samples, length, hop: (samples - length) // hop + 1,
            (
                "for a signal much shorter than a frame it is negative: not below 0.",
                "信号比一帧短得多时得到负数：不能小于0。",
            ),
        ),
        Wrong(
            lambda samples, length, hop: samples // hop + 1,
            (
                "the length of a frame is not used: the last frame must end inside.",
                "没有用到帧长：最后一帧也要在信号之内结束。",
            ),
        ),
        Wrong(
            lambda samples, length, hop: max(0, round((samples - length) / hop) + 1),
            (
                "rounded to the nearest: a part of a hop makes no frame, so round down, //.",
                "四舍五入了；不足一个hop不成一帧，应当向下取整：//。",
            ),
        ),
        Wrong(
            one_short,
            (
                "one too few when the last frame ends exactly with the signal: <=, not <.",
                "最后一帧恰好在末尾结束时少算了一帧：应当是<=，不是<。",
            ),
        ),
        Wrong(
            lambda samples, length, hop: samples // (length - hop),
            (
                "length - hop is what neighbours share; a new frame begins after each hop.",
                "length - hop是相邻两帧重叠的部分；每隔一个hop才开始新的一帧。",
            ),
        ),
    ),
    hints=(
        ("The first frame takes `length` samples. What is left?", "第一帧用掉length个采样。还剩多少？"),
        ("Each further frame takes one hop more.", "每多一帧，再用掉一个hop。"),
        ("(samples - length) // hop + 1, but not below 0", "答案：(samples - length) // hop + 1，但不小于0"),
    ),
)

EXERCISES = (TABLE, FRAMES)
