"""What of a document contains a text. Every line has to be made for it, so all of this runs in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import plain
from tui_probe.ui.views.text import contains

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line


def find(lines: Sequence[Line], numbers: list[int], text: str, start: int, step: int) -> int | None:
    """The place among ``numbers`` of the next line with ``text`` after ``start``, around the end."""
    count = len(numbers)
    order = ((start + step * i) % count for i in range(1, count + 1))
    return next((place for place in order if contains(plain(lines[numbers[place]]), text)), None)


def passing(lines: Sequence[Line], first: int, text: str) -> list[int]:
    """The lines from ``first`` on that contain ``text``."""
    return [number for number in range(first, len(lines)) if contains(plain(lines[number]), text)]


def whole(lines: Sequence[Line], numbers: list[int]) -> Iterator[str]:
    """Lines in full, as text."""
    return (plain(lines[number]).rstrip() for number in numbers)
