"""Suggest known names for an unknown one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(word: str, names: Iterable[str], most: int = 1) -> str:
    """``: did you mean event-log?``, with the ``most`` likely of the names; "" where none is like the word."""
    known = list(names)
    within = [name for name in known if len(word) > 2 and word in name]
    close = list(dict.fromkeys([*difflib.get_close_matches(word, known, most), *within]))[:most]
    return f": did you mean {' or '.join(close)}?" if close else ""
