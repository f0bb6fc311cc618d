"""The deterministic model of time: what an instruction costs, and when and where a block runs.

Cycles
    Every warp has its own counter. An instruction that a warp executes adds its cost from ``COSTS`` below,
    whether its guard predicate holds or not; a divergent warp pays for each of its paths. Nothing overlaps and nothing
    contends: a block takes the same time wherever and whenever it runs. A barrier costs ``COSTS["barrier"]``,
    then sets the counters of the warps that met at it to the latest of them.
    A read of ``%clock64`` gives the start of the block plus the warp's counter before the read.

Asynchronous work
    A copy (``cp.async``, ``cp.async.bulk``) is done ``COPY_LATENCY`` cycles after it was issued, and one more for each
    ``COPY_BYTES_PER_CYCLE`` bytes that a warp's ``cp.async`` or a thread's ``cp.async.bulk`` copies, rounded up. What
    reads shared memory, which ``cp.async.bulk.wait_group.read`` waits for, needs no ``COPY_LATENCY``. Its bytes are
    there immediately: only the time until then is modelled. ``cp.async.wait_group`` and its like cost what any
    instruction does, then set the warp's counter to when the last copy that they wait for is done, if that is later.
    A phase of an mbarrier ends with the last of its arrivals, each at the warp's counter behind the instruction, and of
    the copies that it tracks. ``mbarrier.try_wait`` sets the counter to that moment if it comes within
    ``TRY_WAIT_CYCLES``, or the time that the instruction names; otherwise it gives up after as many cycles.
    ``mbarrier.test_wait`` does not wait: it tells whether the phase has ended by the warp's counter. Both hold for
    phases that other warps end later in program order too. Only where no thread can continue without it does a thread
    get the answer that the phase has not ended before that is known.

Blocks
    An SM has as many slots as blocks of this size fit into it (threads, blocks, warps, shared memory).
    Blocks are launched in order of their linear index. The next block goes into the slot that is free
    first; of several, into the lowest slot number, then the lowest SM. So equal blocks are dealt out over the SMs
    first, then over their second slots. The blocks of a cluster take one slot each in that order, and start together
    when the last of these is free; clusters go in order of their linear index. All slots are free at the start of the
    kernel. The warps of a block start ``block_launch_cycles`` after its slot became free; the slot is free again when
    the last warp of the block has exited. The kernel ends with its last block.
"""

from __future__ import annotations

import functools
import heapq
from dataclasses import dataclass
from typing import Final, NamedTuple

from tui_probe.errors import SimulationError

WARP_SIZE: Final = 32

COSTS: Final = {
    "integer": 4,  # integer, logic, single and half precision, moves, conversions, branches, stores
    "double": 8,  # double precision
    "special": 16,  # division, square root, transcendental functions
    "parameter": 8,  # loads from parameters and constants
    "shared": 24,  # loads and atomics in shared memory, mbarriers
    "local": 32,  # loads from local memory
    "global": 200,  # loads and atomics in global memory, and through generic addresses
    "warp": 24,  # shuffles, votes, matches
    "barrier": 16,  # arriving at a barrier; fences
    "matrix": 32,  # mma, wgmma, ldmatrix, stmatrix
}

COPY_LATENCY: Final = COSTS["global"]
COPY_BYTES_PER_CYCLE: Final = 32
"""A sector."""
TRY_WAIT_CYCLES: Final = 1000
"""Cycles until ``mbarrier.try_wait`` gives up; the ISA leaves the time to the device."""

_SPECIAL: Final = frozenset({"div", "rem", "sqrt", "rsqrt", "rcp", "ex2", "lg2", "sin", "cos", "tanh"})
_WARP: Final = frozenset({"shfl", "vote", "match", "redux", "elect"})
_BARRIER: Final = frozenset({"bar", "barrier", "membar", "fence", "tensormap"})
_MATRIX: Final = frozenset({"mma", "wmma", "ldmatrix", "stmatrix"})
_MEMORY: Final = frozenset({"ld", "ldu", "atom"})


@functools.cache
def instruction_cost(opcode: str, modifiers: tuple[str, ...]) -> int:
    """Cycles that ``opcode.modifiers`` adds to the counter of a warp."""
    return COSTS[_cost_class(opcode, modifiers)]


def _cost_class(opcode: str, modifiers: tuple[str, ...]) -> str:
    if opcode in _MEMORY:
        return _memory_class(modifiers)
    if opcode == "mbarrier":
        return "shared"
    if opcode == "wgmma":
        return "matrix" if "mma_async" in modifiers else "barrier"
    for names, name in ((_SPECIAL, "special"), (_WARP, "warp"), (_BARRIER, "barrier"), (_MATRIX, "matrix")):
        if opcode in names:
            return name
    return "double" if "f64" in modifiers and opcode not in ("st", "mov", "selp") else "integer"


def copy_cycles(size: int) -> int:
    """Return the cycles that ``size`` bytes of one copy take beyond its latency."""
    return -(-size // COPY_BYTES_PER_CYCLE)


def _memory_class(modifiers: tuple[str, ...]) -> str:
    spaces = {modifier.partition("::")[0] for modifier in modifiers}
    if spaces & {"param", "const"}:
        return "parameter"
    for space in ("shared", "local"):
        if space in spaces:
            return space
    return "global"


@dataclass(frozen=True, slots=True)
class Machine:
    """A simulated GPU. Sizes in bytes; ``clock_khz`` relates cycles to ``%globaltimer``'s nanoseconds.

    ``compute_capability`` is 80 for sm_80: which PTX of an image is for it.
    """

    sm_count: int = 8
    clock_khz: int = 1_000_000
    max_threads_per_sm: int = 2048
    max_blocks_per_sm: int = 16
    warp_slots_per_sm: int = 64
    shared_bytes_per_sm: int = 164 * 1024
    block_launch_cycles: int = 200
    compute_capability: int = 80

    def slots_per_sm(self, threads: int, shared_bytes: int) -> int:
        """Return the resident blocks per SM, for ``threads`` threads and ``shared_bytes`` of shared memory."""
        warps = -(-threads // WARP_SIZE)
        slots = min(
            self.max_blocks_per_sm,
            self.max_threads_per_sm // (warps * WARP_SIZE),
            self.warp_slots_per_sm // warps,
        )
        if shared_bytes:
            slots = min(slots, self.shared_bytes_per_sm // shared_bytes)
        if slots < 1:
            message = f"a block of {threads} threads with {shared_bytes} bytes of shared memory does not fit into an SM"
            raise SimulationError(message)
        return slots


@dataclass(frozen=True, slots=True)
class Placement:
    """Position and time of one block. ``start`` is the cycle, since the kernel's start, at which its warps start."""

    block: int
    sm: int
    slot: int
    start: int


class _FreeSlot(NamedTuple):
    """A slot that is free from ``cycle`` on. Blocks take slots in the order of these tuples."""

    cycle: int
    slot: int
    sm: int


class Schedule:
    """Blocks ``0 … block_count - 1`` placed in order into slots, as the module describes.

    ``cluster_size`` blocks in a row, a cluster, start at the same time, when a slot is free for each of them.
    ``min_cycles`` is a number of cycles that no block can run in less than. It tells how many placements
    are certain before the blocks before them have run.
    """

    def __init__(
        self, machine: Machine, slots_per_sm: int, block_count: int, min_cycles: int, cluster_size: int = 1
    ) -> None:
        self._free_slots = [_FreeSlot(0, slot, sm) for slot in range(slots_per_sm) for sm in range(machine.sm_count)]
        self._launch_cycles = machine.block_launch_cycles
        self._min_cycles = min_cycles
        self._block_count = block_count
        self._cluster_size = cluster_size
        self._next_block = 0
        self.end = 0

    def next_placements(self, limit: int) -> list[Placement]:
        """Return the next blocks, at most ``limit``, whose places do not depend on blocks still to run.

        Empty when all blocks are placed. Call ``finish_block`` for each of them before the next call.
        """
        placements: list[Placement] = []
        # No block of this call can free its slot before this time.
        earliest = self._free_slots[0].cycle + self._launch_cycles + self._min_cycles
        while (
            self._next_block < self._block_count
            and len(placements) < limit
            and len(self._free_slots) >= self._cluster_size
        ):
            cluster_slots = [heapq.heappop(self._free_slots) for _ in range(self._cluster_size)]
            if placements and cluster_slots[-1].cycle >= earliest:
                for free_slot in cluster_slots:
                    heapq.heappush(self._free_slots, free_slot)
                break
            start = cluster_slots[-1].cycle + self._launch_cycles
            for block, free_slot in enumerate(cluster_slots, self._next_block):
                placements.append(Placement(block, free_slot.sm, free_slot.slot, start))
            self._next_block += self._cluster_size
        return placements

    def finish_block(self, placement: Placement, cycles: int) -> None:
        """Free the slot of a block that ran for ``cycles``."""
        end = placement.start + cycles
        self.end = max(self.end, end)
        heapq.heappush(self._free_slots, _FreeSlot(end, placement.slot, placement.sm))
