"""The most likely cause of a launch that does not end."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.launch_shape import WARP_SIZE

from .places import ALL_LANES, lanes_text, warps_text
from .polled_memory import (
    Cause,
    free_lock,
    missing_lanes_at,
    shared_flag,
    unwritten_flag,
    waits_text,
    warps_elsewhere,
    written_flag,
)
from .synchronization import Init

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .places import Arrivals, Mark, PlaceGroup, StuckWarp, StuckWarps

_MAX_NAMED: Final = 2
"""Warps elsewhere that a cause names."""
_MAX_HOLDERS: Final = 4
"""Warps that a cause names if each holds the lock that the one before wants."""
_CLUSTER_BARRIERS: Final = ("barrier.cluster", "UCGABAR")
_COUNT_ADVICE: Final = "count the threads that arrive in each phase, and initialize the mbarrier with that number"


def likely_cause(stuck: StuckWarps) -> Cause | None:
    """The first of the causes below that the warps show; None for a launch without a known warp.

    Warps that wait for warps which poll themselves come last: the reason is what the latter poll.
    """
    searches: tuple[Callable[[StuckWarps, PlaceGroup], Iterator[Cause]], ...] = (
        _endless_loop, _own_lock, _held_lock, _grid_barrier, _mbarrier, shared_flag, _missing_warps, free_lock,
        written_flag, unwritten_flag,
    )  # fmt: skip
    direct_groups = [group for group in stuck.groups if not _waits_for_polls(group)]
    dependent_groups = [group for group in stuck.groups if _waits_for_polls(group)]
    causes = (
        cause
        for groups in (direct_groups, dependent_groups)
        for search in searches
        for group in groups
        for cause in search(stuck, group)
    )
    loops = (cause for group in stuck.groups for cause in _loop(stuck, group))
    return next(chain(causes, loops), None)


def _waits_for_polls(group: PlaceGroup) -> bool:
    kinds = {"flag", "shared flag", "lock", "mbarrier"} if group.place.kind == "barrier" else {"flag", "lock"}
    return any(warp.place.kind in kinds for warp in group.missing_warps)


def _endless_loop(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps are in a loop that no branch leaves: the compiler has moved what ends it out of the loop."""
    if group.place.line not in stuck.code.endless_loops:
        return
    warps = f"{units.counted(len(group.warps), 'warp')} {'is' if len(group.warps) == 1 else 'are'}"
    yield Cause(
        "endless-loop",
        f"{warps} in the loop at {group.place.text}, which does not end: its condition is computed before the loop",
        "in each iteration, read the value with a volatile load or cuda::atomic_ref; the compiler moves other loads"
        " out of the loop",
        group.warps[0],
    )


def _own_lock(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """A warp tries a lock that lanes of its own hold."""
    if group.place.kind != "lock":
        return
    for warp in group.warps:
        if warp.held_lock is not None and warp.held_lock.address == group.place.address:
            holders = lanes_text(warp.held_lock.lanes)
            yield Cause(
                "lock-held-by-own-warp",
                f"{stuck.warp_text(warp)} tries at {group.place.text} to take lock {group.place.address:#x};"
                f" {holders} of the same warp took this lock at PTX:{warp.held_lock.line} and did not release the lock",
                "release the lock in the branch that takes the lock, before lanes of the warp wait for each other; or"
                " let only one lane of each warp take the lock",
                warp,
            )


def _held_lock(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """A lock is held by a warp that waits elsewhere, perhaps for a lock that another one holds, and so on."""
    if group.place.kind != "lock":
        return
    holders = _lock_holders(stuck, group.place.address)
    if not holders:
        return
    holder_texts = [
        f"{stuck.warp_text(holder)} took {f'lock {lock.address:#x}' if number else 'it'} at PTX:{lock.line}"
        f" and {_holder_state_text(holder)}"
        for number, (holder, lock) in enumerate(holders)
    ]
    last_holder, _ = holders[-1]
    in_cycle = last_holder.place.kind == "lock" and any(
        lock.address == last_holder.place.address for _, lock in holders
    )
    cycle = f"; these {len(holders)} warps wait for each other" if in_cycle and len(holders) > 1 else ""
    yield Cause(
        "lock-not-released",
        f"lock {group.place.address:#x} is wanted by {units.counted(len(group.warps), 'warp')} at"
        f" {group.place.text}; {'; '.join(holder_texts)}{cycle}",
        "release each lock on every path, and take several locks always in the same order",
        holders[0][0],
    )


def _lock_holders(stuck: StuckWarps, address: int) -> list[tuple[StuckWarp, Mark]]:
    """The warp that holds a lock, the one that holds the lock which that one wants, and so on, each once."""
    holders: list[tuple[StuckWarp, Mark]] = []
    while len(holders) < _MAX_HOLDERS:
        holder = stuck.holder(address)
        if holder is None or holder.held_lock is None or any(holder is previous for previous, _ in holders):
            break
        holders.append((holder, holder.held_lock))
        if holder.place.kind != "lock":
            break
        address = holder.place.address
    return holders


def _holder_state_text(warp: StuckWarp) -> str:
    state_text = f"wants lock {warp.place.address:#x}" if warp.place.kind == "lock" else "is"
    return f"{state_text} {warp.place.at_text}"


def _grid_barrier(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Blocks poll for others that cannot start, since the GPU is full. If more have ended, those did not wait."""
    is_sass_lock = group.place.kind == "lock" and isinstance(group.place.line, Offset)
    if (
        not (group.place.kind == "flag" or is_sass_lock)
        or not stuck.blocks_not_started
        or stuck.blocks_ended > stuck.blocks
    ):
        return
    if stuck.code.is_known and not stuck.code.write_opcodes and not stuck.code.has_plain_stores:
        return
    waiting_blocks = len({warp.block for warp in stuck.warps if warp.place.line == group.place.line})
    yield Cause(
        "grid-does-not-fit",
        f"{units.count(stuck.blocks)} of {units.counted(stuck.grid_blocks, 'block')}"
        f" {'is on the GPU and does' if stuck.blocks == 1 else 'are on the GPU and do'} not end, so"
        f" {units.counted(stuck.blocks_not_started, 'block')} cannot start;"
        f" {units.count(waiting_blocks)} {'waits' if waiting_blocks == 1 else 'wait'} at {group.place.text}",
        "launch no more blocks than fit (cuOccupancyMaxActiveBlocksPerMultiprocessor times SMs), or launch"
        " cooperatively: the driver then refuses larger grids",
        group.warps[0],
    )


def _mbarrier(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """The phase of an mbarrier does not end: arrivals or bytes are missing, or warps wait for another phase."""
    place = group.place
    if place.kind != "mbarrier":
        return
    warp = group.warps[0]
    if isinstance(place.line, Offset):
        text = f"an mbarrier at {place.text} expects more arrivals than it got, or bytes that no copy wrote"
        yield Cause("mbarrier-count", text + _absent_warps_text(stuck, group, warp.block), _COUNT_ADVICE, warp)
        return
    arrivals, init = stuck.arrivals_at(place, warp.block), stuck.code.init_of(place.line)
    unknown_threads = stuck.threads_unknown(warp.block)
    ended_text = (
        f"; arrivals of {units.counted(unknown_threads, 'thread')} that ended are not known" if unknown_threads else ""
    )
    arrival_text = f"{_arrivals_text(arrivals, warp.block)}{_absent_warps_text(stuck, group, warp.block)}{ended_text}"
    phase = "" if place.phase is None else f", phase {place.phase}"
    name = stuck.code.name_of(place.line)
    address = f"{name} ({place.address:#x})" if name else f"{place.address:#x}"
    barrier_text = f"mbarrier {address} at {place.text}{phase}"
    count = None if init is None else init.count
    if count is None or arrivals.count is None or arrivals.count != count:
        text = f"{barrier_text}: {_expected_text(stuck, init)}{arrival_text}"
        yield Cause("mbarrier-count", text, _count_advice(stuck, group, init, arrivals), warp)
    elif stuck.code.expect_tx_lines:
        yield Cause(
            "mbarrier-bytes",
            f"{barrier_text}: {arrival_text}. The number of arrivals is right, so bytes of copies are missing"
            f" (expect_tx PTX:{stuck.code.expect_tx_lines[0]})",
            "compare the bytes of each expect_tx with the bytes of its copies, and check that these copies are"
            " executed",
            warp,
        )
    else:
        yield Cause(
            "mbarrier-phase",
            f"{barrier_text}: {arrival_text}. The number of arrivals is right, but warps wait for another phase",
            "check the parity of each wait, and check that all threads arrive again in each phase",
            warp,
        )


def _expected_text(stuck: StuckWarps, init: Init | None) -> str:
    """``it expects 65 arrivals (mbarrier.init PTX:38 tile.cu:8); ``."""
    inits = [init] if init is not None else [Init(line, count) for line, count in stuck.code.inits.items()]
    counts = sorted({init.count for init in inits if init.count is not None})
    if not inits:
        return ""
    position = f"({stuck.code.line_text(inits[0].line, 'mbarrier.init')}{', …' if len(inits) > 1 else ''})"
    if not counts or any(init.count is None for init in inits):
        return f"it expects a number of arrivals that is computed at run time {position}; "
    *other_counts, max_count = (units.count(count) for count in counts)
    text = f"{', '.join(other_counts)} or {max_count}" if other_counts else max_count
    return f"it expects {text} {'arrival' if counts[-1] == 1 else 'arrivals'} {position}; "


def _arrivals_text(arrivals: Arrivals, block: int) -> str:
    """``block 0 made 33 arrivals (warp 0; warp 1 with lane 0)``: the last arrivals of its warps."""
    if not arrivals.marks:
        return f"no warp of block {block} has its last recorded arrival at this mbarrier"
    by_lanes: dict[int, list[int]] = {}
    for number, mark in arrivals.marks.items():
        by_lanes.setdefault(mark.lanes, []).append(number)
    texts = [
        warps_text(numbers) + ("" if lanes == ALL_LANES else f" with {lanes_text(lanes)}")
        for lanes, numbers in by_lanes.items()
    ]
    warps = "; ".join(texts[:_MAX_NAMED]) + ("; …" if len(texts) > _MAX_NAMED else "")
    if arrivals.count is None:
        threads = units.counted(arrivals.threads, "thread")
        return (
            f"{threads} of block {block} arrived ({warps}); the kernel computes the number of these arrivals at run"
            " time"
        )
    return f"block {block} made {units.counted(arrivals.count, 'arrival')} ({warps})"


def _count_advice(stuck: StuckWarps, group: PlaceGroup, init: Init | None, arrivals: Arrivals) -> str:
    count = None if init is None else init.count
    if init is None or count is None or not arrivals.count:
        return _COUNT_ADVICE
    init_text = stuck.code.line_text(init.line, "mbarrier.init")
    change = f"initialize the mbarrier with {arrivals.count} instead of {count} at {init_text}"
    if arrivals.count > count:
        return f"{change}: if more threads arrive than the mbarrier expects, phases end too early"
    block = group.warps[0].block
    absent = [warp.warp for warp in group.missing_warps if warp.block == block and warp.warp not in arrivals.marks]
    missing_text = f"{count - arrivals.count} more {'thread' if count - arrivals.count == 1 else 'threads'}"
    return f"let {units.numbered('warp', absent) if absent else missing_text} arrive in each phase, or {change}"


def _absent_warps_text(stuck: StuckWarps, group: PlaceGroup, block: int) -> str:
    """``; warps 2-3 are at bar.sync PTX:31; warp 0 ended at exit PTX:70``: warps that do not wait there."""
    by_place: dict[str, list[int]] = {}
    for warp in group.missing_warps:
        if warp.block == block:
            by_place.setdefault(stuck.position_text(warp), []).append(warp.warp)
    texts = [
        f"; {units.numbered('warp', numbers)} {'' if place.startswith('ended') else f'{_is_or_are(numbers)} '}{place}"
        for place, numbers in by_place.items()
    ]
    return "".join(texts[:_MAX_NAMED]) + ("; …" if len(texts) > _MAX_NAMED else "")


def _is_or_are(numbers: Sequence[int]) -> str:
    return "is" if len(numbers) == 1 else "are"


def _missing_warps(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps of a block do not come to a barrier, lanes not to one of their warp, or blocks not to one of a cluster."""
    place = group.place
    if place.kind not in ("barrier", "warp barrier"):
        return
    warp = next((warp for warp in group.warps if warp.lanes_away), group.warps[0])
    arrived_count = sum(candidate.block == warp.block for candidate in group.warps)
    if place.kind == "warp barrier":
        waits, advice = _lanes_awaited(stuck, warp)
    elif place.opcode.startswith(_CLUSTER_BARRIERS):
        waits, advice = _blocks_awaited(stuck, group)
    elif place.line in stuck.code.barriers:
        waits, advice = _threads_awaited(stuck, group, warp, arrived_count)
    else:
        # In SASS, the number of threads of a barrier is not known.
        threads = "threads" if isinstance(place.line, Offset) else "all threads"
        waits = f"{threads} of block {warp.block}: {_arrived_text(stuck, group, warp, arrived_count)}"
        advice = "let all threads of the barrier reach the barrier, e.g. move the barrier out of branches"
    looping_warp = next(
        (
            candidate
            for candidate in group.missing_warps
            if candidate.block == warp.block and candidate.place.kind == "loop"
        ),
        None,
    )
    if looping_warp is not None and not looping_warp.has_ended:
        advice = (
            f"check the condition that ends the loop at {looping_warp.place.text}; if the condition is right, {advice}"
        )
    if warp.lanes_away and place.kind == "barrier" and arrived_count == stuck.warps_per_block:
        waits += _missing_lanes_text(stuck, warp)
        advice = (
            "let all lanes of a warp reach the barriers of the block, and let all lanes of a mask reach the shfl, vote"
            " or __syncwarp with this mask"
        )
    yield Cause("barrier-not-reached", f"{place.text} waits for {waits}", advice, warp)


def _arrived_text(stuck: StuckWarps, group: PlaceGroup, warp: StuckWarp, arrived_count: int) -> str:
    """``2 of 4 warps arrived; warp 2 is at PTX:31; 1 warp ended``: the warps of a warp's block."""
    elsewhere_count = sum(candidate.block == warp.block for candidate in stuck.warps) - arrived_count
    named_count = sum(candidate.block == warp.block and candidate.has_ended for candidate in group.missing_warps)
    ended_count = stuck.warps_per_block - arrived_count - elsewhere_count - named_count
    warps = units.counted(stuck.warps_per_block, "warp")
    ended_text = f"; {units.counted(ended_count, 'warp')} ended" if ended_count > 0 else ""
    return f"{arrived_count} of {warps} arrived{_absent_warps_text(stuck, group, warp.block)}{ended_text}"


def _lanes_awaited(stuck: StuckWarps, warp: StuckWarp) -> tuple[str, str]:
    """Return what a barrier of a warp waits for, and advice."""
    arrived = f"the last recorded arrival is of {lanes_text(warp.lanes)}"
    waits = f"{lanes_text(warp.place.address)} of {stuck.warp_text(warp)}: {arrived}"
    return waits, "let all lanes of the mask reach __syncwarp, or remove the other lanes from the mask"


def _blocks_awaited(stuck: StuckWarps, group: PlaceGroup) -> tuple[str, str]:
    """Return what a barrier of a cluster waits for, and advice."""
    waiting_text = (
        f"the waiting warps are in {units.counted(len(group.blocks), 'block')}{warps_elsewhere(stuck, group)}"
    )
    advice = "let all threads of all blocks of a cluster arrive, even threads that have nothing to do"
    return f"all blocks of the cluster: {waiting_text}", advice


def _threads_awaited(stuck: StuckWarps, group: PlaceGroup, warp: StuckWarp, arrived_count: int) -> tuple[str, str]:
    """Return what a barrier with a number of threads waits for, and advice."""
    count = stuck.code.barriers[group.place.line]
    warps = _arrived_text(stuck, group, warp, arrived_count)
    if count is None:
        waits = f"a number of threads of block {warp.block} that is computed at run time: {warps}"
    else:
        waits = f"{count} threads of block {warp.block}: {warps}"
    numbers = (None, group.place.address)
    arrivals = [line for line in stuck.code.barrier_arrival_opcodes if stuck.code.barrier_numbers.get(line) in numbers]
    if arrivals:
        position = stuck.code.line_text(arrivals[0], stuck.code.barrier_arrival_opcodes[arrivals[0]])
        waits += f"; arrivals at {position} are not recorded"
    threads = arrived_count * WARP_SIZE
    if arrivals or count is None or threads >= count:
        return waits, (
            "count the threads that arrive at the barrier, and let all of them pass this number to the barrier"
        )
    absent = [missing_warp.warp for missing_warp in group.missing_warps if missing_warp.block == warp.block]
    missing_text = warps_text(absent) if absent else f"{count - threads} more threads"
    advice = (
        f"let {missing_text} arrive, or let all threads that arrive pass {threads} instead of {count} to the barrier"
    )
    return waits, advice


def _missing_lanes_text(stuck: StuckWarps, warp: StuckWarp) -> str:
    """``; warp 0 came with lanes 16-31, its 16 others may wait at shfl.sync.idx.b32 PTX:20``."""
    places = missing_lanes_at(stuck, [warp])
    elsewhere = "is elsewhere" if warp.lanes_away == 1 else "are elsewhere"
    place = waits_text(places) if places else elsewhere
    arrival_text = f"warp {warp.warp} arrived with {lanes_text(warp.lanes)}"
    return f"; {arrival_text}, its {units.counted(warp.lanes_away, 'other lane')} {place}"


def _loop(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps are in a loop whose end depends on data, or have come to no place that is recorded."""
    warp = group.warps[0]
    if group.place.line in stuck.code.counted_loop_lines:
        text = f"{{}} last seen at {group.place.text}, in a loop that a counter ends"
        advice = "check the number of iterations of this loop"
    elif group.place.line:
        text, advice = f"{{}} last seen at {group.place.text}", "check the condition that ends the loop"
        if ".cas" in group.place.opcode:
            advice += ": a comparison of floating-point values is never true for NaN"
    else:
        text = "{} reached neither a wait nor a loop without a counter"
        advice = "check loops with many iterations, and lanes that wait for other lanes in shfl or vote"
    yield Cause("long-loop", text.format(units.counted(len(group.warps), "warp")), advice, warp)
