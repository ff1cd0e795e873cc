"""What pictures have in common however they are written: colours, the widths of texts, and escapes."""

from __future__ import annotations

import re
import unicodedata
from colorsys import hls_to_rgb
from html import escape
from typing import Final
from zlib import crc32

from tract_core.drawing.picture import Box

STROKE: Final = "#8a8f98"
FAINT: Final = "#6b7280"
DARK: Final = "#1f2328"
FONT: Final = "Helvetica, Arial, sans-serif"

_PLAIN: Final = {"input": ("#ffffff", "#8a8f98"), "output": ("#ffffff", "#8a8f98"), "constant": ("#f3f4f6", "#b6bcc6")}
"""Filling and border of boxes that are no operators."""

_NARROW: Final = frozenset("iljt.,:;|'!()[]fI /")
_WIDE: Final = frozenset("mwMW@%…")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def colours_of(box: Box) -> tuple[str, str]:
    """Filling and border: for an operator a hue of its own, the same in every picture."""
    if box.kind != "node":
        return _PLAIN[box.kind]
    hue = crc32(box.title.encode()) % 360 / 360
    return _rgb(hue, 0.91), _rgb(hue, 0.55)


def _rgb(hue: float, lightness: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in hls_to_rgb(hue, lightness, 0.6))


def width_of(text: str, size: float) -> float:
    """About how wide a text is in a font of that size, rather more than less."""
    return size * sum(map(_advance, text))


def _advance(letter: str) -> float:
    if letter in _NARROW:
        return 0.34
    if letter in _WIDE:
        return 0.95
    if ord(letter) > 0x2E7F and unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    return 0.7 if letter.isupper() else 0.58


def xml(text: str) -> str:
    """A text inside XML or HTML, in an attribute or between tags: in ASCII, so that any encoding will do."""
    escaped = escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)
    return escaped.encode("ascii", "xmlcharrefreplace").decode()
