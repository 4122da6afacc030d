"""``show_versions``: what is installed, as text to paste into a bug report.

Nothing optional is imported for it: versions are read from what pip noted when it installed.  Imports stand inside
the functions, because a plain `import tinyattn` shall not pay for them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module

from tinyattn.errors import TinyattnError

_NEEDED = ("numpy", "sympy", "graphviz", "graphviz-pure")
_OPTIONAL = ("torch", "jax", "onnx", "onnxruntime", "safetensors", "dask", "matplotlib", "hypothesis", "mpmath",
             "pytest")


def show_versions() -> None:
    """Print what a bug report needs: versions of tinyattn, Python, NumPy and the rest, and what draws pictures.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.show_versions()
    tinyattn       ...
    Python         ...
    platform       ...
    numpy          ...
    """
    from tinyattn.terminal import say

    rows = list(_rows())
    width = max(len(what) for what, _ in rows)
    say("\n".join(f"{what:<{width}}  {found}" for what, found in rows))


def _rows() -> Iterator[tuple[str, str]]:
    import platform

    from tinyattn import __version__

    yield "tinyattn", __version__
    bits = sys.maxsize.bit_length() + 1
    yield "Python", f"{platform.python_version()}, {platform.python_implementation()}, {bits} bit"
    yield "platform", platform.platform()
    for name in (*_NEEDED, *_OPTIONAL):
        yield name, version_of(name)
    yield "pictures by", _renderer()


def version_of(name: str) -> str:
    """The version of an installed package, or the words "not installed"; the package is not imported.

    Parameters
    ----------
    name : str
        As pip spells it.

    Examples
    --------
    >>> version_of("no-such-package")
    'not installed'
    """
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _renderer() -> str:
    """The Graphviz program that would draw, without the name of the user's folder; or why there is none."""
    from tinyattn._viz import load_viz

    try:
        program: str | None = import_module(f"{load_viz().__name__}.render").find()
    except TinyattnError as error:
        return str(error).splitlines()[0]
    if program is None:
        return "nothing: no Graphviz program was found"
    home = os.path.expanduser("~")
    return f"~{program[len(home) :]}" if program.startswith(home + os.sep) else program
