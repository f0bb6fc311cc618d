"""What the screen shows instead of a trace: pages about files that were read, each made when it is first looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.view import View


@dataclass(frozen=True, slots=True)
class ImportedPage:
    """One page; ``make`` may take a while. ``about`` is how to read it, a paragraph each.

    Without a terminal the first page is written, and those ``in_text``.
    """

    name: str
    title: str
    make: Callable[[], View]
    about: Sequence[str] = ()
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """Files that were read. ``title`` says which."""

    title: str
    pages: Sequence[ImportedPage]
