"""What the lessons' machinery itself says, in each language."""

from __future__ import annotations

import locale
import os
import shlex
import shutil
import sys
from pathlib import Path

_SAYINGS: dict[str, tuple[str, str]] = {
    # key: (English, 中文)
    "lessons": ("Lessons", "课程"),
    "number": ("no.", "编号"),
    "title": ("title", "标题"),
    "minutes": ("minutes", "分钟"),
    "needs": ("needs", "先修"),
    "progress": ("progress", "进度"),
    "exercises": ("{state}, exercises {passed}/{of}", "{state}，练习 {passed}/{of}"),
    "new": ("new", "未开始"),
    "at": ("step {at} of {of}", "第 {at} 步，共 {of} 步"),
    "done": ("done", "已完成"),
    "how": (
        "Begin one, or go on: tinyattn learn {number}    Run it through without waiting: add --all",
        "开始或继续一课：tinyattn learn {number}    不停顿地走完：加上 --all",
    ),
    "keys": (
        "Enter goes on.  b back, s skip, r run to the end, q quit, h this help.\n"
        "Anything else is tried as Python with what the lesson has made so far.",
        "按 Enter（回车）继续。b 后退，s 跳过，r 一直运行到结尾，q 退出，h 显示本帮助。\n"
        "输入其他内容，会当作 Python 代码，用本课到目前为止的变量来执行。",
    ),
    "run": ("Enter: run this cell   (b, s, r, q, h)", "Enter：运行这一格   （b, s, r, q, h）"),
    "on": ("Enter: go on   (b, s, r, q, h)", "Enter：继续   （b, s, r, q, h）"),
    "guess": ("Your guess, or just Enter:", "写下你的猜测，或直接按 Enter："),
    "guessed": ("Your guess was: {guess}", "你的猜测是：{guess}"),
    "skipped": ("(skipped: run without showing it)", "（已跳过：运行了，但不显示）"),
    "first": ("This is the first step.", "这已经是第一步。"),
    "step": ("step {at} of {of}", "第 {at} 步，共 {of} 步"),
    "resumed": (
        "Going on at step {at} of {of}; the cells before it have been run again. From the start: --restart",
        "从第 {at} 步（共 {of} 步）继续；之前的代码已重新运行。要从头开始，请用 --restart",
    ),
    "changed": (
        "The lesson has changed since you left it, so it starts at its beginning.",
        "这一课的内容在你离开后有更新，所以从头开始。",
    ),
    "left": (
        "You stopped at step {at} of {of}. Go on with: tinyattn learn {number}",
        "你停在第 {at} 步（共 {of} 步）。继续：tinyattn learn {number}",
    ),
    "finished": ("Lesson {number} is done.", "第 {number} 课已完成。"),
    "next": ("Next: tinyattn learn {number}  ({title})", "下一课：tinyattn learn {number}（{title}）"),
    "notebook": ("Notebook: {path}", "笔记本：{path}"),
    "page": ("Page, to open in a browser: {path}", "网页，请用浏览器打开：{path}"),
    "picture": ("Picture: {path}", "图片：{path}"),
    "no picture": ("(The picture was not drawn: {why})", "（没有画出图片：{why}）"),
    "check failed": ("A check of this lesson failed.", "本课的一个检验没有通过。"),
    "cell failed": ("This cell could not be run.", "这一格无法运行。"),
    "where": ("Cell {cell} of {path}, line {line}:", "{path} 第 {cell} 格，第 {line} 行："),
    "interrupted": ("Interrupted.", "已中断。"),
    "exercise": (
        "Exercise {name}. To do it in an editor: e writes it into a file.",
        "练习 {name}。想在编辑器里做：输入 e，把它写成一个文件。",
    ),
    "solved": ("Exercise {name} is solved.", "练习 {name} 已经做对了。"),
    "exercise written": (
        "Written: {path}. Fill it in, then run: {python} {path}",
        "已写入：{path}。写好后运行：{python} {path}",
    ),
    "exercise there": (
        "{path} is there already, and was left as it is. Run: {python} {path}",
        "{path} 已经存在，没有改动。运行：{python} {path}",
    ),
    # grading
    "unwritten": (
        "{name}: nothing written yet. {signature}\n  {task}",
        "{name}：还没有写。{signature}\n  {task}",
    ),
    "passed": (
        "{name}: {passed} of {of} public checks passed.",
        "{name}：{of}项公开检验，通过了{passed}项。",
    ),
    "called": ("{call}", "{call}"),
    "expected": ("expected {value}, shape {shape}", "应得 {value}，形状 {shape}"),
    "received": ("received {value}, shape {shape}", "实得 {value}，形状 {shape}"),
    "expected number": ("expected {value}", "应得 {value}"),
    "received number": ("received {value}", "实得 {value}"),
    "shape": ("The shapes differ.", "形状不同。"),
    "differs": (
        "first difference at {place}: expected {expected}, received {received}",
        "第一处不同在 {place}：应得 {expected}，实得 {received}",
    ),
    "property": ("This should hold, and does not: {sentence}", "下面这一点应当成立，却不成立：{sentence}"),
    "gradient": (
        "The gradient for {name} is wrong at {place}: differences give {expected}, your function {received}",
        "对{name}的梯度在 {place} 处不对：差分得 {expected}，经过你的函数得 {received}",
    ),
    "gradient lost": (
        "The result no longer depends on its inputs for the engine: no gradient flows back."
        " Use tensor operations, not .data or np.array.",
        "对引擎来说，结果已经与输入脱离，梯度传不回来。请用张量运算，不要用 .data 或 np.array。",
    ),
    "nothing": (
        "Nothing is returned: a line with return is missing, or returns nothing.",
        "没有返回任何东西：缺少 return，或 return 后面是空的。",
    ),
    "no tensor": (
        "A tensor is expected; this is a {kind}. ta.stack makes one of a list of tensors.",
        "应当返回张量（Tensor）；这里是{kind}。ta.stack能把一列张量合成一个。",
    ),
    "no numbers": (
        "A number, or a list or array of numbers, is expected; this is a {kind}.",
        "应当返回一个数，或者数的列表、数组；这里是{kind}。",
    ),
    "not callable": (
        "A function is expected, {wanted}; this is a {kind}.",
        "应当给一个函数{wanted}；这里是{kind}。",
    ),
    "signature": (
        "It must be possible to call it as {wanted}; yours takes {got}.",
        "它必须能这样调用：{wanted}；你的函数参数是{got}。",
    ),
    "changes": (
        "The numbers are right, but {name} is changed on the way. Work on a copy, {name}.copy(): += and append change"
        " what they are given.",
        "数是对的，但途中改动了{name}；请在副本{name}.copy()上运算：+=和append会改动原来的东西。",
    ),
    "raised": ("It raised {text}", "运行时抛出 {text}"),
    "matmul": (
        "It raised {kind}: the factors of @ do not fit. The last axis of the left one ({left}) must equal the"
        " second-to-last axis of the right one ({right}).",
        "运行时抛出 {kind}：@的两个因子对不上。左边的最后一个轴（{left}）必须等于右边的倒数第二个轴（{right}）。",
    ),
    "broadcast": (
        "Shapes are lined up at the right. An axis that was summed away can be kept: keepdims=True.",
        "形状是从右边对齐的。求和消去的轴可以用keepdims=True保留下来。",
    ),
    "at line": ("at line {line}: {source}", "第{line}行：{source}"),
    "too long": (
        "It had not finished after {seconds} seconds, and was stopped. Does a loop ever end?",
        "{seconds}秒后仍未结束，已停止。是不是有循环停不下来？",
    ),
    "died": (
        "Its process ended without a result (code {code}). {text}",
        "它的进程没有给出结果就结束了（代码 {code}）。{text}",
    ),
    "mistake": ("What it looks like: {text}", "可能的原因：{text}"),
    "all zero": ("every number is 0.", "所有的数都是0。"),
    "negative": ("the sign is the other way round.", "正负号反了。"),
    "doubled": (
        "it is exactly twice what it should be; is something added twice?",
        "正好是应得的两倍；是不是有什么加了两次？",
    ),
    "halved": ("it is exactly half of what it should be.", "正好是应得的一半。"),
    "transposed": ("rows and columns are exchanged.", "行和列弄反了。"),
    "more help": ('Stuck? hint("{name}")', '卡住了？hint("{name}")'),
    "printed": ("Your function printed:", "你的函数打印了："),
    "hint": ("Hint {at} of {of}: {text}", "提示 {at}/{of}：{text}"),
    "no more hints": (
        "That was the last hint; the solution: {solution}",
        "这是最后一个提示；看答案：{solution}",
    ),
    "hints left": (
        "Hints left: {count}. The next: {hint}. The solution now: {solution}",
        "还有{count}个提示。看提示：{hint}。仍要看答案：{solution}",
    ),
    "chosen": ("{name} ({minutes} minutes): {task}", "{name}（{minutes}分钟）：{task}"),
    "no exercise": ("There is no exercise at this step.", "这一步没有练习。"),
    # the book
    "book": ("tinyattn: lessons", "tinyattn：课程"),
    "book title": ("From a slope to multi-head attention", "从斜率到多头注意力"),
    "book about": (
        "{count} lessons, about {hours} hours. Each asks a question, lets you guess, computes, and checks what it "
        "claims. Needed: Python, NumPy and school calculus.",
        "共{count}课，约{hours}小时。每一课先提出问题，让你猜一猜，再动手计算，并检验自己的说法。"
        "只需要会Python、NumPy和中学的微积分。",
    ),
    "book how": (
        "What a cell gives stands below it. After a **Predict**, what is printed is folded away: guess first, then "
        "open it. To run the lessons yourself and have your exercises checked: `tinyattn learn`.",
        "每段代码的结果都写在它下面。凡是**预测**之后，打印的结果是折叠起来的：请先猜，再打开看。"
        "想自己运行课程、批改练习，请用`tinyattn learn`。",
    ),
    "part gradients": ("Gradients", "梯度"),
    "part attention": ("Self-attention", "自注意力"),
    "contents": ("Contents", "目录"),
    "previous page": ("Previous: {title}", "上一课：{title}"),
    "next page": ("Next: {title}", "下一课：{title}"),
    "other language": ("中文", "English"),
    "skip": ("Skip to the text", "跳到正文"),
    "navigation": ("Pages of the book", "本书各页"),
    "navigation end": ("Next page and contents", "下一页与目录"),
    "on this page": ("On this page", "本页内容"),
    "code": ("Code", "代码"),
    "output": ("Output", "输出"),
    "folded output": ("What comes out", "结果"),
    "formula": ("formula", "公式"),
    "rule": ("rule", "规则"),
    "shape column": ("shape", "形状"),
    "derivation": ("Derivation, line by line", "逐行推导"),
    "page here": ("A page of its own; the keys ← and → step through it.", "这是一个独立的网页；用←和→键逐步前进。"),
    "exercise heading": ("Exercise {name}", "练习 {name}"),
    "exercise minutes": ("{minutes} minutes", "{minutes}分钟"),
    "exercise how": (
        "Checked in `tinyattn learn {number}`; there the key e writes it into a file.",
        "在`tinyattn learn {number}`里批改；在那里按e可以把它写成文件。",
    ),
    "folded hint": ("Hint {at}", "提示{at}"),
    "solution": ("Solution", "参考解答"),
    # the teacher's folder
    "teacher": ("For teachers", "教师资料"),
    "teacher about": (
        "Four lessons of 45 or 90 minutes, with what to ask and what one will hear; figures to print, steppers to "
        "project, and every solution with the mistakes that `grade` knows. All of it opens from disk.",
        "四次课，每次45或90分钟，写明该问什么、会听到什么；附有可打印的图、可投影的逐步回放，"
        "以及全部参考解答和`grade`认得的错误。一切都可以直接从硬盘打开。",
    ),
    "plans": ("The plan of four lessons", "四次课的教案"),
    "figures": ("Figures (SVG)", "图（SVG）"),
    "steppers": ("Steppers", "逐步回放"),
    "solutions": ("Solutions and mistakes", "参考解答与常见错误"),
    "solutions about": (
        "To each exercise the solution, the three hints that learners get one after the other, and what is said to "
        "the wrong answers that are recognised.",
        "每道练习依次是：参考解答，学生会依次得到的三个提示，以及对认得的错误答案的评语。",
    ),
    "hints": ("Hints", "提示"),
    "mistakes": ("Mistakes that are recognised", "认得的错误"),
    "teacher written": ("For teachers: {path} ({count} files)", "教师资料：{path}（{count}个文件）"),
    "book written": ("Book: {path} ({count} pages, {size:.1f} MB)", "已写成：{path}（{count}页，{size:.1f} MB）"),
}


class Sayings:
    """The sayings of one language.

    >>> Sayings("zh")("done")
    '已完成'
    """

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def __call__(self, key: str, **facts: object) -> str:
        """One saying with its numbers and names put in."""
        return _SAYINGS[key][1 if self.lang == "zh" else 0].format(**facts)


def language_of_the_locale() -> str:
    """``zh`` where the user's environment is Chinese, ``en`` elsewhere."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return "zh" if os.environ[name].lower().startswith("zh") else "en"
    if sys.platform == "win32":
        name = locale.getlocale()[0] or ""
        return "zh" if name.lower().startswith(("zh", "chinese")) else "en"
    return "en"


def interpreter() -> str:
    """The Python that runs now, as one would type it: ``python`` where that is it, else its path."""
    here = os.path.abspath(sys.executable)  # links are not followed: an environment's Python is one
    if os.path.abspath(shutil.which("python") or "") == here:
        return "python"
    inside = Path(here).is_relative_to(Path.cwd())
    path = os.path.relpath(here) if inside else here
    return f'"{path}"' if os.name == "nt" else shlex.quote(path)


def as_typed(text: str) -> str:
    """A text with its commands as the reader must type them, who perhaps has no command ``tinyattn``.

    From a clone the lessons are started as a module, ``.venv/bin/python -m tinyattn learn``; then what is to be
    typed next is said in the same way.
    """
    module = getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", "")
    if module not in ("tinyattn.__main__", "tinyattn.learn.__main__"):
        return text
    return text.replace("tinyattn learn", f"{interpreter()} -m tinyattn learn")
