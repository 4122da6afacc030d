"""What the tests of pictures read from an SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """Every text of a picture, with ordinary blanks."""
    return [text.text.replace("\xa0", " ") for text in ET.fromstring(svg).iter(f"{SVG}text")]
