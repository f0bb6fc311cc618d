"""A command that is tui-probe itself: it would run under the hook without being probed."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = "tui-probe"
_PYTHON: Final = re.compile(r"python[\d.]*")


def why_not_itself(command: Sequence[str]) -> str:
    """What to do instead of running ``command``, where that is tui-probe; "" where it is another program."""
    name = PurePath(command[0]).name if command else ""
    if name == NAME:
        words = command[1:]
    elif _PYTHON.fullmatch(name) and tuple(command[1:3]) == ("-m", "tui_probe"):
        words = command[3:]
    else:
        return ""
    if "run" in words[:1]:
        return f"{NAME} does not probe itself: name the program alone, without “{NAME} run”"
    if "demo" in words[:1]:
        return f"{NAME} does not probe itself: the demo is a command of its own, in a shell, or in the palette at home"
    return f"{NAME} does not probe itself: name the program that is to be probed"
