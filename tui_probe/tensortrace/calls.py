"""Watching the calls that a program makes: with ``sys.monitoring``, before Python 3.12 with ``sys.setprofile``."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .look import Look

_TOOLS = (4, 3, 2)
"""Numbers of tools of ``sys.monitoring``: those that no kind of tool has of its own first, a profiler's last."""
_NAME = "tui-probe tensors"


class _State:
    """Settings to be reset at the end."""

    tool: int | None = None
    profile: Any = None


def start_watching(look: Look, everywhere: bool) -> bool:
    """Call ``look`` with the frames of the program, before each call that they make. False if someone else watches."""
    monitoring: Any = getattr(sys, "monitoring", None)
    return _profile(look, everywhere) if monitoring is None else _monitor(monitoring, look)


def stop_watching() -> None:
    """Leave everything as it was before."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is not None and _State.tool is not None:
        monitoring.set_events(_State.tool, 0)
        monitoring.free_tool_id(_State.tool)
        _State.tool = None
    elif _State.profile is not None:
        if sys.getprofile() is _State.profile:  # the program may have set its own since
            sys.setprofile(None)
        if getattr(threading, "_profile_hook", None) is _State.profile:
            threading.setprofile(None)
        _State.profile = None


def _monitor(monitoring: Any, look: Look) -> bool:
    tool = next((number for number in _TOOLS if monitoring.get_tool(number) is None), None)
    if tool is None:
        return False
    disable = monitoring.DISABLE

    def entered(code: CodeType, _offset: int) -> Any:
        if not code.co_varnames or not look.wants(code):
            return disable
        look(sys._getframe(1))
        return None

    def calls(code: CodeType, _offset: int, _called: object, _first: object) -> Any:
        if not look.wants(code):
            return disable
        look(sys._getframe(1))
        return None

    events = monitoring.events
    monitoring.use_tool_id(tool, _NAME)
    monitoring.register_callback(tool, events.PY_START, entered)
    monitoring.register_callback(tool, events.CALL, calls)
    monitoring.set_events(tool, events.PY_START | events.CALL)
    _State.tool = tool
    return True


def _profile(look: Look, everywhere: bool) -> bool:
    if sys.getprofile() is not None:
        return False

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_back is not None:
            look(frame.f_back)
        if event in ("call", "c_call"):
            look(frame, release=False)  # Python writes these variables back

    _State.profile = profile
    if everywhere:
        threading.setprofile(profile)
    sys.setprofile(profile)
    return True
