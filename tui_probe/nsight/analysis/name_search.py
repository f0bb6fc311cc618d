"""Which names a text means: those that are it or begin with it as a whole word, before those that merely hold it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def names_meant(names: Iterable[str], text: str) -> frozenset[str]:
    """The names that are the text or go on with no letter, digit or underscore after it; without one those with it
    anywhere.

    So “Step 40” means “Step 40 to 50” and not “Step 400”. Upper and lower case are the same.
    """
    every = frozenset(names)
    whole = re.compile(re.escape(text) + r"(?!\w)", re.IGNORECASE)
    found = frozenset(name for name in every if whole.match(name))
    return found or frozenset(name for name in every if text.lower() in name.lower())
