"""Write the parts of the documentation that the code itself knows.

    python3 docs/generate.py            writes them
    python3 docs/generate.py --check    says what is out of date, exit code 1

`operations.md` is made whole: from the records of the rule book (formula, derivatives, kinks) and from the public
functions (signature, first sentence, example).  In `coming-from.md` only what stands between a line
`<!-- generated: NAME -->` and the line `<!-- end -->` is made here.  A test holds both current.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # the packages beside this folder, installed or not

import tinyattn as ta  # noqa: E402
from tinyattn import composed, elsewhere, functions, numpy_protocol  # noqa: E402
from tinyattn.files import write_whole  # noqa: E402
from tinyattn.ops import REGISTRY, Op  # noqa: E402
from tinyattn.ops.describing import calls  # noqa: E402
from tinyattn.symbolic import op_formulas, prove_at_sizes, prove_rule  # noqa: E402
from tinyattn.symbolic.explicit import CALLS, LONG_CALLS  # noqa: E402
from tinyattn.symbolic.rules import ALL_SIZES  # noqa: E402

Functions = Mapping[str, Callable[..., Any]]
PUBLIC: Functions = {name: getattr(ta, name) for name in ta.__all__}

SPELLED = {"integer_power": "power", "cast": "astype"}
"""Ops that are reached through a function of another name."""

TRANSPOSES = {"scatter_add": "index", "put_along_axis": "take_along_axis"}
"""Ops that no function calls: they are the gradient of another op."""

TELLING = {"index": 4, "where": 0, "broadcast_to": 0}
"""Which of an op's sample calls the tables show, where the first does not say the most."""


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or with ``--check`` say which are out of date."""
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.name} is out of date: run python3 docs/generate.py")
        return 1 if stale else 0
    for path in stale:
        write_whole(path, pages()[path])
        print(f"wrote {path.name}")
    return 0


def pages() -> dict[Path, str]:
    """Every generated page, whole, by its file."""
    coming_from = DOCS / "coming-from.md"
    return {
        DOCS / "operations.md": operations_page(REGISTRY, PUBLIC),
        coming_from: filled(coming_from.read_text(encoding="utf-8"), LISTS),
    }


# -- operations.md -------------------------------------------------------------------------------------------

HEAD = """# Operations

<!-- This file is made by `python3 docs/generate.py`. Change the records in tinyattn/ops or the docstrings instead. -->

Every operation is one record: forward, gradient rules, textbook definition. This page is made from the records.
How to read it:

- The **formula** is what the definition says, for one call whose shapes are shown by the indices. Other axes and shapes
  have formulas of their own: `ta.derive(y, x)` prints those of your computation.
- The **derivatives** are derived from the definition, not copied from the rule. `x̄` is the gradient of the loss with
  respect to `x`, and `ȳ`, the gradient with respect to the result, stands in it even where `y` is a single number.
- `[condition]` is 1 where the condition holds and 0 elsewhere.
- **Proof**: how it is known that the rule of the engine equals the derivative of the definition. `all sizes` is a
  proof by algebra. `sizes 1 to 4` is a comparison with SymPy's derivative of the definition, entry by entry, for calls
  in which a length is 1, 2, 3 and 4: index notation has no word for a product over an axis, and no length for entries
  that are picked by number. Beside that, the tests hold every rule against differences.
- The slopes of the functions (`exp`, `tanh`, ...) that both sides of a proof use are proved by SymPy; those of `abs`,
  `maximum`, `minimum` and `relu` piece by piece, on each side of the kink. At the kink itself there is nothing to prove:
  what is decided there is a choice, and stands under **Kinks**; `–` means that there is a derivative everywhere.

The examples begin with

```python
>>> import numpy as np
>>> import tinyattn as ta
```

"""


def operations_page(registry: Mapping[str, Op], public: Functions) -> str:
    """The page of operations: a table of the records, a table of the composed functions, a section for each."""
    ops = [op for op in registry.values() if op.name not in TRANSPOSES]
    applied = {function_of(op, public) for op in ops}
    rest = [name for name in sorted(public) if public[name] not in applied and inspect.isfunction(public[name])]
    made_of_others = [name for name in rest if public[name].__module__ in (composed.__name__, functions.__name__)]
    others = [name for name in rest if name not in made_of_others]
    transposes = [transpose_row(registry[name]) for name in TRANSPOSES]
    return "\n".join(
        [
            HEAD + "## Primitive operations\n",
            table(["operation", "formula", "derivatives", "proof", "kinks"], [row(op, public) for op in ops]),
            "These two stand only for the gradient of another, and have no function of their own:\n",
            table(["operation", "formula", "derivatives", "proof", "gradient of"], transposes),
            "## Composed functions\n",
            "Each is a line or two of the operations above and inherits their derivatives.\n",
            table(["function", "what it does", "made of"], [composed_row(public[name]) for name in made_of_others]),
            "## Tensors, gradients, graphs\n",
            table(["function", "what it does"], [[f"`ta.{signature(public[n])}`", summary(public[n])] for n in others]),
            "## Signatures and examples\n",
            *[section(op, public) for op in ops],
            *[section_of_function(public[name]) for name in made_of_others],
        ]
    ).rstrip() + "\n"


def function_of(op: Op, public: Functions) -> Callable[..., Any] | None:
    """The public function that applies an op."""
    return public.get(SPELLED.get(op.name, op.name))


def row(op: Op, public: Functions) -> list[str]:
    """One line of the table of primitive operations."""
    formula, derivatives = formulas(op)
    link = f"[`{op.name}`](#{anchor(op.name)})"
    return [link, formula, "<br>".join(derivatives), proof(op), op.kinks or "–"]


def transpose_row(op: Op) -> list[str]:
    """One line of the table of operations that are the gradient of another."""
    formula, derivatives = formulas(op)
    other = TRANSPOSES[op.name]
    return [f"`{op.name}`", formula, "<br>".join(derivatives), proof(op), f"[`{other}`](#{anchor(other)})"]


def composed_row(function: Callable[..., Any]) -> list[str]:
    """One line of the table of composed functions."""
    name = function.__name__
    return [f"[`{name}`](#{anchor(name)})", summary(function), ", ".join(f"`{op}`" for op in ops_inside(function)) or "–"]


def formulas(op: Op) -> tuple[str, list[str]]:
    """An op's formula and the derivative for each input, of the call that says the most."""
    inputs, params = telling_call(op)
    named = dict(zip(op.param_names, params, strict=True))
    formula, derivatives = op_formulas(op, [np.shape(x) for x in inputs], named)
    if "[" in formula.partition("=")[0]:  # the definition itself: the index notation has no word for this op
        return f"`{formula}`", ["no formula; checked at sizes 1 to 4"]
    return f"`{formula}`", [f"`{line}`" for line in derivatives]


@functools.cache
def proof(op: Op) -> str:
    """How it is known that the op's rule is right, over the calls of its sampler."""
    verdicts = []
    elsewhere = "sizes 1 to 4" if op.name in CALLS else "the sizes of its sample"  # an op of one's own has no others
    longer = calls(*LONG_CALLS[op.name]()) if op.name in LONG_CALLS else lambda rng: []
    for inputs, params in (*longer(np.random.default_rng(0)), *op.sample(np.random.default_rng(0))):
        found = prove_rule(op, inputs, dict(zip(op.param_names, params, strict=True)))
        if not found:
            raise ta.RuleError(str(found))
        verdicts.append("all sizes" if found.verdict == ALL_SIZES else elsewhere)
    if op.name in CALLS and elsewhere in verdicts and not (found := prove_at_sizes(op)):
        raise ta.RuleError(str(found))
    first = verdicts[0 if op.name in LONG_CALLS else TELLING.get(op.name, 0)]  # of the call that the table shows
    others = sorted(set(verdicts) - {first})
    return "; ".join([first, *(f"{other} for some calls" for other in others)])


def telling_call(op: Op) -> tuple[Any, Any]:
    """A call of the op's own sampler."""
    made = op.sample(np.random.default_rng(0))
    return made[TELLING.get(op.name, 0)]


def section(op: Op, public: Functions) -> str:
    """Signature, definition and example of one op."""
    function = function_of(op, public)
    inputs, params = telling_call(op)
    definition = op.definition_text(tuple(np.shape(x) for x in inputs), params)
    lines = [f"### {op.name}", ""]
    if function is not None:
        lines += [f"`ta.{signature(function)}`", "", summary(function), ""]
    lines += ["Definition:", "", "```text", *broken(definition), "```", ""]
    return "\n".join([*lines, *(example(function) if function is not None else [])])


def section_of_function(function: Callable[..., Any]) -> str:
    """Signature and example of one composed function."""
    lines = [f"### {function.__name__}", "", f"`ta.{signature(function)}`", "", summary(function), ""]
    return "\n".join([*lines, *example(function)])


def signature(function: Callable[..., Any]) -> str:
    """How a function is called, without types: those are in its docstring.

    >>> signature(ta.softmax)
    'softmax(x, axis=-1, keep=None)'
    """
    plain = inspect.signature(function)
    bare = [parameter.replace(annotation=parameter.empty) for parameter in plain.parameters.values()]
    return f"{function.__name__}{plain.replace(parameters=bare, return_annotation=plain.empty)}"


def summary(function: Callable[..., Any]) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


def example(function: Callable[..., Any]) -> list[str]:
    """The docstring's examples, as they would be typed after `import tinyattn as ta`."""
    lines = ["```python"]
    for part in examples(function):
        source = prefixed(part.source, function.__name__).rstrip("\n").split("\n")
        lines += [f">>> {source[0]}", *(f"... {line}" for line in source[1:])]
        lines += part.want.rstrip("\n").split("\n") if part.want else []
    return [*lines, "```", ""]


def examples(function: Callable[..., Any]) -> list[doctest.Example]:
    """The examples of a docstring, without imports."""
    found = doctest.DocTestParser().get_examples(inspect.getdoc(function) or "")
    return [part for part in found if not part.source.startswith(("import tinyattn", "import numpy"))]


def prefixed(source: str, name: str) -> str:
    """A line of a docstring, where the function stands bare, as a user writes it."""
    return re.sub(rf"(?<![\w.]){name}\(", f"ta.{name}(", source)


def ops_inside(function: Callable[..., Any]) -> list[str]:
    """The ops that the function's first example records, in order, each once."""
    names = {**vars(ta), "np": np, "ta": ta}
    for part in examples(function):
        try:
            result = eval(part.source, names)
        except SyntaxError:  # an assignment
            exec(part.source, names)
            continue
        result = result[0] if isinstance(result, list) else result
        if isinstance(result, ta.Tensor):
            return list(dict.fromkeys(node.op_name for node in ta.Graph.of(result).nodes if node.op_name))
    return []


# -- coming-from.md ----------------------------------------------------------------------------------------------


def numpy_functions() -> str:
    """Which NumPy functions may be called on a tensor, and what they become."""
    both = {**numpy_protocol.UFUNCS, **numpy_protocol.FUNCTIONS}
    rows = [(numpy_name(theirs), f"`ta.{ours.__name__}`") for theirs, ours in both.items() if ours.__name__ in PUBLIC]
    rows += [("np.pad", "`ta.pad` (mode 'constant')"), ("np.linalg.norm", "`ta.norm` (without `ord`)")]
    return table(["NumPy", "becomes"], [[f"`{theirs}`", ours] for theirs, ours in sorted(set(rows))])


def numpy_refused() -> str:
    """Which NumPy functions are refused on a tensor with the nearest thing that is there."""
    nearest = sorted(numpy_protocol._NEAREST.items())
    return table(["NumPy", "here"], [[f"`{name}`", as_code(instead)] for name, instead in nearest])


def methods_there() -> str:
    """The functions that are methods, too."""
    return ", ".join(f"`t.{name}`" for name in sorted(functions.METHODS)) + "\n"


def methods_missing() -> str:
    """Methods of other libraries that a tensor has not, with the nearest thing that is there."""
    nearest = sorted(functions.MISSING.items())
    return table(["there", "here"], [[f"`t.{name}`", as_code(instead)] for name, instead in nearest])


def as_code(text: str) -> str:
    """A replacement as code where it is code; some are words.

    >>> as_code(".mT"), as_code("a product with a triangle of ones")
    ('`t.mT`', 'a product with a triangle of ones')
    """
    whole = f"t{text}" if text.startswith(".") else text
    return f"`{whole}`" if elsewhere.is_code(whole) else whole


def names_elsewhere() -> str:
    """Functions and classes of other libraries, with what they are called here."""
    parts = {f"nn.{name}": instead for name, instead in elsewhere.IN_NN.items()}
    nearest = sorted({**elsewhere.NEAREST, **parts}.items())
    return table(["there", "here"], [[f"`{name}`", as_code(instead)] for name, instead in nearest])


def numpy_name(function: Any) -> str:
    """How NumPy's users write a function."""
    inside = "linalg." if function is np.linalg.norm else ""
    return f"np.{inside}{'true_divide' if function is np.true_divide else function.__name__}"


LISTS: dict[str, Callable[[], str]] = {
    "names elsewhere": names_elsewhere,
    "numpy functions": numpy_functions,
    "numpy refused": numpy_refused,
    "methods": methods_there,
    "methods missing": methods_missing,
}


def filled(text: str, lists: Mapping[str, Callable[[], str]]) -> str:
    r"""A page with each generated part made anew.

    >>> filled("<!-- generated: x -->\nold\n<!-- end -->", {"x": lambda: "new\n"})
    '<!-- generated: x -->\nnew\n<!-- end -->'
    """

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}\n{lists[match[2]]().rstrip()}\n<!-- end -->"

    return re.sub(r"(<!-- generated: ([\w ]+) -->)\n.*?<!-- end -->", part, text, flags=re.DOTALL)


# -- Markdown ----------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A Markdown table.

    >>> print(table(["a", "b"], [["x | y", "z"]]))
    | a | b |
    |---|---|
    | x \| y | z |
    <BLANKLINE>
    """
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"


def anchor(heading: str) -> str:
    """The address of a heading within its page."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def broken(text: str, width: int = 110) -> list[str]:
    """A long definition in several lines, broken at a sign between terms."""
    lines = [text]
    while len(lines[-1]) > width:
        head, tail = lines[-1][:width], lines[-1][width:]
        cut = max(head.rfind(f" {sign} ") for sign in "+-*/=") + 1
        if cut <= 4:
            break
        lines[-1:] = [head[:cut].rstrip(), f"    {head[cut:]}{tail}"]
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
