"""The exercises of lesson 09: a window of words, and the number of parameters it costs."""

from tinyattn.learn.exercises import Case, Exercise, Property, Wrong


def solve_window(ids, at, k, edge):
    return [ids[i] if 0 <= i < len(ids) else edge for i in range(at - k, at + k + 1)]


def wrapped(ids, at, k, edge):
    return [ids[i % len(ids)] for i in range(at - k, at + k + 1)]


def clamped(ids, at, k, edge):
    return [ids[min(max(i, 0), len(ids) - 1)] for i in range(at - k, at + k + 1)]


def cut_short(ids, at, k, edge):
    return list(ids[max(0, at - k) : at + k + 1])


def unchecked(ids, at, k, edge):
    return [ids[i] for i in range(at - k, at + k + 1)]


def checked_below_only(ids, at, k, edge):
    return [ids[i] if i >= 0 else edge for i in range(at - k, at + k + 1)]


def padded(ids, at, k, edge):
    row = [edge] * k + list(ids) + [edge] * k
    return row[at - k : at + k + 1]


def padded_once(ids, at, k, edge):
    row = [edge, *ids, edge]
    return row[max(0, at - k + 1) : at + k + 2]


def solve_parameters(k, vocabulary, tags):
    return (2 * k + 1) * vocabulary * tags


IDS = [5, 6, 7, 8]

WINDOW = Exercise(
    name="09.window",
    minutes=10,
    task=(
        "The window of 2k + 1 numbers around place at of the list ids; edge where the sentence has no word.",
        "列表ids中以at为中心的2k + 1个数；句子之外的位置用edge。",
    ),
    solution=solve_window,
    cases=(
        Case((IDS, 1, 1, 0), [5, 6, 7]),
        Case((IDS, 0, 1, 0), [0, 5, 6]),
        Case((IDS, 3, 2, -1), [6, 7, 8, -1, -1]),
        Case((IDS, 2, 0, 0), [7]),
        Case(([9], 0, 2, 0), [0, 0, 9, 0, 0]),
    ),
    sample=lambda rng: (
        [int(x) for x in rng.integers(10, 99, size=5)],
        int(rng.integers(5)),
        int(rng.integers(1, 4)),
        0,
    ),
    properties=(
        Property(
            ("the word itself stands in the middle", "词本身在正中间"),
            lambda f, rng: all(f(IDS, at, k, 0)[k] == IDS[at] for at in range(4) for k in range(4)),
        ),
    ),
    wrong=(
        Wrong(
            wrapped,
            (
                "at the edge it goes on at the other end of the sentence (negative places count from the end).",
                "到了边缘就绕到句子另一头去了（负的位置从末尾数起）。",
            ),
        ),
        Wrong(
            clamped,
            (
                "the first or last word is repeated at the edge; put edge there.",
                "在边缘重复了首词或末词；那里应当放edge。",
            ),
        ),
        Wrong(
            cut_short,
            ("shorter at the edges; a window always has 2k + 1 places.", "在边缘变短了；窗口总是2k + 1个位置。"),
        ),
        Wrong(
            lambda ids, at, k, edge: solve_window(ids, at, k, edge)[:-1],
            (
                "the last place is missing: range ends before its second number.",
                "少了最后一个位置：range不包含第二个数。",
            ),
        ),
        Wrong(
            lambda ids, at, k, edge: [x for i, x in enumerate(solve_window(ids, at, k, edge)) if i != k],
            ("the word itself is missing in the middle.", "中间缺了这个词本身。"),
        ),
        Wrong(
            lambda ids, at, k, edge: solve_window(ids, at, 2 * k, edge)[: 2 * k + 1],
            ("it looks only back, 2k places; k to each side are wanted.", "只往前看了2k个位置；应当两边各k个。"),
        ),
        Wrong(
            lambda ids, at, k, edge: ids[at - k : at + k + 1],
            (
                "a slice whose start is negative counts from the end; and no slice puts edge in.",
                "切片的起点若是负数，就从末尾数起；切片也不会补上edge。",
            ),
        ),
        Wrong(
            unchecked,
            (
                "places below 0 count from the end, places past the end raise IndexError: use edge for both.",
                "小于0的位置会从末尾数起，超出末尾的位置会抛出IndexError：两种都用edge。",
            ),
        ),
        Wrong(
            checked_below_only,
            ("places past the end are not caught: 0 <= i < len(ids).", "没有照顾到超出末尾的位置：0 <= i < len(ids)。"),
        ),
        Wrong(
            padded,
            (
                "after padding with k edges everything stands k places further on: begin at at, not at - k.",
                "前面补了k个edge之后，每个词都后移了k位：应当从at开始，不是at - k。",
            ),
        ),
        Wrong(
            padded_once,
            ("one edge at each end is too few for k > 1: put k there.", "两端各补一个edge，在k > 1时不够：要各补k个。"),
        ),
        Wrong(
            lambda ids, at, k, edge: [ids[at + j] for j in range(-k, k)],
            (
                "range(-k, k) ends before k, so the last place is missing; and the ends of the sentence need edge.",
                "range(-k, k)不包含k，所以少了最后一个位置；句子两端还要补edge。",
            ),
        ),
    ),
    hints=(
        ("The places are range(at - k, at + k + 1).", "位置是range(at - k, at + k + 1)。"),
        ("A place i holds a word when 0 <= i < len(ids).", "当0 <= i < len(ids)时，位置i上有词。"),
        (
            "[ids[i] if 0 <= i < len(ids) else edge for i in range(...)]",
            "写成[ids[i] if 0 <= i < len(ids) else edge for i in range(...)]",
        ),
    ),
)

PARAMETERS = Exercise(
    name="09.parameters",
    minutes=5,
    task=(
        "How many numbers the linear tagger has to learn, for a window of k to each side.",
        "窗口向两边各看k个词时，这个线性标注器要学多少个数。",
    ),
    solution=solve_parameters,
    cases=(Case((0, 79, 12), 948), Case((1, 10, 2), 60), Case((2, 79, 12), 4740)),
    sample=lambda rng: tuple(int(x) for x in rng.integers((2, 5, 5), (5, 20, 20))),
    wrong=(
        Wrong(
            lambda k, vocabulary, tags: k * vocabulary * tags,
            ("k places; there are k to each side and the word itself.", "算成了k个位置；两边各k个，还有词本身。"),
        ),
        Wrong(
            lambda k, vocabulary, tags: 2 * k * vocabulary * tags,
            ("the word itself has a table, too: 2k + 1.", "词本身也有一张表：2k + 1。"),
        ),
        Wrong(
            lambda k, vocabulary, tags: (2 * k + 1) * vocabulary + tags,
            (
                "each word has a number for *each* tag: times tags, not plus.",
                "每个词对*每个*标签都有一个数：是乘以tags，不是加。",
            ),
        ),
        Wrong(
            lambda k, vocabulary, tags: (2 * k + 1) * vocabulary,
            ("each word has a number for each tag.", "每个词对每个标签各有一个数。"),
        ),
        Wrong(
            lambda k, vocabulary, tags: vocabulary ** (2 * k + 1) * tags,
            (
                "that counts every possible window; the tables are added, not combined.",
                "这是在数所有可能的窗口；各张表是相加，不是组合。",
            ),
        ),
        Wrong(
            lambda k, vocabulary, tags: (k + 1) * vocabulary * tags,
            ("k + 1 places; the window reaches k to each side: 2k + 1.", "算成了k + 1个位置；窗口两边各k个：2k + 1。"),
        ),
        Wrong(
            lambda k, vocabulary, tags: (2 * k + 1) * vocabulary * tags + tags,
            ("a bias for each tag is added; this tagger has none.", "多加了每个标签的偏置；这个标注器没有偏置。"),
        ),
        Wrong(
            lambda k, vocabulary, tags: 2 * k + 1 * vocabulary * tags,
            ("brackets are missing: (2 * k + 1) is the number of places.", "少了括号：(2 * k + 1)才是位置的个数。"),
        ),
        Wrong(
            lambda k, vocabulary, tags: vocabulary * tags,
            ("one table; each of the 2k + 1 places has its own.", "只有一张表；2k + 1个位置各有一张。"),
        ),
    ),
    hints=(
        ("How many places has a window?", "一个窗口有几个位置？"),
        (
            "Each place has a table: a row for each word, a column for each tag.",
            "每个位置一张表：每个词一行，每个标签一列。",
        ),
        ("(2 * k + 1) * vocabulary * tags", "答案：(2 * k + 1) * vocabulary * tags"),
    ),
)

EXERCISES = (WINDOW, PARAMETERS)
