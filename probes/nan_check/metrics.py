"""The numbers of a launch's stores of NaN and infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.metric import Metric, where_any, where_known

if TYPE_CHECKING:
    from .analysis import NanCheck


def _line(found: NanCheck) -> int | None:
    return found.first.line if found.first else None


def _block(found: NanCheck) -> int | None:
    return found.first.block[0] if found.first else None


def _thread(found: NanCheck) -> int | None:
    return found.first.thread[0] if found.first else None


def _unchecked(found: NanCheck) -> int:
    return len(found.unchecked)


METRICS: Final = (
    Metric("stores", "stores of NaN or infinity", better="lower"),
    Metric("first_line", "first at PTX line", place=True, over_launches="none", read=_line, shown=where_known),
    Metric("first_block_x", "in block x", place=True, over_launches="none", read=_block, shown=where_known),
    Metric("first_thread_x", "thread x", place=True, over_launches="none", read=_thread, shown=where_known),
    Metric("unchecked", "store instructions not looked at", over_launches="largest", read=_unchecked, shown=where_any),
)
