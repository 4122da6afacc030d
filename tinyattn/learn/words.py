"""What the lessons' machinery itself says, in each language."""

from __future__ import annotations

import locale
import os
import sys

_SAYINGS: dict[str, tuple[str, str]] = {
    # key: (English, 中文)
    "lessons": ("Lessons", "课程"),
    "number": ("no.", "编号"),
    "title": ("title", "标题"),
    "minutes": ("minutes", "分钟"),
    "needs": ("needs", "先修"),
    "progress": ("progress", "进度"),
    "exercises": ("exercises", "练习"),
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
    "exercise written": (
        "Written: {path}. Fill it in, then run: python {path}",
        "已写入：{path}。写好后运行：python {path}",
    ),
    "exercise there": (
        "{path} is there already, and was left as it is. Run: python {path}",
        "{path} 已经存在，没有改动。运行：python {path}",
    ),
    "no exercise": ("There is no exercise at this step.", "这一步没有练习。"),
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
