"""Operations, how fast where the original was timed, and the instruction that does most of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import TensorOperations


def findings(of: ProbeResult, found: TensorOperations) -> Iterator[Finding]:
    """What the tensor cores did."""
    words, speed = "no matrix instruction was executed", None
    if found.operations:
        kinds = [f"{units.count(count)} {name}" for name, count in
                 (("mma", found.mma), ("wmma", found.wmma), ("wgmma", found.wgmma)) if count]  # fmt: skip
        words = f"{_large(found.operations)} operations in {', '.join(kinds)}"
        if of.timed_ms:
            speed = found.operations / (of.timed_ms * 1e-3)
            words += f": {speed / 1e12:.3g} TFLOP/s in the original's {units.duration(of.timed_ms * 1e-3)}"
    values = {"operations": found.operations, "operations_per_second": speed}
    yield Finding("operations", "tensor cores", words, values=values)


def findings_by_line(of: ProbeResult, found: CountsByLine[TensorOperations]) -> Iterator[Finding]:
    """The same, then the line with most."""
    yield from findings(of, found.whole)
    if found.worst is not None:
        line, multiply_adds = found.worst
        part = share(multiply_adds, found.whole.multiply_adds)
        words = f"{place(line.line, line.source, line.opcode)}, {part} of them"
        yield Finding("most_operations", "most of them", words, "lines", line.line)


def _large(number: int) -> str:
    """``12 288``, ``2.15 G``: as much as a person reads at once."""
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return units.count(number)
