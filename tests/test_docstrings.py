"""Every public name of the package says what it is, what it takes, in which shape, and shows an example."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import tinyattn as ta

SECTION = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
FUNCTIONS = [name for name in ta.__all__ if inspect.isfunction(getattr(ta, name))]
CLASSES = [name for name in ta.__all__ if inspect.isclass(getattr(ta, name))]
ERRORS = [name for name in CLASSES if issubclass(getattr(ta, name), (Exception, Warning))]


def sections(text: str) -> dict[str, str]:
    """The parts of a numpydoc docstring by their heading; what stands before the first is the summary."""
    parts = SECTION.split(text)
    return {"summary": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(text: str) -> dict[str, str]:
    """Parameter -> its type line, of the lines ``x : type`` and ``a, b : type`` of a section."""
    found = {}
    for names, kind in re.findall(r"^(\*?\w[\w, *]*?) : (.+)$", text, re.MULTILINE):
        found.update({name.strip().lstrip("*"): kind for name in names.split(",")})
    return found


def parameters(function: Callable[..., Any]) -> dict[str, str]:
    """Parameter -> how it is annotated."""
    return {name: str(p.annotation) for name, p in inspect.signature(function).parameters.items()}


def faults(function: Callable[..., Any]) -> list[str]:
    """What the docstring of a function lacks."""
    text = inspect.getdoc(function) or ""
    parts, wanted = sections(text), parameters(function)
    types = described(parts.get("Parameters", ""))
    lacking = [f"no word about {name}" for name in wanted if name not in types]
    lacking += [f"{name} is not there" for name in types if name not in wanted]
    lacking += [f"no shape of {name}" for name, annotation in wanted.items()
                if re.search("TensorLike|ArrayLike", annotation) and "shape" not in types.get(name, "")]
    if not parts["summary"].strip():
        lacking.append("no summary")
    if len(parts["summary"].split("\n")[0]) > 116 or (parts["summary"].split("\n") + ["", ""])[1] != "":
        lacking.append("the first sentence is longer than a line")
    if not doctest.DocTestParser().get_examples(parts.get("Examples", "")):
        lacking.append("no example")
    return lacking


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_says_what_it_takes_and_shows_an_example(name: str) -> None:
    assert faults(getattr(ta, name)) == []


@pytest.mark.parametrize("name", sorted(set(CLASSES) - set(ERRORS)))
def test_a_public_class_says_what_it_holds_and_shows_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(ta, name)) or ""
    parts = sections(text)
    assert parts["summary"].strip() and "Examples" in parts
    assert {"Parameters", "Attributes", "Returns"} & set(parts)


@pytest.mark.parametrize("name", ERRORS)
def test_a_public_error_says_when_it_is_raised(name: str) -> None:
    error = getattr(ta, name)
    assert "__doc__" in vars(error) and len(error.__doc__) > 20


@pytest.mark.parametrize("name", sorted(name for name in vars(ta.Tensor) if not name.startswith("_")))
def test_a_method_or_attribute_of_a_tensor_is_explained(name: str) -> None:
    from tinyattn.functions import MISSING

    member = inspect.getattr_static(ta.Tensor, name)
    if name in MISSING or not (callable(member) or isinstance(member, property)):
        return  # a method of other libraries, or a slot that is not for users
    assert (inspect.getdoc(member) or "").strip()


def test_a_docstring_that_lacks_something_would_be_seen() -> None:
    def bad(x: TensorLike, axis: int) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Add up.

        Parameters
        ----------
        x : Tensor
        y : int
        """

    assert faults(bad) == ["no word about axis", "y is not there", "no shape of x", "no example"]
