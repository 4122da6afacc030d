"""The words of the pictures, in English and Chinese."""

from __future__ import annotations

from tinyattn.errors import ArgumentError, message

_ENGLISH = {
    "parameter": "parameter",
    "input": "input",
    "constant": "constant",
    "op": "operation",
    "output": "output",
    "fold": "folded",
    "value": "value",
    "gradient": "gradient",
    "not computed": "not computed",
    "not needed": "not needed",
    "zero": "zero",
    "empty": "empty",
    "min": "min",
    "mean": "mean",
    "max": "max",
    "nan": "nan",
    "inf": "inf",
    "below": "below 0",
    "above": "above 0",
    "share": "0 to 1",
    "legend": "Legend",
    "nodes": "{count} nodes",
    "folded line": "Folded: {what}.",
    "fold told": "{name} ({count} nodes)",
    "run fold": "the middle of the graph",
    "graph title": "Computation graph of {names}",
    "replay title": "Replay of {names}: forward, backward, check",
    "counts": "{nodes} nodes: {parts}. Output: {names}.",
    "more": "... and {count} more lines; the attribute text has them all",
    "asks": "query asks",
    "answers": "key answers",
    "axes": "query asks (rows) / key answers (columns)",
    "map title": "Attention weights",
    "head": "Head {number}",
    "stage scores": "Scores: how well each key answers",
    "stage masked": "Masked: hidden keys at minus infinity",
    "stage weights": "Weights: after softmax, each row sums to 1",
    "reading": "{query} looks most at {key}: {weight}",
    "reading tie": "{query} looks most at {key}, equally: {weight}",
    "reading none": "{query} looks at nothing: all its weights are 0",
    "reading nan": "{query} has a weight that is nan",
    "added up": "gradient: the sum of {count} contributions",
    "passed back": "gradient passed back; + adds up",
    "cotangent": "gradient",
    "diff title": "Your computation and the reference",
    "yours": "yours",
    "reference": "reference",
    "diff head": "{paired} of {count} nodes have a partner;",
    "diff first": "the first that differs is {name}.",
    "diff none": "all of them are equal.",
    "only yours": "only in yours",
    "only reference": "only in the reference",
    "diff shape": "{name}: its shape is {shape}",
    "diff value": "{name}: values differ by up to {gap}",
    "diff other": "{name}: another operation or other operands",
    "alone": "only here",
    "differs shape": "another shape",
    "differs value": "another value",
    "differs other": "another operation or operands",
    "tree title": "Modules of {name}",
    "tree line": "{name}: {kind}, {count} numbers",
    "tree own": "with its parts: {count} numbers",
    "step": "step",
    "steps": "steps",
    "first": "first",
    "last": "last",
    "smallest": "smallest",
    "at step": "at step",
    "curve title": "Training",
    "gradients title": "Size of the gradients",
    "gradient size": "root mean square of the gradient",
    "shape": "shape",
    "embedding title": "Embedding in two dimensions",
    "variance": "The first axis holds {first} % of the variance, the second {second} %.",
    "axis": "axis {number}",
    "group": "group",
    "wave title": "Waveform",
    "wave": "{count} samples at {rate} in a second: {seconds} s. Largest size {top}.",
    "frames": "{count} frames of {length} samples ({long} s), a new one every {hop} ({every} s).",
    "seconds": "seconds",
    "and": " and ",
    "list": ", ",
    "many": "{count} keys",
}

_CHINESE = {
    "parameter": "参数",
    "input": "输入",
    "constant": "常数",
    "op": "运算",
    "output": "输出",
    "fold": "已折叠",
    "value": "值",
    "gradient": "梯度",
    "not computed": "未计算",
    "not needed": "不需要",
    "zero": "零",
    "empty": "空",
    "min": "最小",
    "mean": "平均",
    "max": "最大",
    "nan": "nan",
    "inf": "inf",
    "below": "小于 0",
    "above": "大于 0",
    "share": "0 到 1",
    "legend": "图例",
    "nodes": "{count} 个节点",
    "folded line": "已折叠：{what}。",
    "fold told": "{name}（{count} 个节点）",
    "run fold": "图的中间部分",
    "graph title": "{names} 的计算图",
    "replay title": "{names} 的回放：前向、反向、检查",
    "counts": "{nodes} 个节点：{parts}。输出：{names}。",
    "more": "... 还有 {count} 行；属性 text 中有全部内容",
    "asks": "查询（提问）",
    "answers": "键（回答）",
    "axes": "查询（提问）：行 / 键（回答）：列",
    "map title": "注意力权重",
    "head": "头 {number}",
    "stage scores": "分数：每个键回答得有多好",
    "stage masked": "遮蔽：被遮住的键为负无穷",
    "stage weights": "权重：softmax 之后，每行之和为 1",
    "reading": "{query} 最关注 {key}：{weight}",
    "reading tie": "{query} 同样最关注 {key}：{weight}",
    "reading none": "{query} 什么都不看：权重全为 0",
    "reading nan": "{query} 的权重中有 nan",
    "added up": "梯度：{count} 份贡献之和",
    "passed back": "往回传的梯度；+ 表示相加",
    "cotangent": "梯度",
    "diff title": "你的计算与参考答案",
    "yours": "你的",
    "reference": "参考",
    "diff head": "{count} 个节点中有 {paired} 个找到对应；",
    "diff first": "第一个不同的是 {name}。",
    "diff none": "全部相同。",
    "only yours": "只在你的计算中",
    "only reference": "只在参考中",
    "diff shape": "{name}：它的形状是 {shape}",
    "diff value": "{name}：值相差可达 {gap}",
    "diff other": "{name}：运算或操作数不同",
    "alone": "只在此处",
    "differs shape": "形状不同",
    "differs value": "值不同",
    "differs other": "运算或操作数不同",
    "tree title": "{name} 的模块",
    "tree line": "{name}：{kind}，{count} 个数",
    "tree own": "连同部件：{count} 个数",
    "step": "步",
    "steps": "步数",
    "first": "最初",
    "last": "最后",
    "smallest": "最小",
    "at step": "在第几步",
    "curve title": "训练",
    "gradients title": "梯度的大小",
    "gradient size": "梯度的均方根",
    "shape": "形状",
    "embedding title": "二维中的词向量",
    "variance": "第一轴占方差的 {first} %，第二轴占 {second} %。",
    "axis": "第 {number} 轴",
    "group": "组",
    "wave title": "波形",
    "wave": "{count} 个采样，每秒 {rate} 个：{seconds} 秒。最大幅度 {top}。",
    "frames": "{count} 帧，每帧 {length} 个采样（{long} 秒），每 {hop} 个采样（{every} 秒）一帧。",
    "seconds": "秒",
    "and": "和",
    "list": "、",
    "many": "{count} 个键",
}

_LANGUAGES = {"en": _ENGLISH, "zh": _CHINESE}

language = "en"
"""The language of a picture whose call names none; a lesson in Chinese sets it."""


class Words:
    """The words of one language.

    >>> Words("en")("parameter"), Words("zh")("parameter"), Words("en")("nodes", count=3)
    ('parameter', '参数', '3 nodes')
    """

    def __init__(self, lang: str | None = None) -> None:
        lang = language if lang is None else lang
        if not isinstance(lang, str) or lang not in _LANGUAGES:
            known = ", ".join(repr(x) for x in _LANGUAGES)
            raise ArgumentError(message(f"lang={lang!r} is not known.", f"The pictures speak {known}."))
        self.lang = lang
        self._table = _LANGUAGES[lang]

    def __call__(self, key: str, /, **parts: object) -> str:
        """The word for a key, with the parts put in their places."""
        return self._table[key].format(**parts) if parts else self._table[key]

    def joined(self, items: list[str]) -> str:
        """A list as a reader would say it.

        >>> Words("en").joined(["a", "b", "c"])
        'a, b and c'
        """
        if len(items) < 2:
            return "".join(items)
        return self("list").join(items[:-1]) + self("and") + items[-1]
