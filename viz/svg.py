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

from viz import colours
from viz.labels import visible

FONTS = (
    "Helvetica, Arial, 'Noto Sans', 'PingFang SC', 'Hiragino Sans GB', 'Microsoft YaHei', "
    "'Noto Sans CJK SC', 'Noto Sans SC', 'Source Han Sans SC', 'WenQuanYi Micro Hei', sans-serif"
)


def finished(raw: str, *, title: str, description: str, tips: Mapping[str, str], auto: bool) -> str:
    """The SVG of a drawing from what Graphviz wrote.

    Parameters
    ----------
    raw : str
        Graphviz's SVG.
    title, description : str
        For a screen reader; the title is also what a browser shows.
    tips : mapping
        Text for each box by its id, shown when the pointer rests on it.
    auto : bool
        Follow the reader's light or dark setting.
    """
    body = re.sub(r"<!--.*?-->\n?", "", raw[raw.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r' font-family="[^"]*"', "", body)
    body = re.sub(r'(<g id="([^"]*)"[^>]*>\n)<title>.*?</title>\n?', lambda part: _tipped(part, tips), body)
    if "xlink:" not in body.replace("xmlns:xlink", ""):
        body = re.sub(r' xmlns:xlink="[^"]*"', "", body)
    mark = hashlib.sha256(f"{body}{title}".encode("utf-8", "replace")).hexdigest()[:8]
    opening = body.index("<svg") + 4
    root = (
        f' role="img" aria-labelledby="t-{mark} d-{mark}" class="tinyattn{" tinyattn-auto" if auto else ""}"'
        f' font-family="{FONTS}"'
    )
    close = body.index(">", opening) + 1
    head = (
        f'\n<title id="t-{mark}">{_plain(visible(title))}</title>\n<desc id="d-{mark}">{_plain(description)}</desc>'
        + (f"\n{_style(body)}" if auto else "")
    )
    return body[:opening] + root + body[opening:close] + head + body[close:]


def _tipped(found: re.Match[str], tips: Mapping[str, str]) -> str:
    words = tips.get(html.unescape(found[2]), "")
    return f"{found[1]}<title>{_plain(words)}</title>\n" if words else found[1]


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
    return [(colours.heat(s, k, "light"), colours.heat(s, k, "dark")) for k, s in steps]  # type: ignore[arg-type]
