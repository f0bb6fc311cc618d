"""All pages by name, whatever shows them: ``show``, ``report --page``, the screen.

A name means one thing. Where it names a page of the trace and one of a kernel, that is the same of more or of less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import UsageError
from tui_probe.near import meant
from tui_probe.pages.trace_pages import trace_pages
from tui_probe.pages.views import kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.probekit.kind import Kind, TracePage


@dataclass(frozen=True, slots=True)
class Page:
    """A page: of a whole trace, of a kernel and its launches, or of either."""

    name: str
    of_trace: TracePage | None
    of_kernel: Kind | None

    @property
    def title(self) -> str:
        """What stands on its tab."""
        return next((page.title for page in (self.of_kernel, self.of_trace) if page and page.title), self.name)

    @property
    def about(self) -> str:
        """What it shows, in one line."""
        return next((page.about for page in (self.of_trace, self.of_kernel) if page and page.about), "")

    @property
    def explanation(self) -> tuple[str, ...]:
        """How to read it, a paragraph each."""
        return self.of_kernel.explanation if self.of_kernel else ()

    @property
    def scope(self) -> str:
        """What it is of, in words."""
        scopes = (("trace", self.of_trace), ("kernel", self.of_kernel))
        return ", ".join(word for word, page in scopes if page is not None)


def pages() -> tuple[Page, ...]:
    """Every page: those of a trace first."""
    of_trace = {page.name: page for page in trace_pages()}
    of_kernel = {kind.name: kind for kind in kinds()}
    return tuple(Page(name, of_trace.get(name), of_kernel.get(name)) for name in {**of_trace, **of_kernel})


def find_page(name: str, once: Mapping[str, str]) -> Page | None:
    """The page of a name, or of what that name was ``once``; None if there is none."""
    return next((page for page in pages() if page.name == once.get(name, name)), None)


def page_named(name: str, once: Mapping[str, str]) -> Page:
    """The same. Raises UsageError that lists the names, and the nearest one first."""
    page = find_page(name, once)
    if page is None:
        names = [each.name for each in pages()]
        raise UsageError(f"there is no page {name!r}{meant(name, [*names, *once]) or '.'} There are {', '.join(names)}")
    return page
