"""A bug in a probe's code stays with the probe: whatever its functions raise is told as a TraceError, with its place.

Who calls a probe has to expect a TraceError anyway: of a result that is not the probe's. So a page shows the words
where the figures would stand, and the program's exit status, other kernels and the screen are as they would be.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from tui_probe.probekit.failure import one_by_one, told
from tui_probe.probekit.finding import Finding
from tui_probe.probekit.guarded_views import guarded_view
from tui_probe.probekit.lines import LineRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.draw.view import View
    from tui_probe.probekit.kind import Kind, TracePage
    from tui_probe.probekit.probe import Probe


def guarded(probe: Probe) -> Probe:
    """The same probe, of which no function raises anything but TraceError (or Cancelled, which is asked for)."""
    whose = f"probe {probe.name}"
    lines, findings = probe.lines, probe.findings
    return replace(
        probe,
        analyse=_call(whose, probe.analyse),
        figures=_call(whose, probe.figures_in, _module(probe.analyse)),
        findings=None if findings is None else _all(whose, findings, Finding),
        lines=None if lines is None else replace(lines, rows=_call(whose, lines.rows, of=LineRows)),
        timeline=_optional(whose, probe.timeline),
        waits=_optional(whose, probe.waits),
        line=_optional(whose, probe.line),
        notes=_optional(whose, probe.notes),
        views=tuple(_view(whose, view) for view in probe.views),
        pages=tuple(_page(whose, page) for page in probe.pages),
    )


def _call(whose: str, function: Callable[..., Any], module: str = "", of: type | None = None) -> Callable[..., Any]:
    module = module or _module(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with told(whose, module):
            found = function(*arguments)
            if of is not None and not isinstance(found, of):
                raise TypeError(f"{_name(function)} returned {found!r}, which is no {of.__name__}")
            return found

    return call


def _optional(whose: str, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    return None if function is None else _call(whose, function)


def _all(whose: str, function: Callable[..., Any], of: type | None = None) -> Callable[..., Any]:
    """A function that returns things one after another: they are made here, where the guard stands."""

    def everything(*arguments: Any) -> tuple[Any, ...]:
        found = tuple(function(*arguments))
        for each in found:
            if of is not None and not isinstance(each, of):
                raise TypeError(f"{_name(function)} gave {each!r}, which is no {of.__name__}")
        return found

    return _call(whose, everything, _module(function))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))


def _view(whose: str, kind: Kind) -> Kind:
    """The view is opened, and from then on called, with a guard."""

    def opened(*arguments: Any) -> View:
        return guarded_view(whose, kind.open(*arguments))

    return replace(kind, missing=_call(whose, kind.missing), open=_call(whose, opened, _module(kind.open)))


def _page(whose: str, page: TracePage) -> TracePage:
    return replace(
        page,
        lines=None if page.lines is None else one_by_one(whose, page.lines, _module(page.lines)),
        rows=one_by_one(whose, page.rows, _module(page.rows)),
        head=_optional(whose, page.head),
    )


def _module(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__module__", ""))
