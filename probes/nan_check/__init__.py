"""NaNs and infinities that a launch stored to global memory: the first one, and stores that were not checked.

stores    executions of a store by a warp in which at least one lane stores such a number; all are counted
records   the first four stores of each warp, each with the values of the lowest such lane
first     the record with the earliest time; at the same time, of the lowest clock, block and warp. The timer
          has ticks of some nanoseconds, so of SMs that store within a tick any may have been first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import Finding, counted, place
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, show_known, show_nonzero
from tui_probe.probekit.probe import Probe, Question
from tui_probe.records.probed_sites import probed_sites, records_by_time
from tui_probe.trace.launch_shape import index_text
from tui_probe.trace.sites import read_sites

from .birth import BIRTHS, KINDS, number_of_bits, number_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.probed_sites import InstructionRecord
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.results import Result
    from tui_probe.trace.sites import SiteInstruction
    from tui_probe.trace.source_lines import SourceLine


_NAME: Final = "nan_check"
RECORD: Final = np.dtype(
    [("time", "<u8"), ("address", "<u8"), ("value", "<u8")]
    + [(name, "<u4") for name in ("clock", "line", "lane", "kind")]
)
"""Record of ``nan_check`` per store."""


@dataclass(frozen=True, slots=True)
class NonFiniteStore:
    """One store of a NaN or an infinity. ``block`` and ``thread`` are indices as in CUDA, (x, y, z)."""

    time_ns: int
    block: Dim3
    thread: Dim3
    address: int
    value: float
    kind: str
    line: int
    source: SourceLine | None

    @property
    def words(self) -> str:
        """``NaN``, ``inf`` or ``-inf``, and which type."""
        return number_text(self.value, self.kind)


@dataclass(frozen=True, slots=True)
class UncheckedStore:
    """A store that was not looked at, since nothing tells what it stores."""

    line: int
    opcode: str
    source: SourceLine | None


@dataclass(frozen=True, slots=True)
class NanCheck:
    """One launch: its ``non_finite`` stores in the order of time, and the number of its ``stores``, None if the kernel
    stores no numbers. ``checked`` are the instructions that were looked at, if they are known.
    """

    stores: int | None
    non_finite: tuple[NonFiniteStore, ...]
    unchecked: tuple[UncheckedStore, ...]
    threads_missing: int = 0
    checked: tuple[SiteInstruction, ...] = ()

    @property
    def first(self) -> NonFiniteStore | None:
        return self.non_finite[0] if self.non_finite else None


def analyse(result: Result, folder: Path | None = None, *, has_sites: bool = True) -> NanCheck:
    """The launch's stores of NaN and infinity; ``folder`` is its kernel's in the trace, for the source lines.

    ``has_sites``: the kernel has stores of numbers. TraceError if map 0 holds no records of ``nan_check``.
    """
    sites = probed_sites(folder)
    records, totals = records_by_time(result, RECORD, sites), result.totals(0)
    if records is None or totals is None:
        raise TraceError(f"{result.path}: the records are not from nan_check")
    unchecked = tuple(UncheckedStore(site.line, site.opcode, site.source) for site in sites.unchecked())
    stores = tuple(map(_non_finite_store, records))
    return NanCheck(totals[1] if has_sites else None, stores, unchecked, checked=_checked_stores(folder))


def _checked_stores(folder: Path | None) -> tuple[SiteInstruction, ...]:
    """The stores that the probe is at, in the order of the text; none of a trace without ``sites.json``."""
    probes = (read_sites(folder) if folder else None) or ()
    own_probes = [probe for probe in probes if probe.probe == _NAME] or probes[:1]
    return tuple(instruction for probe in own_probes for instruction in probe.instructions())


def _non_finite_store(record: InstructionRecord) -> NonFiniteStore:
    kind = KINDS.get(int(record.fields["kind"]), "?")
    return NonFiniteStore(
        time_ns=int(record.fields["time"]),
        block=record.block,
        thread=record.thread,
        address=int(record.fields["address"]),
        value=number_of_bits(int(record.fields["value"]), kind),
        kind=kind,
        line=record.line,
        source=record.source,
    )


def _first_line(analysis: NanCheck) -> int | None:
    return analysis.first.line if analysis.first else None


def _first_block(analysis: NanCheck) -> int | None:
    return analysis.first.block[0] if analysis.first else None


def _first_thread(analysis: NanCheck) -> int | None:
    return analysis.first.thread[0] if analysis.first else None


def _unchecked_count(analysis: NanCheck) -> int:
    return len(analysis.unchecked)


METRICS: Final = (
    Metric("stores", "warp stores of NaN or infinity", better="lower", ideal=lambda _: 0,
           standalone_title="warp stores of NaN or infinity"),
    Metric(
        "first_line", "first NaN or infinity at PTX line", place=True, over_launches="none", read=_first_line,
        is_shown=show_known,
    ),
    Metric(
        "first_block_x", "first NaN or infinity at blockIdx.x", place=True, over_launches="none", read=_first_block,
        is_shown=show_known,
    ),
    Metric(
        "first_thread_x", "first NaN or infinity at threadIdx.x", place=True, over_launches="none", read=_first_thread,
        is_shown=show_known,
    ),
    Metric(
        "unchecked", "store instructions not checked", over_launches="largest", read=_unchecked_count,
        is_shown=show_nonzero, standalone_title="unchecked store instructions",
    ),
)  # fmt: skip


_ADVICE: Final = "to find the instruction that first computed a NaN or an infinity, run with -p nan_check_birth"


def findings(probe_result: ProbeResult, analysis: NanCheck) -> Iterator[Finding]:
    """The first, all, and what nothing is known of."""
    del probe_result
    first_store, values = analysis.first, {"stores": counted(analysis.stores, ideal=0)}
    if first_store is None:
        yield Finding("stores", "stores", _clean_text(analysis), "lines", values=values)
    else:
        thread_text = f"block ({index_text(first_store.block)}) thread ({index_text(first_store.thread)})"
        text = f"{first_store.words} stored at {place(first_store.line, first_store.source)} by {thread_text}"
        yield Finding("first", f"first {first_store.words.split()[0]}", text, "lines", first_store.line, True,
                      values={"address": counted(first_store.address), **values},
                      brief=f"{first_store.words} stored", wrong_result=True, advice=_ADVICE)  # fmt: skip
        text = f"{units.counted(analysis.stores or 0, 'warp store')} of NaN or infinity"
        yield Finding("stores", "stores", text, "lines", values=values)
    if analysis.unchecked:
        text = f"{units.counted(len(analysis.unchecked), 'store instruction')}: unknown value type"
        yield Finding("unchecked", "not checked", text, "lines", analysis.unchecked[0].line)


def _clean_text(analysis: NanCheck) -> str:
    """Text for a launch without such a store: how many instructions were looked at."""
    if analysis.checked:
        return f"{units.counted(len(analysis.checked), 'store instruction')} checked, no NaN or infinity"
    if analysis.unchecked or analysis.stores is None:
        return f"{units.NOT_MEASURED} no store instruction was checked"
    return "no NaN or infinity was stored"


def _line_rows(probe_result: ProbeResult, analysis: NanCheck) -> LineRows:
    """The stores with such a number, then those that were not checked, then those that were, without one."""
    del probe_result
    rows = [
        LineRow(
            store.line,
            store.source,
            {
                "value": store.words,
                "block": index_text(store.block),
                "thread": index_text(store.thread),
                "address": f"{store.address:#x}",
            },
        )
        for store in analysis.non_finite
    ]
    rows += [LineRow(store.line, store.source, {"value": "not checked"}) for store in analysis.unchecked]
    if analysis.stores == 0:
        rows += [LineRow(store.line, store.source, {"value": "no NaN, inf"}) for store in analysis.checked]
    if analysis.stores is None:
        return LineRows(rows)
    return LineRows(
        rows,
        [
            f"{units.counted(analysis.stores, 'warp store')} of NaN or infinity; the table lists the first such store"
            " of each warp, sorted by time"
        ],
    )


LINES: Final = LineSpec(
    (LineMeasure("value", "first"), LineMeasure("block"), LineMeasure("thread"), LineMeasure("address")),
    "value",
    _line_rows,
)


PROBES: Final = (
    Probe(
        name=_NAME,
        analyse=lambda probe_result: analyse(
            probe_result.result, probe_result.kernel.folder, has_sites=not probe_result.kernel.matched_nothing
        ),
        metrics=METRICS,
        question=Question(
            "first NaN",
            "where does the first NaN come from?",
            35,
            r"\.(b?f16|f32|f64)\b",
            "inf infinity overflow",
            of_program=True,
        ),
        findings=findings,
        fault_in_any_launch=True,
        lines=LINES,
    ),
    BIRTHS,
)
