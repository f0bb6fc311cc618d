"""An error of a probe's code, told with its place."""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.view import Cancelled
from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BUILT_IN: Final = "tui_probe.probes"
_ON_PURPOSE: Final = (TraceError, Cancelled)


class ProbeCodeError(TraceError):
    """A probe's code raised what it should not. ``str(error)``: ``probe NAME: ZeroDivisionError: …, FILE:LINE``."""


@contextmanager
def told(whose: str, module: str = "") -> Iterator[None]:
    """Code of ``whose`` (``probe NAME``, ``page NAME``), which ``module`` holds: its errors become ProbeCodeErrors."""
    try:
        yield
    except _ON_PURPOSE:
        raise
    except Exception as error:
        raise ProbeCodeError(f"{whose}: {type(error).__name__}: {error}{_place(error, module)}") from error


def _place(error: Exception, module: str) -> str:
    """``, FILE:LINE``: the innermost place in the probe's own package, else the innermost one."""
    root = _BUILT_IN if module.startswith(_BUILT_IN) else module.partition(".")[0]
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__)][1:]  # the first is the guard's
    own = [each for each in frames if str(each[0].f_globals.get("__name__")).startswith(root)]
    if not frames:
        return ""
    frame, line = (own or frames)[-1]
    return f", {frame.f_code.co_filename}:{line}"


def one_by_one(whose: str, function: Callable[..., Any], module: str) -> Callable[..., Iterator[Any]]:
    """The same function, whose iterator is guarded as it goes: it may be long, so it is not made into a list."""

    @wraps(function)
    def each(*arguments: Any) -> Iterator[Any]:
        with told(whose, module):
            yield from function(*arguments)

    return each
