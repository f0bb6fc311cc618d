"""Kinds of work by which a basic block is cut into runs, and marks by which users name phases.

A block is cut at waits, and between them where the kind of work changes. Runs that are too light for a record of their
own join the heavier run next to them. ``pmevent N`` begins phase ``pmevent N``, which lasts until the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instruction_facts import class_of
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tui_probe.ptx.control_flow import Block, Flow
    from tui_probe.ptx.tree import Instruction

INTEGER: Final = "integer"
"""Work of a stretch that computes addresses, indices and conditions, between work of other kinds."""
OTHER_WORK: Final = "other"
"""Work of a stretch without an instruction that names it."""
MBARRIER: Final = "mbarrier wait"
BARRIER, NAMED_BARRIER, POLLING = "barrier wait", "named barrier wait", "polling wait"
CLUSTER_BARRIER: Final = "cluster barrier wait"
BARRIER_WAITS: Final = (MBARRIER, BARRIER, NAMED_BARRIER, CLUSTER_BARRIER, POLLING)
PRODUCT_WAIT: Final = "wgmma wait"
WAITS: Final = (*BARRIER_WAITS, "copy wait", PRODUCT_WAIT, "grid wait")
"""A polling wait is a loop that reads global memory until it changes: a barrier of the grid, or a lock."""
COPIES: Final = ("bulk copy", "async copy")
LOADS: Final = (*COPIES, "global load")
ACCESSES: Final = (*LOADS, "global store")
"""Works that access global memory."""
PRODUCTS: Final = "mma"
COMPUTES: Final = (PRODUCTS, "exponential", "reduction", "compute")
TILE_REQUEST: Final = "tile request"
"""Asks the hardware for the next block of a persistent kernel."""
WEIGHTS: Final = {
    **dict.fromkeys(WAITS, 16),
    "bulk copy": 16, "async copy": 4, "global load": 4, "shared store": 2, PRODUCTS: 16, "exponential": 4,
    "reduction": 4, "global store": 4, TILE_REQUEST: 16, "compute": 1,
}  # fmt: skip
"""Issue slots of an instruction of each kind, roughly: they decide which kind dominates."""
KINDS: Final = (*WEIGHTS, INTEGER, OTHER_WORK)
"""Kinds of work that name a phase where the user does not."""
_ARITHMETIC: Final = frozenset({"fp32", "fp64", "fp16", "bf16"})
MARK: Final = "pmevent"
_AMBIGUOUS: Final = ""
"""Name of code that is reached behind several marks."""


def work_of(instruction: Instruction) -> str | None:
    """Return the kind of work of an instruction; None for one that is part of any work."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if (wait := _wait_of(instruction)) is not None:
        return wait
    match opcode:
        case "cp":
            return _copy_work(modifiers)
        case "mma" | "wmma" | "wgmma" | "tcgen05":
            return PRODUCTS if {"mma", "mma_async", "fence", "commit_group"} & {opcode, *modifiers} else None
        case "clusterlaunchcontrol":
            return TILE_REQUEST
        case "ld" | "ldu" if "global" in modifiers:
            return "global load"
        case "st" | "red" | "atom" if "global" in modifiers:
            return "global store"
        case "st" | "stmatrix" if opcode == "stmatrix" or any(name.startswith("shared") for name in modifiers):
            return "shared store"
        case "ex2" | "lg2" | "tanh":
            return "exponential"
        case "shfl" | "redux":
            return "reduction"
    return "compute" if class_of(instruction) in _ARITHMETIC else None


def _wait_of(instruction: Instruction) -> str | None:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    waits = any(name.startswith(("wait", "try_wait", "test_wait")) for name in modifiers)
    match opcode:
        case "mbarrier" if waits:
            return MBARRIER
        case "cp" if waits:
            return "copy wait"
        case "wgmma" | "tcgen05" if waits:
            return PRODUCT_WAIT
        case "griddepcontrol" if waits:
            return "grid wait"
        case "barrier" if "cluster" in modifiers and waits:
            return CLUSTER_BARRIER
        case "bar" | "barrier" if is_block_barrier(instruction):
            return NAMED_BARRIER if barrier_number(instruction) != 0 else BARRIER
    return None


def is_block_barrier(instruction: Instruction) -> bool:
    """Return whether warps of a block wait for each other at an instruction."""
    modifiers = set(instruction.modifiers)
    waits = {"sync", "red"} & modifiers and not {"warp", "cluster"} & modifiers
    return instruction.opcode in ("bar", "barrier") and bool(waits)


def barrier_number(barrier: Instruction) -> int | None:
    """Return the number of a barrier of a block; None if it is in a register. All warps meet at number 0."""
    operand = next(iter(barrier.operands), None)
    if operand is None:
        return 0
    return parse_integer(operand.text) if isinstance(operand, Immediate) else None


def _copy_work(modifiers: Sequence[str]) -> str | None:
    if "commit_group" in modifiers or "mbarrier" in modifiers or "prefetch" in modifiers:
        return None
    destination = next((name for name in modifiers if name.startswith(("global", "shared"))), "")
    if destination == "global":
        return "global store"
    return "bulk copy" if "bulk" in modifiers else "async copy"


def marked_phases(flow: Flow) -> Callable[[Instruction], str | None] | None:
    """Return a function that names the phase of an instruction, "" for none; None if the code has no marks."""
    if not any(instruction.opcode == MARK for block in flow.blocks for instruction in block):
        return None
    last_marks = [
        next((_mark_name(instruction) for instruction in reversed(block) if instruction.opcode == MARK), None)
        for block in flow.blocks
    ]
    start_names = _names_at_starts(flow, last_marks)
    names: dict[int, str] = {}
    for block, name in zip(flow.blocks, start_names, strict=True):
        current = name or _AMBIGUOUS
        for instruction in block:
            current = _mark_name(instruction) if instruction.opcode == MARK else current
            names[id(instruction)] = current
    return lambda instruction: names[id(instruction)]


def _names_at_starts(flow: Flow, last_marks: list[str | None]) -> list[str | None]:
    """Return the name at the start of each block: that of all ways to it, None for one that is not reached."""
    start_names: list[str | None] = [_AMBIGUOUS, *[None] * (len(flow.blocks) - 1)]
    pending = [0]
    while pending:
        block = pending.pop()
        end_name = last_marks[block] if last_marks[block] is not None else start_names[block]
        for target in flow.successors(block):
            start_name = end_name if start_names[target] in (None, end_name) else _AMBIGUOUS
            if start_name != start_names[target]:
                start_names[target] = start_name
                pending.append(target)
    return start_names


def _mark_name(mark: Instruction) -> str:
    operands = [operand.text for operand in mark.operands if isinstance(operand, Immediate)]
    return " ".join([".".join((mark.opcode, *mark.modifiers)), *operands])


_MIN_SHARE: Final = 0.1
"""Share of the weight between two waits from which on a run is a phase of its own."""
_MIN_PART: Final = 0.2
"""Share of the code of a name that the user gave from which on a run is a phase of its own, in any stretch.

The compiler moves smaller parts; a loop that is unrolled four times has four larger ones."""
_MAX_RUNS: Final = 6
"""Phases that a stretch between two waits has at most, besides one of each name that the user gave."""
MAX_SHORT_RUN: Final = 8
"""Instructions without a kind of work that may join the phase before them."""


@dataclass(slots=True)
class Run:
    """Instructions of a basic block in a row. ``work`` is None while nothing names it."""

    work: str | None
    code: Block
    weight: int = 0
    moved_count: int = 0
    has_wait: bool = False
    """True for a run of a name that the user gave and that has a wait: it is never joined with another name."""
    barriers: tuple[str, ...] = ()
    """Barriers that a wait is at: ``barrier 1`` of a block, ``full[2]`` of mbarriers."""

    @property
    def waits(self) -> bool:
        return self.work in WAITS

    def rank(self) -> tuple[bool, int]:
        """Return the key by which runs are joined, the least first."""
        return self.has_wait, self.weight


def runs_of(
    block: Block,
    works: Sequence[str | None],
    weight: Callable[[str], int],
    min_weight: int,
    name_weights: Mapping[str, int],
) -> list[Run]:
    """Cut a block at waits, and code between them where the kind of work changes for long enough.

    ``name_weights`` has the weight of all code of each name that the user gave.
    """
    runs: list[Run] = []
    for waits, group in groupby(_raw_runs(block, works, weight), key=lambda run: run.waits):
        stretch = list(group)
        runs += stretch if waits else _merge_light_runs(stretch, min_weight, name_weights)
    joined_runs: list[Run] = []
    for run in runs:
        if joined_runs and (run.work == joined_runs[-1].work or (run.work is None and len(run.code) < MAX_SHORT_RUN)):
            joined_runs[-1].code += run.code
        elif joined_runs and joined_runs[-1].work is None and len(joined_runs[-1].code) < MAX_SHORT_RUN:
            joined_runs[-1] = Run(run.work, [*joined_runs[-1].code, *run.code], run.weight, run.moved_count)
        elif joined_runs and joined_runs[-1].waits and run.work == BARRIER:
            joined_runs[-1].code += run.code
        else:
            joined_runs.append(run)
    return joined_runs


def _raw_runs(block: Block, works: Sequence[str | None], weight: Callable[[str], int]) -> Iterator[Run]:
    """Runs of equal work, waits apart. Instructions of no kind join the work around them.

    Nothing is cut between the fence and the commit of wgmma, where other code makes ptxas serialize the products.
    """
    run: Run | None = None
    is_open = False
    for instruction, instruction_work in zip(block, works, strict=True):
        work = run.work if is_open and run is not None and instruction_work not in WAITS else instruction_work
        if instruction.opcode == "wgmma":
            is_open = "fence" in instruction.modifiers or ("mma_async" in instruction.modifiers and is_open)
        if run is None or run.waits != (work in WAITS) or _differ(work, run.work):
            if run is not None:
                yield run
            run = Run(work, [])
        run.work = work if run.work is None else run.work
        run.code.append(instruction)
        run.weight += weight(instruction_work) if instruction_work is not None else 0
        run.has_wait |= bool(instruction_work) and work_of(instruction) in WAITS
    if run is not None:
        yield run


def _differ(work: str | None, other_work: str | None) -> bool:
    """Return whether both kinds of work are known and differ."""
    return work is not None and other_work is not None and work != other_work


def _merge_light_runs(runs: list[Run], min_weight: int, name_weights: Mapping[str, int]) -> list[Run]:
    """Join runs that are too light with the heavier run next to them."""
    share = _MIN_SHARE * sum(run.weight for run in runs)

    def is_light(run: Run) -> bool:
        part = _MIN_PART * name_weights[run.work] if run.work and run.work in name_weights else share
        return run.weight < max(min_weight, min(share, part))

    while len(runs) > 1:
        joinable = [run for run in runs if not run.has_wait]
        light = [run for run in joinable if is_light(run)]
        lightest = min(
            light or (joinable if len(runs) > _MAX_RUNS + len(name_weights) else ()), key=Run.rank, default=None
        )
        if lightest is None:
            break
        place = runs.index(lightest)
        neighbors = [index for index in (place - 1, place + 1) if 0 <= index < len(runs)]
        heaviest = max(neighbors, key=lambda index: runs[index].weight)
        start, end = sorted((place, heaviest))
        runs[start : end + 1] = [_join(runs[start], runs[end])]
        runs = _join_equal_runs(runs)
    return runs


def _join(run: Run, next_run: Run) -> Run:
    heavy, light = (run, next_run) if run.rank() >= next_run.rank() else (next_run, run)
    moved_count = (
        run.moved_count + next_run.moved_count + (len(light.code) if light.work not in ("", heavy.work) else 0)
    )
    has_wait = run.has_wait or next_run.has_wait
    return Run(heavy.work, [*run.code, *next_run.code], run.weight + next_run.weight, moved_count, has_wait)


def _join_equal_runs(runs: list[Run]) -> list[Run]:
    joined_runs: list[Run] = []
    for run in runs:
        if joined_runs and joined_runs[-1].work == run.work:
            joined_runs[-1] = _join(joined_runs[-1], run)
        else:
            joined_runs.append(run)
    return joined_runs
