"""Order of accesses: which of two threads' accesses happens before the other.

Time counts accesses and synchronisations in the order of execution. A stamp of a byte is the time of its last access
and the thread that made it; a clock of a warp has, for each warp of its cluster, the time up to which everything that
one did happens before what this one does next. Barriers and mbarriers join clocks. Between blocks, and through flags in
memory, a fence after the one access and an atomic, a fence or a strong load after it in the other thread order both:
an order that may exist is assumed.
"""

from __future__ import annotations

from array import array
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tui_probe.simgpu.executor.async_state import CopyGroups
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import U64, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Lanes, Places
    from tui_probe.simgpu.executor.scope import Launch

# A stamp: the time in the upper half, below it flags and the thread's number in the grid.
TIME_BITS: Final = 32
COPIED: Final = 1 << 31
"""Stamp of a ``cp.async``, which is complete when its thread has waited for it."""
TRACKED: Final = 1 << 30
"""Stamp of a copy whose bytes an mbarrier counts."""
BULK: Final = COPIED | TRACKED
"""Stamp of a bulk copy out of shared memory, which is complete when its thread has waited for its group."""
STRONG_BLOCK: Final = 1 << 28
STRONG_CLUSTER: Final = 2 << 28
STRONG: Final = 3 << 28
"""Stamps of atomics and other accesses that may race with their like, within their scope; this one of the GPU."""
MAX_THREADS: Final = 1 << 28
_THREAD: Final = np.uint64(MAX_THREADS - 1)
SAME: Final = np.uint64(COPIED | TRACKED | MAX_THREADS - 1)
"""Bits that two stamps of the same thread have in common."""
_ACCESS_BITS: Final = 2
FULL_MASK: Final = (1 << WARP_SIZE) - 1


def harmless(check: Callable[..., None]) -> Callable[..., None]:
    """A method of a check, which ends all checks of the launch where it fails: the kernel runs without them."""

    @wraps(check)
    def guarded(self: _Check, *arguments: Any) -> None:
        if not self.clock.failure:
            try:
                check(self, *arguments)
            except Exception as error:  # noqa: BLE001  a mistake of a check must not fail the kernel
                self.clock.failure = f"{type(error).__name__}: {error}"

    return guarded


class _Check(Protocol):
    clock: LaunchClock


class LaunchClock:
    """Time of a launch, which ``begin`` continues from the last one, and the instruction of each access."""

    def __init__(self, begin: int, blocks: int) -> None:
        self.begin = self.now = begin
        self.failure = ""
        """The error that ended the checks of the launch."""
        self._accesses = array("Q")
        # By block of the grid: its last fence for the GPU, and the last time when it may have seen those of others.
        self.released = np.zeros(blocks, np.int64)
        self.acquired = np.zeros(blocks, np.int64)

    def tick(self, line: int = 0, code: int = 0) -> int:
        """The time of an access by the instruction at a line, or of another event."""
        self._accesses.append(line << _ACCESS_BITS | code)
        self.now += 1
        return self.now

    def access_at(self, time: int) -> tuple[int, int]:
        """The line and code of the access at a time."""
        packed = self._accesses[time - self.begin - 1]
        return packed >> _ACCESS_BITS, packed & (1 << _ACCESS_BITS) - 1


class BatchOrder:
    """Order of accesses of the blocks of a batch, ``blocks`` of the grid of ``shape``."""

    def __init__(self, clock: LaunchClock, shape: Launch, blocks: NDArray[np.int64]) -> None:
        self.clock = clock
        self._blocks = blocks
        self._threads = shape.block[0] * shape.block[1] * shape.block[2]
        self._cluster = shape.cluster_size
        self._block_warps = -(-self._threads // WARP_SIZE)
        self._width = self._cluster * self._block_warps
        warps = len(blocks) * self._block_warps
        self._own = np.arange(warps) % self._width
        self._known = np.zeros((warps, self._width), np.int64)
        numbers = (blocks * self._threads)[:, None] + np.arange(self._block_warps * WARP_SIZE)
        self._thread_at = numbers.reshape(-1).astype(U64)
        self._in_batch = np.full(len(clock.released), -1, np.int64)
        self._in_batch[blocks] = np.arange(len(blocks))
        in_warp = np.minimum(self._threads - np.arange(self._block_warps) * WARP_SIZE, WARP_SIZE)
        self._all_lanes = np.tile((1 << in_warp) - 1, len(blocks))
        """The lanes of each warp that have a thread, as a mask."""
        # All accesses within a block until then are ordered.
        self.floor = clock.begin
        # By warp, for its block and for its cluster.
        self._released = np.zeros((2, warps), np.int64)
        self._acquired = np.zeros((2, warps), np.int64)
        self.has_copies = False
        self.first_stamp = np.uint64(clock.begin << TIME_BITS | (1 << TIME_BITS) - 1)
        """Stamps of this launch are greater."""
        # Clocks of barriers, joined of those who arrived, and their rows.
        self._clocks = np.zeros((0, self._width), np.int64)
        self._rows: dict[tuple[str, int], int] = {}
        self._phase_ends: dict[int, int] = {}
        self._awaited: dict[int, int] = {}
        self._tracked_words: dict[int, int] = {}
        self._uncounted: list[int] = []
        self._bulk_reads: set[int] = set()

    @cached_property
    def _met_at(self) -> NDArray[np.int64]:
        """Time of the last meeting of some lanes of a warp, by place."""
        return np.zeros(len(self._thread_at), np.int64)

    @cached_property
    def _met_lanes(self) -> NDArray[np.int64]:
        """The lanes that the one at each place has met, directly or through others, as a mask.

        The order of their accesses until the last meeting may be more than there is.
        """
        return np.zeros(len(self._thread_at), np.int64)

    @cached_property
    def _of_lanes(self) -> LaneClocks:
        return LaneClocks(len(self._own), self._width)

    @cached_property
    def _bulk(self) -> BulkCopies:
        return BulkCopies(len(self._thread_at))

    @cached_property
    def _copies(self) -> CopyGroups:
        return CopyGroups(len(self._thread_at))

    @cached_property
    def _copied(self) -> NDArray[np.int64]:
        """Time until which the thread's copies are complete for itself, by place."""
        return np.zeros(len(self._thread_at), np.int64)

    @cached_property
    def _published(self) -> NDArray[np.int64]:
        """Time until which the thread's copies are complete for others, by place."""
        return np.zeros(len(self._thread_at), np.int64)

    def threads(self, lanes: Lanes) -> NDArray[np.uint64]:
        """The number in the grid of each lane's thread."""
        threads: NDArray[np.uint64] | None = lanes.cache.get("threads")
        if threads is None:
            is_complete = lanes.count == len(self._thread_at)
            threads = lanes.cache["threads"] = self._thread_at if is_complete else self._thread_at[lanes.places]
        return threads

    @property
    def thread_count(self) -> int:
        """Threads of the batch."""
        return len(self._blocks) * self._threads

    @property
    def place_count(self) -> int:
        """Places of the batch; see ``lanes``."""
        return len(self._thread_at)

    def thread_at(self, place: int) -> int:
        """The number in the grid of the thread at a place."""
        return int(self._thread_at[place])

    def place(self, stamp: int) -> tuple[int, int]:
        """The block of the grid and the thread of a stamp."""
        block, thread = divmod(stamp & int(_THREAD), self._threads)
        return block, thread

    # -- synchronisation

    @harmless
    def sync_warps(self, lanes: Lanes, members: Value) -> None:
        """The lanes of each warp that ``members`` names have met: a mask per lane, or one for all."""
        now = self.clock.tick()
        self._publish(lanes)
        is_full = members == FULL_MASK
        if is_full.all():
            warps = lanes.warps
            self._known[np.arange(len(self._own))[warps], self._own[warps]] = now
            return
        masks, is_full = lanes.spread(members).astype(np.int64), lanes.spread(is_full)
        full_warps = lanes.warp[is_full]
        self._known[full_warps, self._own[full_warps]] = now
        _, group = np.unique(lanes.warp << WARP_SIZE | masks, return_inverse=True)
        met = np.zeros(lanes.count, np.int64)
        np.bitwise_or.at(met, group, masks | self._still_met(lanes))
        self._met_lanes[lanes.places], self._met_at[lanes.places] = met[group], now

    def _still_met(self, lanes: Lanes) -> NDArray[np.int64]:
        """The lanes, as a mask, that each lane has met since the last barrier of its warp."""
        of_warp = np.maximum(self._known[lanes.warp, self._own[lanes.warp]], self.floor)
        return np.where(self._met_at[lanes.places] > of_warp, self._met_lanes[lanes.places], 0)

    @harmless
    def sync_blocks(self) -> None:
        """All threads of all blocks have met, those of each block."""
        self.floor = self.clock.tick()
        if self.has_copies:
            self._published[:] = self._copied
            self._bulk.publish(slice(None))

    def _publish(self, lanes: Lanes) -> None:
        """The copies that each lane has waited for are complete for others, too."""
        if self.has_copies:
            self._published[lanes.places] = self._copied[lanes.places]
            self._bulk.publish(lanes.places)

    @harmless
    def arrive(self, kind: str, barriers: Places, lanes: Lanes) -> None:
        """Each lane arrives at a barrier, given by number: what it did happens before what those who leave it do."""
        now = self.clock.tick()
        self._publish(lanes)
        warps, numbers, pair = _pairs(lanes.warp, barriers)
        joined, rows = self._joined(kind, numbers)
        known = self._known[warps]
        in_block = self._own[warps, None] // self._block_warps == np.arange(self._width) // self._block_warps
        np.maximum.at(joined, rows, np.where(in_block, np.maximum(known, self.floor), known))
        # Whole warps come to other barriers than mbarriers.
        arrived = np.zeros(len(warps), np.int64)
        np.bitwise_or.at(arrived, pair, 1 << lanes.lane)
        is_complete = (arrived == self._all_lanes[warps]) | (kind != "mbarrier")
        joined[rows[is_complete], self._own[warps[is_complete]]] = now
        if not is_complete.all() or "_of_lanes" in self.__dict__:
            np.bitwise_or.at(arrived, pair, self._still_met(lanes))
            self._of_lanes.arrive(rows, warps, self._own[warps], np.where(is_complete, 0, arrived), now)

    @harmless
    def leave(self, kind: str, barriers: Places, lanes: Lanes) -> None:
        """Each lane continues behind a barrier."""
        warps, numbers, _ = _pairs(lanes.warp, barriers)
        joined, rows = self._joined(kind, numbers)
        np.maximum.at(self._known, warps, joined[rows])
        if "_of_lanes" in self.__dict__:
            self._of_lanes.leave(rows, warps)

    def _joined(self, kind: str, numbers: Places) -> tuple[NDArray[np.int64], Places]:
        """The clocks of all barriers of a kind, and the rows of some of them."""
        rows = np.array(
            [self._rows.setdefault((kind, number), len(self._rows)) for number in numbers.tolist()], np.intp
        )
        if len(self._rows) > len(self._clocks):
            larger = np.zeros((2 * len(self._rows), self._width), np.int64)
            larger[: len(self._clocks)] = self._clocks
            self._clocks = larger
        return self._clocks, rows

    @harmless
    def release(self, lanes: Lanes, scope: int) -> None:
        """A fence or a release: accesses before it are visible to those in its scope who see what follows it."""
        self._note(self._released, self.clock.released, lanes, scope)

    @harmless
    def acquire(self, lanes: Lanes, scope: int) -> None:
        """A fence, or what may see a flag of another thread in its scope."""
        self._note(self._acquired, self.clock.acquired, lanes, scope)

    def _note(self, by_warp: NDArray[np.int64], by_block: NDArray[np.int64], lanes: Lanes, scope: int) -> None:
        now = self.clock.tick()
        by_warp[: 1 + (scope >= STRONG_CLUSTER), lanes.warp] = now
        if scope == STRONG:
            by_block[self._blocks[lanes.block]] = now

    # -- copies

    @harmless
    def copy_issued(self, lanes: Lanes) -> None:
        """Each lane has issued a ``cp.async``."""
        self.has_copies = True
        self._copies.add(lanes, np.full(lanes.count, self.clock.now))

    @harmless
    def copies_committed(self, lanes: Lanes) -> None:
        """Each lane commits its copies as a group."""
        self._copies.commit(lanes)

    @harmless
    def copies_awaited(self, lanes: Lanes, pending: int | None) -> None:
        """Each lane has waited for its groups but the ``pending`` newest; for all copies if None."""
        ends = self._copies.end_of_all(lanes) if pending is None else self._copies.end_of_groups(lanes, pending)
        self._copied[lanes.places] = np.maximum(self._copied[lanes.places], ends)

    @harmless
    def copies_tracked(self, lanes: Lanes) -> None:
        """An mbarrier tracks the copies of each lane so far."""
        self._copied[lanes.places] = self._published[lanes.places] = self.clock.now

    def copy_made(self) -> None:
        """The last access is that of a copy whose bytes an mbarrier counts."""
        self.has_copies = True
        self._uncounted.append(self.clock.now)

    @harmless
    def copies_counted(self, words: Places) -> None:
        """The mbarriers at ``words`` count the bytes of the copies since the last call, in their order."""
        self._tracked_words.update(zip(self._uncounted, words.tolist(), strict=False))
        self._uncounted.clear()

    @harmless
    def phase_ended(self, word: int, parity: int, time: int) -> None:  # noqa: ARG002 - a watcher of mbarriers
        """A phase of the mbarrier ends."""
        self._phase_ends[word] = self.clock.now

    @harmless
    def word_awaited(self, words: Places, lanes: Lanes) -> None:
        """Each lane has waited for a phase of an mbarrier."""
        self.leave("mbarrier", words, lanes)
        for word in np.unique(words).tolist():
            self._awaited[word] = self._phase_ends.get(word, 0)

    def bulk_accessed(self, *, reads: bool) -> None:
        """The last access is the read or the write of a bulk copy out of shared memory."""
        self.has_copies = True
        if reads:
            self._bulk_reads.add(self.clock.now)

    @harmless
    def bulk_issued(self, lanes: Lanes) -> None:
        """Each lane has issued a bulk copy out of shared memory."""
        self._bulk.groups.add(lanes, np.full(lanes.count, self.clock.now))

    @harmless
    def bulk_committed(self, lanes: Lanes) -> None:
        """Each lane commits these copies as a group."""
        self._bulk.groups.commit(lanes)

    @harmless
    def bulk_awaited(self, lanes: Lanes, pending: int, parts: Sequence[int]) -> None:
        """Each lane has waited for its groups but the ``pending`` newest: for their writes (0), their reads (1)."""
        self._bulk.wait(lanes, pending, parts)

    # -- order

    def in_scope(
        self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places, scope: int | NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return, per stamp of a strong access and position of a lane, whether the scopes of both have both threads."""
        mine = lanes.block[positions]
        theirs = self._in_batch[((stamps & _THREAD) // np.uint64(self._threads)).astype(np.int64)]
        in_cluster = (theirs >= 0) & (theirs // self._cluster == mine // self._cluster)
        needed = np.where(theirs == mine, STRONG_BLOCK, np.where(in_cluster, STRONG_CLUSTER, STRONG))
        within: NDArray[np.bool_] = np.minimum((stamps & np.uint64(STRONG)).astype(np.int64), scope) >= needed
        return within

    def is_unordered(self, stamps: NDArray[np.uint64], lanes: Lanes, positions: Places) -> NDArray[np.bool_]:
        """Return, per stamp and position of a lane, whether no order makes the access of the stamp happen first."""
        time = (stamps >> np.uint64(TIME_BITS)).astype(np.int64)
        thread = (stamps & _THREAD).astype(np.int64)
        block, index = np.divmod(thread, self._threads)
        theirs, mine = self._in_batch[block], lanes.block[positions]
        warp = lanes.warp[positions]
        in_cluster = (theirs >= 0) & (theirs // self._cluster == mine // self._cluster)
        their_warp = np.where(in_cluster, theirs * self._block_warps + index // WARP_SIZE, 0)
        known = self._known[warp, self._own[their_warp]]
        known = np.where(theirs == mine, np.maximum(known, self.floor), known)
        if "_of_lanes" in self.__dict__:
            known = np.maximum(known, self._of_lanes.known(warp, self._own[their_warp], index % WARP_SIZE))
        if "_met_at" in self.__dict__:
            own_place = lanes.places[positions]
            has_met = (their_warp == warp) & (self._met_lanes[own_place] >> index % WARP_SIZE & 1 > 0)
            known = np.where(has_met, np.maximum(known, self._met_at[own_place]), known)
        ordered = in_cluster & (time <= known)
        scope = (theirs != mine).astype(np.intp)
        ordered |= in_cluster & (self._released[scope, their_warp] > time) & (self._acquired[scope, warp] > time)
        own_block = self._blocks[mine]
        ordered |= (theirs != mine) & (self.clock.released[block] > time) & (self.clock.acquired[own_block] > time)
        own_thread = thread == self.threads(lanes)[positions].astype(np.int64)
        ordered |= own_thread
        kind = stamps & np.uint64(BULK)
        copied, tracked, bulk = kind == COPIED, kind == TRACKED, kind == BULK
        place = np.where(in_cluster, their_warp * WARP_SIZE + index % WARP_SIZE, 0)
        if copied.any():
            complete = np.maximum(self._published[place], np.where(own_thread, self._copied[place], 0))
            ordered &= ~copied | (time <= complete)
        if bulk.any():
            times, which = np.unique(time, return_inverse=True)
            reads = np.array([at in self._bulk_reads for at in times.tolist()])[which]
            complete = self._bulk.ends(place, reads.astype(np.intp), own_thread)
            ordered &= ~bulk | ~in_cluster | (time <= complete)
        for number in np.flatnonzero(tracked).tolist():
            word = self._tracked_words.get(int(time[number]), -1)
            ordered[number] = time[number] <= self._awaited.get(word, -1)
        unordered: NDArray[np.bool_] = ~ordered
        return unordered


class LaneClocks:
    """Order by arrivals of some lanes of a warp at mbarriers: what the other lanes did may happen later.

    By warp, or by barrier, and by warp of the cluster: lanes as a mask, and the time until which their accesses are
    ordered. Of several arrivals it has the lanes of all and the last time, which may be more order than there is.
    """

    def __init__(self, warps: int, width: int) -> None:
        self._lanes, self._until = np.zeros((2, warps, width), np.int64)
        self._arrived, self._arrived_until = np.zeros((2, 0, width), np.int64)

    def arrive(self, rows: Places, warps: Places, own: Places, lanes: NDArray[np.int64], now: int) -> None:
        """These lanes of each warp, and all that it knows of others, arrive at the barrier of each row."""
        self._grow(int(rows.max(initial=-1)) + 1)
        np.bitwise_or.at(self._arrived, rows, self._lanes[warps])
        np.maximum.at(self._arrived_until, rows, self._until[warps])
        np.bitwise_or.at(self._arrived, (rows, own), lanes)
        np.maximum.at(self._arrived_until, (rows, own), np.where(lanes > 0, now, 0))

    def leave(self, rows: Places, warps: Places) -> None:
        """Each warp continues behind the barrier of its row."""
        self._grow(int(rows.max(initial=-1)) + 1)
        np.bitwise_or.at(self._lanes, warps, self._arrived[rows])
        np.maximum.at(self._until, warps, self._arrived_until[rows])

    def known(self, warps: Places, others: Places, lanes: Places) -> NDArray[np.int64]:
        """The time until which accesses of a lane of another warp happen before what each warp does; 0 if none do."""
        has_arrived = (self._lanes[warps, others] >> lanes & 1) > 0
        until: NDArray[np.int64] = np.where(has_arrived, self._until[warps, others], 0)
        return until

    def _grow(self, rows: int) -> None:
        if rows > len(self._arrived):
            more = np.zeros((2 * rows - len(self._arrived), self._arrived.shape[1]), np.int64)
            self._arrived = np.concatenate((self._arrived, more))
            self._arrived_until = np.concatenate((self._arrived_until, more))


class BulkCopies:
    """Bulk copies out of shared memory: times until which those of a thread are complete, and have been read, by place;
    for the thread itself, and for others, who need a barrier behind its wait.
    """

    def __init__(self, place_count: int) -> None:
        self.groups = CopyGroups(place_count)
        self._own = np.zeros((2, place_count), np.int64)
        self._published = np.zeros((2, place_count), np.int64)

    def wait(self, lanes: Lanes, pending: int, parts: Sequence[int]) -> None:
        """Each lane waits for these parts of its groups but the ``pending`` newest."""
        ends = self.groups.end_of_groups(lanes, pending)
        for part in parts:
            self._own[part, lanes.places] = np.maximum(self._own[part, lanes.places], ends)

    def publish(self, places: Places | slice) -> None:
        """The copies that threads have waited for are complete for others, too."""
        self._published[:, places] = self._own[:, places]

    def ends(self, places: Places, reads: Places, own: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The time until which copies of the thread at each place are complete; ``reads`` is 1 for those of reads."""
        ends: NDArray[np.int64] = np.where(own, self._own[reads, places], self._published[reads, places])
        return ends


def _pairs(warps: Places, barriers: Places) -> tuple[Places, Places, Places]:
    """Each warp with each barrier of its lanes, without most repetitions, and the number of the pair of each lane.

    ``warps`` are ascending.
    """
    barriers = np.broadcast_to(barriers, warps.shape)
    first = np.ones(len(warps), np.bool_)
    first[1:] = (warps[1:] != warps[:-1]) | (barriers[1:] != barriers[:-1])
    return warps[first], barriers[first], np.cumsum(first) - 1
