"""The phase of each instruction of a kernel's code, and the instructions that were moved between phases.

An instruction belongs to the phase whose records, or starts in PTX, are on all ways to it.

Moved instructions are those that ptxas moved across the boundaries of phases that the user named. SASS of the probed
kernel is compared with its table of source lines: an instruction behind the clock read of one phase whose line is of
another one was moved, by ptxas or by the compiler before it. Counted are loads, stores, barriers, products and
floating-point arithmetic; the code of the probe itself has none of these but its own stores.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.binaries.cubin import Cubin
from tui_probe.errors import ImageError, ProbeFileError, UnsupportedKernelError
from tui_probe.input_limits import CUBIN, PROBE_FILE
from tui_probe.probe_files.loading import read_probe
from tui_probe.ptx.control_flow import Flow
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.parser import parse
from tui_probe.ptx.phase_names import MARK, marked_phases
from tui_probe.ptx.tree import Immediate, Instruction
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_class, operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import DESTINATION, IMMEDIATE, SOURCE_B, WORD_BYTES
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.probe_model.probe import Probe
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.sites import Site

_COUNTED_CLASSES: Final = frozenset({"fp32", "fp64", "fp16", "bf16", "tensor", "load", "store", "atomic", "barrier"})
_CLOCK_READ: Final = 0x005
"""``CS2R``: copies a special register."""
_SPECIAL_REGISTER: Final = (72, 8)
"""First bit and length of the field with its number."""
_CLOCK_LOW: Final = 0x50
"""``SR_CLOCKLO``: the low half of the SM's clock."""
_MOVES: Final = frozenset({"MOV", "IMAD", "HFMA2"})
"""Operations by which ptxas sets a register to a number."""
_MAX_DISTANCE: Final = 256
"""Instructions from a clock read, or from the setting of its line, to the store of its record at most."""


def phases_of_offsets(target: GraftTarget, numbers: Mapping[int, int]) -> dict[int, int]:
    """Return the phase of each instruction by offset, from the ``numbers`` of phases by the offsets of their records.

    Instructions that follow records of several phases have none.
    """
    # With the code that grafts, which kernels with PTX need not.
    from tui_probe.engine.grafting.sass_phases import flow_of

    marks = {offset // WORD_BYTES: number for offset, number in numbers.items()}
    code = [_phase_mark(marks[index]) if index in marks else _other_instruction() for index in range(len(target.words))]
    instruction_numbers = _numbers_at(flow_of(FlowGraph.from_target(target), code), code)
    return {
        Offset(index * WORD_BYTES): number for index, number in enumerate(instruction_numbers) if number is not None
    }


def phases_of_lines(text: str, numbers: Mapping[int, int]) -> dict[int, int]:
    """Return the phase of each line of PTX, from the ``numbers`` of phases by the lines of their starts."""
    flow = Flow.from_function(parse(text).entries()[0])
    lines = [[instruction.span.line for instruction in block] for block in flow.blocks]
    blocks = [
        [_phase_mark(numbers[line]) if line in numbers else _other_instruction() for line in block_lines]
        for block_lines in lines
    ]
    code = [instruction for block in blocks for instruction in block]
    instruction_numbers = _numbers_at(Flow(blocks, flow.jumps, flow.falls_through), code)
    positions = (line for block_lines in lines for line in block_lines)
    return {line: number for line, number in zip(positions, instruction_numbers, strict=True) if number is not None}


def _numbers_at(flow: Flow, code: Sequence[Instruction]) -> list[int | None]:
    """Return the number of the last mark before each instruction; None if ways to it have different ones."""
    current = marked_phases(flow)
    names = ["" if current is None else current(instruction) or "" for instruction in code]
    return [int(name.removeprefix(f"{MARK} ")) if name else None for name in names]


def _phase_mark(number: int) -> Instruction:
    """An instruction that begins the phase with this number in a control-flow graph; it has no other effect."""
    return Instruction(MARK, (), (Immediate(str(number)),), MADE_UP)


def _other_instruction() -> Instruction:
    """An instruction of no phase: one that stands for all others."""
    return Instruction("mov", (), (), MADE_UP)


def moved_instructions(image: bytes, name: str, probe: Probe, works: Mapping[int, str]) -> Counter[str] | None:
    """Return how many instructions of other named phases each phase has in machine code, by name of the phase.

    ``works`` are the names of phases by the line that their records have. None if the code has no lines, or its clock
    reads cannot be distinguished.
    """
    # With the code that grafts, which a report of other probes needs not.
    from tui_probe.engine.grafting.sass_phases import flow_of, names_by_line

    try:
        target = GraftTarget.from_cubin(Cubin.read(image), name)
        names, graph = names_by_line(probe, target), FlowGraph.from_target(target)
    except (ImageError, UnsupportedKernelError):
        return None
    clock_reads = _clock_reads(target, works)
    if {works[clock_read.line] for clock_read in clock_reads.values()} != set(works.values()):
        return None
    code = [
        _phase_mark(clock_reads[index].line) if index in clock_reads else _other_instruction()
        for index in range(len(target.words))
    ]
    stores = {clock_read.store for clock_read in clock_reads.values()}
    moved_counts: Counter[str] = Counter()
    for index, (word, line) in enumerate(zip(target.words, _numbers_at(flow_of(graph, code), code), strict=True)):
        name_of_source = names(index * WORD_BYTES)
        if line is None or not name_of_source or index in stores:
            continue
        if operation_class(word, target.arch) in _COUNTED_CLASSES:
            moved_counts[works[line]] += int(name_of_source != works[line])
    return moved_counts


def moved_in_trace(probe_result: ProbeResult, sites: Sequence[Site]) -> Counter[str] | None:
    """Return the moves of a kernel of a trace; None if a file is missing or damaged, or the user named no phases."""
    if not any(site.phase is not None and site.phase.is_named for site in sites):
        return None
    parts = ("probe.toml",) if probe_result.kernel.probe is None else ("probes", f"{probe_result.kernel.probe}.toml")
    binary, file = probe_result.kernel.file("probed.bin"), probe_result.kernel.trace.file(*parts)
    if binary is None or file is None:
        return None
    try:
        probe = read_probe(read_within(file, PROBE_FILE), file)
        image = read_within(binary, CUBIN)
    except (OSError, ProbeFileError):
        return None
    works = {site.instruction.line: site.phase.work for site in sites if site.phase is not None}
    return moved_instructions(image, probe_result.kernel.name, probe, works)


class _ClockRead(NamedTuple):
    """A read of the clock for a record: the ``line`` in the record, and the index of the instruction that stores it."""

    line: int
    store: int


def _clock_reads(target: GraftTarget, works: Mapping[int, str]) -> dict[int, _ClockRead]:
    """The clock reads of records, by index of the instruction."""
    clock_reads = {}
    for index, word in enumerate(target.words):
        if word.operation != _CLOCK_READ or word.field(*_SPECIAL_REGISTER) != _CLOCK_LOW:
            continue
        register = word.field(*DESTINATION)
        store = _store_of(target, register, index + 1)
        line = None if store is None else _number_in(target, register + 1, store)
        if store is not None and line is not None and line in works:
            clock_reads[index] = _ClockRead(line, store)
    return clock_reads


def _store_of(target: GraftTarget, register: int, start: int) -> int | None:
    """The index of the first store of a register from ``start`` on; None if none is near."""
    nearby_words = enumerate(target.words[start : start + _MAX_DISTANCE], start)
    stores = ((index, word) for index, word in nearby_words if operation_name(word, target.arch) == "STG")
    return next((index for index, word in stores if word.field(*SOURCE_B) == register), None)


def _number_in(target: GraftTarget, register: int, end: int) -> int | None:
    """The number that a register was last set to; None if that is not near."""
    for word in reversed(target.words[max(end - _MAX_DISTANCE, 0) : end]):
        if word.field(*DESTINATION) == register and operation_name(word, target.arch) in _MOVES:
            return word.field(*IMMEDIATE)
    return None
