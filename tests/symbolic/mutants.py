"""Wrong lines and wrong rules: what a proof must refuse; and mutants that change nothing, with the reason."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from symbolic.models import attention, layer_norm_fused, reused, self_attention

import tinyattn as ta
from tinyattn.ops import REGISTRY
from tinyattn.symbolic.canonical import expression_key
from tinyattn.symbolic.rules import WRONG, prove_rule
from tinyattn.symbolic.terms import Term

# -- wrong lines ----------------------------------------------------------------------------------------------

MODELS = (attention, self_attention, layer_norm_fused, reused)


def _negated(term):
    return Term(-term.coef, term.factors, term.dummies, term.sizes)


def _doubled(term):
    return Term(2 * term.coef, term.factors, term.dummies, term.sizes)


def _without_size(term):
    return Term(term.coef, term.factors, term.dummies, ())


def _without_last_factor(term):
    return Term(term.coef, term.factors[:-1], term.dummies, term.sizes)


def _squared_factor(term):
    if not term.factors:
        return term
    (head, at, power), *rest = term.factors
    return Term(term.coef, ((head, at, power + 1), *rest), term.dummies, term.sizes)


def _transposed_factor(term):
    changed = [(head, at[::-1], power) for head, at, power in term.factors]
    place = next((p for p, (_, at, _) in enumerate(term.factors) if len(at) == 2 and at[0].cls == at[1].cls), None)
    if place is None:
        return term
    return Term(
        term.coef, (*term.factors[:place], changed[place], *term.factors[place + 1 :]), term.dummies, term.sizes
    )


@dataclass
class Mutation:
    """One way to spoil a formula, and why it may find nothing to spoil."""

    name: str
    change: Callable[[Term], Term]
    idle: str = ""

    def __call__(self, expr):
        return (self.change(expr[0]), *expr[1:])


MUTATIONS = [
    Mutation("wrong sign", _negated),
    Mutation("factor 2", _doubled),
    Mutation("missing length", _without_size, "the line has no power of a length"),
    Mutation("missing factor", _without_last_factor, "the line has no factor, or one that is 1"),
    Mutation("factor twice", _squared_factor, "the line has no factor"),
    Mutation("wrong transpose", _transposed_factor, "no factor has both indices of one length"),
]


def _key(expr, labels):
    free = [i for term in expr for _, at, _ in term.factors for i in at if i not in term.dummies]
    return expression_key(expr, labels | {i: 100 + at for at, i in enumerate(dict.fromkeys(free)) if i not in labels})


def mutated_lines(derivation, mutation) -> Iterator[tuple]:
    """Spoil one backward line after the other: gives the line, and whether that changed anything; all is put back."""
    for line in derivation.lines.backward:
        right = line.expr
        line.expr = mutation(right) if right else right
        labels = {index: at for at, index in enumerate(line.out)}
        yield line, _key(line.expr, labels) != _key(right, labels)
        line.expr = right


# -- wrong rules ----------------------------------------------------------------------------------------------


def clone(op, vjps):
    clone = object.__new__(type(op))
    for slot in type(op).__slots__:
        setattr(clone, slot, getattr(op, slot))
    clone.vjps = vjps
    return clone


def rules_of(op):
    """Give the rule of each input as a function of its own, whether they are written apart or jointly."""
    if isinstance(op.vjps, tuple):
        return list(op.vjps)
    count = max(len(inputs) for inputs, _ in op.sample(np.random.default_rng(0)))
    return [None] * count


def changed_result(op, slot, change):
    """A record whose rule for one input gives something else."""
    if isinstance(op.vjps, tuple):
        rules = list(op.vjps)
        right = rules[slot]
        rules[slot] = lambda *arguments: change(right(*arguments))
        return clone(op, tuple(rules))
    right = op.vjps

    def joint(*arguments):
        results = list(right(*arguments))
        results[slot] = change(results[slot])
        return tuple(results)

    return clone(op, joint)


AUTOMATIC = [
    (op, slot, name, change)
    for op in REGISTRY.values()
    if op.name not in ("size_of", "cast")
    for slot in range(min(2, len(rules_of(op))))
    for name, change in (("wrong sign", lambda g: -g), ("factor 2", lambda g: 2 * g))
]


# (operation, slot, the rule as someone might write it, what is wrong, number of the sample)
BY_HAND = [
    ("softmax", 0, lambda g, y, x, axis, keep: g * y * (1 - y), "diagonal of the Jacobian only", 0),
    ("softmax", 0, lambda g, y, x, axis, keep: g * y, "no correction", 0),
    ("softmax", 0, lambda g, y, x, axis, keep: y * (g - g.sum(axis=axis, keepdims=True)),
     "correction without the weights", 0),
    ("softmax", 0, lambda g, y, x, axis, keep: y * (g - (g * y).sum(axis=1 - axis, keepdims=True)), "wrong axis", 0),
    ("softmax", 0, lambda g, y, x, axis, keep: y * (g + (g * y).sum(axis=axis, keepdims=True)),
     "sign of the correction", 0),
    ("softmax", 0, lambda g, y, x, axis, keep: g - y * (g * y).sum(axis=axis, keepdims=True),
     "weights forgotten in one term", 0),
    ("log_softmax", 0, lambda g, y, x, axis: g - g.sum(axis=axis, keepdims=True), "probabilities forgotten", 0),
    ("log_softmax", 0, lambda g, y, x, axis: g - np.exp(y) * g, "sum forgotten", 0),
    ("log_softmax", 0, lambda g, y, x, axis: g, "correction forgotten", 0),
    ("matmul", 0, lambda g, y, a, b: b @ g.mT, "swapped operands", 4),
    ("matmul", 0, lambda g, y, a, b: (g @ b.mT) * 0.5, "factor", 0),
    ("matmul", 1, lambda g, y, a, b: (g.mT @ a).mT * 2, "factor", 0),
    ("matmul", 1, lambda g, y, a, b: a.sum(axis=0)[:, None] * g.sum(axis=0), "outer product of sums", 0),
    ("multiply", 0, lambda g, y, a, b: g * a, "own value instead of the other's", 0),
    ("multiply", 1, lambda g, y, a, b: g * b, "own value instead of the other's", 0),
    ("multiply", 0, lambda g, y, a, b: g, "other factor forgotten", 0),
    ("divide", 0, lambda g, y, a, b: g * b, "multiplied instead of divided", 0),
    ("divide", 1, lambda g, y, a, b: -g * a / b, "not squared", 0),
    ("divide", 1, lambda g, y, a, b: g * a / (b * b), "sign forgotten", 0),
    ("subtract", 1, lambda g, y, a, b: g, "sign forgotten", 0),
    ("add", 1, lambda g, y, a, b: g, "copies not summed", 1),
    ("add", 0, lambda g, y, a, b: g[:, :1], "first copy only", 2),
    ("exp", 0, lambda g, y, x: g * x, "the argument instead of the value", 0),
    ("log", 0, lambda g, y, x: g / y, "the value instead of the argument", 0),
    ("sqrt", 0, lambda g, y, x: g / y, "factor 1/2 forgotten", 0),
    ("sqrt", 0, lambda g, y, x: g / (2 * x), "the argument instead of the root", 0),
    ("tanh", 0, lambda g, y, x: g * (1 - y), "not squared", 0),
    ("tanh", 0, lambda g, y, x: g * (1 + y * y), "sign", 0),
    ("sigmoid", 0, lambda g, y, x: g * y, "second factor forgotten", 0),
    ("sigmoid", 0, lambda g, y, x: g * (1 - y * y), "the rule of tanh", 0),
    ("sin", 0, lambda g, y, x: -g * np.cos(x), "sign", 0),
    ("cos", 0, lambda g, y, x: g * np.sin(x), "sign", 0),
    ("erf", 0, lambda g, y, x: g * np.exp(-(x * x)), "2/√π forgotten", 0),
    ("relu", 0, lambda g, y, x: g, "gate forgotten", 0),
    ("relu", 0, lambda g, y, x: np.where(x < 0, g, 0.0), "gate the wrong way round", 0),
    ("abs", 0, lambda g, y, x: np.where(x > 0, g, g * 0), "negative half forgotten", 0),
    ("maximum", 0, lambda g, y, a, b: np.where(a < b, g, 0.0), "the loser gets it", 0),
    ("minimum", 1, lambda g, y, a, b: np.where(a < b, g, 0.0), "the loser gets it", 0),
    ("integer_power", 0, lambda g, y, x, exponent: g * x ** (exponent - 1), "exponent forgotten", 0),
    ("integer_power", 0, lambda g, y, x, exponent: g * exponent * y, "power not lowered", 0),
    ("power", 0, lambda g, y, a, b: g * b * y, "power not lowered", 0),
    ("power", 1, lambda g, y, a, b: g * y * np.log(b), "log of the exponent", 0),
    ("sum", 0, lambda g, y, x, axis, keepdims: np.broadcast_to(g, x.shape) / x.shape[0], "divided as a mean", 0),
    ("transpose", 0, lambda g, y, x, axes: g.transpose(axes), "not the inverse order", 1),
    ("where", 0, lambda g, y, a, b, condition: g, "condition forgotten", 0),
    ("where", 1, lambda g, y, a, b, condition: np.where(condition, g, 0.0), "the other branch's condition", 0),
    ("max", 0, lambda g, y, x, axis, keepdims: np.broadcast_to(g, x.shape), "everybody wins", 0),
    ("broadcast_to", 0, lambda g, y, x, shape: g[0], "first copy only", 0),
    ("concatenate", 0, lambda g, y, a, b, axis: (g[: len(a)], g[: len(b)]), "the same part twice", 0),
    ("index", 0, lambda g, y, x, key: np.zeros(x.shape), "nothing comes back", 0),
    ("prod", 0, lambda g, y, x, axis, keepdims: np.expand_dims(g, 0) * x, "own value instead of the others'", 0),
    ("layer_norm", 0, lambda g, y, saved, x, gain, bias, eps: (g * gain * saved[1], (g * saved[0]).sum(0), g.sum(0)),
     "no corrections", 0),
    ("layer_norm", 0, lambda g, y, saved, x, gain, bias, eps: (
        (g * gain - (g * gain).mean(-1, keepdims=True)) * saved[1], (g * saved[0]).sum(0), g.sum(0)),
     "spread forgotten", 0),
    ("layer_norm", 1, lambda g, y, saved, x, gain, bias, eps: (
        REGISTRY["layer_norm"].vjps(g, y, saved, x, gain, bias, eps)[0], (g * x).sum(0), g.sum(0)),
     "rows not normalised",
        0),
    ("cross_entropy", 0, lambda g, y, saved, x, *rest: (g * saved[0] / len(x),), "target forgotten", 0),
    ("cross_entropy", 0, lambda g, y, saved, x, t, *rest: (g * (saved[0] - np.eye(x.shape[1])[t]),),
     "mean forgotten", 0),
    ("cross_entropy", 0, lambda g, y, saved, x, t, *rest: (g * (np.eye(x.shape[1])[t] - saved[0]) / len(x),),
     "sign", 0),
]  # fmt: skip


def rule_mutants() -> Iterator[tuple]:
    """Give every wrong rule: a name, the operation with it, and a call."""
    for op, slot, name, change in AUTOMATIC:
        inputs, params = op.sample(np.random.default_rng(0))[0]
        if slot < len(inputs):
            yield f"{op.name}, input {slot}: {name}", changed_result(op, slot, change), inputs, params
    for name, slot, rule, wrong, sample in BY_HAND:
        inputs, params = REGISTRY[name].sample(np.random.default_rng(0))[sample]
        yield f"{name}, input {slot}: {wrong}", with_rule(REGISTRY[name], slot, rule), inputs, params


def with_rule(op, slot, rule):
    """Give a record with another rule for one input; or for all, where they have one together."""
    if not isinstance(op.vjps, tuple):
        return clone(op, rule)
    return clone(op, (*op.vjps[:slot], rule, *op.vjps[slot + 1 :]))


def tried() -> tuple[list[str], list[str], list[str]]:
    """Try every mutant: those that a proof refuses by the name of the operation, those let through, those idle."""
    refused, passed, idle = [], [], []
    for model in MODELS:
        for mutation in MUTATIONS:
            loss, leaves = model()
            derivation = ta.derive(loss, wrt=leaves)
            for line, changes in mutated_lines(derivation, mutation):
                name = f"{model.__name__}, gradient of {line.quantity.name}: {mutation.name}"
                if not changes:
                    idle.append(f"{name}: {mutation.idle}")
                    continue
                named = [claim.op for claim in derivation.prove(whole=False).refuted if claim.node == line.node]
                (refused if any(named) else passed).append(name)
    for name, op, inputs, params in rule_mutants():
        proof = prove_rule(op, inputs, dict(zip(op.param_names, params, strict=True)))
        (refused if proof.verdict == WRONG and proof.op == op.name else passed).append(name)
    return refused, passed, idle
