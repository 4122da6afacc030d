"""``tinyattn check FILE.py:NAME``: the gradient of something in a file, checked from the command line.

Exit code 0: right; 1: wrong; 2: it could not be checked.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from traceback import extract_tb
from typing import Any
from unicodedata import normalize

import numpy as np

from tinyattn.check.gradients import MODES, check_gradients
from tinyattn.check.page import page
from tinyattn.check.report import Report
from tinyattn.check.rules import check_rule
from tinyattn.check.sweeping import summary, swept
from tinyattn.check.textbook import ORACLES
from tinyattn.errors import ArgumentError, TinyattnError, message
from tinyattn.files import write_whole
from tinyattn.ops import Op
from tinyattn.tensor import Tensor
from tinyattn.terminal import say

_DESCRIPTION = """Check the gradient of something in a Python file.  NAME may be an operation (an Op: its own samples
are used), a layer or a function of tensors (say where with --inputs or --shape), or a function without arguments that
returns a loss computed from tensors of the file, or a pair (function, inputs...).  With --backward, NAME is a function
of plain NumPy arrays and the other one its gradient written by hand; an object with methods forward and backward
needs no more than a shape."""


def main(argv: Sequence[str]) -> int:
    """Run ``tinyattn check``.

    Parameters
    ----------
    argv : sequence of str
        The words after ``check``.

    Returns
    -------
    int
        0: right, 1: wrong, 2: could not be checked.
    """
    options = _parser().parse_args(list(argv))
    if options.sweep is not None:
        return _sweep(options)
    if options.jobs != 1 or options.scheduler is not None:
        raise ArgumentError(message("--jobs and --scheduler share out a sweep.", "", "Write --sweep seed=0:50, say."))
    report = _report(options)
    _print(report.as_dict(), report.text() if options.all else str(report), options)
    if options.html is not None:
        try:
            write_whole(options.html, page(report))
        except OSError as error:
            raise ArgumentError(f"{options.html} cannot be written: {error.strerror or error}") from error
        if not options.json:
            say(f"{options.html}: written", options.ascii)
    return _exit_code(report.verdict)


def _report(options: argparse.Namespace) -> Report:
    """Run the file anew and check, so that nothing depends on the checks before."""
    path, name = _target(options.target)
    space = _loaded(path)
    thing = _found(space, name, path)
    try:
        return _checked(thing, name, space, options)
    except TinyattnError:
        raise
    except (Exception, SystemExit) as error:
        what = f"{name} raised {type(error).__name__}: {error}{_place(error, path)}"
        raise ArgumentError(message(what, "", "So there is nothing to check.")) from error


def _place(error: BaseException, path: str) -> str:
    """Where in the user's own file an error came from."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == os.path.abspath(path)]
    return f", at {os.path.basename(path)}:{lines[-1]}" if lines else ""


def _sweep(options: argparse.Namespace) -> int:
    if options.html is not None:
        raise ArgumentError(
            message("--html shows one check, and --sweep makes many.", "", "Write --seed and --shape of one of them.")
        )
    path, name = _target(options.target)
    options.target = f"{os.path.abspath(path)}:{name}"  # a worker may stand in another folder
    records = swept(_report, options)
    _print(records, summary(name, records), options)
    verdicts = {record["verdict"] for record in records}
    return _exit_code("wrong" if "wrong" in verdicts else "undecided" if "undecided" in verdicts else "right")


def _print(data: Any, text: str, options: argparse.Namespace) -> None:
    """The outcome as JSON or in words."""
    if options.json:
        text = json.dumps(data, indent=2, ensure_ascii=options.ascii)
    elif options.ascii:
        text = normalize("NFD", text)  # a bar by itself has an ASCII form
    say(text, options.ascii)


def _exit_code(verdict: str) -> int:
    return {"right": 0, "wrong": 1}.get(verdict, 2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tinyattn check", description=_DESCRIPTION)
    add = parser.add_argument
    add("target", metavar="FILE.py:NAME", help="what to check")
    add(
        "--inputs",
        metavar="NAME",
        help="the point: an array, a tuple of arrays, or a function of a random generator, from the same file",
    )
    add(
        "--shape",
        action="append",
        metavar="3,4",
        help="take random numbers of this shape as input; once for each input",
    )
    add("--backward", metavar="NAME", help="the gradient written by hand, from the same file")
    add(
        "--saves", action="store_true", help="with --backward: NAME returns (result, cache), the other takes (g, cache)"
    )
    add(
        "--order",
        type=int,
        default=None,
        metavar="N",
        help="how often to differentiate (default: 2; 1 with --backward)",
    )
    add("--mode", choices=MODES, action="append", help="only this mode (default: both)")
    add(
        "--oracle",
        choices=ORACLES,
        action="append",
        help="ask formulas, or SymPy, about every input (default: formulas, and SymPy about the entry to blame)",
    )
    add("--rtol", type=float, metavar="X", help="a relative tolerance of your own")
    add("--atol", type=float, metavar="X", help="an absolute tolerance of your own")
    add("--seed", type=int, default=0, metavar="N", help="start of all random numbers (default: %(default)s)")
    add(
        "--sweep",
        nargs="+",
        metavar="NAME=VALUES",
        help="check at many seeds and sizes: --shape n,4 --sweep seed=0:50 n=1,4,16",
    )
    add("--jobs", type=int, default=1, metavar="N", help="processes for --sweep; -1 takes all cores (needs joblib)")
    add("--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers do the --sweep (needs distributed)")
    add("--all", action="store_true", help="show every comparison, also of a wrong gradient")
    add("--json", action="store_true", help="print the report as JSON")
    add("--html", metavar="FILE", help="write the report as a page, with the graph and the faulty node marked")
    add("--ascii", action="store_true", help="print ASCII signs only, as far as the words allow it")
    return parser


def _target(text: str) -> tuple[str, str]:
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise ArgumentError(
            message(f"{text!r} is not FILE.py:NAME.", "", "Write, for example, tinyattn check layers.py:my_layer.")
        )
    return path, name


def _loaded(path: str) -> dict[str, Any]:
    """Run the file as a module, so that what it does only as a script is not done."""
    if not os.path.isfile(path):
        raise ArgumentError(f"{path}: there is no such file.")
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        return runpy.run_path(os.path.abspath(path), run_name="checked")
    except (Exception, SystemExit) as error:
        raise ArgumentError(f"{path} cannot be run: {type(error).__name__}: {error}{_place(error, path)}") from error
    finally:
        sys.path.remove(folder)


def _found(space: dict[str, Any], name: str, path: str) -> Any:
    if name not in space:
        known = ", ".join(
            sorted(
                key
                for key, value in space.items()
                if not key.startswith("_") and (callable(value) or isinstance(value, Op))
            )
        )
        raise ArgumentError(
            message(f"{path} has no {name!r} at its top level.", "", f"There are {known}." if known else "")
        )
    return space[name]


def _checked(thing: Any, name: str, space: dict[str, Any], options: argparse.Namespace) -> Report:
    given: dict[str, Any] = {"rtol": options.rtol, "atol": options.atol, "seed": options.seed, "name": name}
    given["oracles"] = options.oracle
    inputs = _inputs(space, options)
    if options.backward is not None:
        given |= {"order": 1 if options.order is None else options.order, "saves": options.saves}
        return check_rule(thing, _found(space, options.backward, "the file"), inputs or None, **given)
    by_hand = callable(getattr(thing, "forward", None)) and callable(getattr(thing, "backward", None))
    if inputs and by_hand and not isinstance(thing, type):
        given["order"] = 1 if options.order is None else options.order
        return check_rule(thing.forward, thing.backward, inputs, **given)
    given |= {"order": 2 if options.order is None else options.order, "modes": tuple(options.mode or MODES)}
    if isinstance(thing, Op):
        return check_gradients(thing, *(inputs or ()), **given)
    if isinstance(thing, tuple) and thing and callable(thing[0]):
        return check_gradients(thing[0], *thing[1:], **given)
    if isinstance(thing, type):
        raise ArgumentError(
            message(
                f"{name} is a class.", "", f"Make an object of it in the file, such as {name.lower()}_1 = {name}()."
            )
        )
    if not callable(thing):
        raise ArgumentError(f"{name} is a {type(thing).__name__}; an operation, a layer or a function is needed.")
    if inputs is not None:
        return check_gradients(thing, *inputs, **given)
    return _without_inputs(thing, name, space, given)


def _without_inputs(thing: Callable[..., Any], name: str, space: dict[str, Any], given: dict[str, Any]) -> Report:
    code = getattr(thing, "__code__", None)
    needed = code.co_argcount - len(getattr(thing, "__defaults__", None) or ()) if code is not None else 1
    if needed > 0:
        raise ArgumentError(
            message(
                f"{name} takes arguments, and nothing says at which point to check.",
                "",
                "Write --shape 3,4 for random numbers, or --inputs NAME for arrays of the file.",
            )
        )
    result = thing()
    if isinstance(result, Report):
        return result
    if isinstance(result, tuple) and result and callable(result[0]):
        return check_gradients(result[0], *result[1:], **given)
    return check_gradients(_Loss(thing, space, name), **given)


class _Loss:
    """A function without arguments of the tensors of a file: these are its parameters."""

    def __init__(self, function: Callable[[], Any], space: dict[str, Any], name: str) -> None:
        self.function, self.__name__ = function, name
        self.found = [(key, x) for key, x in space.items() if isinstance(x, Tensor) and x.is_leaf and x.requires_grad]
        if not self.found:
            raise ArgumentError(
                message(
                    f"{name} takes no arguments, and the file has no tensor with requires_grad=True.",
                    "There is nothing to differentiate by.",
                    "Write --shape 3,4, or make a tensor with requires_grad=True.",
                )
            )

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """What is differentiated by."""
        return self.found

    def __call__(self) -> Any:
        return self.function()


def _inputs(space: dict[str, Any], options: argparse.Namespace) -> tuple[Any, ...] | None:
    rng = np.random.default_rng(options.seed)
    if options.inputs is not None:
        value = _found(space, options.inputs, "the file")
        value = value(rng) if callable(value) else value
        return value if isinstance(value, tuple) else (value,)
    if options.shape:
        return tuple(rng.normal(size=_shape(text)) for text in options.shape)
    return None


def _shape(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.replace("x", ",").split(",") if part.strip())
        if min(sizes, default=0) < 0:
            raise ValueError
        return sizes
    except ValueError:
        raise ArgumentError(message(f"--shape {text}: sizes are whole numbers.", "", "Write --shape 3,4.")) from None
