"""Births of NaNs and infinities: a NaN from inputs that are not NaN, an infinity from finite inputs.

Literals of the kernel are not inputs: ``fma`` of -1 and two literal infinities is the birth of a NaN.

Records hold values of floating-point types by their bits, and blocks and threads by their linear numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import Finding, counted, place
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, show_known
from tui_probe.probekit.probe import Probe
from tui_probe.ptx.value_types import FLOAT_BITS
from tui_probe.records.probed_sites import probed_sites, records_by_time
from tui_probe.trace.launch_shape import index_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.probed_sites import InstructionRecord
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine

KINDS: Final = {1: "f16", 2: "bf16", 3: "f32", 4: "f64"}
"""Types by the numbers of the helper ``KIND``."""
_INFINITE_INPUT: Final = 8
"""Added to the number of a type if an input is infinite."""


def number_of_bits(bits: int, kind: str) -> float:
    """The number with these bits; bf16 is the upper half of f32."""
    if kind == "bf16":
        bits, kind = bits << 16, "f32"
    if kind not in FLOAT_BITS:
        return math.nan
    raw = bits.to_bytes(8, "little")[: FLOAT_BITS[kind] // 8]
    return float(np.frombuffer(raw, f"<f{FLOAT_BITS[kind] // 8}")[0])


def number_text(value: float, kind: str) -> str:
    """``NaN``, ``inf`` or ``-inf``, and the type."""
    return f"{'NaN' if math.isnan(value) else value} ({kind})"


RECORD: Final = np.dtype(
    [("time", "<u8"), ("value", "<u8")]
    + [(name, "<u4") for name in ("clock", "line", "lane", "kind", "iterations", "unused")]
)
"""Record per birth."""


@dataclass(frozen=True, slots=True)
class Birth:
    """One result. ``iterations`` are the starts of compiled loops that its thread had passed; ``warp`` is the number
    of its warp; ``has_infinite_input`` is True for a NaN from an infinity that is not a literal.
    """

    block: Dim3
    warp: int
    thread: Dim3
    value: float
    kind: str
    iterations: int
    has_infinite_input: bool
    line: int
    opcode: str
    source: SourceLine | None

    @property
    def text(self) -> str:
        """``NaN``, ``inf`` or ``-inf``, and which type."""
        return number_text(self.value, self.kind)

    @property
    def origin(self) -> str:
        """Text for what the instruction computed the value from."""
        if self.is_of_product:
            return "computed by a wgmma and detected at"
        return f"from {'an infinite input' if self.has_infinite_input else 'finite inputs'} at"

    @property
    def is_of_product(self) -> bool:
        """True for an accumulator of ``wgmma``, whose factors in shared memory are not checked."""
        return self.opcode.startswith("wgmma")


@dataclass(frozen=True, slots=True)
class Births:
    """The births of one launch that were kept, in the order of time, of ``total``."""

    total: int
    births: tuple[Birth, ...]
    threads_missing: int = 0

    @property
    def first(self) -> Birth | None:
        return self.births[0] if self.births else None


def analyse(result: Result, folder: Path | None = None) -> Births:
    """The births of a launch; ``folder`` is its kernel's. TraceError if map 0 holds no records of births."""
    records, totals = records_by_time(result, RECORD, probed_sites(folder)), result.totals(0)
    if records is None or totals is None:
        raise TraceError(f"{result.path}: the records are not from nan_check_birth")
    return Births(totals[1], tuple(map(_birth, records)))


def _birth(record: InstructionRecord) -> Birth:
    infinite, number = divmod(int(record.fields["kind"]), _INFINITE_INPUT)
    kind = KINDS.get(number, "?")
    return Birth(
        block=record.block,
        warp=record.warp,
        thread=record.thread,
        value=number_of_bits(int(record.fields["value"]), kind),
        kind=kind,
        iterations=int(record.fields["iterations"]),
        has_infinite_input=bool(infinite),
        line=record.line,
        opcode=record.opcode,
        source=record.source,
    )


def _first_line(analysis: Births) -> int | None:
    return analysis.first.line if analysis.first else None


def _first_iteration(analysis: Births) -> int | None:
    return analysis.first.iterations if analysis.first else None


_ITERATIONS: Final = (
    "summed over all loops; an iteration of an unrolled loop stands for several iterations of the source loop"
)
METRICS: Final = (
    Metric("total", "births of NaN or infinity", better="lower", ideal=lambda _: 0,
           standalone_title="births of NaN or infinity"),
    Metric(
        "first_line", "first birth at PTX line", place=True, over_launches="none", read=_first_line,
        is_shown=show_known,
    ),
    Metric(
        "iterations", "loop iterations before", over_launches="none", read=_first_iteration, is_shown=show_known,
        standalone_title="loop iterations before the first birth",
    ),
)  # fmt: skip


def findings(probe_result: ProbeResult, analysis: Births) -> Iterator[Finding]:
    """The first birth, and how many there were."""
    first_birth = analysis.first
    if first_birth is None:
        text = "none of the checked instructions computed a new NaN or infinity"
        yield Finding("births", "births", text, "lines", values={"total": counted(analysis.total, ideal=0)})
        return
    thread_text = (
        f"block ({index_text(first_birth.block)}) thread ({index_text(first_birth.thread)}) warp {first_birth.warp}"
    )
    position = place(first_birth.line, first_birth.source, first_birth.opcode or None)
    text = f"{first_birth.text} {first_birth.origin} {position} in {thread_text}"
    if first_birth.iterations:
        text += f", in iteration {first_birth.iterations} of the compiled loops ({_ITERATIONS})"
    values = {"total": counted(analysis.total, ideal=0), "iterations": counted(first_birth.iterations)}
    yield Finding(
        "first_birth", f"first {first_birth.text.split()[0]}", text, "lines", first_birth.line, True, values=values,
        warp=first_birth.warp, brief=f"{first_birth.text} first computed", wrong_result=True,
    )  # fmt: skip
    text = f"{units.counted(analysis.total, 'new NaN or infinite result')}, counted per warp"
    yield Finding("births", "births", text, "lines", values={"total": counted(analysis.total, ideal=0)})
    del probe_result


def _rows(probe_result: ProbeResult, analysis: Births) -> LineRows:
    del probe_result
    rows = [
        LineRow(
            birth.line,
            birth.source,
            {
                "value": birth.text,
                "block": index_text(birth.block),
                "thread": index_text(birth.thread),
                "iteration": birth.iterations,
            },
        )
        for birth in analysis.births
    ]
    note = f"{units.counted(analysis.total, 'birth')}; the table lists the first birth of each warp, sorted by time"
    return LineRows(rows, [note, f"iterations of the compiled loops are {_ITERATIONS}"])


BIRTHS: Final = Probe(
    name="nan_check_birth",
    analyse=lambda probe_result: analyse(probe_result.result, probe_result.kernel.folder),
    metrics=METRICS,
    findings=findings,
    fault_in_any_launch=True,
    lines=LineSpec(
        (LineMeasure("value", "first"), LineMeasure("block"), LineMeasure("thread"), LineMeasure("iteration")),
        "value",
        _rows,
    ),
)
