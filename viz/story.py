"""What each step of the replay says: one plain sentence, and a question to answer first, in both languages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from viz.labels import visible
from viz.numeric import Comparison
from viz.trace import Step, Trace
from viz.values import number

if TYPE_CHECKING:
    from tinyattn.graph import Node

Both = tuple[str, str]
"""A text in English and in Chinese."""

_KINDS = {
    "parameter": ("a parameter: its gradient is wanted", "参数：要求对它的梯度"),
    "input": ("an input: no gradient is needed", "输入：不需要梯度"),
    "constant": ("a constant", "常数"),
}


def sentence(trace: Trace, step: Step, comparison: Comparison | None = None) -> Both:
    """The sentence of a step."""
    node, target = trace.graph.nodes[step.node], trace.graph.nodes[step.target]
    name, to = visible(node.name), visible(target.name)
    if step.kind == "forward":
        return _forward(trace, node)
    if step.kind == "seed":
        if node.shape == ():
            return (
                f"Backward begins: the gradient of {name} with respect to itself is 1.",
                f"反向开始：{name} 对自己的梯度是 1。",
            )
        return (
            f"Backward begins: {name} is no single number, so each of its entries counts with weight 1.",
            f"反向开始：{name} 不是一个数，它的每个分量以权重 1 计入。",
        )
    if step.kind == "pull":
        return (
            f"Contribution {step.number} of {step.of} to {to}: {name} passes its gradient back "
            f"through the rule of {node.op_name}.",
            f"传给 {to} 的第 {step.number} 份贡献（共 {step.of} 份）："
            f"{name} 把自己的梯度按 {node.op_name} 的规则往回传。",
        )
    if step.kind == "sum":
        return (
            f"{to} was used {step.of} times, so its gradient is the sum of {step.of} contributions.",
            f"{to} 被用到 {step.of} 次，所以它的梯度是 {step.of} 份贡献之和。",
        )
    if step.kind == "leaf":
        return (
            f"The gradient of the parameter {to} is complete, shape {_shape(target)} like {to} itself.",
            f"参数 {to} 的梯度完成了，形状 {_shape(target)}，与 {to} 相同。",
        )
    return _checked(to, comparison)


def _forward(trace: Trace, node: Node) -> Both:
    name, box = visible(node.name), trace.box[trace.home[node.index]]
    if box.kind == "fold":
        title, count = visible(box.title), len(box.members)
        return (f"{title} runs: {count} nodes, folded into one.", f"{title} 运行：{count} 个节点，折叠为一个。")
    if box.kind == "constant" and box.formula:
        value = number(float(node.value))
        return (f"{name} is a constant: {box.formula} = {value}.", f"{name} 是常数：{box.formula} = {value}。")
    if box.kind == "constant" and not box.formula and node.op is not None:
        value = number(float(node.value))
        return (f"{name} is a size: {value}.", f"{name} 是一个长度：{value}。")
    if node.op is None:
        english, chinese = _KINDS[box.kind]
        return (f"{name}, shape {_shape(node)}, is {english}.", f"{name}，形状 {_shape(node)}，是{chinese}。")
    operands = ", ".join(visible(trace.graph.nodes[source].name) for source in node.inputs)
    return (
        f"Forward: {name} is {node.op_name}({operands}), shape {_shape(node)}.",
        f"前向：{name} 是 {node.op_name}({operands})，形状 {_shape(node)}。",
    )


def _checked(name: str, comparison: Comparison | None) -> Both:
    assert comparison is not None
    off, part = number(comparison.largest, 2), comparison.moved < comparison.size
    within = f"1e{max(-6, math.ceil(math.log10(comparison.largest or 1e-6)))}"  # what is smaller changes with rounding
    if not comparison.moved and comparison.size:
        return (
            f"{name} holds a nan or an infinity, so there is nothing to compare.",
            f"{name} 中有 nan 或无穷大，无法比较。",
        )
    if not comparison.agrees:
        return (
            f"Check of {name}: the numeric derivative DIFFERS by up to {off}. Near a kink that can be; "
            "elsewhere a rule is wrong.",
            f"检查 {name}：数值导数相差可达 {off}。在不可导点附近可能如此；否则就是某条规则错了。",
        )
    some = f" ({comparison.moved} of {comparison.size} entries moved)" if part else ""
    some_zh = f"（{comparison.size} 个分量中试了 {comparison.moved} 个）" if part else ""
    return (
        f"Check of {name}: moving each entry a little gives the same derivative; "
        f"no difference is above {within}{some}.",
        f"检查 {name}：把每个分量移动一点，得到同样的导数；相差不超过 {within}{some_zh}。",
    )


# Ask me first ---------------------------------------------------------------------------------------------


def question(trace: Trace, step: Step) -> dict[str, Any] | None:
    """What a learner can predict before a step is shown; None where nothing is to be guessed.

    Returns
    -------
    dict
        ``{"q": "shape", "o": shapes to choose from, "a": the right one}``, or
        ``{"q": "sign", "at": an entry, "a": 0, 1 or 2 for positive, negative, zero}``.
    """
    node, target = trace.graph.nodes[step.node], trace.graph.nodes[step.target]
    if step.kind == "forward" and node.op is not None and trace.box[trace.home[node.index]].kind == "op":
        options = _shapes(node, [trace.graph.nodes[source] for source in node.inputs])
        if len(options) > 1:
            return {"q": "shape", "at": visible(node.name), "o": options, "a": options.index(_shape(node))}
    if step.kind == "pull" and step.value is not None and step.value.size:
        return _sign_question(step.value, visible(target.name))
    return None


def _sign_question(value: Any, name: str) -> dict[str, Any]:
    """The sign of the largest entry."""
    flat = np.nan_to_num(np.abs(value.ravel().astype(float)))
    place = int(np.argmax(flat))
    x = float(value.ravel()[place])
    at = ",".join(str(int(i)) for i in np.unravel_index(place, value.shape))
    return {"q": "sign", "at": f"{name}[{at}]" if at else name, "a": 0 if x > 0 else 1 if x < 0 else 2}


def _shapes(node: Node, operands: list[Node]) -> list[str]:
    """Some shapes to choose from, the right one among them, in an order that does not give it away."""
    guesses = {tuple(node.shape), tuple(reversed(node.shape)), *(tuple(source.shape) for source in operands), ()}
    return sorted(map(str, sorted(guesses, key=lambda s: (s != node.shape, len(s), s))[:4]))


def _shape(node: Node) -> str:
    return str(tuple(node.shape))
