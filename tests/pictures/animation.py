"""Join pictures of a terminal to one SVG that shows them in turn, with CSS alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPENING = re.compile(r"<svg [^>]*viewBox=\"(?P<box>[^\"]*)\"[^>]*>")
_FONTS = re.compile(r"\s*@font-face \{.*?\n    \}", re.DOTALL)


def without_fonts(picture: str) -> str:
    """Return a picture of Rich without its fonts, which a browser would load from another host."""
    return _FONTS.sub("", picture)


def animated(frames: Sequence[tuple[str, float]]) -> str:
    """Return an SVG that shows each frame for its seconds, in a loop; a viewer without CSS shows the last one."""
    opening = _OPENING.search(frames[0][0])
    assert opening is not None, "not a picture of Rich"
    total = sum(seconds for _, seconds in frames)
    parts = [f'<svg viewBox="{opening["box"]}" xmlns="http://www.w3.org/2000/svg">']
    begin = 0.0
    for number, (picture, seconds) in enumerate(frames):
        first, last = 100 * begin / total, 100 * (begin + seconds) / total
        begin += seconds
        parts.append(f"<style>{_shown(number, first, last, total)}</style>")
        parts.append(f'<g class="frame-{number}">{picture}</g>')
    return "\n".join([*parts, "</svg>\n"])


def _shown(number: int, first: float, last: float, total: float) -> str:
    """Return the rules that show a frame from ``first`` to ``last`` percent of the loop."""
    before = "0% { visibility: hidden } " if first else ""
    after = f" {last:.3f}% {{ visibility: hidden }}" if last < 100 - 1e-9 else ""
    return (
        f"@keyframes frame-{number} {{ {before}{first:.3f}% {{ visibility: visible }}{after} }} "
        f".frame-{number} {{ animation: frame-{number} {total:g}s step-end infinite }}"
    )
