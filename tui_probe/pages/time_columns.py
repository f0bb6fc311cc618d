"""GPU times of kernels as columns, and the table of kernels that ranks by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tui_probe.trace.gpu_time import GpuTime
    from tui_probe.trace.model import Kernel

WITH_PROBE: Final = "+"
PROBED_NOTE: Final = f"{WITH_PROBE} with the probe: no launch of this kernel without it was timed"
_SHOWN: Final = ("share", "median", "p99")
"""Columns that say something where launches were timed."""
_INSTEAD: Final = ("time_ms",)
"""Columns that they stand for in tables."""
_LEAST: Final = 5e-4
"""A doubt below this share is not worth its room."""


def share_text(kernel: Kernel) -> str:
    """``42.1 ±0.8%``: the share of GPU time and one standard error of it; ``±–`` where that is not known."""
    time, share = kernel.gpu_time, kernel.time_share
    if time is None or share is None:
        return NOT_MEASURED
    if time.total_doubt_ns is None:
        return f"{100 * share:.1f} ±{NOT_MEASURED}%"
    doubt = share * time.total_doubt_ns / time.total_ns if time.total_ns else 0.0
    return f"{share:.1%}" if doubt < _LEAST else f"{100 * share:.1f} ±{doubt:.1%}"


def _ms(figure: Callable[[GpuTime], float | None]) -> Callable[[Kernel], float | None]:
    """A figure in ns of a kernel's times, as milliseconds."""

    def value(kernel: Kernel) -> float | None:
        time = kernel.gpu_time
        ns = None if time is None else figure(time)
        return None if ns is None else ns / 1e6

    return value


def _text(value: Callable[[Kernel], float | None]) -> Callable[[Kernel], str]:
    def text(kernel: Kernel) -> str:
        ms, time = value(kernel), kernel.gpu_time
        mark = WITH_PROBE if time is not None and time.with_probe else ""
        return NOT_MEASURED if ms is None else units.duration(ms / 1e3) + mark

    return text


def _of(kernel: Kernel) -> str | None:
    time = kernel.gpu_time
    return None if time is None else "probed" if time.with_probe else "original"


def _count(figure: Callable[[GpuTime], int]) -> Callable[[Kernel], int | None]:
    return lambda kernel: None if kernel.gpu_time is None else figure(kernel.gpu_time)


_MEDIAN: Final = _ms(lambda time: time.shown.median_ns)
_P99: Final = _ms(lambda time: time.shown.p99_ns)

TABLE_COLUMNS: Final[tuple[Column[Kernel], ...]] = (
    Column("share", None, "share", share_text, rank=1),
    Column("median", None, "median", _text(_MEDIAN), rank=1),
    Column("p99", None, "p99", _text(_P99), rank=2),
)
"""As a person reads them."""

TIME_COLUMNS: Final[tuple[Column[Kernel], ...]] = (
    Column("time_share", lambda k: k.time_share),
    Column("time_of", _of),
    Column("time_samples", _count(lambda time: time.shown.samples)),
    Column("time_samples_host_bound", _count(lambda time: time.shown.host_bound)),
    Column("time_total_ms", _ms(lambda time: time.total_ns)),
    Column("time_total_doubt_ms", _ms(lambda time: time.total_doubt_ns)),
    Column("time_mean_ms", _ms(lambda time: time.shown.mean_ns)),
    Column("time_mean_doubt_ms", _ms(lambda time: time.shown.mean_doubt_ns)),
    Column("time_median_ms", _MEDIAN),
    Column("time_p99_ms", _P99),
    Column("time_min_ms", _ms(lambda time: time.shown.least_ns)),
    Column("time_max_ms", _ms(lambda time: time.shown.most_ns)),
    Column("slowdown_doubt", lambda k: k.slowdown_doubt),
)
"""As data: of launches without the probe, or with it where no other was timed (``time_of``)."""


def columns_for(columns: Sequence[Column[Kernel]], kernels: Collection[Kernel]) -> list[Column[Kernel]]:
    """Those for a table of such kernels: where no launch was timed there are no columns of times, and where all probes
    are in PTX none for the way.
    """
    hidden = set(_INSTEAD if any(kernel.gpu_time is not None for kernel in kernels) else _SHOWN)
    hidden |= set() if any(kernel.way == "graft" for kernel in kernels) else {"way"}
    return [column for column in columns if column.key not in hidden]


def by_share(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The most GPU time first, then those that were not timed, by their index."""
    return sorted(kernels, key=lambda kernel: (-(kernel.time_share or 0.0), kernel.index))


def time_notes(kernels: Iterable[Kernel]) -> list[str]:
    """What has to be said of the times in a table."""
    times = [kernel.gpu_time for kernel in kernels if kernel.gpu_time is not None]
    return [PROBED_NOTE] * any(time.with_probe for time in times)
