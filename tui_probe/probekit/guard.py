"""Guards around a probe's code: its exceptions become errors with their location in that code.

Who calls a probe has to expect a TraceError anyway: of a result that is not the probe's. So a page shows the words
where the values would stand, and the program's exit status, other kernels and the screen are as they would be.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final, cast

from tui_probe.draw.printable import printable
from tui_probe.draw.spans import wrap
from tui_probe.draw.table_content import RemadeRows
from tui_probe.draw.view import Cancelled, Document, Drawing
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import Finding
from tui_probe.probekit.lines import LineRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.draw.spans import Line
    from tui_probe.draw.table_content import TableContent
    from tui_probe.draw.view import View
    from tui_probe.probekit.page_kinds import TracePage, ViewKind
    from tui_probe.probekit.probe import Probe

_BUILT_IN: Final = "tui_probe.probes"
_ON_PURPOSE: Final = (TraceError, Cancelled)
_VIEW_METHODS: Final = ("lines", "draw")
_PASSED_ERRORS: Final = ("record", "cells", "plot")
"""Files and data have no place for an error: their callers get it."""


class ProbeCodeError(TraceError):
    """A probe's code raised what it should not. ``str(error)``: ``probe NAME: ZeroDivisionError: …, FILE:LINE``."""


@contextmanager
def probe_code_errors(whose: str, module: str = "") -> Iterator[None]:
    """Code of ``whose`` (``probe NAME``, ``page NAME``), which ``module`` holds: its errors become ProbeCodeErrors."""
    try:
        yield
    except _ON_PURPOSE:
        raise
    except Exception as error:
        raise ProbeCodeError(f"{whose}: {type(error).__name__}: {error}{_error_location(error, module)}") from error


def _error_location(error: Exception, module: str) -> str:
    """``, FILE:LINE``: the innermost place in the probe's own package, else the innermost one."""
    root = _BUILT_IN if module.startswith(_BUILT_IN) else module.partition(".")[0]
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__)][1:]  # the first is the guard's
    own_frames = [entry for entry in frames if str(entry[0].f_globals.get("__name__")).startswith(root)]
    if not frames:
        return ""
    frame, line = (own_frames or frames)[-1]
    return f", {frame.f_code.co_filename}:{line}"


def guarded_iterator(whose: str, function: Callable[..., Any], module: str) -> Callable[..., Iterator[Any]]:
    """Guard a function whose iterator may be long: errors are caught as it proceeds, without making a list."""

    @wraps(function)
    def each(*arguments: Any) -> Iterator[Any]:
        with probe_code_errors(whose, module):
            yield from function(*arguments)

    return each


def guarded_view(whose: str, view: View) -> View:
    """Change the class of a view to one whose methods catch what its own raise, and return the view.

    Front ends call a view for every frame, key and resize. An error is shown in place of its lines; for everything else
    the view is as one that knows nothing: with the defaults of its base class.

    It stays an instance of its class: views ask whether another one is of their kind. Raises TypeError for what is no
    view.
    """
    view_class = type(view)
    base = next((kind for kind in (Document, Drawing) if issubclass(view_class, kind)), None)
    if base is None:
        raise TypeError(f"{view!r} is not a view; a view is a Document or a Drawing")
    methods = {name: _method(whose, name, view_class, base) for name in dir(base) if not name.startswith("_")}
    known = {name: method for name, method in methods.items() if method is not None}
    view.__class__ = cast(
        "Any", type(view_class.__name__, (view_class,), {"__slots__": (), "__module__": view_class.__module__, **known})
    )
    return view


def _method(whose: str, name: str, own: type, base: type) -> Any:
    method, default = getattr(own, name), getattr(base, name)
    if method is default:
        return None
    if isinstance(default, property):
        return property(_calling(whose, name, partial(_read, method), partial(_read, default), own.__module__))
    return _calling(whose, name, method, default, own.__module__)


def _read(of: property, view: Any) -> Any:
    return of.__get__(view)


def _calling(
    whose: str, name: str, method: Callable[..., Any], default: Callable[..., Any], module: str
) -> Callable[..., Any]:
    if name == "cells":
        return guarded_iterator(whose, method, module)

    @wraps(method)
    def call(view: Any, *arguments: Any, **named: Any) -> Any:
        try:
            with probe_code_errors(whose, module):
                value = method(view, *arguments, **named)
            return _guarded_work(whose, value, module) if name == "prepare" and value is not None else value
        except ProbeCodeError as error:
            if name in _PASSED_ERRORS:
                raise
            return (
                list(_error_lines(error, arguments[0])) if name in _VIEW_METHODS else default(view, *arguments, **named)
            )

    return call


def _guarded_work(whose: str, work: Callable[[], None], module: str) -> Callable[[], None]:
    def worked() -> None:
        with probe_code_errors(whose, module):
            work()

    return worked


def _error_lines(error: ProbeCodeError, width: int) -> Iterator[Line]:
    return (((f" {part}", "bad"),) for part in wrap(printable(str(error)), max(20, width - 2)))


def guarded(probe: Probe) -> Probe:
    """Guard a probe: its functions raise only TraceError (or Cancelled, which the user requests)."""
    whose = f"probe {probe.name}"
    lines, findings = probe.lines, probe.findings
    return replace(
        probe,
        analyse=_call(whose, probe.analyse),
        metric_values=_call(whose, probe.figures_in, _module(probe.analyse)),
        findings=None if findings is None else _all(whose, findings, Finding),
        lines=None if lines is None else replace(lines, rows=_call(whose, lines.rows, of=LineRows)),
        timeline=_optional(whose, probe.timeline),
        waits=_optional(whose, probe.waits),
        groups=None if probe.groups is None else replace(probe.groups, join=_call(whose, probe.groups.join)),
        line=_optional(whose, probe.line),
        notes=_optional(whose, probe.notes),
        views=tuple(_view(whose, view) for view in probe.views),
        pages=tuple(_page(whose, page) for page in probe.pages),
    )


def _call(whose: str, function: Callable[..., Any], module: str = "", of: type | None = None) -> Callable[..., Any]:
    module = module or _module(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with probe_code_errors(whose, module):
            value = function(*arguments)
            if of is not None and not isinstance(value, of):
                raise TypeError(f"{_name(function)} returned {value!r}, which is not a {of.__name__}")
            return value

    return call


def _optional(whose: str, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    return None if function is None else _call(whose, function)


def _all(whose: str, function: Callable[..., Any], of: type | None = None) -> Callable[..., Any]:
    """A function that returns things one after another: they are made here, where the guard stands."""

    def everything(*arguments: Any) -> tuple[Any, ...]:
        values = tuple(function(*arguments))
        for item in values:
            if of is not None and not isinstance(item, of):
                raise TypeError(f"{_name(function)} yielded {item!r}, which is not a {of.__name__}")
        return values

    return _call(whose, everything, _module(function))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))


def _view(whose: str, kind: ViewKind) -> ViewKind:
    """The view is opened, and from then on called, with a guard."""

    def opened(*arguments: Any) -> View:
        return guarded_view(whose, kind.opened(*arguments))

    return replace(kind, missing=_call(whose, kind.missing), opened=_call(whose, opened, _module(kind.opened)))


def _page(whose: str, page: TracePage) -> TracePage:
    """The page is opened, and its rows and text are made, with a guard."""
    module = _module(page.open)

    def opened(*arguments: Any) -> TableContent[Any]:
        content = page.open(*arguments)
        return replace(
            content,
            rows=RemadeRows(guarded_iterator(whose, lambda: content.rows, module)),
            report=None if content.report is None else guarded_iterator(whose, content.report, module),
            slow_extra=_optional(whose, content.slow_extra),
        )

    return replace(page, open=_call(whose, opened, module))


def _module(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__module__", ""))
