"""Guards around a probe's code: its exceptions become errors with their location in that code.

Callers of a probe handle TraceError anyway, for a result of another probe. So a page shows the error in place of the
values; the program's exit status, other kernels and the screen are not affected.
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
"""Methods whose callers get the error, since files and data have no place for it."""


class ProbeCodeError(TraceError):
    """A probe's code raised what it should not. ``str(error)``: ``probe NAME: ZeroDivisionError: …, FILE:LINE``."""


@contextmanager
def probe_code_errors(owner: str, module: str = "") -> Iterator[None]:
    """Turn errors of the code of ``owner`` (``probe NAME``, ``page NAME``) in ``module`` into ProbeCodeErrors."""
    try:
        yield
    except _ON_PURPOSE:
        raise
    except Exception as error:
        raise ProbeCodeError(f"{owner}: {type(error).__name__}: {error}{_error_location(error, module)}") from error


def _error_location(error: Exception, module: str) -> str:
    """Return ``, FILE:LINE``: the innermost frame in the probe's own package, else the innermost frame."""
    root = _BUILT_IN if module.startswith(_BUILT_IN) else module.partition(".")[0]
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__)][1:]  # the first is the guard's
    own_frames = [entry for entry in frames if str(entry[0].f_globals.get("__name__")).startswith(root)]
    if not frames:
        return ""
    frame, line = (own_frames or frames)[-1]
    return f", {frame.f_code.co_filename}:{line}"


def guard_iterator(owner: str, function: Callable[..., Any], module: str) -> Callable[..., Iterator[Any]]:
    """Guard a function whose iterator may be long: errors are caught as it proceeds, without making a list."""

    @wraps(function)
    def guarded_values(*arguments: Any) -> Iterator[Any]:
        with probe_code_errors(owner, module):
            yield from function(*arguments)

    return guarded_values


def guard_view(owner: str, view: View) -> View:
    """Change the class of a view to one whose methods catch what its own raise, and return the view.

    Front ends call a view for every frame, key and resize. An error is shown in place of its lines; any other method
    returns the default of its base class. The view stays an instance of its class, since views test for their own kind.
    Raises TypeError if ``view`` is not a view.
    """
    view_class = type(view)
    base = next((kind for kind in (Document, Drawing) if issubclass(view_class, kind)), None)
    if base is None:
        raise TypeError(f"{view!r} is not a view; a view is a Document or a Drawing")
    methods = {name: _guarded_method(owner, name, view_class, base) for name in dir(base) if not name.startswith("_")}
    overrides = {name: method for name, method in methods.items() if method is not None}
    view.__class__ = cast(
        "Any",
        type(view_class.__name__, (view_class,), {"__slots__": (), "__module__": view_class.__module__, **overrides}),
    )
    return view


def _guarded_method(owner: str, name: str, view_class: type, base_class: type) -> Any:
    method, default = getattr(view_class, name), getattr(base_class, name)
    if method is default:
        return None
    if isinstance(default, property):
        return property(
            _guarded_call(
                owner, name, partial(_read_property, method), partial(_read_property, default), view_class.__module__
            )
        )
    return _guarded_call(owner, name, method, default, view_class.__module__)


def _read_property(prop: property, view: Any) -> Any:
    return prop.__get__(view)


def _guarded_call(
    owner: str, name: str, method: Callable[..., Any], default: Callable[..., Any], module: str
) -> Callable[..., Any]:
    if name == "cells":
        return guard_iterator(owner, method, module)

    @wraps(method)
    def call(view: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            with probe_code_errors(owner, module):
                value = method(view, *arguments, **keywords)
            return _guard_work(owner, value, module) if name == "prepare" and value is not None else value
        except ProbeCodeError as error:
            if name in _PASSED_ERRORS:
                raise
            return (
                list(_error_lines(error, arguments[0]))
                if name in _VIEW_METHODS
                else default(view, *arguments, **keywords)
            )

    return call


def _guard_work(owner: str, work: Callable[[], None], module: str) -> Callable[[], None]:
    def guarded_work() -> None:
        with probe_code_errors(owner, module):
            work()

    return guarded_work


def _error_lines(error: ProbeCodeError, width: int) -> Iterator[Line]:
    return (((f" {part}", "bad"),) for part in wrap(printable(str(error)), max(20, width - 2)))


def guard_probe(probe: Probe) -> Probe:
    """Guard a probe: its functions raise only TraceError (or Cancelled, which the user requests)."""
    owner = f"probe {probe.name}"
    lines, findings = probe.lines, probe.findings
    return replace(
        probe,
        analyse=_guard_call(owner, probe.analyse),
        values_of=_guard_call(owner, probe.metric_values_of, _module(probe.analyse)),
        findings=None if findings is None else _guard_iterable(owner, findings, Finding),
        lines=None if lines is None else replace(lines, rows=_guard_call(owner, lines.rows, value_type=LineRows)),
        timeline=_guard_optional(owner, probe.timeline),
        waits=_guard_optional(owner, probe.waits),
        group=None if probe.group is None else replace(probe.group, join=_guard_call(owner, probe.group.join)),
        launch_line=_guard_optional(owner, probe.launch_line),
        notes=_guard_optional(owner, probe.notes),
        views=tuple(_guard_view_kind(owner, view) for view in probe.views),
        pages=tuple(_guard_page(owner, page) for page in probe.pages),
    )


def _guard_call(
    owner: str, function: Callable[..., Any], module: str = "", value_type: type | None = None
) -> Callable[..., Any]:
    module = module or _module(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with probe_code_errors(owner, module):
            value = function(*arguments)
            if value_type is not None and not isinstance(value, value_type):
                raise TypeError(f"{_name(function)} returned {value!r}, which is not a {value_type.__name__}")
            return value

    return call


def _guard_optional(owner: str, function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    return None if function is None else _guard_call(owner, function)


def _guard_iterable(owner: str, function: Callable[..., Any], item_type: type | None = None) -> Callable[..., Any]:
    """Guard a function that yields values: they are collected inside the guard."""

    def collect(*arguments: Any) -> tuple[Any, ...]:
        values = tuple(function(*arguments))
        for item in values:
            if item_type is not None and not isinstance(item, item_type):
                raise TypeError(f"{_name(function)} yielded {item!r}, which is not a {item_type.__name__}")
        return values

    return _guard_call(owner, collect, _module(function))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))


def _guard_view_kind(owner: str, kind: ViewKind) -> ViewKind:
    """Guard the opening of a view and its methods."""

    def open_guarded(*arguments: Any) -> View:
        return guard_view(owner, kind.open_view(*arguments))

    return replace(
        kind,
        missing_reason=_guard_call(owner, kind.missing_reason),
        open_view=_guard_call(owner, open_guarded, _module(kind.open_view)),
    )


def _guard_page(owner: str, page: TracePage) -> TracePage:
    """Guard the opening of a page, its rows and its text."""
    module = _module(page.open)

    def open_guarded(*arguments: Any) -> TableContent[Any]:
        content = page.open(*arguments)
        return replace(
            content,
            rows=RemadeRows(guard_iterator(owner, lambda: content.rows, module)),
            report=None if content.report is None else guard_iterator(owner, content.report, module),
            slow_extra=_guard_optional(owner, content.slow_extra),
        )

    return replace(page, open=_guard_call(owner, open_guarded, module))


def _module(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__module__", ""))
