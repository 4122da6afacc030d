"""The seam to Graphviz: which program draws, how it is called, and what is said when there is none.

Graphviz itself is preferred when it is there, because it adds PDF and the fonts of the system;
``graphviz-pure``, which comes with ``pip``, draws everything else.  DOT text never needs a program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

from tinyattn.errors import ArgumentTypeError, GraphError, MissingToolError, message, optional_library
from viz.labels import has_wide

VARIABLE = "TINYATTN_DOT"
"""The environment variable that names the program, as a path or as a name to look for."""

PURE = "graphviz-pure"
SECONDS = 60.0
FORMATS = ("svg", "png", "pdf", "eps")

LAYOUT_LIMITS = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.1", "maxiter": "100"}
"""Graph attributes that keep Graphviz quick on a picture with hundreds of boxes."""

_INSTALL = "sudo apt install graphviz fonts-noto-cjk  |  brew install graphviz  |  winget install graphviz"

NO_RENDERER = message(
    "No Graphviz renderer was found, so this picture was not drawn.",
    "Your graph is fine: the drawing's .dot and .text hold it as text, and .save('graph.dot') writes it.",
    f"To draw here: `pip install {PURE}` (any system, nothing else needed), or install Graphviz itself:\n"
    f"    {_INSTALL}\n"
    "  PDF and EPS, and Chinese, Japanese or Korean text in PNG, need Graphviz itself (and a font for it).",
)


def library(part: str = "graphviz") -> Any:
    """The library ``graphviz``, or a module of it, imported when a picture is asked for and not before.

    Raises
    ------
    MissingLibraryError
        When it is not installed.
    """
    what_for = "It writes the picture in Graphviz's language; the drawing's .text needs no library."
    return optional_library(part, what_for)


def find(setting: str | None = None) -> str | None:
    """The program that draws, or None.

    Parameters
    ----------
    setting : str, optional
        A path or a name, before anything else; the variable ``TINYATTN_DOT`` comes next, then ``dot`` on
        the PATH, then ``graphviz-pure`` on the PATH or beside this Python, where a virtual environment
        that is not activated has it.

    Raises
    ------
    MissingToolError
        When a program was named and is not there; another one is not taken in silence.
    """
    if setting is not None and not isinstance(setting, str):
        raise ArgumentTypeError(f"renderer is a {type(setting).__name__}; the name or path of a program is needed.")
    wanted = setting or os.environ.get(VARIABLE, "")
    if not wanted:
        return shutil.which("dot") or _located(PURE)
    found = _located(wanted)
    if found is None:
        source = "the argument renderer" if setting else f"the variable {VARIABLE}"
        raise MissingToolError(
            message(
                f"{source} names {wanted!r} as the Graphviz program, and there is no such program.",
                "It is a path, or a name that is looked up on the PATH and beside this Python.",
                f"Correct it, or leave it out: then `dot` and {PURE} are looked for.",
            )
        )
    return found


def is_pure(program: str) -> bool:
    """True for graphviz-pure, which has its own fonts and neither PDF nor EPS.

    >>> is_pure("/usr/bin/dot"), is_pure("bin/graphviz-pure")
    (False, True)
    """
    return os.path.basename(program).lower().startswith(PURE)


def draw(dot: str, form: str, *, renderer: str | None = None, seconds: float = SECONDS) -> bytes:
    """Let Graphviz lay out a DOT text.

    Parameters
    ----------
    dot : str
    form : {"svg", "png", "pdf", "eps"}
    renderer : str, optional
        The program; see :func:`find`.
    seconds : float
        How long it may take.

    Raises
    ------
    MissingToolError
        No program, or one that cannot write this format.
    GraphError
        Graphviz failed, or took too long.
    """
    program = find(renderer)
    if program is None:
        raise MissingToolError(NO_RENDERER)
    if is_pure(program):
        _refuse_what_pure_cannot(dot, form)
    elif form != "svg" and has_wide(dot) and _no_wide_font():
        raise MissingToolError(
            message(
                f"This picture has Chinese, Japanese or Korean letters; in {form.upper()} they would be empty boxes.",
                "Such a picture holds the letters as they are drawn here, and no font on this machine has these.",
                f"Save it as .svg, which every browser shows with its own fonts, or install a font:\n    {_INSTALL}",
            )
        )
    command = [program, *_options(form)]
    try:
        output, complaint = _run(command, dot, seconds)
    except subprocess.TimeoutExpired:
        raise GraphError(_too_slow(dot, program, seconds)) from None
    except OSError as error:  # no such program after all, or (in a browser) no processes at all
        raise MissingToolError(f"{NO_RENDERER}\n  ({program}: {error.strerror or error})") from error
    if output is None:
        raise _failure(program, form, complaint)
    return output


def _located(program: str) -> str | None:
    """A program by path, on the PATH, or among the scripts of this Python and of the user's scheme."""
    if found := shutil.which(program):
        return found
    if os.path.dirname(program):
        return None
    user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable or ""), user]
    return shutil.which(program, path=os.pathsep.join(folder for folder in folders if folder))


def _options(form: str) -> list[str]:
    dot_command = library("graphviz.backend.dot_command")
    extra = ["-Gdpi=144"] if form == "png" else []
    return [str(part) for part in dot_command.command("dot", form)[1:]] + extra


def _run(command: list[str], dot: str, seconds: float) -> tuple[bytes | None, str]:
    """The output, or None and what the program said; its warnings stay off the user's terminal."""
    graphviz, execute = library(), library("graphviz.backend.execute")
    try:
        done = execute.run_check(
            command, input=dot.encode("utf-8"), capture_output=True, quiet=True, timeout=seconds
        )
    except graphviz.ExecutableNotFound as error:
        raise FileNotFoundError(2, "there is no such program") from error
    except graphviz.CalledProcessError as error:
        return None, bytes(error.stderr or b"").decode("utf-8", "replace")
    return done.stdout, ""


def _no_wide_font() -> bool:
    """Whether fontconfig knows no font with Chinese letters; False where there is no fontconfig to ask."""
    ask = shutil.which("fc-list")
    if ask is None:
        return False
    try:
        found = subprocess.run([ask, ":lang=zh"], capture_output=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return not found.strip()


def _refuse_what_pure_cannot(dot: str, form: str) -> None:
    if form in ("pdf", "eps"):
        raise MissingToolError(_needs_graphviz(form))
    if form == "png" and has_wide(dot):
        raise MissingToolError(
            message(
                "This picture has Chinese, Japanese, Korean or emoji characters, and in PNG "
                f"{PURE} would draw empty boxes for them.",
                "It uses only the fonts built into it.",
                "Save it as .svg, which every browser shows with its own fonts, or install Graphviz itself "
                f"and a font:\n    {_INSTALL}",
            )
        )


def _needs_graphviz(form: str) -> str:
    return message(
        f"A .{form} file needs Graphviz itself; only {PURE} was found, which writes SVG and PNG.",
        "The drawing is fine, only the format is missing.",
        "Save it as .svg or .png, or install Graphviz:\n"
        f"    {_INSTALL}",
    )


def _failure(program: str, form: str, complaint: str) -> Exception:
    if re.search(r'Format: "?\w+"? not recognized', complaint):
        return MissingToolError(_needs_graphviz(form))
    last = "; ".join(complaint.strip().splitlines()[-2:]) or "it said nothing"
    return GraphError(
        message(
            f"Graphviz ({os.path.basename(program)}) could not draw this graph: {last}",
            "This is not a fault of your model.",
            "The drawing's .text lists the graph, and .save('graph.dot') keeps what Graphviz was given.",
        )
    )


def _too_slow(dot: str, program: str, seconds: float) -> str:
    return message(
        f"Graphviz ({os.path.basename(program)}) was stopped after {seconds:g} s; the picture has "
        f"{dot.count(' -> ')} arrows.",
        "The layout of a large graph takes long, and the picture would be too wide to read.",
        "Draw with a smaller max_nodes, or a part of the graph; .text lists all of it.",
    )
