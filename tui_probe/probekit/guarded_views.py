"""A view that a probe opened, whose bugs are shown in its window.

Front ends call a view at any time: for every frame, key and resize. What it raises there is said in the place of its
lines, and everything else is as of a view that knows nothing: the defaults of its base class.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, cast

from tui_probe.draw.spans import wrap
from tui_probe.draw.table import safe
from tui_probe.draw.view import Document, Drawing
from tui_probe.probekit.failure import ProbeCodeError, one_by_one, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View

_SHOWN: Final = ("lines", "draw")
_RAISED: Final = ("record", "cells", "plot")
"""Files and data have no place for an error: who asked for them is told."""


def guarded_view(whose: str, view: View) -> View:
    """The same view, of a class whose methods catch what its own raise.

    It stays an instance of its class: views ask whether another one is of their kind. Raises TypeError for what is no
    view.
    """
    own = type(view)
    base = next((each for each in (Document, Drawing) if issubclass(own, each)), None)
    if base is None:
        raise TypeError(f"{view!r} is no view: neither a Document nor a Drawing")
    methods = {name: _method(whose, name, own, base) for name in dir(base) if not name.startswith("_")}
    known = {name: method for name, method in methods.items() if method is not None}
    view.__class__ = cast("Any", type(own.__name__, (own,), {"__slots__": (), "__module__": own.__module__, **known}))
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
        return one_by_one(whose, method, module)

    @wraps(method)
    def call(view: Any, *arguments: Any, **named: Any) -> Any:
        try:
            with told(whose, module):
                found = method(view, *arguments, **named)
            return _told_later(whose, found, module) if name == "prepare" and found is not None else found
        except ProbeCodeError as error:
            if name in _RAISED:
                raise
            return list(_lines(error, arguments[0])) if name in _SHOWN else default(view, *arguments, **named)

    return call


def _told_later(whose: str, work: Callable[[], None], module: str) -> Callable[[], None]:
    def worked() -> None:
        with told(whose, module):
            work()

    return worked


def _lines(error: ProbeCodeError, width: int) -> Iterator[Line]:
    return (((f" {part}", "bad"),) for part in wrap(safe(str(error)), max(20, width - 2)))
