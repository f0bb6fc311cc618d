"""A view of a probe's own: whatever probes list it among their views feed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.probekit.kind import Kind
from tui_probe.probekit.missing import missing as nothing_of
from tui_probe.probekit.registry import names_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.kind import Source


def probe_view(
    name: str,
    title: str,
    about: str,
    opened: Callable[[Source, Progress], View],
    *,
    explanation: tuple[str, ...],
    order: int = 50,
    short: str = "",
    grows: bool = False,
    drawn: bool = False,
) -> Kind:
    """The kind of such a view; arguments as those of ``Kind``. It is missing where another probe was used."""

    def probes() -> tuple[str, ...]:
        return names_of(lambda probe: any(view.name == name for view in probe.views))

    def missing(source: Source) -> str | None:
        return nothing_of(source, *probes())

    return Kind(name, title, about, missing, opened, explanation, order, short, grows, drawn, probes)
