"""Columns of kernels: status, launches, GPU time, resources, and the cost of probing.

The screen's table has them, too: what reads results is imported where it is called, after the first frame.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.record_counts import launch_count_text, status_word
from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tui_probe.trace.gpu_time import GpuTime
    from tui_probe.trace.launch_events import ProbeMode
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.model import Kernel, KernelFacts

PROBED_MARK: Final = "+"
"""Marks times of probed launches: no other launch of the kernel was timed."""
_TIME_KEYS: Final = ("share", "median", "p99")
"""Columns that say something where launches were timed."""
_REPLACED_KEYS: Final = ("time_ms",)
"""Columns that they stand for in tables."""
_MIN_ERROR_SHOWN: Final = 5e-4
"""A standard error below this share is not worth its room."""
FAILURE_MARK: Final = "✘"
"""Marks a kernel with failures, next to its status."""


def share_text(kernel: KernelFacts) -> str:
    """``42.1 ±0.8%``: the share of GPU time and one standard error of it; ``±–`` where that is not known."""
    time, share = kernel.gpu_time, kernel.time_share
    if time is None or share is None:
        return NOT_MEASURED
    if time.total_stderr_ns is None:
        return f"{100 * share:.1f} ±{NOT_MEASURED}%"
    standard_error = share * time.total_stderr_ns / time.total_ns if time.total_ns else 0.0
    return f"{share:.1%}" if standard_error < _MIN_ERROR_SHOWN else f"{100 * share:.1f} ±{standard_error:.1%}"


def _in_milliseconds(read_ns: Callable[[GpuTime], float | None]) -> Callable[[KernelFacts], float | None]:
    """A value in ns of a kernel's times, as milliseconds."""

    def value(kernel: KernelFacts) -> float | None:
        time = kernel.gpu_time
        ns = None if time is None else read_ns(time)
        return None if ns is None else ns / 1e6

    return value


def _duration_text(value: Callable[[KernelFacts], float | None]) -> Callable[[KernelFacts], str]:
    def text(kernel: KernelFacts) -> str:
        ms, time = value(kernel), kernel.gpu_time
        mark = PROBED_MARK if time is not None and time.only_probed else ""
        return NOT_MEASURED if ms is None else units.duration(ms / 1e3) + mark

    return text


def _timed_variant(kernel: KernelFacts) -> str | None:
    time = kernel.gpu_time
    return None if time is None else "probed" if time.only_probed else "original"


def _sample_count(read_count: Callable[[GpuTime], int]) -> Callable[[KernelFacts], int | None]:
    return lambda kernel: None if kernel.gpu_time is None else read_count(kernel.gpu_time)


_MEDIAN: Final = _in_milliseconds(lambda time: time.preferred_variant.median_ns)
_P99: Final = _in_milliseconds(lambda time: time.preferred_variant.p99_ns)

TIME_TABLE_COLUMNS: Final[tuple[Column[KernelFacts], ...]] = (
    Column("share", None, "share", share_text, rank=1),
    Column("median", None, "median", _duration_text(_MEDIAN), rank=1),
    Column("p99", None, "p99", _duration_text(_P99), rank=2),
)
"""Columns of texts."""

TIME_COLUMNS: Final[tuple[Column[KernelFacts], ...]] = (
    Column("time_share", lambda k: k.time_share),
    Column("time_of", _timed_variant),
    Column("time_samples", _sample_count(lambda time: time.preferred_variant.samples)),
    Column("time_samples_host_bound", _sample_count(lambda time: time.preferred_variant.host_bound)),
    Column("time_total_ms", _in_milliseconds(lambda time: time.total_ns)),
    Column("time_total_doubt_ms", _in_milliseconds(lambda time: time.total_stderr_ns)),
    Column("time_mean_ms", _in_milliseconds(lambda time: time.preferred_variant.mean_ns)),
    Column("time_mean_doubt_ms", _in_milliseconds(lambda time: time.preferred_variant.mean_stderr_ns)),
    Column("time_median_ms", _MEDIAN),
    Column("time_p99_ms", _P99),
    Column("time_min_ms", _in_milliseconds(lambda time: time.preferred_variant.least_ns)),
    Column("time_max_ms", _in_milliseconds(lambda time: time.preferred_variant.most_ns)),
    Column("slowdown_doubt", lambda k: k.slowdown_stderr),
)
"""Columns of JSON and CSV: of launches without the probe, or with it where no other was timed (``time_of``)."""


def shown_columns(columns: Sequence[Column[KernelFacts]], kernels: Collection[Kernel]) -> list[Column[KernelFacts]]:
    """Return the columns for a table of such kernels: where no launch was timed those of times are in data only, and
    where all probes are in PTX that of the mode.
    """
    hidden_keys = set(_REPLACED_KEYS if any(kernel.gpu_time is not None for kernel in kernels) else _TIME_KEYS)
    hidden_keys |= set() if any(kernel.mode == "graft" for kernel in kernels) else {"way"}
    return [replace(column, text=None) if column.key in hidden_keys else column for column in columns]


def by_time_share(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The most GPU time first, then those that were not timed, by their index."""
    return sorted(kernels, key=lambda kernel: (-(kernel.time_share or 0.0), kernel.index))


def shape_text(dim: Dim3 | None, *, varies: bool) -> str:
    """A grid or block; ``*`` if other launches differ."""
    return units.extent(dim) + ("*" if varies else "")


def before_after_text(original: int | None, probed: int | None) -> str:
    """``18→24``; only ``18`` where there is nothing to compare with."""
    original_text = NOT_MEASURED if original is None else str(original)
    return original_text if probed is None else f"{original_text}→{probed}"


def ratio_text(ratio: float | None) -> str:
    return NOT_MEASURED if ratio is None else f"{ratio:.2f}×"


def milliseconds_text(value: float | None) -> str:
    return NOT_MEASURED if value is None else units.duration(value / 1e3)


def mode_text(mode: ProbeMode | None) -> str:
    """``PTX`` or ``graft``; a dash where there is no probe."""
    return {"ptx": "PTX", "graft": "graft", None: NOT_MEASURED}[mode]


def probed_record(kernel: KernelFacts) -> dict[str, Any]:
    """A kernel as one of several probes had it, as data."""
    from tui_probe.verdicts.probe_coverage import unmeasured_probes

    return {
        "probe": kernel.probe,
        "status": kernel.status,
        "registers_probed": kernel.registers_probed,
        "spills_probed": kernel.spills_probed,
        "slowdown": kernel.slowdown,
        "results": len(kernel.result_rows),
        "reason": kernel.reason,
        "reason_code": kernel.reason_code,
        "not_measured": next(
            (probe.reason for probe in unmeasured_probes(kernel) if probe.probe == kernel.probe), None
        ),
    }


def _reason(kernel: KernelFacts | KernelSnapshot) -> tuple[str | None, str | None]:
    """Text and code of the reason why a kernel has no probed launch, or of the engine's remark on it."""
    from tui_probe.verdicts.probe_coverage import missing_reason

    reason = kernel.probe_reason if isinstance(kernel, KernelSnapshot) else missing_reason(kernel)
    return reason or (None, None)


def _failures(kernel: KernelFacts) -> str | None:
    """Failures with their places in the code; None without any."""
    from tui_probe.verdicts.code_places import located_failure_texts

    return "; ".join(located_failure_texts(kernel)) or None


def limiter_of(kernel: KernelFacts | KernelSnapshot) -> str | None:
    """``memory (L2) 83%``; None if it is not known. Reads the results of a kernel; a snapshot has it."""
    if isinstance(kernel, KernelSnapshot):
        return kernel.limiter or None
    from tui_probe.verdicts.finding_summary import limiter_text

    return limiter_text(kernel) or None


def worst_line_of(kernel: KernelFacts | KernelSnapshot) -> str | None:
    """``buggy.py:23 ld.global 16 sectors, ideal 4``; None if no line stands out. Reads as ``limiter_of`` does."""
    if isinstance(kernel, KernelSnapshot):
        return kernel.worst_line or None
    from tui_probe.verdicts.finding_summary import worst_line_text

    return worst_line_text(kernel) or None


def status_text(kernel: KernelFacts) -> str:
    """The status, marked where something went wrong with launches of the kernel."""
    word = status_word(kernel.status, kernel.launches, kernel.launches_probed, len(kernel.result_rows))
    return f"{word} {FAILURE_MARK}" if kernel.failures else word


KERNEL_COLUMNS: Final[tuple[Column[KernelFacts], ...]] = (
    Column("index", lambda k: k.index, "#", lambda k: str(k.index)),
    Column("name", lambda k: k.name),
    Column(
        "demangled", lambda k: k.demangled, "kernel", lambda k: k.demangled, right=False, narrow=24, shorten=shorten
    ),
    Column("status", lambda k: k.status, "status", status_text, right=False),
    Column("way", lambda k: k.mode, "mode", lambda k: mode_text(k.mode), right=False, rank=4),
    Column(
        "launches", lambda k: k.launches, "launches", lambda k: launch_count_text(k.launches, k.launches_probed), rank=1
    ),
    Column("launches_probed", lambda k: k.launches_probed),
    *TIME_TABLE_COLUMNS,
    Column("grid", lambda k: k.grid, "grid", lambda k: shape_text(k.grid, varies=k.grid_varies), rank=4),
    Column("grid_varies", lambda k: k.grid_varies),
    Column("block", lambda k: k.block, "block", lambda k: shape_text(k.block, varies=k.block_varies), rank=4),
    Column("block_varies", lambda k: k.block_varies),
    Column("registers_pruned", lambda k: k.registers_pruned),
    Column("registers_probed", lambda k: k.registers_probed),
    Column("registers", None, "registers", lambda k: before_after_text(k.registers_pruned, k.registers_probed), rank=2),
    Column("spills_pruned", lambda k: k.spills_pruned),
    Column("spills_probed", lambda k: k.spills_probed),
    Column("spills", None, "spills", lambda k: before_after_text(k.spills_pruned, k.spills_probed), rank=6),
    Column("shared", lambda k: k.shared, "shared", lambda k: units.size(k.shared), rank=9),
    Column("blocks_per_sm", lambda k: k.blocks_per_sm),
    Column("blocks_per_sm_probed", lambda k: k.blocks_per_sm_probed),
    Column("blocks", None, "blocks/SM", lambda k: before_after_text(k.blocks_per_sm, k.blocks_per_sm_probed), rank=8),
    Column("slowdown", lambda k: k.slowdown, "slowdown", lambda k: ratio_text(k.slowdown), rank=3),
    Column("time_ms", lambda k: k.time_ms, "time", lambda k: milliseconds_text(k.time_ms), rank=5),
    Column("time_probed_ms", lambda k: k.time_probed_ms),
    Column("probe_bytes", lambda k: k.probe_bytes, "probe mem", lambda k: units.size(k.probe_bytes), rank=7),
    Column("results", lambda k: len(k.result_rows)),
    Column("reason", lambda k: _reason(k)[0], "reason", lambda k: _reason(k)[0] or "", right=False, rank=10, narrow=24),
    Column("reason_code", lambda k: _reason(k)[1]),
    *TIME_COLUMNS,
    Column("failure", _failures),
    Column("probes", lambda k: [probed_record(probed) for probed in k.by_probe() if probed.probe] or None, nested=True),
    Column("limiter", limiter_of, "limited by", lambda k: limiter_of(k) or "", right=False, rank=1),
    Column(
        "worst_line",
        worst_line_of,
        "worst line",
        lambda k: worst_line_of(k) or "",
        right=False,
        narrow=32,
        readable=0.48,
    ),
)
"""JSON and CSV have the fields of the report schema; grids and blocks are [x, y, z], times milliseconds.

``probes`` says the outcome of the kernel with each probe of a run with several, null where there was one; in JSON only.
"""
