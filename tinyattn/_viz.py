"""The way to the pictures: ``viz`` is imported late, and only if it is ours.

``viz`` is a short name.  A file ``viz.py`` beside a learner's script comes first on Python's path, and
would be run here in place of the pictures; so the module is looked at before it is imported.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

from tinyattn.errors import MissingLibraryError, message

_MARK = "__tinyattn_viz__"


def load_viz() -> ModuleType:
    """The package that draws.

    Returns
    -------
    module

    Raises
    ------
    MissingLibraryError
        When Python finds another module called viz, or none.

    Examples
    --------
    >>> load_viz().__name__
    'viz'
    """
    if "viz" not in sys.modules:
        _look_first()
    viz = import_module("viz")
    if not getattr(viz, _MARK, False):
        raise _foreign(getattr(viz, "__file__", None) or "already loaded under this name")
    return viz


def _look_first() -> None:
    """Find the module without running it: a stranger's script is not started by drawing a picture."""
    from importlib.util import find_spec

    spec = find_spec("viz")
    if spec is None:
        raise MissingLibraryError(
            message(
                "The package viz, which draws the pictures, was not found.",
                "It is installed together with tinyattn, beside it.",
                "Install tinyattn again, or start Python in the folder that holds both.",
            )
        )
    if not _is_ours(spec.origin):
        raise _foreign(spec.origin or os.pathsep.join(spec.submodule_search_locations or ()))


def _is_ours(origin: str | None) -> bool:
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "viz", "__init__.py")
    if origin is None:
        return False
    if os.path.normcase(os.path.abspath(origin)) == os.path.normcase(beside):
        return True
    try:
        with open(origin, encoding="utf-8", errors="replace") as stream:
            return f"{_MARK} = True" in stream.read()
    except OSError:
        return False


def _foreign(place: str) -> MissingLibraryError:
    return MissingLibraryError(
        message(
            f"The module viz that Python found is {place}, not tinyattn's.",
            "Python takes the first module of a name, and looks beside the script before anywhere else.",
            "Rename that file or start Python from another folder.",
        )
    )
