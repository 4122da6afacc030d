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
    "reading": "{query} looks most at {key}: {weight}",
    "reading tie": "{query} looks most at {key}, equally: {weight}",
    "reading none": "{query} looks at nothing: all its weights are 0",
    "reading nan": "{query} has a weight that is nan",
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
    "reading": "{query} 最关注 {key}：{weight}",
    "reading tie": "{query} 同样最关注 {key}：{weight}",
    "reading none": "{query} 什么都不看：权重全为 0",
    "reading nan": "{query} 的权重中有 nan",
    "and": "和",
    "list": "、",
    "many": "{count} 个键",
}

_LANGUAGES = {"en": _ENGLISH, "zh": _CHINESE}


class Words:
    """The words of one language.

    >>> Words("en")("parameter"), Words("zh")("parameter"), Words("en")("nodes", count=3)
    ('parameter', '参数', '3 nodes')
    """

    def __init__(self, lang: str) -> None:
        if lang not in _LANGUAGES:
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
