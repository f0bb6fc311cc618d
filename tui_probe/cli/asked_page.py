"""The page that is asked for by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.errors import ProbeError, UsageError

from .addresses import opened
from .output import inform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.pages.registry import Page
    from tui_probe.trace.address import Address


def asked_page(name: str, once: Mapping[str, str], address: Address) -> Page:
    """The page of a name, or of what that name was ``once``.

    Raises UsageError if there is none; where the trace is of a probe that is not known, the page may be that probe's.
    """
    from tui_probe.pages.registry import page_named

    try:
        page = page_named(name, once)
    except UsageError as error:
        unknown = _unknown_probe(address)
        raise UsageError(f"{error}. {unknown}") if unknown else error from None
    if page.name != name:
        inform(f"page {name} is called {page.name} now; the older name will go")
    return page


def _unknown_probe(address: Address) -> str | None:
    from tui_probe.probekit.missing import not_known

    try:
        trace = opened(address)
    except ProbeError:
        return None
    words = next(filter(None, map(not_known, trace.kernels)), None)
    return words and f"Pages of its own may be missing: {words}"
