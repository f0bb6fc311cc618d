"""The numbers of a launch's instruction mix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from tui_probe.probekit.metric import Metric, by_line, where_any
from tui_probe.ptx.instruction_classes import CLASSES

from .analysis import FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.probekit.metric import Quantity

    from .analysis import InstructionMix


def _count(name: str) -> Metric:
    def read(found: InstructionMix) -> int:
        return found.executed[name]

    quantity = cast("Quantity", f"{name} instructions" if name in FLOATING else "")
    return Metric(name, name, quantity=quantity, read=read, shown=where_any)


def _share(name: str) -> Metric:
    def read(found: InstructionMix) -> float | None:
        return found.share(name)

    return Metric(f"{name}_share", f"{name} share", over_launches="mean", read=read, shown=_executed(name))


def _executed(name: str) -> Callable[[Any, Any], bool]:
    def shown(found: InstructionMix, value: Any) -> bool:
        del value
        return found.executed[name] > 0

    return shown


METRICS: Final = (
    Metric("total", "instructions", better="lower"),
    *map(_count, CLASSES),
    *map(_share, (*FLOATING, "tensor")),
)
BY_LINE: Final = by_line(METRICS, "executed most")
