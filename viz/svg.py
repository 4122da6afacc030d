"""What is done to Graphviz's SVG so that it can stand in a page.

It gets a title and a description for readers who do not see it, fonts that also have Chinese, and, for
the theme that follows the reader's, a style sheet that gives every light colour its dark partner.  The
document type, which points to an outside address, goes; what stays is the same in every run.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping
from typing import NamedTuple

from viz import colours
from viz.labels import visible

FONTS = (
    "Helvetica, Arial, 'Noto Sans', 'PingFang SC', 'Hiragino Sans GB', 'Microsoft YaHei', "
    "'Noto Sans CJK SC', 'Noto Sans SC', 'Source Han Sans SC', 'WenQuanYi Micro Hei', sans-serif"
)


class Mark(NamedTuple):
    """What is added to a box or an arrow of the picture: classes, and words for the pointer."""

    classes: str
    words: str


def finished(raw: str, *, title: str, description: str, marks: Mapping[str, Mark], auto: bool) -> str:
    """The SVG of a drawing from what Graphviz wrote.

    Parameters
    ----------
    raw : str
        Graphviz's SVG.
    title, description : str
        For a screen reader; the title is also what a browser shows.
    marks : mapping
        What boxes and arrows are and say, by their id.
    auto : bool
        Follow the reader's light or dark setting.
    """
    body = re.sub(r"<!--.*?-->\n?", "", raw[raw.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r' font-family="[^"]*"', "", body)
    group = r'<g id="([^"]*)" class="([^"]*)"([^>]*)>\n<title>.*?</title>\n'
    body = re.sub(group, lambda found: _marked(found, marks), body)
    if "xlink:" not in body.replace("xmlns:xlink", ""):
        body = re.sub(r' xmlns:xlink="[^"]*"', "", body)
    mark = hashlib.sha256(f"{body}{title}".encode("utf-8", "replace")).hexdigest()[:8]
    opening = body.index("<svg") + 4
    root = (
        f' role="img" aria-labelledby="t-{mark} d-{mark}" class="tinyattn{" tinyattn-auto" if auto else ""}"'
        f' font-family="{FONTS}"'
    )
    close = body.index(">", opening) + 1
    head = f'\n<title id="t-{mark}">{_plain(visible(title))}</title>'
    head += f'\n<desc id="d-{mark}">{_plain(description)}</desc>'
    head += f"\n{_style(body)}" if auto else ""
    return body[:opening] + root + body[opening:close] + head + body[close:]


def _marked(found: re.Match[str], marks: Mapping[str, Mark]) -> str:
    """The start of a group, with its classes, and with words in place of Graphviz's own name for it."""
    mark = marks.get(html.unescape(found[1]), Mark("", ""))
    classes = f"{found[2]} {mark.classes}".strip()
    tip = f"<title>{_plain(mark.words)}</title>\n" if mark.words else ""
    return f'<g id="{found[1]}" class="{classes}"{found[3]}>\n{tip}'


def _plain(words: str) -> str:
    return html.escape("\n".join(visible(line) for line in words.split("\n")), quote=False)


def _style(body: str) -> str:
    """The rules that turn the colours of this picture dark; only for colours that it has."""
    pairs = [(light, colours.DARK[role]) for role, light in colours.LIGHT.items()]
    heats = _heat_pairs()
    rules: list[str] = []
    for light, dark in [*pairs, *heats]:
        for what in ("fill", "stroke"):
            if f'{what}="{light}"' in body:
                rules.append(f'.tinyattn-auto [{what}="{light}"]{{{what}:{dark}}}')
    for light, dark in heats:
        if f'fill="{light}"' in body:
            rules.append(f'.tinyattn-auto [fill="{light}"]+text{{fill:{colours.ink(dark)}}}')
    return "<style>@media (prefers-color-scheme:dark){" + "".join(rules) + "}</style>"


def _heat_pairs() -> list[tuple[str, str]]:
    steps = [("signed", step) for step in range(-colours.STEPS, colours.STEPS + 1)]
    steps += [("share", step) for step in range(1, colours.STEPS + 1)]
    return [(colours.heat(s, k, "light"), colours.heat(s, k, "dark")) for k, s in steps]
