"""Columns of page ``stalls``, one row per wait site, and texts of the values of sites and kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle
from tui_probe.draw.spans import clip
from tui_probe.draw.table import Column
from tui_probe.probekit.lines import ShareValue
from tui_probe.records.counter_sums import ratio

from .analysis import DELAY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.trace.model import KernelFacts

    from .analysis import StallSite, WarpSample

_MIN_PLACE: Final = 12
_MIN_CLASS: Final = 16
_READABLE: Final = 0.2
"""Part of the width that columns of names have before columns of minor numbers."""


@dataclass(frozen=True, slots=True)
class StallRow:
    """A wait site, and the launch that measured it, the newest of ``launches``.

    Launch ``ended_after`` showed no notable wait of the group. Later launches measure other groups, except those that
    were under way.
    """

    site: StallSite
    sample: WarpSample | None
    launches: int
    ended_after: int | None

    @property
    def per_warp(self) -> float | None:
        """Mean executions of a measured warp."""
        return ratio(self.site.passes, self.sample.warps) if self.sample else None

    @property
    def null_share(self) -> float | None:
        """Part of warp life that clocks without a wait between them take."""
        return ratio(self.site.waited_cycles - self.site.measured_cycles, self.site.life)


def share_text(value: float | None) -> str:
    return units.NOT_MEASURED if value is None else ShareValue(value).text


def _share_bound(row: StallRow) -> str:
    """``11%``, or ``≤ 2%`` where the probe hides the waits."""
    if row.site.share is None or row.site.cycles:
        return share_text(row.site.share)
    bound = share_text(row.site.share_uncertainty)
    return bound if bound.startswith("<") else f"≤ {bound}"


def _wait_text(cycles: float | None) -> str:
    """``267``, or ``≤ 48`` for a wait that the probe hides."""
    if cycles is None:
        return units.NOT_MEASURED
    return f"≤ {DELAY}" if is_bound(cycles) else units.count(round(cycles))


def is_bound(cycles: float | None) -> bool:
    """Return whether the probe hides the whole wait."""
    return cycles is not None and not round(cycles)


def _shorter_class(text: str, cells: int) -> str:
    """``global memory`` of ``global memory of q, k``, if that does not fit."""
    return text if len(text) <= cells else clip(text.partition(" of ")[0], cells)


def _uncertainty_text(row: StallRow) -> str:
    """``48``; nothing where the mean is a bound."""
    mean, error = row.site.per_pass, row.site.uncertainty
    return "" if mean is None or error is None or is_bound(mean) else f"{round(error)}"


def are_copies(sites: Sequence[StallSite]) -> bool:
    """Return whether sites of a line are like the copies of one instruction in an unrolled loop."""
    return len({(site.opcode, site.passes) for site in sites}) == 1


def rows_text(sites: Sequence[StallSite]) -> str:
    """``4 × DEPBAR``, or ``4 rows`` of different instructions."""
    return f"{len(sites)} × {sites[0].opcode}" if are_copies(sites) else f"{len(sites)} rows"


def slowdown_text(kernel: KernelFacts) -> str:
    """``1.04 ± 0.01×``: times as long as without the probe."""
    if kernel.slowdown is None:
        return units.NOT_MEASURED
    error = f" ± {kernel.slowdown_stderr:.2f}" if kernel.slowdown_stderr is not None else ""
    return f"{kernel.slowdown:.2f}{error}×"


def occupancy_notes(kernels: Sequence[KernelFacts]) -> Iterator[str]:
    """Yield the resident blocks per SM that the probe takes, if any."""
    blocks = {(kernel.blocks_per_sm or 0, kernel.blocks_per_sm_probed or 0) for kernel in kernels}
    texts = [
        f"{original_blocks} → {probed_blocks}"
        for original_blocks, probed_blocks in sorted(blocks)
        if 0 < probed_blocks < original_blocks
    ]
    if texts:
        yield (
            f"the probe lowers the number of resident blocks per SM: {', '.join(texts)}. Fewer warps per SM change"
            " the waits and warp life"
        )


def stall_columns(*, has_source: bool) -> tuple[Column[StallRow], ...]:
    """Return the columns. A site is named by its source line if the kernel has some, else by offset and instruction."""
    return (
        Column("share", lambda r: r.site.share, "warp life", _share_bound),
        *_site_columns(has_source=has_source),
        *_PRODUCER_COLUMNS,
        *_WAIT_COLUMNS,
        *_LAUNCH_COLUMNS,
    )


def _site_columns(*, has_source: bool) -> tuple[Column[StallRow], ...]:
    """Return the columns that name the site."""

    def place_text(row: StallRow) -> str:
        return row.site.place or (f"{row.site.line:#06x}" if has_source else units.NOT_MEASURED)

    return (
        Column("offset", lambda r: int(r.site.line), "offset", _offset_text, rank=1 if has_source else 0),
        Column(
            "sass",
            lambda r: r.site.opcode,
            "SASS",
            lambda r: r.site.opcode or "",
            right=False,
            rank=5 if has_source else 0,
        ),
        Column("file", lambda r: r.site.source.file if r.site.source else None),
        Column("line", lambda r: r.site.source.line if r.site.source else None),
        Column(
            "place", None, "source", place_text, right=False, narrow=_MIN_PLACE, shorten=cut_middle, readable=_READABLE
        ),
    )


def _offset_text(row: StallRow) -> str:
    return f"{row.site.line:#06x}"


_PRODUCER_COLUMNS: Final[tuple[Column[StallRow], ...]] = (
    Column(
        "waits_for",
        lambda r: r.site.kind or None,
        "waits for",
        lambda r: r.site.waits_for or units.NOT_MEASURED,
        right=False,
        narrow=_MIN_CLASS,
        shorten=_shorter_class,
        readable=_READABLE,
    ),
    Column("tensors", lambda r: list(r.site.tensors)),
    Column(
        "producer",
        lambda r: r.site.producer_in_program or None,
        "producer",
        lambda r: r.site.producer_in_program or units.NOT_MEASURED,
        right=False,
        narrow=_MIN_PLACE,
        shorten=cut_middle,
        readable=_READABLE,
    ),
    Column(
        "producer_offset",
        lambda r: int(r.site.wait.producers[0].line) if r.site.wait and r.site.wait.producers else None,
    ),
)
_WAIT_COLUMNS: Final[tuple[Column[StallRow], ...]] = (
    Column("executions", lambda r: r.site.passes, "executions", lambda r: units.count(r.site.passes), rank=4),
    Column("cycles", lambda r: r.site.cycles),
    Column("measured_cycles", lambda r: r.site.measured_cycles),
    Column("mean", lambda r: r.site.per_pass, "mean", lambda r: _wait_text(r.site.per_pass)),
    Column("mean_uncertainty", lambda r: r.site.uncertainty, "±", _uncertainty_text, rank=3),
    Column("share_uncertainty", lambda r: r.site.share_uncertainty),
    Column("longest", lambda r: r.site.longest_wait, "max", lambda r: _wait_text(r.site.longest_wait), rank=2),
    Column("null_share", lambda r: r.null_share, "clock reads", lambda r: share_text(r.null_share), rank=6),
)
_LAUNCH_COLUMNS: Final[tuple[Column[StallRow], ...]] = (
    Column(
        "executions_per_warp",
        lambda r: r.per_warp,
        "executions per warp",
        lambda r: units.NOT_MEASURED if r.per_warp is None else units.tenths(r.per_warp),
        rank=7,
    ),
    Column("launches", lambda r: r.launches, "launches", lambda r: units.count(r.launches), rank=8),
    Column("ended", lambda r: r.ended_after is not None),
    Column("call_file", lambda r: r.site.call.file if r.site.call else None),
    Column("call_line", lambda r: r.site.call.line if r.site.call else None),
)
DATA_COLUMNS: Final = stall_columns(has_source=True)
