"""The most likely cause of a launch that does not end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.trace.kernel_files import Offset

from .analysis import lane_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .analysis import PlaceGroup, StuckWarp, StuckWarps


@dataclass(frozen=True, slots=True)
class Cause:
    """``key`` is for programs, ``words`` and ``advice`` for users; ``warp`` is one that the cause is about."""

    key: str
    words: str
    advice: str
    warp: StuckWarp


def likely_cause(stuck: StuckWarps) -> Cause | None:
    """The first of the causes below that the warps show; None for a launch without a known warp."""
    searches: tuple[Callable[[StuckWarps, PlaceGroup], Iterator[Cause]], ...] = (
        _own_lock, _held_lock, _grid_barrier, _wrong_count, _missing_warps, _other_flag, _loop,
    )  # fmt: skip
    causes = (cause for search in searches for group in stuck.groups for cause in search(stuck, group))
    return next(causes, None)


def _own_lock(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """A warp tries a lock that lanes of its own hold."""
    if group.place.kind != "lock":
        return
    for warp in group.warps:
        if warp.took is not None and warp.took.address == group.place.address:
            holders = lane_words(warp.took.lanes)
            yield Cause(
                "lock-held-by-own-warp",
                f"{stuck.warp_text(warp)} tries to take lock {group.place.address:#x} at {group.place.text},"
                f" which {holders} of the same warp took at PTX:{warp.took.line} and did not release",
                "release the lock in the branch that took it, before lanes of the warp wait for each other, or let one"
                " lane of a warp take it",
                warp,
            )


def _held_lock(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """A lock is held by a warp that waits elsewhere."""
    holder = stuck.holder(group.place.address) if group.place.kind == "lock" else None
    if holder is None or holder.took is None:
        return
    yield Cause(
        "lock-not-released",
        f"lock {group.place.address:#x} is wanted by {units.counted(len(group.warps), 'warp')} at"
        f" {group.place.text}; {stuck.warp_text(holder)} took it at PTX:{holder.took.line} and is at"
        f" {holder.place.text}",
        "release the lock on every path, and take several locks in one order",
        holder,
    )


def _grid_barrier(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Blocks poll while others cannot start, since the GPU is full."""
    if group.place.kind not in ("flag", "lock", "loop") or not stuck.blocks_not_started:
        return
    yield Cause(
        "grid-does-not-fit",
        f"{units.counted(stuck.blocks, 'block')} of {units.count(_blocks(stuck))} on the GPU do not end, so"
        f" {units.counted(stuck.blocks_not_started, 'block')} cannot start;"
        f" {units.count(len(group.blocks))} wait at {group.place.text}",
        "launch at most as many blocks as fit (cuOccupancyMaxActiveBlocksPerMultiprocessor times SMs), or launch"
        " cooperatively: the driver then refuses larger grids",
        group.warps[0],
    )


def _blocks(stuck: StuckWarps) -> int:
    x, y, z = stuck.grid
    return x * y * z


def _wrong_count(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """An mbarrier expects more arrivals than come."""
    place, count = group.place, stuck.code.count
    if place.kind != "mbarrier":
        return
    warp = group.warps[0]
    arrived = stuck.arrived(place, warp.block)
    line = next(iter(stuck.code.inits), None)
    expects = f"expects {count} arrivals (mbarrier.init PTX:{line})" if count is not None else "expects more arrivals"
    known = (
        f"mbarrier {place.address:#x} at {place.text}, phase {_phase(place.phase)}: it {expects};"
        f" block {warp.block} made {units.counted(arrived, 'arrival')}"
    )
    unknown = f"an mbarrier at {place.text} expects more arrivals than came"
    yield Cause(
        "mbarrier-count",
        (unknown if isinstance(place.line, Offset) else known) + _absent(group, warp.block),
        "count the threads that arrive in each phase, and initialize the mbarrier with that number",
        warp,
    )


def _phase(phase: int | None) -> str:
    return units.NOT_MEASURED if phase is None else str(phase)


def _absent(group: PlaceGroup, block: int) -> str:
    absent = [warp for warp in group.missing if warp.block == block]
    if not absent:
        return ""
    return "; " + ", ".join(f"warp {warp.warp} is at {warp.place.text}" for warp in absent[:2])


def _missing_warps(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps of a block do not come to a barrier."""
    if group.place.kind not in ("barrier", "warp barrier"):
        return
    warp = group.warps[0]
    there = sum(other.block == warp.block for other in group.warps)
    gone = stuck.warps_per_block - there - sum(other.block == warp.block for other in group.missing)
    ended = f"; {units.counted(gone, 'warp')} ended" if gone > 0 else ""
    yield Cause(
        "barrier-not-reached",
        f"{group.place.text} waits for all threads of block {warp.block}: {there} of"
        f" {units.counted(stuck.warps_per_block, 'warp')} arrived"
        f"{_absent(group, warp.block)}{ended}",
        "let all threads that a barrier counts reach it, e.g. move it out of branches",
        warp,
    )


def _other_flag(_: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps poll memory that another block, GPU or the host is to write."""
    if group.place.kind not in ("flag", "lock"):
        return
    warp = group.warps[0]
    yield Cause(
        "flag-not-set",
        f"{group.place.address:#x} is polled by {units.counted(len(group.warps), 'warp')} at {group.place.text}, and no"
        " warp of this launch is known to write there: another kernel, another GPU or the host must write the value",
        "find the kernel or rank that must write it, and check in its trace that it was launched",
        warp,
    )


def _loop(_: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps are in a loop whose end depends on data."""
    warp = group.warps[0]
    where = group.place.text
    yield Cause(
        "long-loop",
        f"the last place of {units.counted(len(group.warps), 'warp')} is {where}",
        "check the condition that ends the loop",
        warp,
    )
