"""What ``tui-probe check`` found of many kernels: how many have the probe in which way, and why others have not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.units import NOT_MEASURED, count, counted
from tui_probe.trace.demangle import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.checking import KernelCheck
    from tui_probe.engine.kernel_file import Way
    from tui_probe.trace.kernels import ProcessLog

MOST_ALONE: Final = 20
"""Kernels that are shown one by one; of more, groups are."""
WAYS: Final[dict[Way, str]] = {"ptx": "PTX", "graft": "machine code"}
_PROBED: Final[dict[Way, str]] = {"ptx": "probed in PTX", "graft": "grafted"}
_NAMED: Final = 3


def totals(kernels: Sequence[KernelCheck]) -> dict[str, Any]:
    """As JSON: of kernels with the probe how many by each way, of the others how many for each reason, by its code."""
    ways = Counter(kernel.way for kernel in kernels if kernel.status == "ok")
    record: dict[str, Any] = {"kernels": len(kernels), "ok": {way: ways[way] for way in WAYS}}
    for status in ("refused", "failed"):
        record[status] = dict(Counter(kernel.code for kernel in kernels if kernel.status == status).most_common())
    return record


def totals_line(kernels: Sequence[KernelCheck]) -> str:
    """``87 kernels: 52 grafted, 35 refused (graft-calls)``."""
    ways = Counter(kernel.way for kernel in kernels if kernel.status == "ok")
    parts = [f"{count(ways[way])} {what}" for way, what in _PROBED.items() if ways[way]]
    parts += [
        f"{count(len(group))} {group[0].status} ({group[0].code or NOT_MEASURED})" for group in _left_out(kernels)
    ]
    return f"{counted(len(kernels), 'kernel')}: {', '.join(parts)}"


def group_lines(kernels: Sequence[tuple[KernelCheck, ProcessLog]], arrow: str) -> Iterator[str]:
    """Of each way and of each reason how many kernels, with some of their names."""
    for way, what in _PROBED.items():
        group = [(kernel, log) for kernel, log in kernels if kernel.status == "ok" and kernel.way == way]
        if group:
            yield f"{what}: {counted(len(group), 'kernel')}, for {_architectures([kernel for kernel, _ in group])}"
            yield f"  registers  {_registers([log for _, log in group], arrow)}"
            yield from _names([kernel for kernel, _ in group])
    for left_out in _left_out([kernel for kernel, _ in kernels]):
        first = left_out[0]
        number = counted(len(left_out), "kernel")
        yield f"{first.status}, {first.code or NOT_MEASURED}: {number}, for {_architectures(left_out)}"
        yield f"  reason     {first.reason}"
        if first.instead:
            yield f"  instead    {first.instead}"
        yield from _names(left_out)
    yield ""
    yield "Each kernel: --format json, or by its name: --kernel NAME"


def _left_out(kernels: Sequence[KernelCheck]) -> list[list[KernelCheck]]:
    """Those without the probe, by status and code, the largest group first."""
    groups: dict[tuple[str, str | None], list[KernelCheck]] = {}
    for kernel in kernels:
        if kernel.status != "ok":
            groups.setdefault((kernel.status, kernel.code), []).append(kernel)
    return sorted(groups.values(), key=len, reverse=True)


def _architectures(kernels: Sequence[KernelCheck]) -> str:
    return ", ".join(sorted({kernel.arch for kernel in kernels}))


def _registers(logs: Sequence[ProcessLog], arrow: str) -> str:
    """``24 to 96 → 26 to 98, at most +2``."""
    known = [
        (log.pruned.registers, log.probed.registers)
        for log in logs
        if log.pruned and log.probed and log.pruned.registers is not None and log.probed.registers is not None
    ]
    if not known:
        return NOT_MEASURED
    before, after = (_range(numbers) for numbers in zip(*known, strict=True))
    most = max(new - old for old, new in known)
    return f"{before} {arrow} {after}, {f'at most {most:+}' if most > 0 else 'more in no kernel'}"


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least}" if least == most else f"{least} to {most}"


def _names(kernels: Sequence[KernelCheck]) -> Iterator[str]:
    for kernel in kernels[:_NAMED]:
        yield f"             {demangle(kernel.name)}"
    if len(kernels) > _NAMED:
        yield f"             and {count(len(kernels) - _NAMED)} more"
