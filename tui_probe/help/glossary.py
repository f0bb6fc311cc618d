"""The glossary by term. An entry is a paragraph ``**term, other word**: What it is.``"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tui_probe.errors import HelpError
from tui_probe.near import meant

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENTRY = re.compile(r"^\*\*(?P<terms>[^*]+)\*\*: (?P<words>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def entries(page: str) -> Mapping[str, str]:
    """The paragraph of each term of the page, as Markdown; two words for one thing have the same."""
    found = {}
    for entry in _ENTRY.finditer(page):
        for term in entry["terms"].split(", "):
            found[term.lower()] = entry[0].strip()
    return found


def entry(page: str, term: str) -> str:
    """The paragraph of a term, in any case, singular or plural. Raises HelpError."""
    known = entries(page)
    word = " ".join(term.lower().split())
    for form in (word, word.removesuffix("s"), word.removesuffix("es")):
        if form in known:
            return known[form] + "\n"
    raise HelpError(f"the glossary has no {term!r}{meant(word, known, 3)}")
