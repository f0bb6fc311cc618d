"""Instructions that ptxas moved across the boundaries of phases that the user named.

Machine code of the probed kernel is compared with its table of source lines: an instruction behind the clock read of
one phase whose line is of another one was moved, by ptxas or by the compiler before it. Counted are loads, stores,
barriers, products and floating-point arithmetic; the code of the probe itself has none of these but its own stores.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.grafting.sass_phases import flow_of, names_by_line
from tui_probe.errors import ImageError, ProbeFileError, UnsupportedKernelError
from tui_probe.input_limits import CUBIN, PROBE_FILE
from tui_probe.probe_files.loading import read_probe
from tui_probe.ptx.phase_names import MARK, marked_phases
from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Immediate, Instruction
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_class, operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import DESTINATION, IMMEDIATE, SOURCE_B, WORD_BYTES
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.probe_model.probe import Probe
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.sass.words import Word
    from tui_probe.trace.sites import Site

_COUNTED: Final = frozenset({"fp32", "fp64", "fp16", "bf16", "tensor", "load", "store", "atomic", "barrier"})
_CLOCK, _CLOCK_REGISTER = 0x005, (72, 8)
_CLOCK_LOW: Final = 0x50
_MOVES: Final = frozenset({"MOV", "IMAD", "HFMA2"})
"""Operations by which ptxas sets a register to a number."""
_NEAR: Final = 256
"""Instructions between a clock read and the store of its record at most."""


def moved_instructions(image: bytes, name: str, probe: Probe, works: Mapping[int, str]) -> Counter[str] | None:
    """Return how many instructions of other named phases each phase has in machine code, by name of the phase.

    ``works`` are the names of phases by the line that their records have. None if the code has no lines, or its clock
    reads cannot be distinguished.
    """
    try:
        target = GraftTarget.of(Cubin.read(image), name)
        names, graph = names_by_line(probe, target), FlowGraph.of(target)
    except (ImageError, UnsupportedKernelError):
        return None
    reads = _clock_reads(target.words, works)
    if {works[line] for line, _ in reads.values()} != set(works.values()):
        return None
    code = [_mark(reads[index][0]) if index in reads else _plain() for index in range(len(target.words))]
    current = marked_phases(flow_of(graph, code))
    assert current is not None
    stores = {store for _, store in reads.values()}
    moved: Counter[str] = Counter()
    for index, (word, instruction) in enumerate(zip(target.words, code, strict=True)):
        own, here = names(index * WORD_BYTES), (current(instruction) or "").removeprefix(f"{MARK} ")
        if own and here and index not in stores and operation_class(word, target.arch) in _COUNTED:
            moved[works[int(here)]] += own != works[int(here)]
    return moved


def moved_in_trace(of: ProbeResult, sites: Sequence[Site]) -> Counter[str] | None:
    """Return the moves of a kernel of a trace; None if a file is missing or damaged, or the user named no phases."""
    if not any(site.phase is not None and site.phase.named for site in sites):
        return None
    parts = ("probe.toml",) if of.kernel.probe is None else ("probes", f"{of.kernel.probe}.toml")
    binary, file = of.kernel.file("probed.bin"), of.kernel.trace.file(*parts)
    if binary is None or file is None:
        return None
    try:
        probe = read_probe(read_within(file, PROBE_FILE), file)
        image = read_within(binary, CUBIN)
    except (OSError, ProbeFileError):
        return None
    works = {site.instruction.line: site.phase.work for site in sites if site.phase is not None}
    return moved_instructions(image, of.kernel.name, probe, works)


def _clock_reads(words: Sequence[Word], works: Mapping[int, str]) -> dict[int, tuple[int, int]]:
    """The line of the record of each clock read, and the number of the instruction that stores it."""
    reads = {}
    for index, word in enumerate(words):
        if word.operation == _CLOCK and word.field(*_CLOCK_REGISTER) == _CLOCK_LOW:
            register = word.field(*DESTINATION)
            for at in range(index + 1, min(index + _NEAR, len(words))):
                if operation_name(words[at], 90) == "STG" and words[at].field(*SOURCE_B) == register:
                    line = _number_in(words, register + 1, at)
                    if line in works:
                        reads[index] = line, at
                    break
    return reads


def _number_in(words: Sequence[Word], register: int, before: int) -> int:
    """The number that a register was last set to; -1 if unknown."""
    for at in range(before - 1, max(before - _NEAR, -1), -1):
        if words[at].field(*DESTINATION) == register and operation_name(words[at], 90) in _MOVES:
            return words[at].field(*IMMEDIATE)
    return -1


def _mark(line: int) -> Instruction:
    return Instruction(MARK, (), (Immediate(str(line)),), MADE_UP)


def _plain() -> Instruction:
    return Instruction("mov", (), (), MADE_UP)
