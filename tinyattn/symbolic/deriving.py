"""`derive`: the gradients of a recorded computation as formulas, and everything that can be done with them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tinyattn.arguments import known_arguments
from tinyattn.errors import ArgumentError, ArgumentTypeError, GraphError
from tinyattn.symbolic.certificate import Certificate, prove_or_explain
from tinyattn.symbolic.derivation import Line, Lines
from tinyattn.symbolic.emitting import Program
from tinyattn.symbolic.index_view import index_line
from tinyattn.symbolic.layout import Layout, ascii_text, escaped, latex, mathml, text
from tinyattn.symbolic.lengths import name_lengths
from tinyattn.symbolic.matrix_view import NoMatrixForm, matrix_line
from tinyattn.symbolic.terms import Expr
from tinyattn.symbolic.writing import Letters, quantity_name
from tinyattn.terminal import display_width

NOTATIONS = ("matrix", "index")


class Step:
    """One line of a derivation, ready to be shown.

    Attributes
    ----------
    name : str
        The tensor; `S̄` is the gradient of the loss by S.
    phase : {"forward", "backward"}
    rule : str
        Which rule gave the line: the operation, or "swap", "elementwise", "fan-out: add the contributions", ...
    node : int
        The node of the graph that the line belongs to.
    absorbed : tuple of int
        Unnamed nodes that were written into this line.
    why : str
        Why there is no matrix form, once `matrix` was asked for and is None.
    """

    __slots__ = ("_index", "_letters", "_matrix", "absorbed", "line", "name", "node", "phase", "rule", "why")

    def __init__(self, line: Line, letters: Letters) -> None:
        self.line, self.phase, self.rule, self.node = line, line.phase, line.rule, line.node
        self.absorbed = line.absorbed
        self.name = text(quantity_name(line.quantity))
        self.why = ""
        self._letters = letters
        self._index: Layout | None = None
        self._matrix: Layout | None = None

    @property
    def shape(self) -> str:
        """The shape in symbols, `n × d`."""
        return " × ".join(_axis(axis, self._letters) for axis in self.line.quantity.axes) or "one number"

    @property
    def index(self) -> Layout:
        """The layout in index notation."""
        if self._index is None:
            line = self.line
            self._index = index_line(line.quantity, line.out, line.expr, self._letters.line())
        return self._index

    @property
    def matrix(self) -> Layout | None:
        """The layout in matrix notation; None where there is none, and then `why` says why."""
        if self._matrix is None and not self.why:
            line = self.line
            try:
                self._matrix = matrix_line(line.quantity, line.out, line.expr, self._letters.line())
            except NoMatrixForm as reason:
                self.why = str(reason)
        return self._matrix

    def layout(self, notation: str) -> Layout:
        """Give the layout in a notation; index notation where there is no matrix form."""
        matrix = self.matrix if notation == "matrix" else None
        return self.index if matrix is None else matrix

    def __str__(self) -> str:
        return text(self.layout("matrix"))


def _axis(axis: tuple[int, ...], letters: Letters) -> str:
    return "·".join(letters.names.get(cls, "?") for cls in axis) or "1"


class Derivation:
    """The forward and backward pass of a recorded computation as formulas.

    Attributes
    ----------
    steps : tuple of Step
        One for each line, forward then backward.
    graph : Graph
        The record that it was read from.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([[1.0, 2.0], [0.5, 1.0]], name="x")
    >>> W = ta.tensor([[3.0], [4.0]], requires_grad=True, name="W")
    >>> y = ta.tanh(x @ W)
    >>> print(ta.derive(y, wrt=[W]).text("index"))
    y_ib = tanh(Σ_a x_ia W_ab)
    W̄_ab = Σ_i ȳ_ib x_ia (1 − y_ib²)
    """

    def __init__(
        self, graph: Any, wrt: Sequence[int], dims: Mapping[str, str] | None = None, seeded: bool = False
    ) -> None:
        self.graph = graph
        self.lines = Lines(graph, wrt, seeded)
        self._tensors: dict[int, Any] = {}
        self.lines.names = self._length_names({} if dims is None else dims)
        self.letters = letters_of(self.lines)
        self._steps: tuple[Step, ...] | None = None

    # -- names of lengths and indices -------------------------------------------------------------------------

    def _length_names(self, dims: Mapping[str, str]) -> dict[int, str]:
        axes, nodes = self.lines.axes, self.graph.nodes
        given: dict[int, str] = {}
        if not isinstance(dims, Mapping) or not all(isinstance(words, str) for words in dims.values()):
            raise ArgumentTypeError("derive: dims names the lengths of axes; write dims={'X': 'n d'}.")
        for tensor, words in dims.items():
            index = self._index_of(tensor)
            parts = words.split()
            atoms = self.lines.quantities[index].classes
            if len(parts) != len(atoms):
                raise ArgumentError(
                    f"dims: {tensor} has {len(atoms)} axes with a length of their own, not {len(parts)} ({words!r})."
                )
            given.update(zip(atoms, parts, strict=True))
        leaves = [index for index in axes.nodes if nodes[index].op is None]
        order = sorted(leaves, key=lambda index: (len(nodes[index].shape) < 2, nodes[index].name[:1] in "wW", index))
        rest = [index for index in axes.nodes if nodes[index].op is not None]
        arrays = list(axes.array_axes.values())
        every = [*(axes.nodes[index] for index in (*order, *rest)), *arrays]
        inlined = self.lines.definitions.inlined
        for index, (_, expr) in inlined.items():
            name = _length_name(nodes[index], expr)
            if name is not None:
                given.setdefault(expr[0].sizes[0][0], name)
        taken = {quantity.name for index, quantity in self.lines.quantities.items() if index not in inlined}
        return name_lengths(axes.lengths, every, given, taken)

    # -- the lines ----------------------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[Step, ...]:
        """All lines, forward then backward."""
        if self._steps is None:
            forward, backward = self.lines.in_order()
            self._steps = tuple([Step(line, self.letters) for line in (*forward, *backward)])
        return self._steps

    def __str__(self) -> str:
        return "\n".join(self._table(text))

    def ascii(self) -> str:
        """Give the derivation as ASCII text."""
        return "\n".join(self._table(ascii_text))

    def _table(self, write: Any) -> list[str]:
        rows = []
        for step in self.steps:
            where = f"node {step.node}" + (f" with {', '.join(map(str, step.absorbed))}" if step.absorbed else "")
            where += f"; by index: {step.why}" if step.matrix is None else ""
            shape = step.shape if write is text else step.shape.replace("×", "x").replace("·", "*")
            rows.append((write(step.layout("matrix")), shape, step.rule, where))
        widths = [max((display_width(each[column]) for each in rows), default=0) for column in range(3)]
        marks = {step.phase for step in self.steps}
        lines = []
        for step, cells in zip(self.steps, rows, strict=True):
            if step.phase in marks:
                lines.append(step.phase)
                marks.discard(step.phase)
            both = zip(cells, (*widths, 0), strict=True)
            padded = [cell + " " * (width - display_width(cell)) for cell, width in both]
            lines.append("  " + "   ".join(padded).rstrip())
        return [*lines, *self._refused()]

    def _refused(self) -> list[str]:
        """Say in words which values are taken as given, and which gradients have no formula."""
        lines, name = self.lines, {index: quantity.name for index, quantity in self.lines.quantities.items()}
        said = [f"{name[index]} is taken as given: {self._given(index)}" for index in lines.given]
        missing = [(name[index], name[lines.blocked[index]]) for index in lines.wrt if index in lines.blocked]
        return said + [f"{leaf} has no formula for its gradient: it comes back through {at}" for leaf, at in missing]

    def _given(self, index: int) -> str:
        """Name an operation that has no formula, with its node and the reason."""
        reason = self.lines.given[index].splitlines()[0].rstrip(".")
        op = self.graph.nodes[index].op_name
        return f"{op} (node {index}), which{reason.removeprefix(op)}"

    def _chosen(self, notation: str) -> None:
        if notation not in NOTATIONS:
            raise ArgumentError(f"notation {notation!r} is not known; use 'matrix' or 'index'.")

    def text(self, notation: str = "matrix") -> str:
        """Give the formulas alone, one line each."""
        self._chosen(notation)
        return "\n".join(text(step.layout(notation)) for step in self.steps)

    def latex(self, notation: str = "matrix") -> str:
        """Give the derivation as a LaTeX `aligned` block."""
        self._chosen(notation)
        lines = [latex(step.layout(notation)).replace(" = ", " &= ", 1) for step in self.steps]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def mathml(self, notation: str = "matrix") -> str:
        """Give the derivation as MathML, one `math` element a line."""
        self._chosen(notation)
        return "\n".join(_math(step.layout(notation)) for step in self.steps)

    def html(self) -> str:
        """Give an HTML table: the line in both notations, its rule, its shape, its node. Needs no network."""
        rows = []
        for step in self.steps:
            matrix = _math(step.matrix) if step.matrix is not None else f"<i>index form: {escaped(step.why)}</i>"
            cells = (_math(step.index), matrix, escaped(step.rule), escaped(step.shape))
            body = "".join(f"<td>{cell}</td>" for cell in cells)
            rows.append(f'<tr class="{step.phase}" data-node="{step.node}">{body}</tr>')
        head = "<tr><th>index notation</th><th>matrix notation</th><th>rule</th><th>shape</th></tr>"
        return f'<table class="derivation">\n{head}\n' + "\n".join(rows) + "\n</table>"

    def _repr_html_(self) -> str:
        """For notebooks: the table."""
        return self.html()

    def code(self, style: str = "einsum") -> str:
        """Give a runnable NumPy program: a function `gradients` of the leaves that returns the loss and the gradients.

        Parameters
        ----------
        style : {"einsum", "matrix"}
            Whether every product is an `np.einsum`, or `@`, `.T` and `*` where these can say it.
        """
        if style not in ("einsum", "matrix"):
            raise ArgumentError(f"style {style!r} is not known; use 'einsum' or 'matrix'.")
        return Program(self.lines, style).source()

    # -- one gradient -------------------------------------------------------------------------------------------

    def _index_of(self, which: Any) -> int:
        """Find the node that a tensor, a name or a number means."""
        if isinstance(which, int):
            found = [which] if which in self.lines.quantities else []
        elif isinstance(which, str):
            found = [index for index, quantity in self.lines.quantities.items() if quantity.name == which]
            found = found or [node.index for node in self.graph.nodes if node.name == which]
        else:
            found = [index for index, tensor in self._tensors.items() if tensor is which]
        if not found:
            names = ", ".join(self.lines.quantities[index].name for index in self.lines.wrt)
            shown = repr(which) if isinstance(which, (str, int)) else getattr(which, "name", None) or "like that"
            raise ArgumentError(f"no tensor {shown} in this derivation; it is by {names}.")
        return int(found[0])

    def line_of(self, which: Any) -> Line:
        """Give the line of a gradient."""
        index = self._index_of(which)
        name = self.lines.quantities[index].name
        for line in self.lines.backward:
            if line.node == index:
                return line
        if index in self.lines.blocked:
            through = self._given(self.lines.blocked[index])
            raise GraphError(f"the gradient by {name} has no formula here, because it comes back through {through}.")
        raise ArgumentError(f"{name} has no line of its own in this derivation.\n  Write derive(..., wrt=[{name}]).")

    def gradient(self, which: Any) -> Step:
        """Give the gradient by a tensor, in terms of named intermediates."""
        return Step(self.line_of(which), self.letters)

    def closed_form(self, which: Any) -> Step:
        """Give the gradient by a tensor with every other gradient written out; forward values keep their names."""
        from tinyattn.symbolic.closing import closed

        return Step(closed(self.lines, self.line_of(which)), self.letters)

    def expand(self, which: Any, entry: tuple[int, ...]) -> str:
        """Give one entry of a gradient at the recorded sizes, every sum written out.

        Parameters
        ----------
        which : Tensor, str or int
            The tensor.
        entry : tuple of int
            Which entry of its gradient.
        """
        from tinyattn.symbolic.closing import expanded

        layout = expanded(self.lines, self.line_of(which), entry, self.letters)
        return text(layout)

    # -- truth ----------------------------------------------------------------------------------------------------

    def prove(self, whole: bool | None = None) -> Certificate:
        """Prove every line for all sizes, or give a counterexample.

        Parameters
        ----------
        whole : bool, optional
            Whether the whole derivation is proved at once as well; by default where it has at most 16 lines.
        """
        return prove_or_explain(self.lines, whole)

    def to_sympy(self, which: Any, form: str = "index") -> Any:
        """Give SymPy's own derivative, which is derived from the definitions and not from these lines.

        Parameters
        ----------
        which : Tensor, str or int
            The tensor.
        form : {"index", "elements"}
            One `Sum` over `IndexedBase` entries for a general entry, lengths as symbols; or an array of explicit
            entries.
        """
        from tinyattn.symbolic.referee import apart, derivative_elements

        index = self._index_of(which)
        if form == "elements":
            return derivative_elements(self.graph, index)
        if form != "index":
            raise ArgumentError(f"form {form!r} is not known; use 'index' or 'elements'.")
        from tinyattn.symbolic.whole import WholeLoss

        names = {number: quantity.name for number, quantity in self.lines.quantities.items()}
        group = next(group for group in apart(self.graph, [*self.lines.wrt, index]) if index in group)
        return WholeLoss(self.graph, group, self._symbolic_length, names).derivative(index)[1]

    def _symbolic_length(self, node: int, axis: int) -> Any:
        """Give the length of an axis as a SymPy symbol, or a product of several."""
        import sympy

        atoms = self.lines.quantities[node].axes[axis]
        names = [self.lines.length_name(cls) for cls in atoms]
        return sympy.Mul(*(sympy.Symbol(name, integer=True, positive=True) for name in names))


def _length_name(node: Any, expr: Expr) -> str | None:
    """Give the learner's own name of a length, d_k in `d_k = size_of(k, axis=-1)`: one letter, with or without
    subscript.
    """
    stem = node.name.partition("·")[0]
    is_length = len(expr) == 1 and not expr[0].factors and [power for _, power in expr[0].sizes] == [1]
    return stem if is_length and node.named and len(stem.partition("_")[0]) == 1 else None


def letters_of(lines: Lines) -> Letters:
    """Sort the size classes into rows, widths and heads, each with letters of its own."""
    quantities = lines.quantities.values()
    heads = {cls for quantity in quantities for axis in quantity.axes for cls in axis[:-1]}
    for quantity in quantities:
        rest = [cls for cls in quantity.classes if cls not in heads]
        heads.update(rest[: max(0, len(rest) - 2)])
    rows = {cls for cls, name in lines.names.items() if name[0] in "nmltsrpbTL"}
    return Letters(lines.names, set(lines.names) - rows - heads, heads)


def _math(layout: Layout) -> str:
    return f"<math>{mathml(layout)}</math>"


@known_arguments
def derive(result: Any, wrt: Sequence[Any] | Any, *, dims: Mapping[str, str] | None = None) -> Derivation:
    """Derive the gradients of a recorded computation as formulas.

    Parameters
    ----------
    result : Tensor or Graph
        The loss: one number as a rule. For another shape the formulas are in terms of its cotangent.
    wrt : Tensor or sequence of Tensor
        What to derive by (node numbers or names, if `result` is a Graph).
    dims : mapping of str to str, optional
        Names of the lengths of a tensor's axes, `{"Q": "n d"}`; else they are n, m, ... and d, k, ...

    Returns
    -------
    Derivation
    """
    graph, found = graph_of(result, wrt)
    derivation = Derivation(graph, list(found), dims)
    derivation._tensors = found
    return derivation


def graph_of(result: Any, wrt: Sequence[Any] | Any, gradients: bool = False) -> tuple[Any, dict[int, Any]]:
    """Record the graph behind a result, and find what to derive by in it: node number to tensor (or name, or
    number).
    """
    wanted: list[Any] = list(wrt) if isinstance(wrt, (list, tuple)) else [wrt]
    if not wanted:
        raise ArgumentError("wrt is empty.\n  Write wrt=[W] for the gradient by W.")
    if hasattr(result, "nodes"):
        graph, found = result, {_in_graph(result, each): each for each in wanted}
    else:
        graph, found = _recorded(result, wanted, gradients)
    if graph.outputs[0] in found:
        raise ArgumentError("wrt holds the result itself.\n  Leave it out: what changes with itself has gradient 1.")
    return graph, found


def _in_graph(graph: Any, which: Any) -> int:
    if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(graph.nodes):
        return which
    for node in graph.nodes:
        if node.name == which:
            return int(node.index)
    raise ArgumentError(
        f"wrt: {which!r} is no node of this graph; give a number below {len(graph.nodes)} or one of the names "
        f"{', '.join(node.name for node in graph.nodes)}."
    )


def _recorded(result: Any, wanted: Sequence[Any], gradients: bool) -> tuple[Any, dict[int, Any]]:
    """Record the graph with the names of the caller's variables, and find the wanted tensors in it."""
    from tinyattn.graph import Graph, tensors_behind
    from tinyattn.places import caller_variables
    from tinyattn.tensor import Tensor

    for each in (result, *wanted):
        if not isinstance(each, Tensor):
            what = "the result" if each is result else "wrt"
            raise ArgumentTypeError(
                f"{what} must be a tensor that was recorded, not {type(each).__name__}.\n"
                "  Write ta.derive(loss, wrt=[W]) with the tensor that loss was made from."
            )
    graph = Graph.of(result, variables=caller_variables(sys._getframe(1)), gradients=gradients)
    places = {id(tensor): index for index, tensor in enumerate(tensors_behind([result]))}
    found: dict[int, Any] = {}
    for tensor in wanted:
        if id(tensor) not in places:
            name = getattr(tensor, "name", None) or "one of the tensors in wrt"
            raise GraphError(f"the result does not depend on {name}.\n  Check that the loss was made from it.")
        found[places[id(tensor)]] = tensor
    return graph, found
