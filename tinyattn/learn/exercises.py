"""What an exercise is: task, cases, properties, hints, solution, and the wrong answers that learners give.

The exercises of lesson 10 stand in ``exercises/10.py`` beside the lessons; a file holds a tuple
``EXERCISES``.  This module reads them and knows nothing of grading.
"""

from __future__ import annotations

import dis
import inspect
import runpy
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from tinyattn.learn import library
from tinyattn.learn.lesson import LessonError

Text = tuple[str, str]
"""The same words in English and in Chinese."""

Answer = Callable[..., Any]


@dataclass(frozen=True)
class Wrong:
    """An answer that learners give, and what to say to it."""

    function: Answer
    says: Text


@dataclass(frozen=True)
class Case:
    """Arguments, and the result worked out by other means than the solution."""

    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class Property:
    """Something that holds for a right answer whatever the numbers: a sentence, and a function that tries it.

    ``holds(answer, rng)`` gives True or False.
    """

    says: Text
    holds: Callable[[Answer, np.random.Generator], bool]


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes
    ----------
    name : str
        ``"10.attend"``: the lesson's number and the function's name.
    task : Text
        What to write, in one or two sentences.
    minutes : int
    solution : callable
    cases : tuple of Case
        Shown to the learner where they fail; their results come from elsewhere than the solution.
    sample : callable
        ``sample(rng)`` gives arguments for the comparison with the solution.
    wrong : tuple of Wrong
        At least four.
    hints : three Texts
    properties : tuple of Property
    tensors : bool
        Whether floating arguments are tensors and the gradient through the answer is verified.
    tolerance : float
        The largest difference, relative to the result's size, that rounding may make.
    """

    name: str
    task: Text
    minutes: int
    solution: Answer
    cases: tuple[Case, ...]
    sample: Callable[[np.random.Generator], tuple[Any, ...]]
    wrong: tuple[Wrong, ...]
    hints: tuple[Text, Text, Text]
    properties: tuple[Property, ...] = ()
    tensors: bool = False
    tolerance: float = 1e-9

    @property
    def function(self) -> str:
        """The name of the function to write."""
        return self.name.split(".")[1]

    @property
    def signature(self) -> str:
        """How it is called: ``attend(q, K, V)``."""
        return self.function + str(inspect.signature(self.solution)).split(" ->")[0]

    def solution_source(self) -> str:
        """The text of the solution, under the name of the learner's function, with the helpers it calls."""
        helpers = [textwrap.dedent(inspect.getsource(one)) for one in _helpers(self.solution)]
        source = textwrap.dedent(inspect.getsource(self.solution))
        renamed = source.replace(f"def {self.solution.__name__}(", f"def {self.function}(", 1)
        return "\n\n".join([*helpers, renamed])


def _helpers(function: Answer) -> list[Answer]:
    """The functions of its own file that a function calls, those that are called first."""
    found: dict[str, Answer] = {}
    for name in function.__code__.co_names:
        other = function.__globals__.get(name)
        if isinstance(other, FunctionType) and other.__code__.co_filename == function.__code__.co_filename:
            found |= {inner.__name__: inner for inner in _helpers(other)} | {name: other}
    return list(found.values())


def exercises(lesson: str) -> tuple[Exercise, ...]:
    """The exercises of a lesson by its number; none where it has no file of them."""
    path = library.folder() / "exercises" / f"{lesson}.py"
    if not path.is_file():
        return ()
    found: tuple[Exercise, ...] = runpy.run_path(str(path))["EXERCISES"]
    return found


def every_exercise() -> tuple[Exercise, ...]:
    """All exercises, lesson by lesson."""
    files = sorted((library.folder() / "exercises").glob("[0-9][0-9].py"))
    return tuple(one for path in files for one in exercises(path.stem))


def find_exercise(name: str) -> Exercise:
    """One exercise by its name.

    Raises
    ------
    LessonError
        When there is none; the message lists the lesson's, or all.
    """
    if not isinstance(name, str):
        raise LessonError(f'an exercise is named by a text like "10.attend", not by a {type(name).__name__}.')
    for one in exercises(name.split(".")[0]):
        if one.name == name:
            return one
    names = [one.name for one in exercises(name.split(".")[0]) or every_exercise()]
    raise LessonError(f"there is no exercise {name!r}; there are {', '.join(names) or 'none'}.")


def differences(f: Callable[[np.ndarray], Any], x: np.ndarray, g: Any, h: float = 1e-6) -> np.ndarray:
    """The gradient of ``sum(g * f(x))`` by central differences, one entry of x after the other.

    >>> differences(lambda x: x**2, np.array([1.0, 3.0]), np.array([1.0, 10.0])).round(6)
    array([ 2., 60.])
    """
    result = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[at] = h
        result[at] = np.sum(g * (np.asarray(f(x + step)) - np.asarray(f(x - step)))) / (2 * h)
    return result


def is_unwritten(function: Any) -> bool:
    """Whether a function is still a stub: nothing but a docstring, ``...`` or ``pass``.

    >>> def f(x):
    ...     "Double it."
    ...     ...
    >>> is_unwritten(f), is_unwritten(lambda x: 2 * x)
    (True, False)
    """
    code = getattr(function, "__code__", None)
    if code is None or code.co_names or any(x not in (None, ..., function.__doc__) for x in code.co_consts):
        return False
    return [step.opname for step in dis.get_instructions(code)] == _NOTHING


def _nothing() -> None: ...


_NOTHING = [step.opname for step in dis.get_instructions(_nothing)]
